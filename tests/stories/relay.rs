//! Connections through a passthrough route, byte for byte: half-closes, a stalled receiver, a gigabyte each way.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use router_common::maps::names;
use serde_json::Value;
use tempfile::TempDir;
use tests::folder;
use tests::hello::client_hello;
use tests::netns::Netns;
use tests::sluice::{DataPath, Options, Sluice};
use tests::stream::{self, Content, Pair};
use tests::wait;

const HOST: &str = "raw.apps.test";
const ROUTER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8443);
const MIB: u64 = 1 << 20;

/// A router with one passthrough route to a raw listener, all on one loopback.
struct Stage {
    netns: Netns,
    listener: TcpListener,
    sluice: Sluice,
    _manifests: TempDir,
}

impl Stage {
    fn new(data_path: DataPath) -> Result<Stage> {
        let netns = Netns::new("relay")?;
        let listener = netns.run(|| Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 9000))?))?;
        let manifests = TempDir::new()?;
        write(manifests.path(), listener.local_addr()?)?;
        let sluice = Sluice::start(&netns, manifests.path(), &Options::loopback(data_path))?;
        Ok(Stage { netns, listener, sluice, _manifests: manifests })
    }

    fn connect(&self) -> Result<Pair> {
        stream::connect(&self.netns, ROUTER, &self.listener, HOST)
    }
}

fn write(folder: &Path, backend: SocketAddr) -> Result<()> {
    let route = folder::route("raw", HOST, "raw", folder::PASSTHROUGH);
    let text = folder::router() + &folder::service("raw", backend) + &route;
    Ok(std::fs::write(folder.join("all.yaml"), text)?)
}

#[test]
fn half_closes_in_both_orders_in_user_space() -> Result<()> {
    half_closes(DataPath::UserSpace)
}

#[test]
fn half_closes_in_both_orders_with_the_kernel_program() -> Result<()> {
    half_closes(DataPath::Kernel)
}

fn half_closes(data_path: DataPath) -> Result<()> {
    let stage = Stage::new(data_path)?;

    // The client closes first: the backend sees the end, and may still send a long response.
    let Pair { mut client, mut origin } = stage.connect()?;
    client.write_all(b"question")?;
    client.shutdown(Shutdown::Write)?;
    let mut question = String::new();
    origin.read_to_string(&mut question)?;
    assert_eq!(question, "question");
    let answer = Content::new(1);
    let (sent, received) = thread::scope(|scope| {
        let receiver = scope.spawn(|| stream::receive(&mut client));
        let sent = answer.send(&mut origin, 3 * MIB, |_| ())?;
        origin.shutdown(Shutdown::Write)?;
        Ok::<_, anyhow::Error>((sent, joined(receiver)?))
    })?;
    assert_eq!(received, (3 * MIB, sent));

    // The backend closes first: the client sees the end, and may still send for long.
    let Pair { mut client, mut origin } = stage.connect()?;
    origin.write_all(b"greeting")?;
    origin.shutdown(Shutdown::Write)?;
    let mut greeting = String::new();
    client.read_to_string(&mut greeting)?;
    assert_eq!(greeting, "greeting");
    let upload = Content::new(2);
    let (sent, received) = thread::scope(|scope| {
        let receiver = scope.spawn(|| stream::receive(&mut origin));
        let sent = upload.send(&mut client, 3 * MIB, |_| ())?;
        client.shutdown(Shutdown::Write)?;
        Ok::<_, anyhow::Error>((sent, joined(receiver)?))
    })?;
    assert_eq!(received, (3 * MIB, sent));
    Ok(())
}

#[test]
fn a_hello_in_single_bytes_arrives_whole_in_user_space() -> Result<()> {
    trickle(DataPath::UserSpace).map(drop)
}

#[test]
fn a_hello_in_single_bytes_arrives_whole_and_the_kernel_reads_it_too() -> Result<()> {
    // If the client's thread moves to another processor between two bytes, they may be reordered, and the connection is
    // relayed.
    let mut verdicts = Value::Null;
    for _ in 0..3 {
        verdicts = trickle(DataPath::Kernel)?.sluice.dump(names::VERDICTS)?;
        let verdict = verdicts.get(0).context("a verdict")?;
        if verdict["reason"] != "out-of-order" {
            assert_eq!(
                (&verdict["verdict"], &verdict["reason"]),
                (&"steer".into(), &"passthrough".into()),
                "{verdicts}"
            );
            return Ok(());
        }
    }
    bail!("out of order three times: {verdicts}")
}

/// A client that sends each byte of its hello in its own segment.
fn trickle(data_path: DataPath) -> Result<Stage> {
    let stage = Stage::new(data_path)?;
    let hello = client_hello(HOST)?;
    let mut client = stage.netns.run(|| Ok(TcpStream::connect(ROUTER)?))?;
    client.set_nodelay(true)?;
    for byte in &hello {
        client.write_all(std::slice::from_ref(byte))?;
    }
    let mut origin = stream::accept(&stage.listener)?;
    let mut received = vec![0; hello.len()];
    origin.read_exact(&mut received)?;
    assert!(received == hello, "the backend got another hello than the client sent");
    Ok(stage)
}

/// A receiver that does not read for seconds stops the sender, and costs the router no memory; then everything arrives.
#[test]
fn a_stalled_receiver_stops_the_sender_and_memory_stays_flat() -> Result<()> {
    const LENGTH: u64 = 96 * MIB;
    let stage = Stage::new(DataPath::UserSpace)?;
    for to_client in [true, false] {
        let Pair { client, origin } = stage.connect()?;
        let (mut from, mut to) = if to_client { (origin, client) } else { (client, origin) };
        let written = AtomicU64::new(0);
        // Everything that is allocated once exists after these bytes.
        let content = Content::new(3);
        let before = stage.sluice.resident()?;
        let (sent, received, most) = thread::scope(|scope| {
            from.set_write_timeout(Some(Duration::from_secs(60)))?;
            let sender = scope.spawn(|| {
                let sent = content.send(&mut from, LENGTH, |count| {
                    written.fetch_add(count, Ordering::Relaxed);
                })?;
                from.shutdown(Shutdown::Write)?;
                Ok(sent)
            });
            let stalled = stalls(&written)?;
            let mut most = before;
            wait::hold(Duration::from_secs(4), || {
                most = most.max(stage.sluice.resident()?);
                ensure!(written.load(Ordering::Relaxed) == stalled, "the sender goes on though nobody reads");
                Ok(())
            })?;
            ensure!(stalled < LENGTH / 2, "{stalled} bytes were taken from the sender though nobody read");
            let received = stream::receive(&mut to)?;
            Ok::<_, anyhow::Error>((joined(sender)?, received, most))
        })?;
        assert_eq!(received, (LENGTH, sent));
        let grown = most.saturating_sub(before);
        // A sixth of the transfer: unrelated growth of resident memory varies from run to run.
        assert!(grown < LENGTH / 6, "the router grew by {} KiB while the receiver stalled", grown / 1024);
    }
    Ok(())
}

/// Waits until the sender has been blocked for half a second; returns the number of bytes sent.
fn stalls(written: &AtomicU64) -> Result<u64> {
    let mut last = (0, std::time::Instant::now());
    let (stalled, _) = wait::wait_for("the sender is stopped", wait::PATIENCE, || {
        let now = written.load(Ordering::Relaxed);
        if now != last.0 {
            last = (now, std::time::Instant::now());
        }
        (now > 0 && last.1.elapsed() > Duration::from_millis(500)).then_some(now)
    })?;
    Ok(stalled)
}

#[test]
fn a_gibibyte_each_way_at_once_arrives_unchanged() -> Result<()> {
    const LENGTH: u64 = 1 << 30;
    let stage = Stage::new(DataPath::Kernel)?;
    let Pair { client, origin } = stage.connect()?;
    let (up, down) = (Content::new(4), Content::new(5));
    let one_way = |content: &Content, from: &TcpStream, to: &TcpStream| {
        let (mut from, mut to) = (from.try_clone()?, to.try_clone()?);
        thread::scope(|scope| {
            let receiver = scope.spawn(|| stream::receive(&mut to));
            let sent = content.send(&mut from, LENGTH, |_| ())?;
            from.shutdown(Shutdown::Write)?;
            let (count, received) = joined(receiver)?;
            ensure!(count == LENGTH, "{count} bytes of {LENGTH} arrived");
            ensure!(sent == received, "what arrived is not what was sent");
            Ok::<_, anyhow::Error>(())
        })
    };
    thread::scope(|scope| {
        let upload = scope.spawn(|| one_way(&up, &client, &origin).context("client to backend"));
        one_way(&down, &origin, &client).context("backend to client")?;
        joined(upload)
    })
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))
}
