//! What the access log has, and where it goes (OpenShift: `logging.access`).

use std::net::SocketAddr;
use std::sync::Arc;

/// A server that takes lines by UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Syslog {
    /// Where it is.
    pub address: SocketAddr,
    /// Code of the facility, 0 to 23.
    pub facility: u8,
    /// Most bytes of a message, with its header.
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

/// A cookie that is logged, `name=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CookieCapture {
    /// Its name, or the beginning of it.
    pub name: Arc<str>,
    /// `matchType: Prefix`: `name` is the beginning.
    pub is_prefix: bool,
    /// Most bytes of name and value together.
    pub max_length: usize,
}
