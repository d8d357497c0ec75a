//! Ten thousand clients that stay and say nothing.

use std::io::Write;
use std::net::TcpStream;

use anyhow::{Context, Result, ensure};
use tests::nginx::Nginx;
use tests::stream::{self, read_until};
use tests::wait::{PATIENCE, wait_until};

use super::stage::{HTTP, Stage, Tls, at};

const CLIENTS: usize = 10_000;
/// Memory of the router for one of them, in bytes.
const EACH: u64 = 48 << 10;
const BODY: &[u8] = b"still here";

/// One request on a connection that stays.
fn ask(stream: &mut TcpStream, request: &[u8]) -> Result<()> {
    stream.write_all(request)?;
    let answer = read_until(stream, BODY)?;
    ensure!(answer.starts_with(b"HTTP/1.1 200 "), "{:?}", String::from_utf8_lossy(&answer));
    Ok(())
}

/// Opens so many connections, with a request on each; returns them.
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
    for round in 1..=4 {
        let mut clients = open(&stage, request.as_bytes())?;
        let now = sluice.resident()?;
        ensure!(now <= memory + CLIENTS as u64 * EACH, "round {round}: from {memory} to {now} bytes");
        // Whoever comes now is served, and so is each of them.
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
    // What the allocator keeps in pieces is all that later rounds add; when it gives back what, is its own affair.
    let before = rounds[..3].iter().copied().max().unwrap_or_default();
    ensure!(rounds[3] <= before + before / 10, "memory rises from round to round: {rounds:?}");
    ask(&mut first, request.as_bytes()).context("the first client")
}
