//! HTTP/2 in clear text by prior knowledge (RFC 9113 §3.3), which clients of GRPCRoutes speak: told from HTTP/1 by how a
//! connection begins.

use std::io;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use super::hello::read_some;

/// RFC 9113 §3.4. No request of HTTP/1 begins so.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// How a connection begins.
#[derive(Debug, PartialEq, Eq)]
pub struct Beginning {
    /// With the preface of HTTP/2.
    pub http2: bool,
    /// What was read to know it.
    pub bytes: Vec<u8>,
    /// How long that took.
    pub waited: Duration,
}

/// Reads a connection, which began with `bytes`, as far as it takes to know what it speaks. What ends too early, or says
/// nothing for `limit`, is left to HTTP/1, which knows what to say.
///
/// # Errors
/// The connection's.
pub async fn read(stream: &TcpStream, mut bytes: Vec<u8>, limit: Duration) -> io::Result<Beginning> {
    let began = Instant::now();
    let http2 = loop {
        if bytes.starts_with(PREFACE) {
            break true;
        }
        if !PREFACE.starts_with(&bytes) {
            break false;
        }
        match timeout_at(began + limit, read_some(stream, &mut bytes)).await {
            Ok(Ok(0)) | Err(_) => break false,
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return Err(error),
        }
    };
    Ok(Beginning { http2, bytes, waited: began.elapsed() })
}
