//! Connections to endpoints.

use std::cell::Cell;
use std::future::poll_fn;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::SocketAddr;
use std::task::Poll;
use std::time::{Duration, Instant};

use router_table::table::Endpoint;
use rustix::io::Errno;
use rustix::net::sockopt::{set_tcp_nodelay, set_tcp_quickack};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::keep_alive::keep_alive;
use super::upstream::health::{ConnectStage, Health};
use crate::rt::timer::Timer;

/// Why a connection attempt failed.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// The endpoint rejected the connection, or is unreachable.
    #[error("cannot connect: {0}")]
    Refused(io::Error),
    /// The attempt timed out.
    #[error("no answer in time")]
    Timeout,
    /// The address is a listener of this router.
    #[error("the address is a listener of this router")]
    Own,
    /// The process or the system has no descriptor left. One may be available after [`DESCRIPTOR_PAUSE`].
    #[error("no file descriptor is left: {0}")]
    NoDescriptor(io::Error),
}

/// Pause before another attempt when no descriptor was left: with that many connections, one ends within milliseconds.
pub const DESCRIPTOR_PAUSE: Duration = Duration::from_millis(10);

/// Connects to an endpoint, and reports the result to `health`.
///
/// # Errors
/// See [`DialError`].
pub async fn connect(health: &Health, endpoint: &Endpoint, timeout: Duration) -> Result<TcpStream, DialError> {
    connect_with(&mut Timer::default(), health, endpoint, timeout, SendTiming::AnyTime).await
}

/// When the first bytes are sent to an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendTiming {
    /// As soon as it is connected, by [`crate::relay::relay`]: they carry the acknowledgement of the endpoint's SYN,
    /// which saves a segment.
    AtOnce,
    /// At any time.
    AnyTime,
}

/// As [`connect`], with an existing timer.
///
/// # Errors
/// See [`DialError`].
pub async fn connect_with(
    timer: &mut Timer,
    health: &Health,
    endpoint: &Endpoint,
    timeout: Duration,
    opening: SendTiming,
) -> Result<TcpStream, DialError> {
    timer.stop();
    if health.is_own(endpoint.address) {
        return Err(DialError::Own);
    }
    let connected = match begin(endpoint.address, opening) {
        Ok(stream) => {
            // Recorded before the endpoint answers, because it may be a listener of this router.
            if let Ok(own) = stream.local_addr() {
                health.returned.begun(own.port(), endpoint.address);
            }
            let connected = poll_fn(|cx| match stream.poll_write_ready(cx) {
                Poll::Ready(ready) => Poll::Ready(Some(ready.and_then(|()| outcome(&stream)))),
                Poll::Pending => timer.poll(cx, timeout).map(|()| None),
            });
            connected.await.map(|connected| connected.map(|()| stream))
        }
        Err(error) => Some(Err(error)),
    };
    let step = ConnectStage::Tcp(endpoint.address);
    match connected {
        Some(Ok(stream)) => {
            health.succeeded(&step);
            Ok(stream)
        }
        Some(Err(error)) if is_of_descriptors(&error) => Err(DialError::NoDescriptor(error)),
        Some(Err(error)) => {
            if is_of_endpoint(&error) {
                health.failed(&step, Instant::now());
            }
            Err(DialError::Refused(error))
        }
        None => {
            health.failed(&step, Instant::now());
            Err(DialError::Timeout)
        }
    }
}

/// Sends the SYN.
fn begin(address: SocketAddr, opening: SendTiming) -> io::Result<TcpStream> {
    let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)?;
    // A socket without these options still works.
    let _ = set_tcp_nodelay(&socket, true);
    let _ = keep_alive(&socket);
    if opening == SendTiming::AtOnce {
        // If nothing is sent, the kernel acknowledges within 200 ms.
        let _ = set_tcp_quickack(&socket, false);
    }
    match rustix::net::connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => TcpStream::from_std(socket.into()),
        Err(error) => Err(error.into()),
    }
}

/// Result of a connection attempt. A failure is visible in the readiness, so only then is the error fetched.
fn outcome(stream: &TcpStream) -> io::Result<()> {
    if stream.try_io(Interest::ERROR, || Ok(())).is_err() {
        return Ok(());
    }
    stream.take_error()?.map_or(Ok(()), Err)
}

/// Whether the error concerns the router's descriptors or ports, not the endpoint.
fn is_of_descriptors(error: &io::Error) -> bool {
    [Errno::MFILE, Errno::NFILE].iter().any(|none| error.raw_os_error() == Some(none.raw_os_error()))
}

fn is_of_endpoint(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    let of_endpoint = [
        Kind::ConnectionRefused,
        Kind::ConnectionReset,
        Kind::ConnectionAborted,
        Kind::HostUnreachable,
        Kind::NetworkUnreachable,
        Kind::TimedOut,
    ];
    of_endpoint.contains(&error.kind())
}

/// A random number below `bound`; fast, not for secrets.
pub fn random_below(bound: u32) -> u32 {
    thread_local! {
        static STATE: Cell<u64> = Cell::new(RandomState::new().hash_one("endpoint choice"));
    }
    // SplitMix64 (Steele, Lea, Flood 2014), reduced by multiply-shift (Lemire 2019).
    let state = STATE.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
    STATE.set(state);
    let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    (((mixed >> 32) * u64::from(bound)) >> 32) as u32
}

#[cfg(test)]
mod tests;
