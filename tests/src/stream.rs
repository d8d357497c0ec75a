//! Raw connections through a passthrough route, and streams whose content is checked.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use anyhow::{Result, ensure};
use sha2::{Digest, Sha256};

use crate::hello::client_hello;
use crate::netns::Netns;
use crate::wait::{self, PATIENCE};

/// Bytes of a block; odd, so that a stream that lost or gained a page does not look the same.
const BLOCK: usize = (1 << 20) - 3;

/// SHA-256 of a stream.
pub type Checksum = [u8; 32];

/// Both ends of a connection through the router.
pub struct Pair {
    /// The client's end.
    pub client: TcpStream,
    /// The backend's end; the hello has been read from it.
    pub origin: TcpStream,
}

/// Connects through a passthrough route of `name` to a raw backend, whose listener is `origin`, and checks that the
/// backend gets the hello byte for byte.
///
/// # Errors
/// When it does not get through.
pub fn connect(netns: &Netns, router: SocketAddr, origin: &TcpListener, name: &str) -> Result<Pair> {
    let hello = client_hello(name)?;
    let mut client = netns.run(|| Ok(TcpStream::connect_timeout(&router, PATIENCE)?))?;
    client.set_read_timeout(Some(PATIENCE))?;
    client.set_write_timeout(Some(PATIENCE))?;
    client.set_nodelay(true)?;
    client.write_all(&hello)?;
    let mut origin = accept(origin)?;
    let mut received = vec![0; hello.len()];
    origin.read_exact(&mut received)?;
    ensure!(received == hello, "the backend got another hello than the client sent");
    Ok(Pair { client, origin })
}

/// The next connection of a listener.
///
/// # Errors
/// When none comes.
pub fn accept(listener: &TcpListener) -> Result<TcpStream> {
    listener.set_nonblocking(true)?;
    let (accepted, _) = wait::wait_for("a connection arrives at the backend", PATIENCE, || match listener.accept() {
        Err(error) if error.kind() == ErrorKind::WouldBlock => None,
        other => Some(other),
    })?;
    let (stream, _) = accepted?;
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Content that is the same for the same seed.
pub struct Content(Vec<u8>);

impl Content {
    /// One block of it, repeated without end.
    pub fn new(seed: u64) -> Content {
        // xorshift64*: any content will do that has no period shorter than the block.
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut block = Vec::with_capacity(BLOCK + 8);
        while block.len() < BLOCK {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            block.extend_from_slice(&state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes());
        }
        block.truncate(BLOCK);
        Content(block)
    }

    /// Writes `length` bytes, noting progress, and returns their checksum.
    ///
    /// # Errors
    /// When the stream fails.
    pub fn send(&self, to: &mut impl Write, length: u64, mut progress: impl FnMut(u64)) -> Result<Checksum> {
        let mut hash = Sha256::new();
        let mut left = length;
        while left > 0 {
            let part = &self.0[..self.0.len().min(usize::try_from(left)?)];
            for piece in part.chunks(1 << 16) {
                to.write_all(piece)?;
                progress(piece.len() as u64);
            }
            hash.update(part);
            left -= part.len() as u64;
        }
        Ok(hash.finalize().into())
    }
}

/// Reads to the end of the stream; returns how many bytes came, and their checksum.
///
/// # Errors
/// When the stream fails.
pub fn receive(from: &mut impl Read) -> Result<(u64, Checksum)> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 18];
    let mut count = 0;
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok((count, hash.finalize().into())),
            read => {
                hash.update(&buffer[..read]);
                count += read as u64;
            }
        }
    }
}
