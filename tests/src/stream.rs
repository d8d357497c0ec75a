//! Raw connections through a passthrough route, and streams with verified content.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::{panic, thread};

use anyhow::{Context, Result, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sha2::{Digest, Sha256};

use crate::hello::client_hello;
use crate::netns::Netns;
use crate::wait::PATIENCE;

/// Size of a block in bytes; odd, so that a lost or duplicated page changes the stream.
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

/// Connects through a passthrough route of `name` to a raw backend with the listener `origin`, and checks that the
/// backend gets the hello byte for byte.
///
/// # Errors
/// The connection fails.
pub fn connect(netns: &Netns, router: SocketAddr, origin: &TcpListener, name: &str) -> Result<Pair> {
    let hello = client_hello(name)?;
    let mut client = open(netns, router)?;
    client.write_all(&hello)?;
    let origin = accept_with(origin, &hello)?;
    Ok(Pair { client, origin })
}

/// Connects without sending.
///
/// # Errors
/// The connection is not accepted.
pub fn open(netns: &Netns, router: SocketAddr) -> Result<TcpStream> {
    let client = netns.run(|| Ok(TcpStream::connect_timeout(&router, PATIENCE)?))?;
    patient(&client)?;
    Ok(client)
}

/// The next connection of a listener; its first bytes must be `hello`.
///
/// # Errors
/// None arrives, or the bytes differ.
pub fn accept_with(listener: &TcpListener, hello: &[u8]) -> Result<TcpStream> {
    let mut origin = accept(listener)?;
    let mut received = vec![0; hello.len()];
    origin.read_exact(&mut received).context("reading the hello at the backend")?;
    ensure!(received == hello, "the backend got another hello than the client sent");
    Ok(origin)
}

/// The next connection of a listener.
///
/// # Errors
/// When none comes.
pub fn accept(listener: &TcpListener) -> Result<TcpStream> {
    any_ready(&[listener])?;
    let (stream, _) = listener.accept()?;
    patient(&stream)?;
    Ok(stream)
}

/// Waits until one of several listeners has a connection; returns which of them have.
///
/// # Errors
/// When none has one in time.
pub fn any_ready<const N: usize>(listeners: &[&TcpListener; N]) -> Result<[bool; N]> {
    let mut ready = listeners.map(|listener| PollFd::new(listener, PollFlags::IN));
    let count = poll(&mut ready, Some(&Timespec::try_from(PATIENCE)?))?;
    ensure!(count > 0, "not within {PATIENCE:?}: a connection arrives at the backend");
    Ok(ready.map(|listener| listener.revents().contains(PollFlags::IN)))
}

/// Sets time-outs, and disables Nagle's algorithm.
fn patient(stream: &TcpStream) -> Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    Ok(())
}

/// Bytes each way of [`Pair::greet`].
pub const GREETING: u64 = 8;

impl Pair {
    /// Sends a few bytes each way.
    ///
    /// # Errors
    /// When they do not arrive as they were sent.
    pub fn greet(&self) -> Result<()> {
        let (mut client, mut origin) = (&self.client, &self.origin);
        for (from, to, text) in
            [(&mut client, &mut origin, b"question"), (&mut &self.origin, &mut &self.client, b"answered")]
        {
            from.write_all(text)?;
            let mut received = [0; GREETING as usize];
            to.read_exact(&mut received)?;
            ensure!(received == *text, "{received:?} arrived instead of {text:?}");
        }
        Ok(())
    }

    /// Sends this many bytes each way at once, then closes both ends. The bytes received must be those sent.
    ///
    /// # Errors
    /// They differ, or a stream fails.
    pub fn exchange(self, seed: u64, up: u64, down: u64) -> Result<()> {
        thread::scope(|scope| {
            let upload = scope.spawn(|| one_way(&self.client, &self.origin, seed, up).context("client to backend"));
            let download = one_way(&self.origin, &self.client, seed ^ 1, down).context("backend to client");
            joined(upload).and(download)
        })
    }
}

fn one_way(mut from: &TcpStream, mut to: &TcpStream, seed: u64, length: u64) -> Result<()> {
    let content = Content::of(seed, length);
    thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(&mut to));
        let sent = content.send(&mut from, length, |_| ()).context("sending");
        let ended = from.shutdown(Shutdown::Write);
        let (count, received) = joined(receiver).context("receiving")?;
        let sent = sent?;
        ended?;
        ensure!(count == length, "{count} bytes of {length} arrived");
        ensure!(sent == received, "what arrived is not what was sent");
        Ok(())
    })
}

/// The result of a thread, with its panic.
///
/// # Errors
/// Those of the thread.
pub fn joined<T>(thread: thread::ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|payload| panic::resume_unwind(payload))
}

/// Deterministic content for a seed.
pub struct Content(Vec<u8>);

impl Content {
    /// One block, repeated without end.
    pub fn new(seed: u64) -> Content {
        Content::block(seed, BLOCK)
    }

    /// Like [`Content::new`], for a stream of this length.
    pub fn of(seed: u64, length: u64) -> Content {
        Content::block(seed, usize::try_from(length).map_or(BLOCK, |length| length.clamp(1, BLOCK)))
    }

    fn block(seed: u64, size: usize) -> Content {
        // xorshift64*: any content without a period shorter than the block is suitable.
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut block = Vec::with_capacity(size + 8);
        while block.len() < size {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            block.extend_from_slice(&state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes());
        }
        block.truncate(size);
        Content(block)
    }

    /// Writes `length` bytes, reporting progress; returns their checksum.
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

/// Reads available bytes into the buffer; returns their number. Stopping the whole machine interrupts a read with a
/// time-out (`signal(7)`); it is then restarted.
///
/// # Errors
/// When the stream fails.
pub fn read_some(from: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    loop {
        match from.read(into) {
            Err(error) if error.kind() == ErrorKind::Interrupted => (),
            other => return other,
        }
    }
}

/// Like [`read_some`], for at most 64 bytes that are discarded.
///
/// # Errors
/// When the stream fails.
pub fn read_once(from: &mut impl Read) -> io::Result<usize> {
    read_some(from, &mut [0; 64])
}

/// Reads until the bytes end in `end`, and returns them.
///
/// # Errors
/// The stream fails or ends before; the error has the bytes read.
pub fn read_until(from: &mut impl Read, end: &[u8]) -> Result<Vec<u8>> {
    let (mut all, mut part) = (Vec::new(), [0; 4096]);
    while !all.ends_with(end) {
        let read = read_some(from, &mut part)?;
        ensure!(read > 0, "the stream ends after {:?}", String::from_utf8_lossy(&all));
        all.extend_from_slice(&part[..read]);
    }
    Ok(all)
}

/// Reads to the end of the stream; returns the number of bytes and their checksum.
///
/// # Errors
/// When the stream fails.
pub fn receive(from: &mut impl Read) -> Result<(u64, Checksum)> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 18];
    let mut count = 0;
    loop {
        match read_some(from, &mut buffer)? {
            0 => return Ok((count, hash.finalize().into())),
            read => {
                hash.update(&buffer[..read]);
                count += read as u64;
            }
        }
    }
}
