//! The PROXY protocol (`endpointPublishingStrategy.….protocol: PROXY`): each connection begins with a header, version 1
//! or 2, that names its client (haproxy.org/download/2.8/doc/proxy-protocol.txt).
//!
//! The header is trusted, so the listener must be reachable from the load balancer alone. A connection without a header
//! is closed, and never served under the load balancer's address.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use router_access_log::Flag;

use proxy_header::{Error, ParseConfig, Protocol, ProxyHeader};
use tokio::net::TcpStream;

use super::hello::read_some;
use super::listeners::address::plain;

/// Longest header in bytes: addresses and all common TLVs.
const MAX_HEADER: usize = 4096;

/// A parsed header.
#[derive(Debug, PartialEq, Eq)]
pub struct Proxied {
    /// Client and destination address; `None` for a connection of the load balancer itself (`LOCAL`, `UNKNOWN`).
    pub ends: Option<(SocketAddr, SocketAddr)>,
    /// Bytes read after the header.
    pub rest: Vec<u8>,
}

/// Why there is no valid header.
#[derive(Debug, thiserror::Error)]
pub enum NoHeader {
    /// The bytes are not a header.
    #[error("the first bytes are not a PROXY header: {0}")]
    Invalid(Error),
    /// The header exceeds the limit.
    #[error("the PROXY header is longer than {MAX_HEADER} bytes")]
    TooLarge,
    /// The read timed out.
    #[error("the PROXY header did not arrive in time")]
    Timeout,
    /// The connection ended before it was complete.
    #[error("the connection ended before its PROXY header")]
    Closed,
    /// The connection failed before it was complete.
    #[error("the connection failed before its PROXY header: {0}")]
    Failed(#[from] io::Error),
}

impl NoHeader {
    /// The cause in the access log.
    pub fn flag(&self) -> Flag {
        match self {
            NoHeader::Invalid(_) | NoHeader::TooLarge => Flag::BadRequest,
            NoHeader::Timeout => Flag::ClientTimeout,
            NoHeader::Closed | NoHeader::Failed(_) => Flag::ClientGone,
        }
    }
}

/// Reads the header within `limit`.
///
/// # Errors
/// Why there is no valid header.
pub async fn read(stream: &TcpStream, limit: Duration) -> Result<Proxied, NoHeader> {
    tokio::time::timeout(limit, gather(stream)).await.unwrap_or(Err(NoHeader::Timeout))
}

async fn gather(stream: &TcpStream) -> Result<Proxied, NoHeader> {
    let mut bytes = Vec::new();
    loop {
        if read_some(stream, &mut bytes).await? == 0 {
            return Err(NoHeader::Closed);
        }
        if let Some(proxied) = parse(&bytes)? {
            return Ok(proxied);
        }
        if bytes.len() >= MAX_HEADER {
            return Err(NoHeader::TooLarge);
        }
    }
}

/// `None` until the header is complete.
fn parse(bytes: &[u8]) -> Result<Option<Proxied>, NoHeader> {
    let config = ParseConfig { include_tlvs: false, ..ParseConfig::default() };
    match ProxyHeader::parse(bytes, config) {
        Ok((_, length)) if length > MAX_HEADER => Err(NoHeader::TooLarge),
        Ok((header, length)) => {
            let stream = header.proxied_address().filter(|address| address.protocol == Protocol::Stream);
            let ends = stream.map(|address| (plain(address.source), plain(address.destination)));
            Ok(Some(Proxied { ends, rest: bytes.get(length..).unwrap_or_default().to_vec() }))
        }
        Err(Error::BufferTooShort) => Ok(None),
        Err(error) => Err(NoHeader::Invalid(error)),
    }
}

#[cfg(test)]
mod tests;
