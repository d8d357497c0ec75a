//! Ends that no stack behaves like: sequence numbers and timestamps about to wrap, repeated and overlapping segments,
//! small windows. The client or the backend is raw; the other end is a stack, which drops invalid packets.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use router_common::maps::names;
use serde_json::Value;
use socket2::SockRef;
use tests::command;
use tests::hello::{client_hello, short_hello};
use tests::raw::{self, End, Nature, Place};
use tests::sluice::DataPath;
use tests::steering::{BACK, BACKEND_PORT, FRONT, Family, HOST, Setup, Stage};
use tests::stream::{self, Pair, joined};
use tests::wait;

on_both_data_paths! {
    clients_whose_numbers_wrap,
    clients_whose_numbers_wrap_over_ipv6,
    backends_whose_numbers_wrap,
    backends_whose_numbers_wrap_over_ipv6,
    hellos_whose_segments_are_repeated,
    hellos_whose_segments_come_in_another_order,
    hellos_that_are_damaged_on_their_way,
    a_client_that_says_nothing_is_given_up,
    a_forged_fin_of_the_past_ends_nothing,
    a_client_that_has_forgotten_a_connection_whose_endpoint_is_gone_begins_anew,
    a_forged_reset_ends_no_connection_whose_client_only_acknowledges,
}

/// Bytes each way: enough for sequence numbers of either end to wrap.
const LENGTH: usize = 60_000;
/// Maximum time until a silent client is disconnected: the stack's time-out, then the proxy's.
const GIVEN_UP: Duration = Duration::from_secs(30);
/// Payload of a raw end's segments.
const SEGMENT: usize = 1200;

/// Initial sequence numbers: one before the wrap, within the hello, and a few segments after it; and half-way, where
/// the sign of differences changes.
const ISNS: [u32; 6] =
    [u32::MAX, u32::MAX - 1, u32::MAX - 100, u32::MAX - 1500, u32::MAX - 20_000, i32::MAX as u32 - 700];

/// Every nature with a wrap at some point, with different windows.
fn natures() -> impl Iterator<Item = Nature> {
    let clocks = [Some(u32::MAX), Some(u32::MAX - 3), Some(i32::MAX as u32 - 2), None];
    let shifts = [Some(0), Some(3), Some(14), None];
    ISNS.into_iter().flat_map(move |isn| {
        clocks.into_iter().zip(shifts).map(move |(clock, shift)| {
            // 14: windows are multiples of 16 KiB.
            let window = if shift == Some(14) { 1 << 20 } else { 60_000 };
            Nature { isn, clock, shift, window, ..Nature::COMMON }
        })
    })
}

/// Raw ends read packets from the wire, so links have no offloads.
fn setup(family: Family) -> Setup {
    Setup { offloads: false, ..Setup::new(family) }
}

fn client(stage: &Stage, port: u16, nature: Nature) -> Result<End> {
    let address = SocketAddr::new(raw::address_on(stage.family.address(FRONT, 2)), port);
    let place = Place { at: (&stage.client, "eth0"), gateway: (&stage.router, "front"), address };
    End::connect(&place, stage.address, nature)
}

/// The content of a stream of this length.
fn content(seed: u64, length: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream::Content::of(seed, length as u64).send(&mut bytes, length as u64, |_| ())?;
    Ok(bytes)
}

fn clients_whose_numbers_wrap(data_path: DataPath) -> Result<()> {
    wrapping_clients(data_path, Family::V4)
}

fn clients_whose_numbers_wrap_over_ipv6(data_path: DataPath) -> Result<()> {
    wrapping_clients(data_path, Family::V6)
}

fn wrapping_clients(data_path: DataPath, family: Family) -> Result<()> {
    let stage = Stage::new(data_path, setup(family))?;
    for (port, nature) in (20_000..).zip(natures()) {
        let end = client(&stage, port, nature).with_context(|| format!("{nature:?}"))?;
        let hello = short_hello(HOST)?;
        talk(&stage, end, &hello, Dialer::Certain, |end| end.send(&hello)).with_context(|| format!("{nature:?}"))?;
    }
    stage.all_ended()
}

/// Expected dialer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dialer {
    /// The one of the data path.
    Certain,
    /// Any.
    Any,
}

/// A raw client sends its hello in the given way; then bytes each way, and a close.
fn talk(
    stage: &Stage,
    mut end: End,
    hello: &[u8],
    dialer: Dialer,
    first: impl FnOnce(&mut End) -> Result<()>,
) -> Result<()> {
    let (up, down) = (content(1, LENGTH)?, content(2, LENGTH)?);
    first(&mut end)?;
    thread::scope(|scope| {
        let backend = scope.spawn(|| {
            let mut origin = stream::accept_with(&stage.listener, hello)?;
            if dialer == Dialer::Certain {
                stage.check_port(origin.peer_addr()?.port())?;
            }
            let mut received = vec![0; LENGTH];
            origin.read_exact(&mut received)?;
            ensure!(received == up, "something else arrived at the backend");
            origin.write_all(&down)?;
            origin.shutdown(Shutdown::Write)?;
            ensure!(stream::read_once(&mut origin)? == 0, "bytes after the end");
            Ok(())
        });
        let spoken = (|| {
            end.all_acknowledged().context("the hello")?;
            end.send_all(&up, SEGMENT).context("client to backend")?;
            end.receive(LENGTH).context("backend to client")?;
            ensure!(end.received() == down, "something else arrived at the client");
            end.finished()?;
            end.finish()
        })();
        spoken.and(joined(backend))
    })
}

fn backends_whose_numbers_wrap(data_path: DataPath) -> Result<()> {
    wrapping_backends(data_path, Family::V4)
}

fn backends_whose_numbers_wrap_over_ipv6(data_path: DataPath) -> Result<()> {
    wrapping_backends(data_path, Family::V6)
}

fn wrapping_backends(data_path: DataPath, family: Family) -> Result<()> {
    let address = SocketAddr::new(raw::address_on(family.address(BACK, 2)), BACKEND_PORT);
    let stage = Stage::new(data_path, Setup { endpoints: vec![address], ..setup(family) })?;
    for nature in natures() {
        backend(&stage, address, nature).with_context(|| format!("{nature:?}"))?;
    }
    stage.all_ended()
}

/// A client with a stack and a raw backend.
fn backend(stage: &Stage, address: SocketAddr, nature: Nature) -> Result<()> {
    let place = Place { at: (&stage.backend, "eth0"), gateway: (&stage.router, "back"), address };
    let mut end = End::listen(&place, nature)?;
    let hello = client_hello(HOST)?;
    let (up, down) = (content(3, LENGTH)?, content(4, LENGTH)?);
    let mut client = stream::open(&stage.client, stage.address)?;
    client.write_all(&hello)?;
    end.accept()?;
    stage.check_port(end.remote().port())?;
    end.receive(hello.len())?;
    thread::scope(|scope| {
        let client = scope.spawn(|| {
            client.write_all(&up)?;
            client.shutdown(Shutdown::Write)?;
            let mut received = Vec::new();
            client.read_to_end(&mut received)?;
            ensure!(received == down, "something else arrived at the client");
            Ok(())
        });
        let spoken = (|| {
            end.receive(hello.len() + LENGTH).context("client to backend")?;
            ensure!(end.received() == [&hello[..], &up[..]].concat(), "something else arrived at the backend");
            end.finished()?;
            end.send_all(&down, SEGMENT).context("backend to client")?;
            end.finish()
        })();
        spoken.and(joined(client))
    })
}

/// The way in which a client sends its hello.
type Way<'h> = &'h dyn Fn(&mut End) -> Result<()>;

fn hellos_whose_segments_are_repeated(data_path: DataPath) -> Result<()> {
    let stage = Stage::new(data_path, setup(Family::V4))?;
    let hello = client_hello(HOST)?;
    let half = hello.len() / 2;
    let ways: [(&str, Way); 5] = [
        ("the first segment twice", &|end| {
            end.send(&hello[..half])?;
            end.send_again(0, &hello[..half])?;
            end.send(&hello[half..])
        }),
        ("the second segment twice", &|end| {
            end.send(&hello[..half])?;
            end.send(&hello[half..])?;
            end.send_again(half, &hello[half..])
        }),
        ("both segments twice", &|end| {
            for _ in 0..2 {
                end.send_again(0, &hello[..half])?;
                end.send_again(half, &hello[half..])?;
            }
            end.sent(hello.len())
        }),
        ("the first again, longer", &|end| {
            end.send_again(0, &hello[..half])?;
            end.send_again(0, &hello[..half + 200])?;
            end.send_again(half + 100, &hello[half + 100..])?;
            end.sent(hello.len())
        }),
        ("in pieces, then once more as a whole", &|end| {
            for (i, piece) in hello.chunks(300).enumerate() {
                end.send_again(300 * i, piece)?;
            }
            end.send_again(0, &hello[..1400])?;
            end.sent(hello.len())
        }),
    ];
    for (port, (way, first)) in (21_000..).zip(ways) {
        let end = client(&stage, port, Nature { isn: u32::MAX - 800, ..Nature::COMMON })?;
        talk(&stage, end, &hello, Dialer::Any, first).context(way)?;
    }
    stage.all_ended()
}

/// A reordered first flight may be passed to the agent: on both data paths, no byte is lost.
fn hellos_whose_segments_come_in_another_order(data_path: DataPath) -> Result<()> {
    let stage = Stage::new(data_path, setup(Family::V6))?;
    let hello = client_hello(HOST)?;
    let third = hello.len() / 3;
    let parts = [(0, third), (third, 2 * third), (2 * third, hello.len())];
    for (port, order) in (22_000..).zip([[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]) {
        let end = client(&stage, port, Nature::COMMON)?;
        let first = |end: &mut End| {
            for part in order {
                let (from, to): (usize, usize) = parts[part];
                end.send_again(from, &hello[from..to])?;
            }
            end.sent(hello.len())?;
            // The dropped bytes are retransmitted.
            end.send_again(0, &hello[..1000])?;
            end.send_again(1000, &hello[1000..])
        };
        talk(&stage, end, &hello, Dialer::Any, first).with_context(|| format!("parts {order:?}"))?;
    }
    stage.all_ended()
}

/// The stack drops segments with a wrong checksum; a program that reads them before the stack must do so too.
fn hellos_that_are_damaged_on_their_way(data_path: DataPath) -> Result<()> {
    for family in [Family::V4, Family::V6] {
        let stage = Stage::new(data_path, setup(family))?;
        for (port, hello) in (20_000..).zip([short_hello(HOST)?, client_hello(HOST)?]) {
            let end = client(&stage, port, Nature::COMMON)?;
            talk(&stage, end, &hello, Dialer::Certain, |end| {
                for segment in hello.chunks(SEGMENT) {
                    end.send_damaged(segment)?;
                    end.send(segment)?;
                }
                Ok(())
            })
            .with_context(|| format!("{family:?}, {} bytes", hello.len()))?;
        }
        stage.all_ended()?;
    }
    Ok(())
}

/// On the kernel's path the stack delays its socket until the first bytes arrive (`TCP_DEFER_ACCEPT`), with a time-out.
fn a_client_that_says_nothing_is_given_up(data_path: DataPath) -> Result<()> {
    let stage = Stage::new(data_path, Setup::new(Family::V4))?;
    let mut client = stream::open(&stage.client, stage.address)?;
    client.set_read_timeout(Some(GIVEN_UP))?;
    match stream::read_once(&mut client) {
        Ok(0) => Ok(()),
        Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(()),
        other => bail!("instead of an end: {other:?}"),
    }
}

/// An attacker who guesses a client's sequence numbers must not end its half of a half-closed connection.
fn a_forged_fin_of_the_past_ends_nothing(data_path: DataPath) -> Result<()> {
    let stage = Stage::new(data_path, setup(Family::V4))?;
    let mut end = client(&stage, 20_000, Nature::COMMON)?;
    let hello = short_hello(HOST)?;
    end.send(&hello)?;
    let mut origin = stream::accept_with(&stage.listener, &hello)?;
    stage.check_port(origin.peer_addr()?.port())?;
    end.all_acknowledged()?;
    end.forge_fin(200)?;
    origin.shutdown(Shutdown::Write)?;
    end.finished()?;
    for part in [&b"first"[..], b"second"] {
        end.send(part)?;
        end.all_acknowledged()?;
        let mut received = vec![0; part.len()];
        origin.read_exact(&mut received)?;
        ensure!(received == part, "something else arrived");
    }
    if stage.steers() {
        let flows = stage.sluice.dump(names::FLOWS)?;
        let lives = |flow: &Value| flow["state"] == "established";
        ensure!(flows.as_array().is_some_and(|flows| flows.len() == 2 && flows.iter().all(lives)), "{flows}");
    }
    end.finish()?;
    stage.all_ended()
}

/// The client and the connection's endpoint vanish without notifying the router; then the same client port is reused.
fn a_client_that_has_forgotten_a_connection_whose_endpoint_is_gone_begins_anew(data_path: DataPath) -> Result<()> {
    for family in [Family::V4, Family::V6] {
        let stage = Stage::new(data_path, Setup::new(family))?;
        let from = SocketAddr::new(family.address(FRONT, 2), 20_001);
        let Pair { client, origin: _origin } = stage.connect_from(from)?;

        let rule = "table inet lost { chain output { type filter hook output priority filter;
                    tcp flags & (rst | fin) != 0 drop; }; }";
        command::output(stage.client.command("nft")?.arg(rule))?;
        SockRef::from(&client).set_linger(Some(Duration::ZERO))?;
        drop(client);
        command::output(stage.client.command("nft")?.args(["delete", "table", "inet", "lost"]))?;
        stage.silence(SocketAddr::new(family.address(BACK, 2), BACKEND_PORT))?;
        let other = SocketAddr::new(family.address(BACK, 3), BACKEND_PORT);
        stage.change(HOST, &[other])?;
        let endpoint = || Ok::<_, anyhow::Error>(stage.sluice.get("endpoints")?.to_string());
        let other = other.ip().to_string();
        wait::wait_until("the new endpoint is known", wait::PATIENCE, || {
            endpoint().is_ok_and(|all| all.contains(&other))
        })?;

        let begun = Instant::now();
        stage.connect_from(from)?.exchange(1, 20_000, 20_000)?;
        // Its third SYN is sent after 3 s.
        ensure!(begun.elapsed() < Duration::from_secs(8), "it took {:?}", begun.elapsed());
    }
    Ok(())
}

/// The backend answers a RST with another than the expected number by a challenge ACK (RFC 5961 §3.2), and continues.
/// So does the client, which only sends acknowledgements.
fn a_forged_reset_ends_no_connection_whose_client_only_acknowledges(data_path: DataPath) -> Result<()> {
    let stage = Stage::new(data_path, setup(Family::V4))?;
    let mut end = client(&stage, 20_000, Nature::COMMON)?;
    let hello = short_hello(HOST)?;
    end.send(&hello)?;
    let mut origin = stream::accept_with(&stage.listener, &hello)?;
    end.all_acknowledged()?;
    end.forge_reset(100)?;
    let mut sent = 0;
    wait::wait_until("the connection goes on", wait::PATIENCE, || {
        sent += 1000;
        let went_on = origin.write_all(&[7; 1000]).map_err(Into::into).and_then(|()| end.receive(sent));
        let lives = |flow: &Value| flow["state"] == "established";
        let flows = if stage.steers() { stage.sluice.dump(names::FLOWS) } else { Ok(Value::Array(Vec::new())) };
        went_on.is_ok() && flows.is_ok_and(|flows| flows.as_array().is_some_and(|flows| flows.iter().all(lives)))
    })?;
    origin.shutdown(Shutdown::Write)?;
    end.finished()?;
    end.finish()?;
    stage.all_ended()
}
