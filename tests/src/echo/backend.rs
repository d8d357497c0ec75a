//! A backend: its protocol, its response, and shared state.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use super::log::Log;

/// Header field of answers: the backend's name and the number of the entry in the log, `one/3`.
pub const NUMBER: &str = "echo";

/// Protocol of a backend.
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
    /// Its name.
    pub name: String,
    /// Where it listens.
    pub address: SocketAddr,
    /// Its protocol.
    pub speaks: Speaks,
    /// Its TLS; `None`: clear text.
    pub tls: Option<Arc<ServerConfig>>,
    /// Whether connections begin with a PROXY protocol header.
    pub proxied: bool,
    /// Its response.
    pub answer: Answer,
}

/// Response of a backend.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Statuses of the first answers in turn; the last one stays. None: 200.
    pub statuses: Vec<u16>,
    /// Reason phrase of HTTP/1.1; `None`: the usual one.
    pub reason: Option<String>,
    /// Further header fields.
    pub fields: Vec<(String, String)>,
    /// The content; `None`: a report of the request.
    pub body: Option<String>,
    /// How long it waits first.
    pub delay: Duration,
    /// `grpc-status` of [`Speaks::Grpc`].
    pub grpc_status: u16,
    /// An action instead of a response.
    pub instead: Option<Instead>,
}

/// An action instead of a response.
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
    pub fn status(&self, before: usize) -> u16 {
        self.statuses.get(before).or(self.statuses.last()).copied().unwrap_or(200)
    }
}

/// A backend with shared state.
#[derive(Clone)]
pub struct Stage {
    /// The backend.
    pub backend: Arc<Backend>,
    /// Log of its requests.
    pub log: Log,
    /// Whether held answers are released.
    pub hold: watch::Receiver<bool>,
}

impl Stage {
    /// Waits for the configured time.
    pub async fn pause(&self) {
        tokio::time::sleep(self.backend.answer.delay).await;
        if self.backend.answer.instead == Some(Instead::Hold) {
            // An error: the stage is taken down.
            let _ = self.hold.clone().wait_for(|released| *released).await;
        }
    }
}

/// Any stream.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}
