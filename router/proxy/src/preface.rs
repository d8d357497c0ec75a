//! Clear-text HTTP/2 with prior knowledge (RFC 9113 §3.3), as used by clients of GRPCRoutes: recognized by the
//! connection preface.

use std::io;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use super::hello::read_some;

/// RFC 9113 §3.4. No HTTP/1 request begins like this.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The first bytes of a connection.
#[derive(Debug, PartialEq, Eq)]
pub struct FirstBytes {
    /// Whether it began with the HTTP/2 preface.
    pub http2: bool,
    /// The bytes read.
    pub bytes: Vec<u8>,
    /// How long the read took.
    pub waited: Duration,
}

/// Reads a connection that began with `bytes` until its protocol is known. If it ends early, or sends nothing for
/// `limit`, it is treated as HTTP/1, which has a response for that.
///
/// # Errors
/// Errors of the read.
pub async fn read(stream: &TcpStream, mut bytes: Vec<u8>, limit: Duration) -> io::Result<FirstBytes> {
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
    Ok(FirstBytes { http2, bytes, waited: began.elapsed() })
}
