//! Endpoints that refuse connections, that do not respond, and that remember an older connection from the same port.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use router_common::verdict::DialCounter;
use tests::command;
use tests::hello;
use tests::pauses::Pauses;
use tests::sluice::DataPath;
use tests::steering::{BACK, BACKEND_PORT, Family, HOST, Setup, Stage};
use tests::stream::{self, Pair, joined};
use tests::wait;

on_both_data_paths! {
    one_endpoint_of_two_refuses,
    every_endpoint_refuses,
    a_refusal_by_icmp_is_a_refusal,
    one_endpoint_of_two_is_silent,
    the_only_endpoint_is_silent,
    the_backend_closes_first_and_ports_come_round_at_once,
    ports_come_round_without_timestamps,
}

/// A closed port.
const CLOSED_PORT: u16 = BACKEND_PORT + 1;
/// Time-out for the switch to another endpoint.
const AT_ONCE: Duration = Duration::from_millis(900);
/// Maximum time until a connection without an answering endpoint ends.
const GIVEN_UP: Duration = Duration::from_secs(45);

fn endpoint(family: Family, host: u8, port: u16) -> SocketAddr {
    SocketAddr::new(family.address(BACK, host), port)
}

fn one_endpoint_of_two_refuses(data_path: DataPath) -> Result<()> {
    for family in [Family::V4, Family::V6] {
        let endpoints = vec![endpoint(family, 2, CLOSED_PORT), endpoint(family, 3, BACKEND_PORT)];
        let stage = Stage::new(data_path, Setup { endpoints, ..Setup::new(family) })?;
        for seed in 0..40 {
            stage.connect()?.exchange(seed, 20_000, 20_000)?;
        }
        stage.all_ended()?;
        if stage.steers() {
            ensure!(stage.dial_counter(DialCounter::NextEndpoint)? > 0, "the other one was never tried first");
        }
    }
    Ok(())
}

/// Firewalls refuse connections by ICMP errors, with various codes.
fn a_refusal_by_icmp_is_a_refusal(data_path: DataPath) -> Result<()> {
    const V4: [&str; 4] = [
        "icmp type net-unreachable",
        "icmp type host-unreachable",
        "icmp type port-unreachable",
        "icmp type admin-prohibited",
    ];
    const V6: [&str; 4] = [
        "icmpv6 type no-route",
        "icmpv6 type addr-unreachable",
        "icmpv6 type port-unreachable",
        "icmpv6 type admin-prohibited",
    ];
    for (family, kinds) in [(Family::V4, V4), (Family::V6, V6)] {
        let endpoints = vec![endpoint(family, 2, CLOSED_PORT), endpoint(family, 3, BACKEND_PORT)];
        let stage = Stage::new(data_path, Setup { endpoints, ..Setup::new(family) })?;
        // An error that arrives while the SYN is being sent, as over a veth, is lost in the stack: it retransmits after
        // 1 s.
        let most = if stage.steers() { AT_ONCE } else { 3 * AT_ONCE };
        // Otherwise, a host limits the errors that it sends to another host per second.
        for setting in ["ipv4/icmp_ratelimit", "ipv6/icmp/ratelimit"] {
            stage.backend.set(setting, "0")?;
        }
        for kind in kinds {
            reject(&stage, kind)?;
            for seed in 0..8 {
                let begun = Instant::now();
                stage.connect()?.exchange(seed, 20_000, 20_000)?;
                ensure!(begun.elapsed() < most, "{kind}: {:?} until another endpoint was tried", begun.elapsed());
            }
        }
        stage.all_ended()?;
        if stage.steers() {
            ensure!(stage.dial_counter(DialCounter::NextEndpoint)? > 0, "the other one was never tried first");
            ensure!(stage.dial_counter(DialCounter::SynAgain)? == 0, "an error was no refusal");
        }
        let endpoints = vec![endpoint(family, 2, CLOSED_PORT)];
        let alone = Stage::new(data_path, Setup { endpoints, ..Setup::new(family) })?;
        reject(&alone, kinds[0])?;
        let took = given_up(&alone)?;
        ensure!(took < most, "the client was left waiting for {took:?}");
    }
    Ok(())
}

/// Makes the backend's host reject connections to its closed port.
fn reject(stage: &Stage, kind: &str) -> Result<()> {
    let rules = format!(
        "table inet guard {{ chain input {{ type filter hook input priority filter; }}; }}
         flush chain inet guard input
         add rule inet guard input tcp dport {CLOSED_PORT} reject with {kind}"
    );
    command::output(stage.backend.command("nft")?.arg(rules)).map(drop)
}

fn every_endpoint_refuses(data_path: DataPath) -> Result<()> {
    let family = Family::V4;
    let endpoints = vec![endpoint(family, 2, CLOSED_PORT), endpoint(family, 3, CLOSED_PORT)];
    let stage = Stage::new(data_path, Setup { endpoints, ..Setup::new(family) })?;
    for _ in 0..10 {
        let took = given_up(&stage)?;
        ensure!(took < Duration::from_secs(5), "the client was left waiting for {took:?}");
    }
    if stage.steers() {
        ensure!(stage.dial_counter(DialCounter::Refused)? == 10, "each was refused by all, in the kernel");
    }
    Ok(())
}

/// Sends a hello and waits for the end of the connection, without a response; returns the duration.
fn given_up(stage: &Stage) -> Result<Duration> {
    let mut client = stream::open(&stage.client, stage.address)?;
    client.set_read_timeout(Some(GIVEN_UP))?;
    client.write_all(&hello::client_hello(HOST)?)?;
    let start = Instant::now();
    match stream::read_once(&mut client) {
        Ok(0) => (),
        Err(error) if error.kind() == ErrorKind::ConnectionReset => (),
        other => bail!("instead of an end: {other:?}"),
    }
    Ok(start.elapsed())
}

fn one_endpoint_of_two_is_silent(data_path: DataPath) -> Result<()> {
    let family = Family::V4;
    let nobody = endpoint(family, 99, BACKEND_PORT);
    let endpoints = vec![nobody, endpoint(family, 2, BACKEND_PORT)];
    let stage = Stage::new(data_path, Setup { endpoints, ..Setup::new(family) })?;
    stage.silence(nobody)?;
    // Concurrently; with so many connections, some dial the silent endpoint first, except in one case of 2²⁴.
    let (slowest, fastest) = thread::scope(|scope| {
        let connections: Vec<_> = (0..24).map(|_| scope.spawn(|| answered(&stage))).collect();
        let origins = scope.spawn(|| (0..24).map(|_| answer(&stage)).collect::<Result<Vec<_>>>());
        let times = connections.into_iter().map(joined).collect::<Result<Vec<_>>>()?;
        drop(joined(origins)?);
        Ok::<_, anyhow::Error>((times.iter().max().copied(), times.iter().min().copied()))
    })?;
    let (slowest, fastest) = (slowest.context("some")?, fastest.context("some")?);
    ensure!(slowest > Duration::from_millis(150), "none went to the silent endpoint first: {slowest:?}");
    ensure!(fastest < Duration::from_millis(150), "none went to the other endpoint first: {fastest:?}");
    Ok(())
}

/// Sends a hello, and the backend responds; returns the duration.
fn answered(stage: &Stage) -> Result<Duration> {
    let hello = hello::client_hello(HOST)?;
    let mut client = stream::open(&stage.client, stage.address)?;
    client.set_read_timeout(Some(GIVEN_UP))?;
    let start = Instant::now();
    client.write_all(&hello)?;
    let mut answer = [0; 2];
    client.read_exact(&mut answer)?;
    ensure!(answer == *b"ok", "{answer:?} arrived");
    Ok(start.elapsed())
}

/// Responds to the next connection at the backend.
fn answer(stage: &Stage) -> Result<std::net::TcpStream> {
    let mut origin = stream::accept(&stage.listener)?;
    stage.check_port(origin.peer_addr()?.port())?;
    origin.write_all(b"ok")?;
    Ok(origin)
}

/// Pods are replaced while clients connect: a dialed endpoint may vanish, when the route has others already.
#[test]
fn an_endpoint_that_goes_while_it_is_dialed_gives_way_to_the_one_that_comes() -> Result<()> {
    let family = Family::V4;
    let (nobody, somebody) = (endpoint(family, 99, BACKEND_PORT), endpoint(family, 2, BACKEND_PORT));
    let stage = Stage::new(DataPath::Kernel, Setup { endpoints: vec![nobody], ..Setup::new(family) })?;
    stage.silence(nobody)?;
    thread::scope(|scope| {
        let client = scope.spawn(|| answered(&stage));
        wait::wait_until("the kernel dials", wait::PATIENCE, || {
            stage.dial_counter(DialCounter::Dialed).is_ok_and(|dials| dials == 1)
        })?;
        stage.change(HOST, &[somebody])?;
        drop(answer(&stage)?);
        joined(client)
    })?;
    let is_line = |line: &String| line.contains(" access: ") && line.contains("retries=1");
    wait::wait_until("the access log has the connection, and that it was tried twice", wait::PATIENCE, || {
        stage.sluice.output().iter().any(is_line)
    })
    .with_context(|| stage.sluice.output().join("\n"))
    .map(drop)
}

/// The relay waits 5 s. The kernel path forgets the dial after the same time, and answers the client's next
/// retransmission, 6.2 s after its hello, with a RST.
fn the_only_endpoint_is_silent(data_path: DataPath) -> Result<()> {
    let family = Family::V6;
    let nobody = endpoint(family, 99, BACKEND_PORT);
    let stage = Stage::new(data_path, Setup { endpoints: vec![nobody], ..Setup::new(family) })?;
    stage.silence(nobody)?;
    let waited = given_up(&stage)?;
    ensure!(waited > Duration::from_secs(4), "after {waited:?} already");
    ensure!(waited < Duration::from_secs(10), "only after {waited:?}");
    Ok(())
}

fn the_backend_closes_first_and_ports_come_round_at_once(data_path: DataPath) -> Result<()> {
    ports_come_round(data_path, true)
}

fn ports_come_round_without_timestamps(data_path: DataPath) -> Result<()> {
    ports_come_round(data_path, false)
}

/// The backend's machine remembers each connection for a minute (TIME-WAIT): a new one from the same port must appear
/// newer.
fn ports_come_round(data_path: DataPath, timestamps: bool) -> Result<()> {
    const CONNECTIONS: u32 = 500;
    // Less than a minimal retransmission timeout (200 ms). Pauses of the machine are subtracted.
    const STALL: Duration = Duration::from_millis(150);
    let mut setup = Setup::new(Family::V4);
    if data_path == DataPath::Kernel {
        setup.arguments = ["--snat-ports", "10240-10271"].map(str::to_owned).to_vec();
    }
    let stage = Stage::new(data_path, setup)?;
    if !timestamps {
        stage.backend.set("ipv4/tcp_timestamps", "0")?;
    }
    let (mut stalls, pauses) = (Vec::new(), Pauses::watch());
    for number in 0..CONNECTIONS {
        pauses.reset();
        let start = Instant::now();
        let Pair { mut client, mut origin } = stage.connect()?;
        origin.write_all(b"goodbye")?;
        origin.shutdown(Shutdown::Write)?;
        let mut received = String::new();
        client.read_to_string(&mut received)?;
        ensure!(received == "goodbye", "{received:?} arrived");
        client.shutdown(Shutdown::Write)?;
        ensure!(stream::read_once(&mut origin)? == 0, "bytes after the end");
        let elapsed = start.elapsed();
        if elapsed > STALL {
            let lost = pauses.lost();
            if elapsed.saturating_sub(lost) > STALL {
                stalls.push((number, elapsed, lost));
            }
        }
    }
    // On a busy machine, the scheduler may delay one of them.
    ensure!(stalls.len() <= 2, "of {CONNECTIONS} connections these stalled: {stalls:?}");
    ensure!(stage.dial_counter(DialCounter::Challenged)? == 0, "the backend took a new connection for an old one");
    ensure!(!stage.steers() || stage.dial_counter(DialCounter::TakenOver)? > 0, "no port came round");
    stage.all_ended()
}
