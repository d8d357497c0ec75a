//! A receiver that does not read stops the sender, and the router buffers a bounded amount.

use std::net::Shutdown;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tests::sluice::DataPath;
use tests::steering::{Family, Setup, Stage};
use tests::stream::{self, Content, Pair, joined};
use tests::wait;

on_both_data_paths! {
    a_stalled_receiver_stops_the_sender,
    a_stalled_receiver_stops_the_sender_over_ipv6,
}

const MIB: u64 = 1 << 20;
const LENGTH: u64 = 48 * MIB;
/// Maximum size of a socket's buffer on any machine. Packets count with their overhead, so the effective limit is
/// lower.
const BUFFER: u64 = MIB;

fn a_stalled_receiver_stops_the_sender(data_path: DataPath) -> Result<()> {
    stalled(data_path, Family::V4)
}

fn a_stalled_receiver_stops_the_sender_over_ipv6(data_path: DataPath) -> Result<()> {
    stalled(data_path, Family::V6)
}

fn stalled(data_path: DataPath, family: Family) -> Result<()> {
    let stage = Stage::new(data_path, Setup::new(family))?;
    for machine in [&stage.client, &stage.router, &stage.backend] {
        machine.set("ipv4/tcp_rmem", &format!("4096 131072 {BUFFER}"))?;
        machine.set("ipv4/tcp_wmem", &format!("4096 16384 {BUFFER}"))?;
    }
    for to_client in [true, false] {
        let Pair { client, origin } = stage.connect()?;
        let (mut from, mut to) = if to_client { (origin, client) } else { (client, origin) };
        from.set_write_timeout(Some(Duration::from_secs(60)))?;
        let written = AtomicU64::new(0);
        let content = Content::new(3);
        let before = stage.sluice.resident()?;
        let (sent, received, stalled, most) = thread::scope(|scope| {
            let sender = scope.spawn(|| {
                let sent = content.send(&mut from, LENGTH, |count| {
                    written.fetch_add(count, Ordering::Relaxed);
                })?;
                from.shutdown(Shutdown::Write)?;
                Ok(sent)
            });
            stalls(&written)?;
            let mut most = before;
            wait::hold(Duration::from_millis(1500), || {
                most = most.max(stage.sluice.resident()?);
                Ok(())
            })?;
            // On a busy machine the sender may have paused before the buffers were full.
            let stalled = written.load(Ordering::Relaxed);
            let sockets = stage.router_sockets()?;
            ensure!(!stage.steers() || sockets.is_empty(), "the router's machine has connections: {sockets:?}");
            let received = stream::receive(&mut to)?;
            Ok::<_, anyhow::Error>((joined(sender)?, received, stalled, most))
        })?;
        ensure!(received == (LENGTH, sent), "something else arrived");
        // The sender's buffer and the receiver's; a relay adds two buffers and a pipe.
        let places = if stage.steers() { 2 } else { 5 };
        ensure!(stalled <= places * BUFFER, "{} KiB were taken though nobody read", stalled / 1024);
        let grown = most.saturating_sub(before);
        ensure!(grown < 4 * MIB, "the router grew by {} KiB while the receiver stalled", grown / 1024);
    }
    Ok(())
}

/// Waits until the sender has been blocked for half a second.
fn stalls(written: &AtomicU64) -> Result<()> {
    let mut last = (0, Instant::now());
    wait::wait_until("the sender is stopped", wait::PATIENCE, || {
        let now = written.load(Ordering::Relaxed);
        if now != last.0 {
            last = (now, Instant::now());
        }
        now > 0 && last.1.elapsed() > Duration::from_millis(500)
    })
    .map(drop)
}
