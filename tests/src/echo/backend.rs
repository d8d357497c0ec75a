//! A backend: its protocol, its response, and shared state.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use super::log::Log;

/// Header field of responses: the backend's name and the number of the log entry, `one/3`.
pub const NUMBER: &str = "echo";

/// Protocol of a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaks {
    /// HTTP/1.1, or HTTP/2 if selected by ALPN.
    Http,
    /// HTTP/2 from the first byte.
    H2c,
    /// HTTP/2 with the responses of a gRPC service.
    Grpc,
    /// Bytes: responds to a line with a line.
    Bytes,
    /// Datagrams without a response.
    Datagrams,
}

/// A backend.
#[derive(Clone, Debug)]
pub struct Backend {
    /// Its name.
    pub name: String,
    /// Its listening address.
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
    /// Statuses of the first responses in order; the last one repeats. Empty: 200.
    pub statuses: Vec<u16>,
    /// Reason phrase of HTTP/1.1; `None`: the usual one.
    pub reason: Option<String>,
    /// Further header fields.
    pub fields: Vec<(String, String)>,
    /// The content; `None`: a report of the request.
    pub body: Option<String>,
    /// Delay before the response.
    pub delay: Duration,
    /// `grpc-status` of [`Speaks::Grpc`].
    pub grpc_status: u16,
    /// An action instead of a response.
    pub instead: Option<Instead>,
}

/// An action instead of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instead {
    /// Closes the connection.
    Close,
    /// Responds once it is released.
    Hold,
    /// Sends these bytes verbatim, and closes the connection.
    Send(Vec<u8>),
}

impl Answer {
    /// The status of a response, given the number of earlier responses.
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
    /// True once held responses are released.
    pub hold: watch::Receiver<bool>,
}

impl Stage {
    /// Waits for the configured delay.
    pub async fn pause(&self) {
        tokio::time::sleep(self.backend.answer.delay).await;
        if self.backend.answer.instead == Some(Instead::Hold) {
            // An error means that the stage is being dropped.
            let _ = self.hold.clone().wait_for(|released| *released).await;
        }
    }
}

/// Any stream.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}
