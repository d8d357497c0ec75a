//! The PROXY protocol from whoever stands before the router (`endpointPublishingStrategy.….protocol: PROXY`): each
//! connection begins with a header, version 1 or 2, that names its client
//! (haproxy.org/download/2.8/doc/proxy-protocol.txt).
//!
//! Whoever reaches the listener is believed: a router that expects the header must be reachable from its load balancer
//! alone. A connection without one is closed, never served under the load balancer's address.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use router_access_log::Flag;

use proxy_header::{Error, ParseConfig, Protocol, ProxyHeader};
use tokio::net::TcpStream;

use super::hello::read_some;
use super::listeners::address::plain;

/// Longest header, in bytes: addresses and any TLVs that are in use.
const MAX_HEADER: usize = 4096;

/// What a header says.
#[derive(Debug, PartialEq, Eq)]
pub struct Proxied {
    /// Who connected, and to which address; `None` when the load balancer speaks for itself (`LOCAL`, `UNKNOWN`).
    pub ends: Option<(SocketAddr, SocketAddr)>,
    /// What was read behind the header.
    pub rest: Vec<u8>,
}

/// Why there is no header.
#[derive(Debug, thiserror::Error)]
pub enum NoHeader {
    /// The first bytes can never become one.
    #[error("the first bytes are no PROXY header: {0}")]
    Invalid(Error),
    /// More bytes than are read for one.
    #[error("the PROXY header is longer than {MAX_HEADER} bytes")]
    TooLarge,
    /// It was not complete in time.
    #[error("the PROXY header did not come in time")]
    Timeout,
    /// The connection ended before it was complete.
    #[error("the connection ended before its PROXY header")]
    Closed,
    /// The connection failed before it was complete.
    #[error("the connection failed before its PROXY header: {0}")]
    Failed(#[from] io::Error),
}

impl NoHeader {
    /// The word for it in the access log.
    pub fn flag(&self) -> Flag {
        match self {
            NoHeader::Invalid(_) | NoHeader::TooLarge => Flag::BadRequest,
            NoHeader::Timeout => Flag::ClientTimeout,
            NoHeader::Closed | NoHeader::Failed(_) => Flag::ClientGone,
        }
    }
}

/// Reads the header, for at most `limit` in all.
///
/// # Errors
/// Why there is none.
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
