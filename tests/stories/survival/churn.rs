//! Very many short connections to one endpoint: source ports are reused again and again, at every hop.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use router_common::maps::{END_RING, FlowEnd};
use router_common::verdict::DialCounter;
use rustix::process::{Pid, Signal};
use tests::hello::short_hello;
use tests::netns::Netns;
use tests::pinned;
use tests::process::send;
use tests::stream::{joined, read_some};
use tests::wait::{self, PATIENCE};

use super::load::{patient, ready};
use super::stage::{BACKEND, RAW, ROUTER, Stage};

const CONNECTIONS: usize = 100_000;
/// Concurrent connections.
const CLIENTS: usize = 8;
/// Concurrent clients on the direct path: if they stall as well, the machine is the cause, not the router.
const CONTROLS: usize = 4;
/// Threads of the backend.
const SERVERS: usize = 4;
/// Time that no connection should exceed, unless one on the direct path does; counted and printed.
const STALL: Duration = Duration::from_millis(100);
/// Time that fails the test: a lost SYN costs a second. A lower limit would catch pauses of the machine.
const LOST: Duration = Duration::from_millis(900);
/// Retransmitted segments allowed beyond those of the direct path: timers expire on a busy machine.
const AGAIN: u64 = 20;
const GOODBYE: &[u8; 8] = b"goodbye.";

/// Durations of connections.
#[derive(Clone, Copy, Debug, Default)]
struct Took {
    count: usize,
    slowest: Duration,
    stalls: usize,
}

impl Took {
    fn sum(clients: Vec<Result<Took>>) -> Result<Took> {
        clients.into_iter().try_fold(Took::default(), |sum, took| {
            let took = took?;
            Ok(Took {
                count: sum.count + took.count,
                slowest: sum.slowest.max(took.slowest),
                stalls: sum.stalls + took.stalls,
            })
        })
    }
}

#[derive(Debug)]
struct Round {
    #[expect(dead_code, reason = "printed")]
    all: Duration,
    main: Took,
    /// Those on the direct path at the same time.
    control: Took,
    /// Retransmitted segments, of clients and of the backend.
    again: (u64, u64),
}

#[test]
fn a_hundred_thousand_short_connections_and_again() -> Result<()> {
    let stage = Stage::new()?;
    let mut direct = Vec::new();
    for round in 1..=2 {
        direct.push(churn(&stage, BACKEND).context("on the direct way")?);
        let through = churn(&stage, ROUTER)
            .with_context(|| format!("through the router, round {round}: {}", stage.counters()))?;
        let ends = [DialCounter::EndsLate, DialCounter::EndsLost];
        let [late, lost] = ends.map(|one| pinned::dial_counter(&stage.sluice, one));
        eprintln!("round {round}: {through:?}, direct {direct:?}; ends so far: {} late, {} lost", late?, lost?);
        let bar = direct.iter().map(|round| round.main.slowest).fold(LOST.max(through.control.slowest), Duration::max);
        ensure!(through.main.slowest <= bar, "a connection stalled: {through:?}; on the direct way: {direct:?}");
        // A lost segment costs a fifth of a second or more until it is retransmitted.
        let again = |round: &Round| round.again.0 + round.again.1;
        let bar = direct.iter().map(again).max().unwrap_or_default() + AGAIN;
        ensure!(again(&through) <= bar, "segments were lost: {through:?}; on the direct way: {direct:?}");
        let count = pinned::dial_counter(&stage.sluice, DialCounter::Confirmed)?;
        ensure!(count == round * CONNECTIONS as u64, "the kernel has made {count} connections in {round} rounds");
        stage.nothing_is_left()?;
    }
    // The sweep reports an end that found the ring full, unless its port is reused while the ring is still full.
    let lost = pinned::dial_counter(&stage.sluice, DialCounter::EndsLost)?;
    ensure!(lost <= CONNECTIONS as u64 / 100, "the full ring lost {lost} ends");
    let (mut lines, mut read) = (0, 0);
    wait::wait_until("the access log has every connection", PATIENCE, || {
        lines += stage.lines_from(&mut read).len() as u64;
        lines + lost >= 2 * CONNECTIONS as u64
    })
    .with_context(|| format!("{lines} lines, {lost} lost"))?;
    ensure!(lines + lost == 2 * CONNECTIONS as u64, "{lines} lines in the access log, {lost} ends lost");
    Ok(())
}

/// More ends than the ring can hold, without a reader: each is counted once for its route, and is either reported or
/// counted as lost.
#[test]
fn ends_while_the_agent_stands_still() -> Result<()> {
    let stage = Stage::new()?;
    let agent = i32::try_from(stage.agent()?).ok().and_then(Pid::from_raw).context("a process id is positive")?;
    send(agent, Signal::STOP)?;
    for round in 1..=2 {
        churn(&stage, ROUTER).with_context(|| format!("round {round}: {}", stage.counters()))?;
    }
    send(agent, Signal::CONT)?;
    stage.nothing_is_left()?;
    let total = 2 * CONNECTIONS as u64;
    let [late, lost] = [DialCounter::EndsLate, DialCounter::EndsLost];
    let (late, lost) = (pinned::dial_counter(&stage.sluice, late)?, pinned::dial_counter(&stage.sluice, lost)?);
    eprintln!("ends: {late} late, {lost} lost");
    let room = (END_RING / (size_of::<FlowEnd>() + 8)) as u64;
    ensure!(late == total - room, "{late} ends of {total} found a ring full that has room for {room}");
    ensure!(lost < late, "all {lost} of those that found the ring full are lost, also those whose ports nobody needed");
    let ended = stage.route_stats("ended")?;
    ensure!(ended == total, "the route has {ended} ended connections instead of {total}");
    let (mut lines, mut read) = (0, 0);
    wait::wait_until("the access log has all that are not lost", PATIENCE, || {
        lines += stage.lines_from(&mut read).len() as u64;
        lines + lost >= total
    })
    .with_context(|| format!("{lines} lines, {lost} lost"))?;
    ensure!(lines + lost == total, "{lines} lines in the access log, {lost} ends lost");
    Ok(())
}

/// Opens connections to an address until the deadline; the backend closes them.
fn churn(stage: &Stage, to: SocketAddr) -> Result<Round> {
    let hello = &short_hello(RAW)?;
    let (begun, over, done) = (AtomicUsize::new(0), AtomicBool::new(false), AtomicBool::new(false));
    let again = || Ok::<_, anyhow::Error>((sent_again(&stage.client)?, sent_again(&stage.backend)?));
    let before = again()?;
    stage.listener.set_nonblocking(true)?;
    let (over_all, begin) = (&over, Instant::now());
    let (main, control, all) = thread::scope(|scope| {
        let servers: Vec<_> = (0..SERVERS).map(|_| scope.spawn(|| serve(&stage.listener, hello, &done))).collect();
        let spawn = |to, begun, count| {
            let client = move || connect_again_and_again(stage, to, hello, (begun, over_all));
            (0..count).map(|_| scope.spawn(client)).collect::<Vec<_>>()
        };
        let clients = spawn(to, Some(&begun), CLIENTS);
        let controls = spawn(BACKEND, None, if to == BACKEND { 0 } else { CONTROLS });
        let clients: Vec<_> = clients.into_iter().map(joined).collect();
        let all = begin.elapsed();
        over.store(true, Ordering::Relaxed);
        let controls: Vec<_> = controls.into_iter().map(joined).collect();
        done.store(true, Ordering::Relaxed);
        let served: Vec<_> = servers.into_iter().map(joined).collect();
        let main = Took::sum(clients)?;
        let control = Took::sum(controls)?;
        let served: usize = served.into_iter().sum::<Result<usize>>()?;
        ensure!(main.count == CONNECTIONS, "{} connections were made", main.count);
        ensure!(served == main.count + control.count, "the backend had {served} connections");
        Ok((main, control, all))
    })?;
    let after = again()?;
    Ok(Round { all, main, control, again: (after.0 - before.0, after.1 - before.1) })
}

/// Sequential connections of a client, until it is `over` or this many have `begun` at all clients.
fn connect_again_and_again(
    stage: &Stage,
    to: SocketAddr,
    hello: &[u8],
    (begun, over): (Option<&AtomicUsize>, &AtomicBool),
) -> Result<Took> {
    let more = || begun.is_none_or(|begun| begun.fetch_add(1, Ordering::Relaxed) < CONNECTIONS);
    let made = stage.client.run(|| {
        let mut took = Took::default();
        while !over.load(Ordering::Relaxed) && more() {
            let begin = Instant::now();
            let result = connection(to, hello);
            let time = begin.elapsed();
            result.with_context(|| format!("connection {} of a client, after {time:?}", took.count))?;
            took.count += 1;
            took.slowest = took.slowest.max(time);
            took.stalls += usize::from(time > STALL);
        }
        Ok(took)
    });
    // A failed connection ends everything.
    made.inspect_err(|_| over.store(true, Ordering::Relaxed))
}

fn connection(to: SocketAddr, hello: &[u8]) -> Result<()> {
    let mut stream = TcpStream::connect_timeout(&to, PATIENCE).context("connecting")?;
    patient(&stream)?;
    stream.write_all(hello).context("the hello")?;
    let mut answer = [0; GOODBYE.len()];
    stream.read_exact(&mut answer).context("the answer")?;
    ensure!(answer == *GOODBYE, "{answer:?} was answered");
    ensure!(read_some(&mut stream, &mut answer).context("the end")? == 0, "bytes after the answer");
    Ok(())
}

/// Responds until it is done; returns the number of connections.
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
    // Of the thread, not of the process: a namespace belongs to a thread.
    let text = machine.run(|| Ok(std::fs::read_to_string("/proc/thread-self/net/snmp")?))?;
    let mut tcp = text.lines().filter_map(|line| line.strip_prefix("Tcp: ")).map(|line| line.split(' '));
    let (mut names, mut values) = (tcp.next().context("names")?, tcp.next().context("values")?);
    let place = names.position(|name| name == "RetransSegs").context("RetransSegs")?;
    values.nth(place).context("a value")?.parse().context("a number")
}
