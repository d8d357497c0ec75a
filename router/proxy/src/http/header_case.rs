//! `httpHeaders.headerNameCaseAdjustments`: case of HTTP/1 field names for legacy receivers.
//!
//! `http` stores names in lower case, and hyper writes them so unless a message carries the original names of a message
//! that hyper has parsed. So a message with the wanted names is parsed once, and hyper's record of it is copied to each
//! message.

use std::convert::Infallible;
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::FutureExt;
use http::{Extensions, HeaderName, Request, Response};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;

/// From this many fields of the same name on, the name is in lower case.
const LINES: usize = 8;

/// Case of some field names.
#[derive(Clone, Debug)]
pub struct HeaderCase {
    names: Vec<Arc<str>>,
    /// hyper's record of the names; its type is private to hyper.
    noted: Extensions,
}

impl HeaderCase {
    /// Builds the record; `None` without valid names.
    pub fn of(names: &[Arc<str>]) -> Option<Self> {
        if names.is_empty() {
            return None;
        }
        let head = head_with(names);
        let noted = Arc::new(Mutex::new(None));
        let note = Arc::clone(&noted);
        let service = service_fn(move |request: Request<Incoming>| {
            *note.lock().unwrap_or_else(PoisonError::into_inner) = Some(request.extensions().clone());
            async { Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new())) }
        });
        // Runs in memory, so it never waits.
        let (mut client, server) = tokio::io::duplex(head.len().max(1024));
        client.write_all(head.as_bytes()).now_or_never()?.ok()?;
        let mut builder = http1::Builder::new();
        builder
            .preserve_header_case(true)
            .header_read_timeout(None)
            .max_headers(names.len().saturating_mul(LINES))
            .max_buf_size(head.len().max(8192) * 2);
        let _ = builder.serve_connection(TokioIo::new(server), service).now_or_never();
        let noted = noted.lock().unwrap_or_else(PoisonError::into_inner).take();
        noted.map(|noted| HeaderCase { names: names.to_vec(), noted })
    }

    /// The adjusted form of a name, if any.
    pub fn name(&self, name: &HeaderName) -> Option<&str> {
        self.names.iter().map(|spelled| &**spelled).find(|spelled| name.as_str().eq_ignore_ascii_case(spelled))
    }

    /// Applies the adjustments to a message.
    pub fn apply(&self, message: &mut Extensions) {
        message.extend(self.noted.clone());
    }
}

/// A request with these names. Framing fields among them need valid values; Content-Length precedes Transfer-Encoding,
/// which overrides it.
fn head_with(names: &[Arc<str>]) -> String {
    let is = |name: &str, other: &str| name.eq_ignore_ascii_case(other);
    let mut sorted: Vec<&Arc<str>> = names.iter().collect();
    sorted.sort_by_key(|name| is(name, "transfer-encoding"));
    let mut head = String::from("GET / HTTP/1.1\r\n");
    for name in sorted {
        let (value, lines) = match &**name {
            name if is(name, "content-length") => ("0", 1),
            name if is(name, "transfer-encoding") => ("chunked", 1),
            _ => ("x", LINES),
        };
        for _ in 0..lines {
            // Writing to a String cannot fail.
            let _ = write!(head, "{name}: {value}\r\n");
        }
    }
    head + "\r\n"
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn responses_are_written_with_these_names() {
        let names = ["X-ODD", "Content-Length", "Transfer-Encoding", "ETag", "Host"].map(Arc::from);
        let spelling = HeaderCase::of(&names).unwrap();
        let service = service_fn(move |_: Request<Incoming>| {
            let mut response = Response::new(Full::new(Bytes::from_static(b"body")));
            for value in ["1", "2"] {
                response.headers_mut().append("x-odd", http::HeaderValue::from_static(value));
            }
            response.headers_mut().insert("x-even", http::HeaderValue::from_static("3"));
            spelling.apply(response.extensions_mut());
            async { Ok::<_, Infallible>(response) }
        });
        let (mut client, server) = tokio::io::duplex(4096);
        client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.unwrap();
        http1::Builder::new().serve_connection(TokioIo::new(server), service).await.unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text).await.unwrap();
        for line in ["X-ODD: 1\r\n", "X-ODD: 2\r\n", "Content-Length: 4\r\n", "x-even: 3\r\n"] {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert!(HeaderCase::of(&[]).is_none());
    }
}
