//! The first flight on a TLS listener: reads a ClientHello, and rejects anything else.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::{Poll, ready};
use std::time::Duration;

use router_common::hostname::{HostBuilder, field_text};
use router_common::tls::{HelloError, HelloParser, MAX_HELLO, Progress, Sni};
use router_model::names::Hostname;
use tokio::net::TcpStream;

use crate::relay;
use crate::rt::timer::Timer;

/// Most bytes read for a ClientHello: the message and a reasonable number of record headers.
pub const MAX_GATHERED: usize = MAX_HELLO as usize + 1024;

const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 256 * 1024;
const ALERT_DECODE_ERROR: u8 = 50;

/// A complete ClientHello.
#[derive(Debug)]
pub struct ClientHelloBytes {
    /// SNI; `None` without one, or if it is an IP address.
    pub name: Option<Hostname>,
    /// All bytes that were read, starting with the ClientHello.
    pub bytes: Vec<u8>,
}

/// Why there is no ClientHello.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HelloFailure {
    /// The bytes are not a valid ClientHello.
    #[error("not a valid ClientHello: {0:?}")]
    Invalid(HelloError),
    /// The ClientHello exceeds the limit.
    #[error("the ClientHello is too large")]
    TooLarge,
    /// The read timed out.
    #[error("the ClientHello did not arrive in time")]
    Timeout,
    /// The client closed the connection before.
    #[error("the client closed the connection")]
    Closed,
    /// The connection was reset before: by the client, or by the kernel program, which took it over.
    #[error("the connection was reset")]
    Reset,
}

impl HelloFailure {
    /// The TLS alert to send before closing, if any.
    pub fn alert(self) -> Option<u8> {
        match self {
            HelloFailure::Invalid(error) => error.alert(),
            HelloFailure::TooLarge => Some(ALERT_DECODE_ERROR),
            HelloFailure::Timeout | HelloFailure::Closed | HelloFailure::Reset => None,
        }
    }
}

/// Reads a ClientHello within `limit`. `first`: bytes already read.
///
/// # Errors
/// Why there is no ClientHello.
pub async fn read_hello(
    stream: &TcpStream,
    first: Vec<u8>,
    limit: Duration,
    timer: &mut Timer,
) -> Result<ClientHelloBytes, HelloFailure> {
    let mut gathering = pin!(gather(stream, first));
    timer.stop();
    let gathered = poll_fn(|cx| match gathering.as_mut().poll(cx) {
        Poll::Ready(gathered) => Poll::Ready(gathered),
        Poll::Pending => timer.poll(cx, limit).map(|()| Err(HelloFailure::Timeout)),
    });
    gathered.await
}

/// Rejects a connection: sends an alert, if any, and a FIN, and then reads for a moment, because closing with unread
/// bytes would reset the connection and lose the alert.
pub async fn turn_away(stream: TcpStream, alert: Option<u8>) {
    if let Some(code) = alert {
        // A fatal alert in a plaintext record (RFC 8446 §5.1, §6). It fits into an empty send buffer.
        let _ = stream.try_write(&[21, 3, 3, 0, 2, 2, code]);
    }
    if rustix::net::shutdown(&stream, rustix::net::Shutdown::Write).is_err() {
        return;
    }
    let drained = async {
        let mut total = 0;
        while total < LINGER_BYTES {
            match read_some(&stream, &mut Vec::new()).await {
                Ok(0) | Err(_) => return,
                Ok(read) => total += read,
            }
        }
    };
    let _ = tokio::time::timeout(LINGER, drained).await;
}

async fn gather(stream: &TcpStream, mut bytes: Vec<u8>) -> Result<ClientHelloBytes, HelloFailure> {
    let (mut parser, mut host) = (HelloParser::new(), HostBuilder::new());
    let mut known = 0;
    loop {
        if bytes.len() == known {
            match read_some(stream, &mut bytes).await {
                Ok(0) => return Err(HelloFailure::Closed),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Err(HelloFailure::Reset),
                Err(_) => return Err(HelloFailure::Closed),
            }
        }
        match parser.feed(&mut host, bytes.get(known..).unwrap_or_default()) {
            Progress::Invalid(error) => return Err(HelloFailure::Invalid(error)),
            Progress::Incomplete if bytes.len() >= MAX_GATHERED => return Err(HelloFailure::TooLarge),
            Progress::Incomplete => known = bytes.len(),
            Progress::Complete => {
                let name = match parser.hello().sni {
                    // The builder's text is normalized; parsing converts its type.
                    Sni::Name => Hostname::parse(field_text(&host.exact)).ok(),
                    Sni::None | Sni::IpLiteral => None,
                };
                return Ok(ClientHelloBytes { name, bytes });
            }
        }
    }
}

/// Reads once and appends; 0 at the end of the stream.
///
/// # Errors
/// Errors of the read.
pub async fn read_some(stream: &TcpStream, bytes: &mut Vec<u8>) -> io::Result<usize> {
    poll_fn(|cx| {
        loop {
            ready!(stream.poll_read_ready(cx))?;
            if let Some(read) = relay::append(stream, bytes)? {
                return Poll::Ready(Ok(read));
            }
        }
    })
    .await
}

#[cfg(test)]
mod tests;
