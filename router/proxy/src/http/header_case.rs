//! `httpHeaders.headerNameCaseAdjustments`: names of HTTP/1 fields as old readers want them spelled.
//!
//! `http` keeps names in small letters; hyper writes them so unless a message carries the spelling of another one that
//! hyper has read. So a message with the wanted names is read once, and what hyper noted of it goes with each message.

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

/// A field that a message has more often is spelled as always from there on.
const LINES: usize = 8;

/// The spelling of some names.
#[derive(Clone, Debug)]
pub struct HeaderCase {
    names: Vec<Arc<str>>,
    /// In a form that only hyper can read.
    noted: Extensions,
}

impl HeaderCase {
    /// Of these names. `None` when there are none, or they are no names.
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
        // All of it happens in memory, so that nothing has to be waited for.
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

    /// How a name is spelled, if not as always.
    pub fn name(&self, name: &HeaderName) -> Option<&str> {
        self.names.iter().map(|spelled| &**spelled).find(|spelled| name.as_str().eq_ignore_ascii_case(spelled))
    }

    /// Has a message's names spelled so.
    pub fn apply(&self, message: &mut Extensions) {
        message.extend(self.noted.clone());
    }
}

/// A request with these names. Those that say how long a message is have to say it well; the length comes before the
/// coding, which it would be overruled by.
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
            // Writing to a text cannot fail.
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
