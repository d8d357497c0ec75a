//! Backends that tell what they see: HTTP/1.1, HTTP/2 and gRPC in clear text or over TLS, and plain bytes.
//!
//! They run in this process, on listeners inside of a namespace. Each answer's header field [`NUMBER`] says which entry
//! of the [`Log`] it belongs to.

mod http1;
mod http2;
mod log;
mod proxied;

use std::io;
use std::net::{SocketAddr, TcpListener as Listener, UdpSocket};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio_rustls::TlsAcceptor;

use crate::netns::Netns;

pub use log::{Log, Seen};

/// Header field of answers: the backend's name and the number of the entry in the log, `one/3`.
pub const NUMBER: &str = "echo";

/// What a backend speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaks {
    /// HTTP/1.1, and HTTP/2 where ALPN says so.
    Http,
    /// HTTP/2 from the first byte.
    H2c,
    /// The same, with the answers of a gRPC service.
    Grpc,
    /// Bytes: a line is answered by a line.
    Bytes,
    /// Datagrams, which are not answered.
    Datagrams,
}

/// A backend.
#[derive(Clone, Debug)]
pub struct Backend {
    /// What it calls itself.
    pub name: String,
    /// Where it listens.
    pub address: SocketAddr,
    /// What it speaks.
    pub speaks: Speaks,
    /// Its TLS; `None`: clear text.
    pub tls: Option<Arc<ServerConfig>>,
    /// Whether connections begin with a PROXY protocol header.
    pub proxied: bool,
    /// What it answers.
    pub answer: Answer,
}

/// What a backend answers to a request.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Statuses of the first answers in turn; the last one stays. None: 200.
    pub statuses: Vec<u16>,
    /// Reason phrase of HTTP/1.1; `None`: the usual one.
    pub reason: Option<String>,
    /// Further header fields.
    pub fields: Vec<(String, String)>,
    /// The content; `None`: what the backend sees.
    pub body: Option<String>,
    /// How long it waits first.
    pub delay: Duration,
    /// `grpc-status` of [`Speaks::Grpc`].
    pub grpc_status: u16,
    /// What it does instead of answering.
    pub instead: Option<Instead>,
}

/// What a backend does instead of answering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instead {
    /// It closes the connection.
    Close,
    /// It waits until it is released, and answers then.
    Hold,
    /// It sends these bytes as they are, and closes.
    Send(Vec<u8>),
}

impl Answer {
    /// The status of an answer, by the number of answers before it.
    fn status(&self, before: usize) -> u16 {
        self.statuses.get(before).or(self.statuses.last()).copied().unwrap_or(200)
    }
}

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
                // An error is as good as a message: nobody is there any more.
                let _ = ended.await;
            });
        })?;
        Ok(Echo { log, released, end: Some(end), thread: Some(thread) })
    }

    /// What they have seen.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Lets those answer that hold their answers, now and from now on.
    pub fn release(&self) {
        self.released.send_replace(true);
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A backend that panics has printed why.
            let _ = thread.join();
        }
    }
}

/// What a backend hears by.
enum Socket {
    Listener(Listener),
    Datagrams(UdpSocket),
}

/// A backend with what it needs at its work.
#[derive(Clone)]
struct Stage {
    backend: Arc<Backend>,
    log: Log,
    hold: watch::Receiver<bool>,
}

impl Stage {
    /// Waits for as long as the backend is told to.
    async fn pause(&self) {
        tokio::time::sleep(self.backend.answer.delay).await;
        if self.backend.answer.instead == Some(Instead::Hold) {
            // An error: the stage is taken down.
            let _ = self.hold.clone().wait_for(|released| *released).await;
        }
    }
}

/// Any stream.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

async fn accept(listener: Listener, stage: Stage) {
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return eprintln!("backend {}: {error}", stage.backend.name),
    };
    while let Ok((stream, _)) = listener.accept().await {
        stage.log.connected(&stage.backend.name);
        let stage = stage.clone();
        // What goes wrong on a connection is seen at its other end.
        tokio::spawn(async move { connection(stream, &stage).await });
    }
}

/// Notes each datagram.
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

/// Answers each line by one.
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
