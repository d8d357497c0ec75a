//! Ten thousand idle clients, and more clients than there are descriptors.

use std::io::Write;
use std::net::TcpStream;

use anyhow::{Context, Result, ensure};
use tests::nginx::Nginx;
use tests::sluice::{DataPath, Options};
use tests::stream::{self, read_until};
use tests::wait::{PATIENCE, wait_until};

use super::stage::{HTTP, Stage, Tls, at};

const CLIENTS: usize = 10_000;
const ROUNDS: usize = 8;
/// Maximum memory of the router for each of them, in bytes.
const EACH: u64 = 48 << 10;
const BODY: &[u8] = b"still here";

/// One request on a kept-alive connection.
fn ask(stream: &mut TcpStream, request: &[u8]) -> Result<()> {
    stream.write_all(request)?;
    answered(stream)
}

/// The response to it.
fn answered(stream: &mut TcpStream) -> Result<()> {
    let answer = read_until(stream, BODY)?;
    ensure!(answer.starts_with(b"HTTP/1.1 200 "), "{:?}", String::from_utf8_lossy(&answer));
    Ok(())
}

/// Opens this many connections, with a request on each; returns them.
fn open(stage: &Stage, request: &[u8]) -> Result<Vec<TcpStream>> {
    stage.netns.run(|| {
        (0..CLIENTS)
            .map(|number| {
                let mut stream = TcpStream::connect_timeout(&at(HTTP), PATIENCE)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                ask(&mut stream, request).with_context(|| format!("client {number}"))?;
                Ok(stream)
            })
            .collect()
    })
}

#[test]
fn ten_thousand_idle_connections_cost_little_and_leave_nothing_behind() -> Result<()> {
    let stage = Stage::new("idle", "")?;
    let block = format!("server {{ listen {}; location / {{ return 200 {:?}; }} }}", at(9001), "still here");
    let _nginx = Nginx::with(&stage.netns, &[at(9001)], &block)?;
    stage.service("idle", &[at(9001)])?;
    let host = stage.route("idle", "idle", Tls::Without, &[])?;
    let sluice = stage.serve()?;
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let mut first = stream::open(&stage.netns, at(HTTP))?;
    ask(&mut first, request.as_bytes())?;
    let (memory, descriptors) = (sluice.resident()?, sluice.descriptors()?);
    let mut rounds = Vec::new();
    for round in 1..=ROUNDS {
        let mut clients = open(&stage, request.as_bytes())?;
        let now = sluice.resident()?;
        ensure!(now <= memory + CLIENTS as u64 * EACH, "round {round}: from {memory} to {now} bytes");
        // New clients are served, and so is each of the idle ones.
        assert_eq!(stage.curl(&format!("http://{host}:{HTTP}/"), &[])?.status, 200);
        for (number, client) in clients.iter_mut().enumerate() {
            ask(client, request.as_bytes()).with_context(|| format!("round {round}: client {number}, again"))?;
        }
        rounds.push(sluice.resident()?);
        drop(clients);
        wait_until("the router has closed its ends", PATIENCE, || {
            sluice.descriptors().is_ok_and(|now| now <= descriptors + 100)
        })?;
    }
    eprintln!("{memory} bytes, with {CLIENTS} clients {rounds:?}");
    // The allocator keeps fragments, in the first rounds more with each.
    let most = |rounds: &[u64]| rounds.iter().copied().max().unwrap_or_default();
    let (first_half, second_half) = rounds.split_at(ROUNDS / 2);
    let (before, after) = (most(first_half), most(second_half));
    ensure!(after * 100 <= before * 115, "memory rises from round to round: {rounds:?}");
    ask(&mut first, request.as_bytes()).context("the first client")
}

/// Fewer descriptors than clients: the first clients are served; the others wait in the kernel's queue, and are
/// accepted when some of the first have disconnected.
#[test]
fn clients_wait_while_descriptors_are_exhausted_and_none_is_rejected() -> Result<()> {
    const DESCRIPTORS: u32 = 300;
    const MANY: usize = 400;
    let stage = Stage::new("few", "")?;
    let block = format!("server {{ listen {}; location / {{ return 200 {:?}; }} }}", at(9001), "still here");
    let _nginx = Nginx::with(&stage.netns, &[at(9001)], &block)?;
    stage.service("few", &[at(9001)])?;
    let host = stage.route("few", "few", Tls::Without, &[])?;
    let sluice =
        stage.serve_with(Options { descriptors: Some(DESCRIPTORS), ..Options::loopback(DataPath::UserSpace) })?;
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let mut clients = (0..MANY).map(|_| stream::open(&stage.netns, at(HTTP))).collect::<Result<Vec<_>>>()?;
    // Each has sent its request, and gets a response once it is accepted.
    clients.iter_mut().try_for_each(|client| client.write_all(request.as_bytes()))?;
    let waiting = clients.split_off(100);
    clients.iter_mut().try_for_each(answered).context("who came first")?;
    ensure!(sluice.descriptors()? <= DESCRIPTORS as usize, "more descriptors than there are");
    // Accepted clients stay served, although others wait.
    clients.iter_mut().try_for_each(|client| ask(client, request.as_bytes())).context("who came first, again")?;
    drop(clients);
    for (number, mut next) in waiting.into_iter().enumerate() {
        // It disconnects once it is served.
        answered(&mut next).with_context(|| format!("client {} of {MANY}", 100 + number))?;
    }
    Ok(())
}
