//! One read and the write it feeds, through a buffer that belongs to the thread and not to the connection: a
//! connection whose receiver keeps up holds no memory at all.

use std::cell::RefCell;
use std::io;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use tokio::io::Interest;
use tokio::net::TcpStream;

/// Most bytes that one step moves through user space.
pub const CHUNK: usize = 16 * 1024;

thread_local! {
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; CHUNK].into_boxed_slice());
}

/// What one step did.
#[derive(Debug)]
pub struct Chunk {
    /// Bytes read; 0 at the end of the stream.
    pub read: usize,
    /// Those of them that the receiver did not take.
    pub left: Vec<u8>,
    /// The write failed.
    pub broken: bool,
}

impl Chunk {
    /// Whether it is all that was there to read, and was written.
    pub fn is_rest(&self) -> bool {
        (1..CHUNK).contains(&self.read) && self.left.is_empty() && !self.broken
    }
}

/// Reads once from `from` and writes once to `to`. `is_last`: only the end of the stream comes after what is there to
/// read. If that was all written ([`Chunk::is_rest`]), it waits for the end, which the caller forwards now, so that both
/// leave in one segment.
///
/// # Errors
/// Of the read, `WouldBlock` included; those of the write are in [`Chunk::broken`].
pub fn pass_on(from: &TcpStream, to: &TcpStream, is_last: bool) -> io::Result<Chunk> {
    SCRATCH.with_borrow_mut(|scratch| {
        let read = receive(from, scratch)?;
        let bytes = scratch.get(..read).unwrap_or_default();
        if bytes.is_empty() {
            return Ok(Chunk { read, left: Vec::new(), broken: false });
        }
        let flags = if is_last && read < CHUNK { SendFlags::MORE } else { SendFlags::empty() };
        let (written, broken) = match send_with(to, bytes, flags) {
            Ok(written) => (written, false),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => (0, false),
            Err(_) => (0, true),
        };
        Ok(Chunk { read, left: bytes.get(written..).unwrap_or_default().to_vec(), broken })
    })
}

/// Reads from a socket that is said to be readable; `None` when there was nothing. `read` tells with its result whether
/// it has emptied the socket, which a read shorter than its buffer has (epoll(7), question 9): then the next one waits
/// without trying first.
///
/// # Errors
/// Those of `read`, but `WouldBlock`.
pub fn read_now<T>(from: &TcpStream, read: impl FnOnce() -> io::Result<(T, bool)>) -> io::Result<Option<T>> {
    let mut taken = None;
    let tried = from.try_io(Interest::READABLE, || {
        let (result, emptied) = read()?;
        taken = Some(result);
        // Has tokio forget that the socket was readable, unless it has been told so again meanwhile. It never forgets
        // that the stream has ended.
        if emptied { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
    });
    match tried {
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
        _ => Ok(taken),
    }
}

/// Whether the end of a stream is known to have come, so that nothing follows what there is to read. A connection that
/// has failed is not said to have ended.
pub fn is_closed(from: &TcpStream) -> bool {
    // Of the interests this is the one that is told of the end, and not of every byte: nobody asks for urgent data.
    let is = |interest| from.try_io(interest, || Ok(())).is_ok();
    is(Interest::PRIORITY) && !is(Interest::ERROR)
}

/// Reads what a socket has, at most [`CHUNK`] bytes, and appends it; `None` when it has nothing, 0 at the end of the
/// stream. Waiting is up to the caller.
///
/// # Errors
/// Those of the read, but `WouldBlock`.
pub fn append(from: &TcpStream, bytes: &mut Vec<u8>) -> io::Result<Option<usize>> {
    read_now(from, || {
        SCRATCH.with_borrow_mut(|scratch| {
            let read = receive(from, scratch)?;
            bytes.extend_from_slice(scratch.get(..read).unwrap_or_default());
            Ok((read, (1..CHUNK).contains(&read)))
        })
    })
}

/// Writes what the socket takes.
///
/// # Errors
/// Those of the write, `WouldBlock` included.
pub fn send(to: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    send_with(to, bytes, SendFlags::empty())
}

fn send_with(to: &TcpStream, bytes: &[u8], flags: SendFlags) -> io::Result<usize> {
    // Not the C library's call, which makes sure of its thread's cancellation before and after.
    to.try_io(Interest::WRITABLE, || retry(|| rustix::net::send(to, bytes, SendFlags::NOSIGNAL | flags)))
}

/// What a read of any file costs more is a part of what a short message costs.
fn receive(from: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    let (_, read) = retry(|| rustix::net::recv(from, &mut *buffer, RecvFlags::empty()))?;
    Ok(read)
}

/// Repeats a system call that a signal has interrupted.
///
/// # Errors
/// Those of the call.
pub fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result.map_err(io::Error::from),
        }
    }
}
