//! Loss, duplication, delay and reordering at every stage of a connection, on either link.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tests::hello;
use tests::sluice::DataPath;
use tests::steering::{Family, HOST, Setup, Stage};
use tests::stream::{self, Pair, joined};
use tests::wire::{FrameAction, Plan, noise};

on_both_data_paths! {
    each_early_frame_to_and_from_the_client_once_lost_doubled_and_late,
    each_early_frame_to_and_from_the_backend_once_lost_doubled_and_late,
    noise_on_both_links_changes_no_byte,
}

/// Frames of each direction that faults apply to: handshake, hello, dial and the first responses.
const EARLY: u32 = 8;

/// Faults that each of them meets, one per connection.
const FATES: [FrameAction; 4] = [
    FrameAction::Lost,
    FrameAction::Twice(Duration::from_millis(3)),
    FrameAction::Twice(Duration::from_millis(250)),
    FrameAction::Late(Duration::from_millis(30)),
];

/// Number of connections to try them all.
const TRIES: u32 = 2 * EARLY * FATES.len() as u32;

/// Bytes each way.
const LENGTH: u64 = 40_000;

/// In connection *n*, frame *n* mod [`EARLY`] of one direction meets one of the faults; all other frames pass.
fn one_each() -> Plan {
    Box::new(|frame| {
        let (forward, rest) = (frame.connection % 2 == 0, frame.connection / 2);
        let (index, rest) = (rest % EARLY, rest / EARLY);
        let singled_out = frame.forward == forward && frame.index == index;
        let fate = usize::try_from(rest).ok().and_then(|rest| FATES.get(rest));
        fate.copied().filter(|_| singled_out).unwrap_or(FrameAction::Pass)
    })
}

fn each_early_frame_to_and_from_the_client_once_lost_doubled_and_late(data_path: DataPath) -> Result<()> {
    for family in families(data_path) {
        let stage = Stage::new(data_path, Setup { front: Some(one_each()), ..Setup::new(*family) })?;
        every_fault(&stage, Relayed::WithReason)?;
        let wire = stage.wires.0.context("a wire")?;
        ensure!(wire.faults() == u64::from(TRIES), "{} faults instead of {TRIES}", wire.faults());
        wire.cut()?;
    }
    Ok(())
}

fn each_early_frame_to_and_from_the_backend_once_lost_doubled_and_late(data_path: DataPath) -> Result<()> {
    for family in families(data_path) {
        let stage = Stage::new(data_path, Setup { back: Some(one_each()), ..Setup::new(*family) })?;
        every_fault(&stage, Relayed::None)?;
        let wire = stage.wires.1.context("a wire")?;
        ensure!(wire.faults() == u64::from(TRIES), "{} faults instead of {TRIES}", wire.faults());
        wire.cut()?;
    }
    Ok(())
}

/// The stack is correct for both families; the program has code for each.
fn families(data_path: DataPath) -> &'static [Family] {
    if data_path == DataPath::Kernel { &[Family::V4, Family::V6] } else { &[Family::V4] }
}

/// Concurrent connections, so that their retransmission timers run in parallel.
fn every_fault(stage: &Stage, relayed: Relayed) -> Result<()> {
    exchange_at_once(connect_at_once(stage, TRIES, relayed)?, LENGTH)?;
    stage.all_ended()
}

/// Connections that the agent may carry although the kernel could dial.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Relayed {
    None,
    /// Connections that the program passes with a reason: a hello with reordered segments is for the agent. They are
    /// few.
    WithReason,
}

fn exchange_at_once(pairs: Vec<(u32, Pair)>, length: u64) -> Result<()> {
    thread::scope(|scope| {
        let exchanges: Vec<_> = pairs
            .into_iter()
            .map(|(number, pair)| {
                let exchange = move || pair.exchange(number.into(), length, length);
                scope.spawn(move || exchange().with_context(|| format!("connection {number}")))
            })
            .collect();
        exchanges.into_iter().try_for_each(joined)
    })
}

/// Connects this many clients concurrently; returns each connection with its number.
fn connect_at_once(stage: &Stage, count: u32, relayed: Relayed) -> Result<Vec<(u32, Pair)>> {
    thread::scope(|scope| {
        let clients: Vec<_> = (0..count)
            .map(|number| {
                scope.spawn(move || {
                    let hello = hello::client_hello(HOST)?;
                    let mut client = stream::open(&stage.client, stage.address)?;
                    client.write_all(&hello)?;
                    client.write_all(&number.to_be_bytes())?;
                    Ok((client, hello))
                })
            })
            .collect();
        let origins: Vec<_> = (0..count).map(|_| scope.spawn(|| numbered(&stage.listener))).collect();
        let clients: Vec<_> = clients.into_iter().map(joined).collect::<Result<_>>()?;
        let mut origins: HashMap<_, _> = origins.into_iter().map(joined).collect::<Result<_>>()?;
        let mut pairs = Vec::new();
        for (number, (client, hello)) in (0..).zip(clients) {
            let (received, origin) =
                origins.remove(&number).with_context(|| format!("connection {number} at the backend"))?;
            ensure!(received == hello, "the backend got another hello than client {number} sent");
            pairs.push((number, Pair { client, origin }));
        }
        let others = pairs.iter().filter(|(_, pair)| stage.check(pair).is_err()).count();
        let passed = stage.passed_up()?;
        let reasons = passed.values().sum::<u64>();
        ensure!(others as u64 <= reasons, "{others} connections were relayed, with reasons for {reasons}: {passed:?}");
        let most = if relayed == Relayed::None { 0 } else { count / 3 };
        ensure!(others <= most as usize, "of {count} connections {others} were relayed: {passed:?}");
        Ok(pairs)
    })
}

/// The next connection at the backend: its number, and the hello before it.
fn numbered(listener: &TcpListener) -> Result<(u32, (Vec<u8>, TcpStream))> {
    let mut origin = stream::accept(listener)?;
    // A TLS record: 5 bytes of header, the last two of which are its length (RFC 8446 §5.1).
    let mut hello = vec![0; 5];
    origin.read_exact(&mut hello)?;
    let length = usize::from(u16::from_be_bytes([hello[3], hello[4]]));
    hello.resize(5 + length, 0);
    origin.read_exact(&mut hello[5..])?;
    let mut number = [0; 4];
    origin.read_exact(&mut number)?;
    Ok((u32::from_be_bytes(number), (hello, origin)))
}

fn noise_on_both_links_changes_no_byte(data_path: DataPath) -> Result<()> {
    const CONNECTIONS: u32 = 40;
    const LENGTH: u64 = 200_000;
    for family in families(data_path) {
        let setup = Setup { front: Some(noise(1, 2)), back: Some(noise(2, 2)), ..Setup::new(*family) };
        let stage = Stage::new(data_path, setup)?;
        exchange_at_once(connect_at_once(&stage, CONNECTIONS, Relayed::WithReason)?, LENGTH)?;
        stage.all_ended()?;
        for wire in [stage.wires.0, stage.wires.1].into_iter().flatten() {
            ensure!(wire.faults() * 100 > wire.frames(), "only {} faults in {} frames", wire.faults(), wire.frames());
            wire.cut()?;
        }
    }
    Ok(())
}
