//! The relay: two TCP connections joined byte for byte, for connections whose content is not read.
//!
//! What one side does is what the other side sees. A FIN is forwarded as a FIN once every byte before it was written,
//! and the other direction goes on; a reset is forwarded as a reset. Memory is bounded by backpressure: a direction
//! reads only what it can hand on, so a stalled receiver fills the kernel's socket buffers and at most one
//! [`CHUNK`] or one pipe (64 KiB, or 512 of the first few) here. A direction copies through user space, which is the quickest way for messages; while
//! bulk data comes ([`RelayOptions::splice_after`]) it moves pages through a pipe with `splice(2)`.

mod activity;
mod chunk;
mod direction;
mod pipe;
mod tunnel;

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::rt::timer::Timer;
use activity::Activity;
use direction::{Direction, Side, Step};

pub use chunk::{CHUNK, append};
pub use tunnel::{TunnelEnd, TunnelOutcome, tunnel};

/// How a relay behaves.
#[derive(Clone, Copy, Debug)]
pub struct RelayOptions {
    /// No byte in either direction for so long ends the relay (`tunnelTimeout`, default 1 h).
    pub idle: Duration,
    /// Bytes that come in full [`CHUNK`]s, one after the other, before a direction goes over to `splice(2)`.
    pub splice_after: u64,
}

impl Default for RelayOptions {
    fn default() -> Self {
        RelayOptions { idle: Duration::from_secs(3600), splice_after: 64 * 1024 }
    }
}

/// Why a relay ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayEnd {
    /// Both directions were ended with a FIN, every byte delivered.
    Finished,
    /// The client's connection failed; the upstream's was reset.
    ClientReset,
    /// The upstream's connection failed; the client's was reset.
    UpstreamReset,
    /// Nothing moved for the idle timeout; both were reset.
    Idle,
}

/// What a relay did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayOutcome {
    /// Bytes written to the upstream, the initial ones included.
    pub to_upstream: u64,
    /// Bytes written to the client.
    pub to_client: u64,
    /// Why it ended.
    pub end: RelayEnd,
}

/// Joins two connections until both directions have ended. `initial` is what was already read from the client; it is
/// written to the upstream first; `timer` is for the idle timeout.
pub async fn relay(
    client: TcpStream,
    upstream: TcpStream,
    initial: Vec<u8>,
    options: RelayOptions,
    timer: &mut Timer,
) -> RelayOutcome {
    let activity = Activity::new();
    let mut up = Direction::new(&client, &upstream, Side::Client, &activity, options.splice_after);
    let sent = begin(&upstream, &initial);
    up.moved = sent as u64;
    up.step = Step::Write(initial, sent);
    let mut down = Direction::new(&upstream, &client, Side::Upstream, &activity, options.splice_after);
    let end = {
        let mut known = None;
        let (mut client_fails, mut upstream_fails) = (Watch::new(&client), Watch::new(&upstream));
        poll_fn(|cx| {
            if !known.as_ref().is_some_and(|known: &Waker| known.will_wake(cx.waker())) {
                known = Some(cx.waker().clone());
                (up.waits, down.waits) = (false, false);
            }
            let ended = |side| match side {
                Side::Client => RelayEnd::ClientReset,
                Side::Upstream => RelayEnd::UpstreamReset,
            };
            match (up.poll(down.has_ended(), cx), down.poll(up.has_ended(), cx)) {
                (Poll::Ready(Err(side)), _) | (_, Poll::Ready(Err(side))) => return Poll::Ready(ended(side)),
                (Poll::Ready(Ok(())), Poll::Ready(Ok(()))) => return Poll::Ready(RelayEnd::Finished),
                _ => {}
            }
            if client_fails.poll(!up.reads(), cx) {
                return Poll::Ready(RelayEnd::ClientReset);
            }
            if upstream_fails.poll(!down.reads(), cx) {
                return Poll::Ready(RelayEnd::UpstreamReset);
            }
            timer.poll_until(cx, activity.last() + options.idle).map(|()| RelayEnd::Idle)
        })
        .await
    };
    if end != RelayEnd::Finished {
        reset_on_close(&client);
        reset_on_close(&upstream);
    }
    RelayOutcome { to_upstream: up.moved, to_client: down.moved, end }
}

/// Writes the first bytes, as many as the socket takes. Whoever dialed may have left the acknowledgement of the handshake
/// to them; from here on segments are acknowledged as always, so that an upstream that waits for this with the second of
/// two small writes (RFC 896) does not wait longer.
fn begin(upstream: &TcpStream, initial: &[u8]) -> usize {
    if initial.is_empty() {
        return 0;
    }
    // A failure is told again to whoever writes next.
    let sent = chunk::send(upstream, initial).unwrap_or_default();
    // Latency only.
    let _ = rustix::net::sockopt::set_tcp_quickack(upstream, true);
    sent
}

/// Makes the coming close of a connection a reset: the peer learns that the stream did not end where it stopped.
pub fn reset_on_close(stream: &TcpStream) {
    // Fails only on a socket that is already gone, which then needs no reset.
    let _ = stream.set_zero_linger();
}

/// Watches a connection for its failure while nobody reads from it: a direction that waits for its receiver does not
/// look at its sender, and would miss a reset from there.
struct Watch<'s> {
    stream: &'s TcpStream,
    /// Made when it is needed, which for most connections is never.
    failed: Option<Pin<Box<dyn Future<Output = ()> + Send + 's>>>,
}

impl<'s> Watch<'s> {
    fn new(stream: &'s TcpStream) -> Self {
        Watch { stream, failed: None }
    }

    /// Whether it has failed, if that is asked for.
    fn poll(&mut self, needed: bool, cx: &mut Context<'_>) -> bool {
        if !needed {
            self.failed = None;
            return false;
        }
        let stream = self.stream;
        self.failed.get_or_insert_with(|| Box::pin(failed(stream))).as_mut().poll(cx).is_ready()
    }
}

/// Waits until a connection has failed.
async fn failed(stream: &TcpStream) {
    let ready = stream.ready(Interest::ERROR).await;
    let error = match &ready {
        Ok(_) => stream.take_error(),
        Err(_) => Ok(Some(io::ErrorKind::Other.into())),
    };
    if !matches!(error, Ok(Some(_))) {
        // A direction took the error with its own system call, and ends the relay with it.
        std::future::pending::<()>().await;
    }
}
