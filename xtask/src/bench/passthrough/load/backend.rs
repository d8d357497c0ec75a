//! The endpoint: reads a hello, does what its order says.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with, sockopt};

use super::hello::{HEADER, LONGEST, order, record_length};
use super::protocol::{BLOCK, LISTENING, Load, MESSAGE, PATIENCE, READY};

/// Connections served at a time, but for idle ones. More than any measure has.
const WORKERS: usize = 96;
/// As large as Linux' own limit usually is.
const BACKLOG: i32 = 4096;

/// Serves until the process ends. Several of these share one address.
pub fn run(address: SocketAddrV4) -> Result<()> {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_reuseport(&socket, true)?;
    bind(&socket, &SocketAddr::V4(address))?;
    listen(&socket, BACKLOG)?;
    let listener = TcpListener::from(socket);
    let idle = Arc::new(IdleConnections::new()?);
    eprintln!("{LISTENING}");
    thread::scope(|scope| {
        scope.spawn(|| idle.answer());
        for _ in 0..WORKERS {
            scope.spawn(|| {
                for stream in listener.incoming().flatten() {
                    // The client sees and counts errors of a connection.
                    let _ = serve(stream, &idle);
                }
            });
        }
    });
    Ok(())
}

fn serve(mut stream: TcpStream, idle: &IdleConnections) -> io::Result<()> {
    stream.set_nodelay(true)?;
    // A client that is gone without a word gives its worker free again.
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut hello = [0; LONGEST];
    let mut received = 0;
    while received < HEADER || received < record_length(&hello) {
        match stream.read(&mut hello[received..])? {
            0 => return Ok(()),
            more => received += more,
        }
    }
    let Some(order) = order(&hello[..received]) else { return Ok(()) };
    stream.write_all(&[READY])?;
    match order.load {
        Load::Connect => Ok(()),
        Load::Down => send(stream, Duration::from_millis(order.milliseconds.into())),
        Load::Up => receive(stream),
        Load::Echo => echo(stream),
        Load::Idle => idle.keep(stream),
    }
}

/// From the client's go on; the last eight bytes are the number of those before.
fn send(mut stream: TcpStream, time: Duration) -> io::Result<()> {
    stream.read_exact(&mut [0])?;
    let begin = Instant::now();
    let block = vec![b'd'; BLOCK];
    let mut sent = 0_u64;
    while begin.elapsed() < time {
        stream.write_all(&block)?;
        sent += BLOCK as u64;
    }
    stream.write_all(&sent.to_be_bytes())
}

fn receive(mut stream: TcpStream) -> io::Result<()> {
    let mut block = vec![0; BLOCK];
    let mut received = 0_u64;
    loop {
        match stream.read(&mut block)? {
            0 => return stream.write_all(&received.to_be_bytes()),
            more => received += more as u64,
        }
    }
}

fn echo(mut stream: TcpStream) -> io::Result<()> {
    let mut message = [0; MESSAGE];
    while stream.read_exact(&mut message).is_ok() {
        stream.write_all(&message)?;
    }
    stream.shutdown(Shutdown::Both)
}

/// Connections that wait without a thread.
struct IdleConnections {
    epoll: std::os::fd::OwnedFd,
    streams: Mutex<HashMap<u64, TcpStream>>,
}

impl IdleConnections {
    fn new() -> Result<IdleConnections> {
        Ok(IdleConnections { epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?, streams: Mutex::default() })
    }

    fn keep(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        let key = stream.as_raw_fd().unsigned_abs().into();
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        epoll::add(&self.epoll, &stream, epoll::EventData::new_u64(key), epoll::EventFlags::IN)?;
        streams.insert(key, stream);
        Ok(())
    }

    /// Echoes until the client closes.
    fn answer(&self) {
        let mut events = Vec::with_capacity(256);
        loop {
            events.clear();
            if epoll::wait(&self.epoll, spare_capacity(&mut events), None).is_err() {
                continue;
            }
            let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
            for event in &events {
                let key = event.data.u64();
                let mut message = [0; MESSAGE];
                let answered = streams.get_mut(&key).is_some_and(|stream| match stream.read(&mut message) {
                    Ok(read) if read > 0 => stream.write_all(&message[..read]).is_ok(),
                    Err(error) => error.kind() == io::ErrorKind::WouldBlock,
                    Ok(_) => false,
                });
                if !answered {
                    // Closing removes it from the epoll set.
                    streams.remove(&key);
                }
            }
        }
    }
}
