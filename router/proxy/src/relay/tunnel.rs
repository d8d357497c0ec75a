//! Relays two byte streams after an HTTP upgrade (RFC 9110 §7.8); one of them may use TLS.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::activity::Activity;
use super::chunk::CHUNK;

/// Why a tunnel ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunnelEnd {
    /// Both directions ended.
    Finished,
    /// One of the streams failed.
    Failed,
    /// The inactivity timeout expired.
    Idle,
}

/// Result of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelOutcome {
    /// Bytes written to the upstream.
    pub to_upstream: u64,
    /// Bytes written to the client.
    pub to_client: u64,
    /// Why it ended.
    pub end: TunnelEnd,
}

/// Relays two streams until both directions have ended, one failed, or the inactivity timeout `idle` expired. Calls
/// `sends` for each part that is sent to the client.
pub async fn tunnel<C, U>(client: C, upstream: U, idle: Duration, sends: impl Fn()) -> TunnelOutcome
where
    C: AsyncRead + AsyncWrite,
    U: AsyncRead + AsyncWrite,
{
    let activity = Activity::new();
    let (to_upstream, to_client) = (AtomicU64::new(0), AtomicU64::new(0));
    let (client_read, client_write) = tokio::io::split(client);
    let (upstream_read, upstream_write) = tokio::io::split(upstream);
    let up = copy(client_read, upstream_write, &to_upstream, &activity, || ());
    let down = copy(upstream_read, client_write, &to_client, &activity, sends);
    let end = tokio::select! {
        both = async { tokio::try_join!(up, down) } => match both {
            Ok(_) => TunnelEnd::Finished,
            Err(_) => TunnelEnd::Failed,
        },
        () = activity.idle_for(idle) => TunnelEnd::Idle,
    };
    TunnelOutcome {
        to_upstream: to_upstream.load(Ordering::Relaxed),
        to_client: to_client.load(Ordering::Relaxed),
        end,
    }
}

async fn copy<R, W>(mut from: R, mut to: W, moved: &AtomicU64, activity: &Activity, moves: impl Fn()) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut buffer = vec![0; CHUNK];
    loop {
        let read = from.read(&mut buffer).await?;
        if read == 0 {
            return to.shutdown().await;
        }
        moves();
        to.write_all(buffer.get(..read).unwrap_or_default()).await?;
        to.flush().await?;
        moved.fetch_add(read as u64, Ordering::Relaxed);
        activity.touch();
    }
}
