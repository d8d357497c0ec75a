//! A read and the corresponding write through a buffer of the thread, not of the connection: a connection whose
//! receiver keeps up needs no buffer.

use std::cell::RefCell;
use std::io;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use tokio::io::Interest;
use tokio::net::TcpStream;

/// Most bytes of one step through user space.
pub const CHUNK: usize = 16 * 1024;

thread_local! {
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; CHUNK].into_boxed_slice());
}

/// Result of a step.
#[derive(Debug)]
pub struct ChunkResult {
    /// Bytes read; 0 at the end of the stream.
    pub read: usize,
    /// Bytes read that the receiver did not accept.
    pub left: Vec<u8>,
    /// The write failed.
    pub broken: bool,
}

impl ChunkResult {
    /// Whether it was all that could be read, and was written.
    pub fn is_complete(&self) -> bool {
        (1..CHUNK).contains(&self.read) && self.left.is_empty() && !self.broken
    }
}

/// Reads once from `from` and writes once to `to`. `is_last`: only the end of the stream follows what can be read. If
/// all of that was written ([`ChunkResult::is_complete`]), it is held back for the FIN, which the caller sends now, so
/// that both leave in one segment.
///
/// # Errors
/// Errors of the read, including `WouldBlock`; those of the write are in [`ChunkResult::broken`].
pub fn pass_on(from: &TcpStream, to: &TcpStream, is_last: bool) -> io::Result<ChunkResult> {
    SCRATCH.with_borrow_mut(|scratch| {
        let read = receive(from, scratch)?;
        let bytes = scratch.get(..read).unwrap_or_default();
        if bytes.is_empty() {
            return Ok(ChunkResult { read, left: Vec::new(), broken: false });
        }
        let flags = if is_last && read < CHUNK { SendFlags::MORE } else { SendFlags::empty() };
        let (written, broken) = match send_with(to, bytes, flags) {
            Ok(written) => (written, false),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => (0, false),
            Err(_) => (0, true),
        };
        Ok(ChunkResult { read, left: bytes.get(written..).unwrap_or_default().to_vec(), broken })
    })
}

/// Reads from a readable socket; `None` when there was nothing to read. `read` also returns whether it emptied the
/// socket, which is the case after a short read (epoll(7), question 9). The next read then waits without an attempt.
///
/// # Errors
/// Errors of `read`, except `WouldBlock`.
pub fn read_now<T>(from: &TcpStream, read: impl FnOnce() -> io::Result<(T, bool)>) -> io::Result<Option<T>> {
    let mut taken = None;
    let tried = from.try_io(Interest::READABLE, || {
        let (result, emptied) = read()?;
        taken = Some(result);
        // Clears tokio's readiness, unless it was set again meanwhile. tokio never clears the end of the stream.
        if emptied { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
    });
    match tried {
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
        _ => Ok(taken),
    }
}

/// Whether the end of the stream was received, so that nothing follows what can be read. False for a failed connection.
pub fn is_closed(from: &TcpStream) -> bool {
    // This interest reports the end, and not every byte: urgent data is not used.
    let is = |interest| from.try_io(interest, || Ok(())).is_ok();
    is(Interest::PRIORITY) && !is(Interest::ERROR)
}

/// Reads what a socket holds, at most [`CHUNK`] bytes, and appends it; `None` when it holds nothing, 0 at the end of
/// the stream. Does not wait.
///
/// # Errors
/// Errors of the read, except `WouldBlock`.
pub fn append(from: &TcpStream, bytes: &mut Vec<u8>) -> io::Result<Option<usize>> {
    read_now(from, || {
        SCRATCH.with_borrow_mut(|scratch| {
            let read = receive(from, scratch)?;
            bytes.extend_from_slice(scratch.get(..read).unwrap_or_default());
            Ok((read, (1..CHUNK).contains(&read)))
        })
    })
}

/// Writes what the socket accepts.
///
/// # Errors
/// Errors of the write, including `WouldBlock`.
pub fn send(to: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    send_with(to, bytes, SendFlags::empty())
}

fn send_with(to: &TcpStream, bytes: &[u8], flags: SendFlags) -> io::Result<usize> {
    // A raw system call: the C library's wrapper is a cancellation point, with checks before and after.
    to.try_io(Interest::WRITABLE, || retry(|| rustix::net::send(to, bytes, SendFlags::NOSIGNAL | flags)))
}

/// `recv` instead of `read`, whose overhead is noticeable for short messages.
fn receive(from: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    let (_, read) = retry(|| rustix::net::recv(from, &mut *buffer, RecvFlags::empty()))?;
    Ok(read)
}

/// Repeats a system call that was interrupted by a signal.
///
/// # Errors
/// Errors of the call.
pub fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result.map_err(io::Error::from),
        }
    }
}
