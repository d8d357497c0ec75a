//! A connection that stays open between the commands of a story.

use std::io::{ErrorKind, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustls::{ClientConnection, StreamOwned};
use rustls_pki_types::ServerName;

use super::cast::ROUTER;
use super::command::PATIENCE;
use super::outcome::Got;
use super::send::responses;
use crate::client::trusting;
use crate::netns::Netns;
use crate::stream::read_some;

/// If a connection is quiet for this long, it is considered open.
const QUIET: Duration = Duration::from_millis(1200);

/// A connection of a client.
pub struct OpenLine {
    stream: Stream,
    socket: TcpStream,
}

enum Stream {
    Clear(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// The bytes received on a connection, and its state.
pub struct Received {
    /// The responses.
    pub answers: Vec<Got>,
    /// True if the connection is still open.
    pub is_open: bool,
}

impl OpenLine {
    /// Connects to a port of the router; over TLS if a server name is given. `None` if the router does not admit the
    /// connection.
    ///
    /// # Errors
    /// When the namespace cannot be entered, or the CA cannot be read.
    pub fn open(netns: &Netns, port: u16, name: Option<&str>, ca: &Path) -> Result<Option<OpenLine>> {
        let address = SocketAddr::new(ROUTER, port);
        let Ok(socket) = netns.run(|| Ok(TcpStream::connect_timeout(&address, PATIENCE)?)) else { return Ok(None) };
        socket.set_nodelay(true)?;
        let own = socket.try_clone()?;
        let stream = match name {
            None => Stream::Clear(own),
            Some(name) => {
                let config = Arc::new(trusting(&std::fs::read(ca)?)?);
                let client = ClientConnection::new(config, ServerName::try_from(name.to_owned())?)?;
                Stream::Tls(Box::new(StreamOwned::new(client, own)))
            }
        };
        Ok(Some(OpenLine { stream, socket }))
    }

    /// Sends lines, each with CR LF. Returns whether they could be sent.
    pub fn write(&mut self, lines: &[String]) -> bool {
        let text: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        let written = match &mut self.stream {
            Stream::Clear(stream) => stream.write_all(text.as_bytes()),
            Stream::Tls(stream) => stream.write_all(text.as_bytes()).and_then(|()| stream.flush()),
        };
        written.is_ok()
    }

    /// Half-closes the connection.
    pub fn end(&mut self) {
        // The connection may have ended.
        let _ = self.socket.shutdown(Shutdown::Write);
    }

    /// Reads until the peer closes the connection, or is quiet.
    ///
    /// # Errors
    /// When the socket cannot be used.
    pub fn read(&mut self) -> Result<Received> {
        self.socket.set_read_timeout(Some(QUIET))?;
        let (mut received, mut buffer) = (Vec::new(), [0; 16_384]);
        let is_open = loop {
            let read = match &mut self.stream {
                Stream::Clear(stream) => read_some(stream, &mut buffer),
                Stream::Tls(stream) => read_some(stream, &mut buffer),
            };
            match read {
                Ok(0) => break false,
                Ok(read) => received.extend_from_slice(&buffer[..read]),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break true,
                Err(_) => break false,
            }
        };
        Ok(Received { answers: responses(&String::from_utf8_lossy(&received)), is_open })
    }

    /// How long the peer reads bytes after it has closed its side.
    ///
    /// # Errors
    /// When it does for longer than anything may take.
    pub fn taken_for(&mut self) -> Result<Duration> {
        let start = Instant::now();
        while self.socket.write_all(b"x").is_ok() {
            anyhow::ensure!(start.elapsed() < PATIENCE, "the connection is taken from for {PATIENCE:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(start.elapsed())
    }
}

/// Opens this many connections, and keeps them open.
///
/// # Errors
/// When the namespace cannot be entered, or a connection cannot be made.
pub fn crowd(netns: &Netns, port: u16, count: usize) -> Result<Vec<TcpStream>> {
    let address = SocketAddr::new(ROUTER, port);
    netns.run(|| {
        (0..count)
            .map(|number| {
                TcpStream::connect_timeout(&address, PATIENCE).with_context(|| format!("connection {number}"))
            })
            .collect()
    })
}
