//! An endpoint that reads complete requests, responds with what it has read, and switches protocols on request.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use tests::netns::Netns;
use tests::wait;

/// A running endpoint; it ends when it is dropped.
pub struct Origin {
    /// Its listening address.
    pub address: SocketAddr,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    seen: Mutex<Vec<String>>,
    heads: AtomicUsize,
    ended: AtomicBool,
}

impl Origin {
    /// Starts it at an address.
    pub fn start(netns: &Netns, address: &str) -> Result<Origin> {
        let listener = netns.run(|| Ok(TcpListener::bind((address, super::super::BACKEND_PORT))?))?;
        let origin = Origin { address: listener.local_addr()?, state: Arc::default() };
        let state = origin.state.clone();
        listener.set_nonblocking(true)?;
        thread::spawn(move || {
            while !state.ended.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((stream, _)) => {
                        let state = state.clone();
                        // A connection that ends within a request is not an error of the endpoint.
                        thread::spawn(move || drop(serve(&stream, &state)));
                    }
                    Err(_) => thread::sleep(Duration::from_millis(2)),
                }
            }
        });
        Ok(origin)
    }

    /// The complete requests received: host, target, and a checksum of the content.
    pub fn seen(&self) -> Vec<String> {
        self.state.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Clears the record.
    pub fn forget(&self) {
        self.state.seen.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Number of heads received.
    pub fn heads(&self) -> usize {
        self.state.heads.load(Ordering::SeqCst)
    }

    /// Waits for this number of heads.
    pub fn wait_for_heads(&self, heads: usize) -> Result<()> {
        wait::wait_until("the endpoint has the head", wait::PATIENCE, || self.heads() >= heads).map(drop)
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.state.ended.store(true, Ordering::Relaxed);
    }
}

fn serve(stream: &TcpStream, state: &State) -> Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    let (mut reader, mut writer) = (BufReader::new(stream), stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        state.heads.fetch_add(1, Ordering::SeqCst);
        let target = head.split(' ').nth(1).context("a target")?.to_owned();
        let lower = head.to_ascii_lowercase();
        let field = |name: &str| lower.split_once(name).and_then(|(_, rest)| rest.split('\r').next()).map(str::trim);
        let host = field("\nhost:").context("a host")?.to_owned();
        let mut content = Vec::new();
        if let Some(length) = field("\ncontent-length:") {
            content.resize(length.parse()?, 0);
            reader.read_exact(&mut content)?;
        } else if field("\ntransfer-encoding:").is_some() {
            chunks(&mut reader, &mut content)?;
        }
        let sum = Sha256::digest(&content).iter().take(8).fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
        let line = format!("{host} {target} {} {sum:x}", content.len());
        state.seen.lock().unwrap_or_else(PoisonError::into_inner).push(line.clone());
        if target == "/tunnel" {
            let upgrade = field("\nupgrade:").unwrap_or_default();
            write!(writer, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: {upgrade}\r\n\r\n")?;
            std::io::copy(&mut reader, &mut writer)?;
            return Ok(());
        }
        write!(writer, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{line}", line.len())?;
    }
}

/// Reads chunked content to its end.
fn chunks(reader: &mut BufReader<&TcpStream>, content: &mut Vec<u8>) -> Result<()> {
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let size = usize::from_str_radix(line.split(['\r', ';']).next().context("a size")?, 16)?;
        if size == 0 {
            while line != "\r\n" {
                line.clear();
                reader.read_line(&mut line)?;
            }
            return Ok(());
        }
        let begin = content.len();
        content.resize(begin + size, 0);
        reader.read_exact(&mut content[begin..])?;
        reader.read_exact(&mut [0; 2])?;
    }
}
