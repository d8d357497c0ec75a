//! Contents and destination of the access log (OpenShift: `logging.access`).

use std::net::SocketAddr;
use std::sync::Arc;

/// A syslog server that receives lines over UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Syslog {
    /// Its address.
    pub address: SocketAddr,
    /// Code of the facility, 0 to 23 (RFC 3164 §4.1.1).
    pub facility: u8,
    /// Most bytes of a message, including its header.
    pub max_length: usize,
}

/// A header whose value is logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderCapture {
    /// Name, compared without regard to case.
    pub name: Arc<str>,
    /// Most bytes of the value.
    pub max_length: usize,
}

/// A cookie that is logged as `name=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CookieCapture {
    /// Its name or name prefix.
    pub name: Arc<str>,
    /// `matchType: Prefix`: `name` is a prefix.
    pub is_prefix: bool,
    /// Most bytes of name and value together.
    pub max_length: usize,
}
