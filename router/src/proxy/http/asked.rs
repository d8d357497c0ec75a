//! A request as rules look at it.

use http::header::HOST;
use http::{HeaderValue, request};
use router_core::lookup;

use super::upgrade::is_websocket_connect;

/// A request's head, and what is not to be read from it as it stands.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'h> {
    head: &'h request::Parts,
    authority: &'h HeaderValue,
    method: &'h str,
}

impl<'h> Asked<'h> {
    /// A request for this authority. A WebSocket is asked for by `GET`, whatever the version of HTTP.
    pub fn new(head: &'h request::Parts, authority: &'h HeaderValue) -> Self {
        let method = if is_websocket_connect(head) { "GET" } else { head.method.as_str() };
        Asked { head, authority, method }
    }

    /// The same with another method.
    pub fn with_method(self, method: &'h str) -> Self {
        Asked { method, ..self }
    }
}

impl lookup::Request for Asked<'_> {
    fn method(&self) -> &str {
        self.method
    }

    fn path(&self) -> &str {
        self.head.uri.path()
    }

    fn query(&self) -> Option<&str> {
        self.head.uri.query()
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        // HTTP/2 has none.
        let value = if name == HOST.as_str() { Some(self.authority) } else { self.head.headers.get(name) };
        value.map(HeaderValue::as_bytes)
    }
}
