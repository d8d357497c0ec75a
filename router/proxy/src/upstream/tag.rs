//! Tags: numbers that identify endpoints and clients.

use std::fmt;
use std::net::SocketAddr;

use aws_lc_rs::digest::{SHA256, digest};
use router_model::names::RouteId;

/// Identifies an endpoint or a client, in a cookie or in a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tag(pub u128);

impl Tag {
    /// The tag of an endpoint's address within a route.
    pub fn of(route: &RouteId, address: SocketAddr) -> Self {
        Tag::of_text(&format!("{route}\0{address}"))
    }

    /// The tag of a text.
    pub fn of_text(text: &str) -> Self {
        Tag(hash(text.as_bytes()))
    }

    /// A random tag; `None` if the kernel supplies no randomness.
    pub fn random() -> Option<Self> {
        let mut bytes = [0; 16];
        let read = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty()).ok()?;
        (read == bytes.len()).then_some(Tag(u128::from_ne_bytes(bytes)))
    }

    /// Parses a cookie's value; `None` unless this module can have written it.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(value).ok().filter(|text| text.len() == 32)?;
        let is_hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        is_hex.then(|| u128::from_str_radix(text, 16).ok().map(Tag)).flatten()
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The first 16 bytes of SHA-256.
pub fn hash(bytes: &[u8]) -> u128 {
    let hash = digest(&SHA256, bytes);
    hash.as_ref().iter().take(16).fold(0, |number, byte| (number << 8) | u128::from(*byte))
}
