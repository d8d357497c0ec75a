//! The options of listening sockets.

use std::io::{ErrorKind, Write};
use std::net::TcpStream;
use std::time::Instant;

use super::*;

#[test]
fn a_deferred_connection_is_accepted_with_its_first_bytes() {
    let socket = bind("127.0.0.1:0".parse().unwrap()).unwrap();
    defer_accept(&socket, DEFER_ACCEPT).unwrap();
    socket.listen(BACKLOG).unwrap();
    socket.set_nonblocking(true).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    // The kernel has accepted both; only the second one sends data.
    let _silent = TcpStream::connect(address).unwrap();
    let mut speaking = TcpStream::connect(address).unwrap();
    assert_eq!(socket.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    speaking.write_all(b"x").unwrap();
    let begin = Instant::now();
    let (_, client) = loop {
        match socket.accept() {
            Err(error) if error.kind() == ErrorKind::WouldBlock && begin.elapsed() < DEFER_ACCEPT => {
                std::thread::yield_now();
            }
            accepted => break accepted.unwrap(),
        }
    };
    assert_eq!(client.as_socket().unwrap(), speaking.local_addr().unwrap());

    // An inherited socket may have been deferred by an agent with another data path.
    defer_accept(&socket, Duration::ZERO).unwrap();
    let eager = TcpStream::connect(address).unwrap();
    let (_, client) = socket.accept().unwrap();
    assert_eq!(client.as_socket().unwrap(), eager.local_addr().unwrap());
}

#[test]
fn ipv4_clients_of_a_socket_of_both_families_are_ipv4_clients() {
    for (from, to) in [
        ("[::ffff:192.0.2.1]:80", "192.0.2.1:80"),
        ("192.0.2.1:80", "192.0.2.1:80"),
        ("[2001:db8::1]:80", "[2001:db8::1]:80"),
        ("[fe80::1%3]:80", "[fe80::1%3]:80"),
    ] {
        assert_eq!(address::plain(from.parse().unwrap()), to.parse().unwrap());
    }
}
