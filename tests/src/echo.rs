//! Backends that report the requests that they receive: HTTP/1.1, HTTP/2 and gRPC in clear text or over TLS, and plain
//! bytes.
//!
//! They run in this process, on listeners inside a namespace. The header field [`NUMBER`] of each response names the
//! entry of the [`Log`].

mod backend;
mod http1;
mod http2;
mod log;
mod proxied;

use std::io;
use std::net::{TcpListener as Listener, UdpSocket};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio_rustls::TlsAcceptor;

use crate::netns::Netns;

pub use backend::{Answer, Backend, Instead, NUMBER, Speaks};
use backend::{Stage, Stream};
pub use log::{Log, Seen};

/// Running backends; they end when the value is dropped.
pub struct Echo {
    log: Log,
    released: watch::Sender<bool>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Echo {
    /// Starts them; all listen when this returns.
    ///
    /// # Errors
    /// When an address cannot be had.
    pub fn start(netns: &Netns, backends: Vec<Backend>) -> Result<Echo> {
        let bind = |backend: Backend| {
            if backend.speaks == Speaks::Datagrams {
                let socket = UdpSocket::bind(backend.address)?;
                socket.set_nonblocking(true)?;
                return Ok((backend, Socket::Datagrams(socket)));
            }
            let listener = Listener::bind(backend.address)
                .with_context(|| format!("backend {} cannot listen on {}", backend.name, backend.address))?;
            listener.set_nonblocking(true)?;
            Ok((backend, Socket::Listener(listener)))
        };
        let bound: Vec<_> = netns.run(|| backends.into_iter().map(bind).collect::<Result<_>>())?;
        let (end, ended) = oneshot::channel();
        let (released, hold) = watch::channel(false);
        let log = Log::default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let heard = log.clone();
        let thread = thread::Builder::new().name("echo".to_owned()).spawn(move || {
            runtime.block_on(async {
                for (backend, socket) in bound {
                    let stage = Stage { backend: Arc::new(backend), log: heard.clone(), hold: hold.clone() };
                    match socket {
                        Socket::Listener(listener) => drop(tokio::spawn(accept(listener, stage))),
                        Socket::Datagrams(socket) => drop(tokio::spawn(receive(socket, stage))),
                    }
                }
                // An error means the same as a message: the owner was dropped.
                let _ = ended.await;
            });
        })?;
        Ok(Echo { log, released, end: Some(end), thread: Some(thread) })
    }

    /// Requests seen.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Releases held responses, now and from now on.
    pub fn release(&self) {
        self.released.send_replace(true);
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A panic was printed.
            let _ = thread.join();
        }
    }
}

/// A listening socket of a backend.
enum Socket {
    Listener(Listener),
    Datagrams(UdpSocket),
}

async fn accept(listener: Listener, stage: Stage) {
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return eprintln!("backend {}: {error}", stage.backend.name),
    };
    while let Ok((stream, _)) = listener.accept().await {
        stage.log.connected(&stage.backend.name);
        let stage = stage.clone();
        // The peer observes errors of a connection.
        tokio::spawn(async move { connection(stream, &stage).await });
    }
}

/// Logs each datagram.
async fn receive(socket: UdpSocket, stage: Stage) {
    let socket = match tokio::net::UdpSocket::from_std(socket) {
        Ok(socket) => socket,
        Err(error) => return eprintln!("backend {}: {error}", stage.backend.name),
    };
    let mut buffer = vec![0; 65_536];
    while let Ok(length) = socket.recv(&mut buffer).await {
        let request = String::from_utf8_lossy(&buffer[..length]).into_owned();
        stage.log.add(&stage.backend.name, Seen { request, ..Seen::default() });
    }
}

async fn connection(mut stream: TcpStream, stage: &Stage) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut about = Vec::new();
    if stage.backend.proxied {
        about.push(proxied::read(&mut stream).await?);
    }
    let Some(config) = &stage.backend.tls else {
        return speak(Box::new(stream), stage.backend.speaks, about, stage).await;
    };
    let stream = TlsAcceptor::from(config.clone()).accept(stream).await?;
    let (_, tls) = stream.get_ref();
    let version = tls.protocol_version().map_or_else(|| "?".to_owned(), |version| format!("{version:?}"));
    let name = tls.server_name().unwrap_or("none").to_owned();
    let alpn = tls.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned());
    let speaks = match (&alpn, stage.backend.speaks) {
        (Some(alpn), Speaks::Http) if alpn == "h2" => Speaks::H2c,
        (_, speaks) => speaks,
    };
    about.push(format!("tls {version}, SNI {name}, ALPN {}", alpn.as_deref().unwrap_or("none")));
    speak(Box::new(stream), speaks, about, stage).await
}

async fn speak(stream: Box<dyn Stream>, speaks: Speaks, about: Vec<String>, stage: &Stage) -> io::Result<()> {
    match speaks {
        Speaks::Http => http1::serve(stream, &about, stage).await,
        Speaks::H2c | Speaks::Grpc => {
            http2::serve(stream, about, stage.clone(), speaks == Speaks::Grpc).await;
            Ok(())
        }
        Speaks::Bytes => bytes(stream, about, stage).await,
        Speaks::Datagrams => Ok(()),
    }
}

/// Responds to each line with a line.
async fn bytes(mut stream: Box<dyn Stream>, about: Vec<String>, stage: &Stage) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        match stream.read_u8().await {
            Ok(b'\n') => {}
            Ok(byte) => {
                line.push(byte);
                continue;
            }
            Err(_) if line.is_empty() => return Ok(()),
            Err(_) => {}
        }
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        line.clear();
        stage.pause().await;
        let seen = Seen { request: text, about: about.clone(), ..Seen::default() };
        let number = stage.log.add(&stage.backend.name, seen);
        stream.write_all(format!("{}/{number}\n", stage.backend.name).as_bytes()).await?;
        if stage.backend.answer.instead == Some(Instead::Close) {
            return Ok(());
        }
    }
}
