//! Relays two TCP connections byte for byte, for connections whose content is not parsed.
//!
//! Each side observes what the other does. A FIN is forwarded after all preceding bytes, and the other direction
//! continues; a reset is forwarded as a reset. Backpressure bounds memory: a direction reads only what it can write, so
//! a stalled receiver fills the kernel's socket buffers and at most one [`CHUNK`] or one pipe (64 KiB, or 512 KiB for
//! the first few) here. A direction copies through user space, which is fastest for messages; during bulk transfers
//! ([`RelayOptions::splice_after`]) it moves pages through a pipe with `splice(2)`.

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
use direction::{RelayDirection, RelaySide, RelayStep};

pub use chunk::{CHUNK, append};
pub use tunnel::{TunnelEnd, TunnelOutcome, tunnel};

/// Settings of a relay.
#[derive(Clone, Copy, Debug)]
pub struct RelayOptions {
    /// Inactivity timeout of both directions (`tunnelTimeout`, default 1 h).
    pub idle: Duration,
    /// Bytes in consecutive full [`CHUNK`]s after which a direction switches to `splice(2)`.
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
    /// Both directions ended with a FIN; all bytes were delivered.
    Finished,
    /// The client's connection failed; the upstream's was reset.
    ClientReset,
    /// The upstream's connection failed; the client's was reset.
    UpstreamReset,
    /// The inactivity timeout expired; both were reset.
    Idle,
}

/// Result of a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayOutcome {
    /// Bytes written to the upstream, including the initial ones.
    pub to_upstream: u64,
    /// Bytes written to the client.
    pub to_client: u64,
    /// Why it ended.
    pub end: RelayEnd,
}

/// Relays two connections until both directions have ended. `initial`: bytes already read from the client, which are
/// written to the upstream first. `timer`: for the inactivity timeout.
pub async fn relay(
    client: TcpStream,
    upstream: TcpStream,
    initial: Vec<u8>,
    options: RelayOptions,
    timer: &mut Timer,
) -> RelayOutcome {
    let activity = Activity::new();
    let mut up = RelayDirection::new(&client, &upstream, RelaySide::Client, &activity, options.splice_after);
    let sent = begin(&upstream, &initial);
    up.moved = sent as u64;
    up.step = RelayStep::Write(initial, sent);
    let mut down = RelayDirection::new(&upstream, &client, RelaySide::Upstream, &activity, options.splice_after);
    let end = {
        let mut known = None;
        let (mut client_fails, mut upstream_fails) = (FailureWatch::new(&client), FailureWatch::new(&upstream));
        poll_fn(|cx| {
            if !known.as_ref().is_some_and(|known: &Waker| known.will_wake(cx.waker())) {
                known = Some(cx.waker().clone());
                (up.waits, down.waits) = (false, false);
            }
            let ended = |side| match side {
                RelaySide::Client => RelayEnd::ClientReset,
                RelaySide::Upstream => RelayEnd::UpstreamReset,
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

/// Writes the first bytes, as many as the socket accepts. The acknowledgement of the upstream's SYN may have been left
/// to them. From here on segments are acknowledged as usual, so that an upstream which waits for that before its second
/// small write (Nagle, RFC 896) is not delayed.
fn begin(upstream: &TcpStream, initial: &[u8]) -> usize {
    if initial.is_empty() {
        return 0;
    }
    // The next write reports a failure again.
    let sent = chunk::send(upstream, initial).unwrap_or_default();
    // Affects latency only.
    let _ = rustix::net::sockopt::set_tcp_quickack(upstream, true);
    sent
}

/// Makes the close of a connection a reset, so that the peer does not take the stream for complete.
pub fn reset_on_close(stream: &TcpStream) {
    // Fails only if the socket is closed, which needs no reset.
    let _ = stream.set_zero_linger();
}

/// Detects the failure of a connection that is not being read: a direction that waits for its receiver does not poll
/// its sender, and would miss a reset.
struct FailureWatch<'s> {
    stream: &'s TcpStream,
    /// Created when needed, which is rare.
    failed: Option<Pin<Box<dyn Future<Output = ()> + Send + 's>>>,
}

impl<'s> FailureWatch<'s> {
    fn new(stream: &'s TcpStream) -> Self {
        FailureWatch { stream, failed: None }
    }

    /// Whether the connection has failed; not polled unless `needed`.
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
        // The direction's own system call got the error, and it ends the relay.
        std::future::pending::<()>().await;
    }
}
