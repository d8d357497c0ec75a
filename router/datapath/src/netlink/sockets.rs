//! TCP sockets of this network namespace (sock_diag(7)).

use std::io;

use netlink_packet_core::NLM_F_DUMP;
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use router_common::maps::{FlowKey, mapped};

use super::channel::{Channel, RawMessage};

/// `SOCK_DIAG_BY_FAMILY` (linux/sock_diag.h).
const BY_FAMILY: u16 = 20;
const PROTOCOL_TCP: u8 = 6;
/// All states but `TCP_CLOSE` (7) and `TCP_LISTEN` (10); a bit for each (net/tcp_states.h). With `TCP_SYN_RECV`, request
/// sockets are among them.
pub const ALL: u32 = 0xfff & !(1 << 7 | 1 << 10);
/// All states but those, and `TCP_TIME_WAIT` (6).
pub const OPEN: u32 = ALL & !(1 << 6);
/// Bytes of a `struct inet_diag_req_v2` after its states.
const SOCKET_ID: usize = 48;

/// Calls `take` for each connection with a socket in one of these states: with the addresses and ports of its peer's packets.
///
/// # Errors
/// The system call's, or the kernel's.
pub fn each(states: u32, mut take: impl FnMut(FlowKey)) -> io::Result<()> {
    let mut channel = Channel::open(NETLINK_SOCK_DIAG)?;
    for family in [libc::AF_INET, libc::AF_INET6] {
        let mut payload = vec![family as u8, PROTOCOL_TCP, 0, 0];
        payload.extend(states.to_ne_bytes());
        payload.extend([0; SOCKET_ID]);
        let asked = channel.ask(RawMessage { kind: BY_FAMILY, payload }, NLM_F_DUMP, |answer| {
            if let Some(key) = key(&answer.payload) {
                take(key);
            }
        });
        match asked {
            // The kernel has no IPv6.
            Err(error) if family == libc::AF_INET6 && error.kind() == io::ErrorKind::NotFound => {}
            other => other?,
        }
    }
    Ok(())
}

/// Addresses and ports of a `struct inet_diag_msg`.
fn key(message: &[u8]) -> Option<FlowKey> {
    let family = i32::from(*message.first()?);
    let port = |at: usize| Some(u16::from_be_bytes(message.get(at..)?.first_chunk().copied()?));
    let address = |at: usize| {
        let bytes: [u8; 16] = message.get(at..)?.first_chunk().copied()?;
        let [a, b, c, d, ..] = bytes;
        Some(if family == libc::AF_INET { mapped([a, b, c, d]) } else { bytes })
    };
    // Local port, remote port, local address, remote address.
    Some(FlowKey { source: address(24)?, destination: address(8)?, source_port: port(6)?, destination_port: port(4)? })
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpListener, TcpStream};

    use super::*;
    use crate::address::sixteen;

    #[test]
    fn sockets_of_both_families_are_found_while_they_are_there() {
        let of = |client: SocketAddr, listener: SocketAddr| FlowKey {
            source: sixteen(client.ip()),
            destination: sixteen(listener.ip()),
            source_port: client.port(),
            destination_port: listener.port(),
        };
        for address in ["127.0.0.1:0", "[::1]:0", "[::ffff:127.0.0.1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let target = listener.local_addr().unwrap();
            let mut client = TcpStream::connect(target).unwrap();
            let key = of(client.local_addr().unwrap(), target);
            let is_there = |states: u32| {
                let mut is_found = false;
                each(states, |found| is_found |= found == key).unwrap();
                is_found
            };
            assert!(is_there(OPEN), "{address}");
            drop(listener.accept().unwrap());
            std::io::Read::read_to_end(&mut client, &mut Vec::new()).unwrap();
            drop(client);
            assert!(!is_there(OPEN) && is_there(ALL), "{address}: it is in TIME-WAIT");
        }
    }

    #[test]
    fn a_short_answer_has_no_key() {
        assert!((0..40).all(|length| key(&vec![0; length]).is_none()) && key(&[0; 40]).is_some());
    }
}
