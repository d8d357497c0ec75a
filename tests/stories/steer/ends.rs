//! Ends of connections: half-closes in both orders, simultaneous closes, resets from either side.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Barrier, mpsc};
use std::thread;

use anyhow::{Result, bail, ensure};
use socket2::SockRef;
use tests::sluice::DataPath;
use tests::steering::{Family, Setup, Stage};
use tests::stream::{self, Pair, joined};

on_both_data_paths! {
    half_closes_in_both_orders,
    half_closes_in_both_orders_over_ipv6,
    half_closes_in_both_orders_on_loopback,
    both_ends_at_once,
    a_reset_of_the_client_reaches_the_backend,
    a_reset_of_the_backend_reaches_the_client,
    the_client_ends_right_after_its_hello,
}

/// Connections of each kind: an error that depends on sequence numbers shows in some of them.
const TIMES: u64 = 20;

fn half_closes_in_both_orders(data_path: DataPath) -> Result<()> {
    half_closes(&Stage::new(data_path, Setup::new(Family::V4))?)
}

fn half_closes_in_both_orders_over_ipv6(data_path: DataPath) -> Result<()> {
    half_closes(&Stage::new(data_path, Setup::new(Family::V6))?)
}

fn half_closes_in_both_orders_on_loopback(data_path: DataPath) -> Result<()> {
    half_closes(&Stage::loopback(data_path, Family::V4)?)
}

fn half_closes(stage: &Stage) -> Result<()> {
    for _ in 0..TIMES {
        for client_first in [true, false] {
            let Pair { client, origin } = stage.connect()?;
            let (mut first, mut second) = if client_first { (client, origin) } else { (origin, client) };
            first.write_all(b"the last word")?;
            first.shutdown(Shutdown::Write)?;
            let mut received = String::new();
            second.read_to_string(&mut received)?;
            ensure!(received == "the last word", "{received:?} arrived");
            // The other direction stays open for long.
            let answer = vec![0x5a; 300_000];
            let mut received = Vec::new();
            thread::scope(|scope| {
                scope.spawn(|| second.write_all(&answer).and_then(|()| second.shutdown(Shutdown::Write)));
                first.read_to_end(&mut received)
            })?;
            ensure!(received == answer, "{} bytes arrived", received.len());
        }
    }
    stage.all_ended()
}

/// FINs and their acknowledgements that cross in the router, each on a CPU of its own.
fn both_ends_at_once(data_path: DataPath) -> Result<()> {
    const CONNECTIONS: usize = 1500;
    let stage = Stage::new(data_path, Setup::new(Family::V4))?;
    let start = Barrier::new(2);
    let (hand_over, origins) = mpsc::channel::<TcpStream>();
    thread::scope(|scope| {
        let ending = scope.spawn(|| {
            for origin in origins {
                start.wait();
                end_of(origin)?;
            }
            Ok(())
        });
        for _ in 0..CONNECTIONS {
            let Pair { client, origin } = stage.connect()?;
            hand_over.send(origin)?;
            start.wait();
            end_of(client)?;
        }
        drop(hand_over);
        joined(ending)
    })?;
    stage.all_ended()
}

/// Half-closes a stream, and reads until the peer closes it.
fn end_of(mut stream: TcpStream) -> Result<()> {
    stream.shutdown(Shutdown::Write)?;
    ensure!(stream::read_once(&mut stream)? == 0, "bytes that nobody sent");
    Ok(())
}

fn a_reset_of_the_client_reaches_the_backend(data_path: DataPath) -> Result<()> {
    for stage in [Stage::new(data_path, Setup::new(Family::V4))?, Stage::loopback(data_path, Family::V4)?] {
        for _ in 0..TIMES {
            let pair = stage.connect()?;
            pair.greet()?;
            reset(pair.client)?;
            ended(&stage, pair.origin)?;
        }
        stage.all_ended()?;
    }
    Ok(())
}

fn a_reset_of_the_backend_reaches_the_client(data_path: DataPath) -> Result<()> {
    for stage in [Stage::new(data_path, Setup::new(Family::V6))?, Stage::loopback(data_path, Family::V6)?] {
        for _ in 0..TIMES {
            let pair = stage.connect()?;
            pair.greet()?;
            reset(pair.origin)?;
            ended(&stage, pair.client)?;
        }
        stage.all_ended()?;
    }
    Ok(())
}

/// Closes with a RST; unsent bytes are discarded.
fn reset(stream: TcpStream) -> Result<()> {
    SockRef::from(&stream).set_linger(Some(std::time::Duration::ZERO))?;
    drop(stream);
    Ok(())
}

/// The peer observes the end: the kernel forwards a RST unchanged, while the relay may close with a FIN.
fn ended(stage: &Stage, mut stream: TcpStream) -> Result<()> {
    match stream::read_once(&mut stream) {
        Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(()),
        Ok(0) if !stage.steers() => Ok(()),
        other => bail!("instead of a reset: {other:?}"),
    }
}

/// The FIN may arrive while the backend is being dialed.
fn the_client_ends_right_after_its_hello(data_path: DataPath) -> Result<()> {
    for stage in [Stage::new(data_path, Setup::new(Family::V4))?, Stage::loopback(data_path, Family::V6)?] {
        for _ in 0..TIMES {
            let hello = tests::steering::hello()?;
            let mut client = stream::open(&stage.client, stage.address)?;
            client.write_all(&hello)?;
            client.shutdown(Shutdown::Write)?;
            let mut origin = stream::accept_with(&stage.listener, &hello)?;
            ensure!(stream::read_once(&mut origin)? == 0, "bytes after the end");
            origin.write_all(b"goodbye")?;
            origin.shutdown(Shutdown::Write)?;
            let mut received = String::new();
            client.read_to_string(&mut received)?;
            ensure!(received == "goodbye", "{received:?} arrived");
        }
        stage.all_ended()?;
    }
    Ok(())
}
