//! Handshakes and habits of clients that stacks accept: both data paths behave equally.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use router_common::verdict::Reason;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tests::netns::Netns;
use tests::sluice::DataPath;
use tests::steering::{BACK, Carrier, FRONT, Family, Seen, Setup, Stage, alike, hello};
use tests::stream::{self, Pair};
use tests::wait::{PATIENCE, wait_until};

use crate::links::{self, machines, plain};

/// More connections than any queue of half-open ones holds.
const MANY: u32 = 2000;

fn stage(data_path: DataPath, family: Family) -> Result<Stage> {
    let stage = Stage::new(data_path, Setup::new(family))?;
    stage.router.set(family.forwarding(), "1")?;
    Ok(stage)
}

#[test]
fn syn_cookies() -> Result<()> {
    alike(stage, |stage| {
        // SYN cookies for every connection, not only when the queue is full.
        stage.router.set("ipv4/tcp_syncookies", "2")?;
        let seen = (0..5).map(|_| stage.talk(Carrier::Kernel)).collect::<Result<Vec<_>>>()?;
        let sent = counter(&stage.router, "SyncookiesSent")?;
        ensure!(sent >= 5, "{sent} cookies");
        Ok(seen)
    })
}

/// Data in the SYN, which the router's stack does not accept: the client retransmits it.
#[test]
fn tcp_fast_open_that_the_router_does_not_take() -> Result<()> {
    alike(stage, |stage| {
        // Without a TFO cookie.
        stage.client.set("ipv4/tcp_fastopen", "5")?;
        let seen =
            (0..3).map(|_| stage.carried_by(Carrier::Kernel, || fast_open(stage))).collect::<Result<Vec<_>>>()?;
        let taken = counter(&stage.router, "TCPFastOpenPassive")?;
        ensure!(taken == 0, "{taken} were taken");
        Ok(seen)
    })
}

/// Data in the SYN, which the router's stack accepts, so the agent serves the connection.
#[test]
fn tcp_fast_open_that_the_router_takes() -> Result<()> {
    let world = |data_path, family: Family| {
        let machines = machines(family)?;
        for link in [FRONT, BACK] {
            plain(family, &machines, link)?;
        }
        // For all listening sockets from now on, without a TFO cookie.
        machines[1].set("ipv4/tcp_fastopen", "1538")?;
        links::stage(data_path, family, machines)
    };
    alike(world, |stage| {
        stage.client.set("ipv4/tcp_fastopen", "5")?;
        let relayed = Carrier::Agent(Reason::OutOfOrder);
        let seen = (0..3).map(|_| stage.carried_by(relayed, || fast_open(stage))).collect::<Result<Vec<_>>>()?;
        let taken = counter(&stage.router, "TCPFastOpenPassive")?;
        ensure!(taken == 3, "{taken} were taken");
        Ok(seen)
    })
}

/// A connection with as much of the hello in the SYN as fits (RFC 7413).
fn fast_open(stage: &Stage) -> Result<Seen> {
    let mut client = stage.client.run(|| {
        let socket = Socket::new(Domain::for_address(stage.address), Type::STREAM, None)?;
        let on: libc::c_int = 1;
        let length = size_of_val(&on) as libc::socklen_t;
        // SAFETY: the option's value is an integer of that size, which is read during the call.
        let set = unsafe {
            let option = libc::TCP_FASTOPEN_CONNECT;
            libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, option, (&raw const on).cast(), length)
        };
        ensure!(set == 0, std::io::Error::last_os_error());
        socket.connect(&stage.address.into())?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(TcpStream::from(socket))
    })?;
    let hello = hello()?;
    client.write_all(&hello)?;
    finished(client, stage, &hello)
}

#[test]
fn multipath_tcp() -> Result<()> {
    const IPPROTO_MPTCP: i32 = 262;
    alike(stage, |stage| {
        let mut client = stage.client.run(|| {
            let socket =
                Socket::new(Domain::for_address(stage.address), Type::STREAM, Some(Protocol::from(IPPROTO_MPTCP)))?;
            socket.connect_timeout(&stage.address.into(), PATIENCE)?;
            socket.set_read_timeout(Some(PATIENCE))?;
            Ok(TcpStream::from(socket))
        })?;
        let seen = stage.carried_by(Carrier::Kernel, || {
            let hello = hello()?;
            client.write_all(&hello)?;
            finished(client, stage, &hello)
        })?;
        // The client offered MPTCP, and fell back to TCP.
        let fell_back = counter(&stage.client, "MPCapableFallbackSYNACK")?;
        ensure!(fell_back == 1, "{fell_back}");
        Ok(seen)
    })
}

/// Completes a connection whose client has sent its hello.
fn finished(client: TcpStream, stage: &Stage, hello: &[u8]) -> Result<Seen> {
    let pair = Pair { client, origin: stream::accept_with(&stage.listener, hello)? };
    let seen = Seen::of(&pair)?;
    pair.greet()?;
    pair.exchange(1, 200_000, 200_000)?;
    Ok(seen)
}

/// The host's own filter applies to a client's SYN on either data path.
#[test]
fn a_client_that_the_host_rejects() -> Result<()> {
    alike(stage, |stage| {
        stage.carried_by(Carrier::AgentAlone, || {
            let rule = "table inet story { chain c { type filter hook input priority 0; \
                 iifname front tcp dport 8443 reject with tcp reset; }; }";
            stage.router.feed(&["nft", "-f", "-"], rule)?;
            let refused = stage.client.run(|| {
                let client = TcpStream::connect_timeout(&stage.address, PATIENCE);
                Ok(client.err().context("a connection")?.kind())
            })?;
            ensure!(refused == ErrorKind::ConnectionRefused, "{refused:?}");
            stage.router.feed(&["nft", "-f", "-"], "flush ruleset")?;
            Ok(refused)
        })
    })
}

/// As load balancers and kubelets do: they connect, and disconnect.
#[test]
fn health_checks_that_only_connect() -> Result<()> {
    alike(stage, |stage| {
        for number in 0..MANY {
            let client = stream::open(&stage.client, stage.address)?;
            if !number.is_multiple_of(2) {
                SockRef::from(&client).set_linger(Some(Duration::ZERO))?;
            }
        }
        let seen = stage.talk(Carrier::Kernel)?;
        stage.listener.set_nonblocking(true)?;
        ensure!(stage.listener.accept().is_err(), "the endpoint got one");
        stage.all_ended()?;
        stage.nothing_is_left()?;
        let mut sockets = Default::default();
        wait_until("the router has closed its ends", PATIENCE, || {
            sockets = stage.router_sockets().unwrap_or_default();
            sockets.is_empty()
        })
        .with_context(|| format!("{sockets:?}"))?;
        Ok(seen)
    })
}

/// All connections use the same address and port of the client; the endpoint closes them, or the client resets them.
#[test]
fn a_port_that_is_used_200_times() -> Result<()> {
    alike(stage, |stage| {
        let from = SocketAddr::new(stage.family.address(FRONT, 2), 20_001);
        stage.carried_by(Carrier::Kernel, || {
            let use_it = |number| again(stage, from, number).with_context(|| format!("connection {number}"));
            (0..200).map(use_it).collect::<Result<Vec<_>>>()
        })
    })
}

fn again(stage: &Stage, from: SocketAddr, number: u32) -> Result<Seen> {
    let mut client = stage.open_from(from)?;
    let hello = hello()?;
    client.write_all(&hello)?;
    let pair = Pair { client, origin: stream::accept_with(&stage.listener, &hello)? };
    let seen = Seen::of(&pair)?;
    pair.greet()?;
    let Pair { mut client, mut origin } = pair;
    if number.is_multiple_of(2) {
        origin.shutdown(Shutdown::Write)?;
        ensure!(client.read(&mut [0; 8])? == 0, "bytes after the end");
        drop(client);
        ensure!(stream::read_once(&mut origin)? == 0, "bytes after the end");
    } else {
        SockRef::from(&client).set_linger(Some(Duration::ZERO))?;
        drop(client);
        // The relay may turn a reset into a FIN.
        let _ = stream::read_once(&mut origin);
    }
    Ok(seen)
}

/// A TCP or MPTCP counter of a machine, by its name in /proc/net/netstat.
fn counter(netns: &Netns, name: &str) -> Result<u64> {
    let text = netns.run(|| Ok(std::fs::read_to_string("/proc/thread-self/net/netstat")?))?;
    let lines: Vec<&str> = text.lines().collect();
    let value = lines.chunks_exact(2).find_map(|pair| {
        let [names, values] = pair else { return None };
        names.split(' ').zip(values.split(' ')).find(|(found, _)| *found == name).map(|(_, value)| value)
    });
    value.with_context(|| format!("no counter {name}"))?.parse().context("a count")
}
