//! Very many short connections to one endpoint: source ports come around again and again, at every hop.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use router_common::verdict::DialCounter;
use tests::hello::short_hello;
use tests::netns::Netns;
use tests::pinned;
use tests::stream::joined;
use tests::wait::PATIENCE;

use super::load::{patient, ready};
use super::stage::{BACKEND, RAW, ROUTER, Stage};

const CONNECTIONS: usize = 100_000;
/// Connections at once.
const CLIENTS: usize = 8;
/// Threads of the backend.
const SERVERS: usize = 4;
/// What no connection may take, unless one does on the direct way.
const STALL: Duration = Duration::from_millis(100);
const GOODBYE: &[u8; 8] = b"goodbye.";

/// What connections took.
#[derive(Debug)]
#[expect(dead_code, reason = "printed when a test fails")]
struct Round {
    all: Duration,
    slowest: Duration,
    stalls: usize,
    /// Segments sent again, by clients and by the backend.
    again: (u64, u64),
}

#[test]
fn a_hundred_thousand_short_connections_and_again() -> Result<()> {
    let stage = Stage::new()?;
    let mut direct = Vec::new();
    for round in 1..=2 {
        direct.push(churn(&stage, BACKEND).context("on the direct way")?);
        let steered = churn(&stage, ROUTER).with_context(|| format!("through the router, round {round}"))?;
        eprintln!("round {round}: {steered:?}, direct {direct:?}");
        let bar = direct.iter().map(|round| round.slowest).fold(STALL, Duration::max);
        ensure!(steered.slowest <= bar, "a connection stalled: {steered:?}; on the direct way: {direct:?}");
        let count = pinned::dial_counter(&stage.sluice, DialCounter::Confirmed)?;
        ensure!(count == round * CONNECTIONS as u64, "the kernel has made {count} connections in {round} rounds");
        stage.nothing_is_left()?;
    }
    let lines = stage.lines().len();
    ensure!(lines == 2 * CONNECTIONS, "{lines} lines in the access log");
    Ok(())
}

/// All connections to an address, whose end is the backend.
fn churn(stage: &Stage, to: SocketAddr) -> Result<Round> {
    let hello = short_hello(RAW)?;
    let (next, done) = (AtomicUsize::new(0), AtomicBool::new(false));
    let again = || Ok::<_, anyhow::Error>((sent_again(&stage.client)?, sent_again(&stage.backend)?));
    let before = again()?;
    stage.listener.set_nonblocking(true)?;
    let begin = Instant::now();
    let (slowest, stalls) = thread::scope(|scope| {
        let servers: Vec<_> = (0..SERVERS).map(|_| scope.spawn(|| serve(&stage.listener, &hello, &done))).collect();
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(|| {
                    // One that failed ends all.
                    let result = stage.client.run(|| clients(to, &hello, &next));
                    if result.is_err() {
                        next.store(CONNECTIONS, Ordering::Relaxed);
                    }
                    result
                })
            })
            .collect();
        let clients: Vec<_> = clients.into_iter().map(joined).collect();
        done.store(true, Ordering::Relaxed);
        let served = servers.into_iter().map(joined).collect::<Result<Vec<_>>>();
        let mut total = (Duration::ZERO, 0);
        for client in clients {
            let (slowest, stalls) = client?;
            total = (total.0.max(slowest), total.1 + stalls);
        }
        let served: usize = served?.into_iter().sum();
        ensure!(served == CONNECTIONS, "the backend had {served} connections");
        Ok(total)
    })?;
    let all = begin.elapsed();
    let after = again()?;
    Ok(Round { all, slowest, stalls, again: (after.0 - before.0, after.1 - before.1) })
}

/// A client's connections, one after the other: the slowest, and how many stalled.
fn clients(to: SocketAddr, hello: &[u8], next: &AtomicUsize) -> Result<(Duration, usize)> {
    let (mut slowest, mut stalls) = (Duration::ZERO, 0);
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= CONNECTIONS {
            return Ok((slowest, stalls));
        }
        let begin = Instant::now();
        let result = connection(to, hello);
        let took = begin.elapsed();
        result.with_context(|| format!("connection {number}, after {took:?}"))?;
        slowest = slowest.max(took);
        stalls += usize::from(took > STALL);
    }
}

fn connection(to: SocketAddr, hello: &[u8]) -> Result<()> {
    let mut stream = TcpStream::connect_timeout(&to, PATIENCE).context("connecting")?;
    patient(&stream)?;
    stream.write_all(hello).context("the hello")?;
    let mut answer = [0; GOODBYE.len()];
    stream.read_exact(&mut answer).context("the answer")?;
    ensure!(answer == *GOODBYE, "{answer:?} was answered");
    ensure!(stream.read(&mut answer).context("the end")? == 0, "bytes after the answer");
    Ok(())
}

/// Answers until it is done; how many connections there were.
fn serve(listener: &TcpListener, hello: &[u8], done: &AtomicBool) -> Result<usize> {
    let mut served = 0;
    let mut received = vec![0; hello.len()];
    loop {
        let mut stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if !ready(listener, Duration::from_millis(50))? && done.load(Ordering::Relaxed) {
                    return Ok(served);
                }
                continue;
            }
            Err(error) => return Err(error).context("accepting"),
        };
        patient(&stream)?;
        stream.read_exact(&mut received).context("the hello at the backend")?;
        ensure!(received == hello, "the backend got another hello than the client sent");
        stream.write_all(GOODBYE)?;
        served += 1;
    }
}

/// `RetransSegs` of a machine's TCP (RFC 4022, `tcpRetransSegs`).
fn sent_again(machine: &Netns) -> Result<u64> {
    // Of the thread, not of the process: namespaces are a thread's.
    let text = machine.run(|| Ok(std::fs::read_to_string("/proc/thread-self/net/snmp")?))?;
    let mut tcp = text.lines().filter_map(|line| line.strip_prefix("Tcp: ")).map(|line| line.split(' '));
    let (mut names, mut values) = (tcp.next().context("names")?, tcp.next().context("values")?);
    let place = names.position(|name| name == "RetransSegs").context("RetransSegs")?;
    values.nth(place).context("a value")?.parse().context("a number")
}
