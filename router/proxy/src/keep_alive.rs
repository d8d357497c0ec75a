//! TCP keep-alive (RFC 9293 §3.8.4): a peer that went without a word, with its machine or its network, is noticed where
//! nobody has anything to send. What is sent and never acknowledged ends a connection by itself.
//!
//! TCP_USER_TIMEOUT (RFC 5482) would be sooner with that, but Linux counts for it also how long a peer that is there
//! takes nothing, and at the other end of a tunnel it may do that.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};

/// For how long nothing comes from a peer before it is asked whether it is there.
const IDLE: Duration = Duration::from_secs(60);
/// How long it has to answer before it is asked again; the ninth time, unless the kernel was told another number
/// (`net.ipv4.tcp_keepalive_probes`), is the last.
const INTERVAL: Duration = Duration::from_secs(10);

/// Has the kernel end a connection whose peer has gone, after two and a half minutes. Those that a listening socket
/// accepts have it from that.
///
/// # Errors
/// When the socket refuses an option. It still carries the bytes.
pub fn keep_alive(socket: &impl AsFd) -> io::Result<()> {
    SockRef::from(socket).set_tcp_keepalive(&TcpKeepalive::new().with_time(IDLE).with_interval(INTERVAL))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn who_is_accepted_is_asked_as_their_listener_says() {
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
