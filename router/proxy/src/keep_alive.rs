//! TCP keep-alive (RFC 9293 §3.8.4): detects a peer that vanished while no data is being sent. Unacknowledged data ends
//! a connection without it.
//!
//! TCP_USER_TIMEOUT (RFC 5482) would detect that sooner, but Linux applies it to zero-window probes, too, and the peer
//! of a tunnel may legitimately not read for longer.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};

/// Idle time before the first probe.
const IDLE: Duration = Duration::from_secs(60);
/// Time between probes; the ninth is the last by default (`net.ipv4.tcp_keepalive_probes`).
const INTERVAL: Duration = Duration::from_secs(10);

/// Enables keep-alive with these parameters: a vanished peer is detected after two and a half minutes. Accepted
/// connections inherit it from their listening socket.
///
/// # Errors
/// When the socket rejects an option. It still works.
pub fn keep_alive(socket: &impl AsFd) -> io::Result<()> {
    SockRef::from(socket).set_tcp_keepalive(&TcpKeepalive::new().with_time(IDLE).with_interval(INTERVAL))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn accepted_connections_have_the_keep_alive_of_their_listener() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        keep_alive(&listener).unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let accepted = SockRef::from(&accepted);
        assert!(accepted.keepalive().unwrap());
        assert_eq!(accepted.tcp_keepalive_time().unwrap(), IDLE);
        assert_eq!(accepted.tcp_keepalive_interval().unwrap(), INTERVAL);
    }
}
