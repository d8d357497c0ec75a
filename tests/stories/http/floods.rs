//! HTTP/2 clients that send requests without end, each at full speed, and reconnect when disconnected: a well-behaved
//! client is served meanwhile, and the router's memory stays bounded.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use rustls_pki_types::ServerName;
use tests::client::trusting;
use tests::nginx::Nginx;
use tests::stream::{joined, read_until};
use tests::wait::PATIENCE;

use super::stage::{HTTPS, Stage, Tls, at};

/// Requests of the well-behaved client, before and during the floods.
const REQUESTS: usize = 200;
/// Flooding connections of each kind.
const FLOODERS: usize = 2;
/// Allowed growth of the router's memory, in bytes: the limit of one connection, for 64 connections.
const GROWTH: u64 = 64 << 20;
/// Maximum time of a hundred requests during the floods, which share two processors with the router.
const P99: Duration = Duration::from_secs(1);
const BODY: &[u8] = b"still here";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// A frame (RFC 9113 §4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The frames of a flood in its `turn`-th round, for a request's fields in HPACK.
type Frames = fn(turn: u32, fields: &[u8]) -> Vec<u8>;

/// Sends requests and resets them (CVE-2023-44487).
fn rapid_reset(turn: u32, fields: &[u8]) -> Vec<u8> {
    let stream = 2 * turn + 1;
    [frame(HEADERS, END_HEADERS | END_STREAM, stream, fields), frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])].concat()
}

/// Fields without end (CVE-2024-27316).
fn continuation(turn: u32, fields: &[u8]) -> Vec<u8> {
    match turn {
        0 => frame(HEADERS, 0, 1, fields),
        _ => frame(CONTINUATION, 0, 1, &[0x00, 1, b'x', 1, b'y']),
    }
}

/// PINGs, each of which needs a response (CVE-2019-9512).
fn ping(_: u32, _: &[u8]) -> Vec<u8> {
    frame(PING, 0, 0, &[0; 8])
}

/// Empty DATA frames (CVE-2019-9518).
fn empty_data(turn: u32, fields: &[u8]) -> Vec<u8> {
    match turn {
        0 => frame(HEADERS, END_HEADERS, 1, fields),
        _ => frame(DATA, 0, 1, &[]),
    }
}

const FLOODS: [(&str, Frames); 4] =
    [("rapid reset", rapid_reset), ("CONTINUATION", continuation), ("PING", ping), ("empty DATA", empty_data)];

fn connect(config: &Arc<ClientConfig>, host: &str) -> Result<StreamOwned<ClientConnection, TcpStream>> {
    let tcp = TcpStream::connect_timeout(&at(HTTPS), PATIENCE)?;
    tcp.set_read_timeout(Some(PATIENCE))?;
    // A client that does not read must not block the test.
    tcp.set_write_timeout(Some(Duration::from_secs(2)))?;
    let session = ClientConnection::new(Arc::clone(config), ServerName::try_from(host.to_owned())?)?;
    Ok(StreamOwned::new(session, tcp))
}

/// One connection that floods until it is cut off, or until all is over; returns the number of frames sent.
fn flood(config: &Arc<ClientConfig>, host: &str, frames: Frames, over: &AtomicBool) -> Result<usize> {
    let mut stream = connect(config, host)?;
    // `GET https://<host>/`, in HPACK without a dynamic table.
    let fields = [&[0x82, 0x87, 0x84, 0x01, host.len() as u8][..], host.as_bytes()].concat();
    let hello = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(), &frame(SETTINGS, 0, 0, &[])].concat();
    stream.write_all(&hello)?;
    let mut sent = 0;
    let mut turn = 0;
    while !over.load(Ordering::Relaxed) {
        let batch: Vec<u8> = (turn..turn + 64).flat_map(|turn| frames(turn, &fields)).collect();
        if stream.write_all(&batch).and_then(|()| stream.flush()).is_err() {
            break;
        }
        (turn, sent) = (turn + 64, sent + 64);
    }
    Ok(sent)
}

/// Sequential requests on one connection; returns their durations in order of time.
fn polite(config: &Arc<ClientConfig>, host: &str) -> Result<Vec<Duration>> {
    let mut stream = connect(config, host)?;
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let mut times = (0..REQUESTS)
        .map(|number| {
            let begin = Instant::now();
            stream.write_all(request.as_bytes())?;
            let answer = read_until(&mut stream, BODY).with_context(|| format!("request {number}"))?;
            ensure!(answer.starts_with(b"HTTP/1.1 200 "), "{:?}", String::from_utf8_lossy(&answer));
            Ok(begin.elapsed())
        })
        .collect::<Result<Vec<_>>>()?;
    times.sort_unstable();
    Ok(times)
}

fn p99(times: &[Duration]) -> Duration {
    times[times.len() * 99 / 100]
}

#[test]
fn floods_affect_no_other_client_and_memory_stays_bounded() -> Result<()> {
    let stage = Stage::new("floods", "")?;
    let block = format!("server {{ listen {}; location / {{ return 200 {:?}; }} }}", at(9001), "still here");
    let _nginx = Nginx::with(&stage.netns, &[at(9001)], &block)?;
    stage.service("floods", &[at(9001)])?;
    let host = stage.route("floods", "floods", Tls::Edge, &[])?;
    let sluice = stage.serve()?;
    let mut config = trusting(stage.ca.pem().as_bytes())?;
    let polite_config = Arc::new(config.clone());
    config.alpn_protocols = vec![b"h2".to_vec()];
    let config = Arc::new(config);

    let before = stage.netns.run(|| polite(&polite_config, &host)).context("before the floods")?;
    let memory = sluice.resident()?;
    let over = AtomicBool::new(false);
    let counts: Vec<_> = FLOODS.iter().map(|_| (AtomicUsize::new(0), AtomicUsize::new(0))).collect();
    let (during, most) = thread::scope(|scope| {
        for ((_, frames), (connections, sent)) in FLOODS.iter().zip(&counts) {
            for _ in 0..FLOODERS {
                scope.spawn(|| {
                    stage.netns.run(|| {
                        while !over.load(Ordering::Relaxed) {
                            // A flooding connection may be refused or ended at any point.
                            let frames = flood(&config, &host, *frames, &over).unwrap_or_default();
                            sent.fetch_add(frames, Ordering::Relaxed);
                            connections.fetch_add(1, Ordering::Relaxed);
                        }
                        Ok(())
                    })
                });
            }
        }
        let client = scope.spawn(|| stage.netns.run(|| polite(&polite_config, &host)));
        let mut most = memory;
        while !client.is_finished() {
            most = most.max(sluice.resident().unwrap_or_default());
            thread::park_timeout(Duration::from_millis(20));
        }
        over.store(true, Ordering::Relaxed);
        (joined(client), most)
    });
    let during = during.context("beside the floods")?;
    let sent: Vec<_> = FLOODS
        .iter()
        .zip(&counts)
        .map(|((name, _), (connections, sent))| {
            (*name, connections.load(Ordering::Relaxed), sent.load(Ordering::Relaxed))
        })
        .collect();
    eprintln!(
        "p99 {:?} before, {:?} beside {sent:?} (connections, frames); memory {memory} bytes, at most {most}",
        p99(&before),
        p99(&during)
    );
    for (name, connections, frames) in sent {
        ensure!(frames > 0, "no flood of {name} on {connections} connections");
    }
    ensure!(most <= memory + GROWTH, "memory rose from {memory} to {most} bytes");
    ensure!(p99(&during) <= P99, "the polite client waited {:?}", p99(&during));
    // After the floods, service is as before.
    stage.netns.run(|| polite(&polite_config, &host)).context("after the floods").map(drop)
}
