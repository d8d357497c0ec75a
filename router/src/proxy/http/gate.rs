//! Where one HTTP/1 message ends and the next begins, decided by the same strict parser that the kernel uses, before
//! hyper sees a byte. hyper reads leniently (bare LF, Content-Length beside Transfer-Encoding); whoever reads a
//! message differently than the endpoint does lets requests be smuggled.

use http::StatusCode;
use router_common::hostname::HostBuilder;
use router_common::http::{HeadParser, Progress};

use super::chunks::{ChunkError, ChunkScanner};

/// Follows the messages of one connection.
#[derive(Debug)]
pub struct Gate {
    parser: HeadParser,
    host: HostBuilder,
    body: Option<Body>,
}

#[derive(Debug)]
enum Body {
    Sized(u64),
    Chunked(ChunkScanner),
}

/// What is known of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadStep {
    /// More bytes are needed.
    Incomplete,
    /// It is good, and has so many bytes.
    Complete(usize),
    /// It is to be answered with this status; with `None` it is no HTTP, and the connection is closed.
    Refused(Option<StatusCode>),
}

impl Default for Gate {
    fn default() -> Self {
        Gate { parser: HeadParser::new(), host: HostBuilder::new(), body: None }
    }
}

impl Gate {
    /// Whether the next byte belongs to a head.
    pub fn at_head(&self) -> bool {
        self.body.is_none()
    }

    /// Looks at a head: `head` is all of it that there is, `seen` what earlier calls had.
    pub fn head(&mut self, head: &[u8], seen: usize) -> HeadStep {
        match self.parser.feed(&mut self.host, head.get(seen..).unwrap_or_default()) {
            Progress::Incomplete => HeadStep::Incomplete,
            Progress::Invalid(error) => {
                HeadStep::Refused(error.status().and_then(|status| StatusCode::from_u16(status).ok()))
            }
            Progress::Complete => {
                let parsed = self.parser.head();
                (self.parser, self.host) = (HeadParser::new(), HostBuilder::new());
                let length = parsed.len as usize;
                match body_of(head.get(..length).unwrap_or_default(), parsed.http11) {
                    Ok(body) => {
                        self.body = body;
                        HeadStep::Complete(length)
                    }
                    Err(status) => HeadStep::Refused(Some(status)),
                }
            }
        }
    }

    /// Looks at bytes after a head: how many of them belong to its body.
    ///
    /// # Errors
    /// When the body is malformed.
    pub fn body(&mut self, bytes: &[u8]) -> Result<usize, ChunkError> {
        let (taken, ended) = match &mut self.body {
            None => (0, true),
            Some(Body::Sized(rest)) => {
                let taken = (*rest).min(bytes.len() as u64);
                *rest -= taken;
                // Not more than the length of `bytes`.
                (taken as usize, *rest == 0)
            }
            Some(Body::Chunked(scanner)) => match scanner.scan(bytes)? {
                Some(end) => (end, true),
                None => (bytes.len(), false),
            },
        };
        if ended {
            self.body = None;
        }
        Ok(taken)
    }
}

/// What body a complete head announces (RFC 9112 §6.3), if it does so in exactly one way.
fn body_of(head: &[u8], http11: bool) -> Result<Option<Body>, StatusCode> {
    let (mut length, mut coding) = (None, None);
    for line in head.split(|byte| *byte == b'\n') {
        let mut parts = line.splitn(2, |byte| *byte == b':');
        let (Some(name), Some(value)) = (parts.next(), parts.next()) else { continue };
        let slot = if name.eq_ignore_ascii_case(b"content-length") {
            &mut length
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            &mut coding
        } else {
            continue;
        };
        if slot.replace(value.trim_ascii()).is_some() {
            return Err(StatusCode::BAD_REQUEST);
        }
    }
    match (length, coding) {
        (None, None) => Ok(None),
        (Some(value), None) => match content_length(value).ok_or(StatusCode::BAD_REQUEST)? {
            0 => Ok(None),
            length => Ok(Some(Body::Sized(length))),
        },
        (None, Some(value)) if http11 => {
            let known = value.eq_ignore_ascii_case(b"chunked");
            if known { Ok(Some(Body::Chunked(ChunkScanner::default()))) } else { Err(StatusCode::NOT_IMPLEMENTED) }
        }
        // Both, or a coding in HTTP/1.0, which has none.
        _ => Err(StatusCode::BAD_REQUEST),
    }
}

/// `1*DIGIT`, below 2⁶³ so that no reader overflows.
fn content_length(value: &[u8]) -> Option<u64> {
    let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let length: u64 = std::str::from_utf8(value).ok().filter(|_| digits)?.parse().ok()?;
    (length < 1 << 63).then_some(length)
}

#[cfg(test)]
mod tests;
