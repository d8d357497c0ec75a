//! A client's connection to a backend.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, SocketAddrV4, TcpStream};

use super::hello::Hello;
use super::protocol::{PATIENCE, READY};

/// Connects, sends the hello and waits until the backend has answered it.
pub fn open(to: SocketAddrV4, from: Option<SocketAddrV4>, hello: Hello, bytes: &[u8]) -> io::Result<TcpStream> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with, sockopt};

    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // Bounds connecting as well (socket(7), SO_SNDTIMEO).
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(PATIENCE))?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(PATIENCE))?;
    if let Some(from) = from {
        bind(&socket, &SocketAddr::V4(from))?;
    }
    connect(&socket, &SocketAddr::V4(to))?;
    let mut stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    for segment in hello.segments(bytes) {
        stream.write_all(segment)?;
    }
    let mut ready = [0];
    stream.read_exact(&mut ready)?;
    if ready != [READY] {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the backend's answer to the hello is another"));
    }
    Ok(stream)
}
