//! Accepts connections within the limits, and assigns each to a worker.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use router_access_log::{Flag, ServedBy};
use router_listener::Protocol;
use router_model::names::RouterName;
use rustix::process::{Resource, getrlimit};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};

use super::address::plain;
use crate::access_record::AccessRecord;
use crate::capacity::{Capacity, ConnectionPermit, Permits};
use crate::connection::{Accepted, serve};
use crate::context::WorkerContext;
use crate::workers::Workers;

/// Pause after `accept` failed for lack of resources.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections on one worker.
pub struct Acceptor {
    /// Registered with the worker's runtime.
    pub listener: TcpListener,
    /// Router of the listener.
    pub router: RouterName,
    /// Protocol of the listener.
    pub protocol: Protocol,
    /// Connection limit of the router.
    pub capacity: Arc<Capacity>,
    /// Connection limit of the process.
    pub descriptors: Arc<Descriptors>,
    /// State of this worker.
    pub own: Arc<WorkerContext>,
    /// All workers.
    pub workers: Arc<Workers>,
}

impl Acceptor {
    /// Accepts until the task is aborted.
    pub async fn run(self) {
        loop {
            match self.next().await {
                Ok((stream, client, seat)) => self.place(stream, client, seat),
                // The connection failed before it was accepted (accept(2)); the listener is not affected.
                Err(error) if is_connection_error(&error) => {}
                Err(error) => {
                    tracing::warn!(router = %self.router, %error, "cannot accept connections");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Accepts the next connection within the limits.
    async fn next(&self) -> io::Result<(TcpStream, SocketAddr, ConnectionPermit)> {
        loop {
            if self.capacity.wait().await {
                let (router, most) = (&self.router, self.capacity.taken());
                tracing::warn!(%router, most, "limit tuningOptions.maxConnections reached; further clients wait");
            }
            if self.descriptors.capacity.wait().await {
                let most = self.descriptors.most;
                tracing::warn!(most, "file descriptors are nearly exhausted; further clients wait");
            }
            // Checked again when a connection arrives, because other workers may have used the capacity. The permit is
            // taken before the accept, so that all workers together stay within the limit.
            let accepted = poll_fn(|cx| match self.capacity.try_take() {
                Some(seat) if !self.descriptors.capacity.is_full() => {
                    self.listener.poll_accept(cx).map(|accepted| Some((accepted, seat)))
                }
                _ => Poll::Ready(None),
            });
            if let Some((accepted, seat)) = accepted.await {
                return accepted.map(|(stream, client)| (stream, client, seat));
            }
        }
    }

    /// Has the least busy worker serve a connection.
    fn place(&self, stream: TcpStream, client: SocketAddr, seat: ConnectionPermit) {
        let seats = Permits([seat, self.descriptors.take(&stream)]);
        let Ok(local) = stream.local_addr() else { return };
        let (router, protocol) = (self.router.clone(), self.protocol);
        let (client, listener) = (plain(client), plain(local));
        let lookup = self.own.config.original;
        if self.own.balancer.health.returned.has(SockRef::from(&stream), client, listener, lookup) {
            tracing::debug!(%router, %client, %listener, "the endpoint's address leads back to this router");
            let mut record = AccessRecord::new(router, client, listener, ServedBy::Relay, &self.own.log);
            record.flag = Flag::OwnListener;
            // Closed with unread bytes, or at once: the client gets a reset.
            let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
            return;
        }
        let accepted = move |stream| Accepted { router, protocol, client, listener, stream, seats };
        let Some(other) = self.workers.less_busy_than(&self.own) else {
            return self.own.spawn(serve(Arc::clone(&self.own), accepted(stream)));
        };
        let Ok(stream) = stream.into_std() else { return };
        let shared = Arc::clone(&other.shared);
        other.spawn(async move {
            // Registers with the current runtime.
            if let Ok(stream) = TcpStream::from_std(stream) {
                serve(shared, accepted(stream)).await;
            }
        });
    }
}

/// Limits connections by file descriptors: some must be left for connections to endpoints, pipes and files.
#[derive(Debug)]
pub struct Descriptors {
    capacity: Arc<Capacity>,
    /// Nine tenths of the process's limit.
    most: RawFd,
}

impl Default for Descriptors {
    fn default() -> Self {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let most = RawFd::try_from(limit / 10 * 9).unwrap_or(RawFd::MAX);
        Descriptors { capacity: Arc::default(), most }
    }
}

impl Descriptors {
    /// Counts a new connection. The kernel assigns the lowest free descriptor, so all lower ones are in use. If it is
    /// beyond the limit, no connection is accepted until one has ended; the next accept checks again.
    fn take(&self, stream: &impl AsRawFd) -> ConnectionPermit {
        let seat = self.capacity.take();
        let most = if stream.as_raw_fd() < self.most { usize::MAX } else { self.capacity.taken() };
        self.capacity.set(most);
        seat
    }
}

fn is_connection_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, HostUnreachable, NetworkUnreachable};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | HostUnreachable | NetworkUnreachable
    )
}

#[cfg(test)]
mod tests {
    use std::os::fd::RawFd;

    use super::*;

    struct Numbered(RawFd);

    impl AsRawFd for Numbered {
        fn as_raw_fd(&self) -> RawFd {
            self.0
        }
    }

    #[test]
    fn a_high_descriptor_stops_accepting_until_one_is_low_again() {
        let descriptors = Descriptors { capacity: Arc::default(), most: 90 };
        let mut seats = vec![descriptors.take(&Numbered(88)), descriptors.take(&Numbered(89))];
        assert!(!descriptors.capacity.is_full());
        seats.push(descriptors.take(&Numbered(90)));
        assert!(descriptors.capacity.is_full());
        seats.pop();
        assert!(!descriptors.capacity.is_full(), "there may be room now");
        seats.push(descriptors.take(&Numbered(91)));
        assert!(descriptors.capacity.is_full(), "there was none");
        seats.truncate(1);
        seats.push(descriptors.take(&Numbered(80)));
        seats.push(descriptors.take(&Numbered(81)));
        seats.push(descriptors.take(&Numbered(82)));
        assert!(!descriptors.capacity.is_full());
    }
}
