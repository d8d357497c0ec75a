//! Where one HTTP/1 message ends and the next begins, decided by the same strict parser that the kernel uses, before
//! hyper sees a byte. hyper reads leniently (bare LF, Content-Length beside Transfer-Encoding); whoever reads a
//! message differently than the endpoint does lets requests be smuggled. Whether the host is one is asked when the request
//! is looked up.

use std::ops::Range;

use http::{StatusCode, Uri};
use router_common::http::{Content, ContentError, Head, HeadError, HeadParser, Progress, TargetForm, UnreadHost};

use super::escape::escaped;

/// Most fields of a head: as many as hyper reads without an allocation.
pub const MAX_FIELDS: usize = 100;
/// The digit of HTTP/1.1.
const OUR_MINOR: u8 = b'1';
/// Longest request target, in bytes: half of the longest head, so that there is room for the fields that say what to
/// do with it.
pub const MAX_TARGET: u16 = 16 * 1024;

/// Follows the messages of one connection.
#[derive(Debug)]
pub struct MessageFraming {
    limit: u32,
    parser: HeadParser,
    /// Where the head at hand names a minor version of HTTP/1 that is later than ours.
    later_minor: Option<usize>,
    /// The complete head in other words.
    rewritten: Option<Vec<u8>>,
    body: Content,
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

impl MessageFraming {
    /// At the first byte of a connection. `limit` is the longest head, in bytes; more than the parser's
    /// [`router_common::http::MAX_HEAD`] is no more than that.
    pub fn new(limit: u32) -> Self {
        MessageFraming {
            limit,
            parser: HeadParser::new(),
            later_minor: None,
            rewritten: None,
            body: Content::default(),
        }
    }

    /// Whether the next byte belongs to a head.
    pub fn at_head(&self) -> bool {
        self.body.is_over()
    }

    /// Whether the body in progress has said how long it will be.
    pub fn in_sized_body(&self) -> bool {
        self.body.is_sized()
    }

    /// Looks at a head: `head` is all of it that there is, `seen` what earlier calls had.
    pub fn head(&mut self, head: &[u8], seen: usize) -> HeadStep {
        let mut progress = self.parser.feed(&mut UnreadHost, head.get(seen..).unwrap_or_default());
        if progress == Progress::Invalid(HeadError::Version) {
            progress = self.read_as_http11(head).unwrap_or(progress);
        }
        let parsed = self.parser.head();
        let is_large = parsed.len > self.limit || progress == Progress::Invalid(HeadError::TooLarge);
        // Whichever it is that makes the head large: what is said is what to shorten.
        if parsed.target_len > MAX_TARGET {
            return HeadStep::Refused(Some(StatusCode::URI_TOO_LONG));
        }
        if is_large {
            return HeadStep::Refused(Some(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE));
        }
        match progress {
            Progress::Incomplete => HeadStep::Incomplete,
            Progress::Invalid(error) => {
                HeadStep::Refused(error.status().and_then(|status| StatusCode::from_u16(status).ok()))
            }
            Progress::Complete => {
                self.parser = HeadParser::new();
                let length = parsed.len as usize;
                match self.accept(head.get(..length).unwrap_or_default(), &parsed) {
                    Ok(()) => HeadStep::Complete(length),
                    Err(status) => HeadStep::Refused(Some(status)),
                }
            }
        }
    }

    /// Looks at what the parser has left open of a complete head.
    fn accept(&mut self, head: &[u8], parsed: &Head) -> Result<(), StatusCode> {
        let body = body_of(head, parsed.http11)?;
        let start = parsed.target_start as usize;
        let target = head.get(start..).and_then(|rest| rest.get(..parsed.target_len.into())).unwrap_or_default();
        let escaped = escaped(target);
        // In origin form nothing else can be wrong with it.
        if parsed.form != TargetForm::Origin && Uri::try_from(escaped.as_deref().unwrap_or(target)).is_err() {
            return Err(StatusCode::BAD_REQUEST);
        }
        if escaped.is_some() || self.later_minor.is_some() {
            self.rewrite(head, start..start + target.len(), escaped)?;
        }
        self.body = body;
        Ok(())
    }

    /// Words a head as hyper reads it; what is longer then must not be too long.
    #[cold]
    fn rewrite(&mut self, head: &[u8], target: Range<usize>, escaped: Option<Vec<u8>>) -> Result<(), StatusCode> {
        let mut rewritten = head.to_vec();
        if let Some(minor) = self.later_minor.take().and_then(|minor| rewritten.get_mut(minor)) {
            *minor = OUR_MINOR;
        }
        if let Some(escaped) = escaped {
            if escaped.len() > MAX_TARGET.into() {
                return Err(StatusCode::URI_TOO_LONG);
            }
            rewritten.splice(target, escaped);
        }
        if rewritten.len() > self.limit as usize {
            return Err(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
        }
        self.rewritten = Some(rewritten);
        Ok(())
    }

    /// A request of HTTP/1.2 or later is one of HTTP/1.1 for whoever knows no more than that (RFC 9110 §2.5).
    fn read_as_http11(&mut self, head: &[u8]) -> Option<Progress> {
        // The parser has stopped behind it, at the CR if there is no more of it.
        let minor = (self.parser.head().len as usize).checked_sub(2)?;
        let (before, rest) = head.split_at_checked(minor)?;
        let ([b'2'..=b'9'], behind) = rest.split_at_checked(1)? else { return None };
        if !before.ends_with(b" HTTP/1.") {
            return None;
        }
        self.parser = HeadParser::new();
        self.later_minor = Some(minor);
        self.parser.feed(&mut UnreadHost, before);
        self.parser.feed(&mut UnreadHost, &[OUR_MINOR]);
        Some(self.parser.feed(&mut UnreadHost, behind))
    }

    /// What hyper is to read in the place of the head that is complete now, if not that: it reads no minor version of
    /// HTTP/1 that is later than ours, and not every byte in a target.
    pub fn take_rewritten(&mut self) -> Option<Vec<u8>> {
        self.rewritten.take()
    }

    /// Looks at bytes after a head: how many of them belong to its body.
    ///
    /// # Errors
    /// When the body is malformed.
    pub fn body(&mut self, bytes: &[u8]) -> Result<usize, ContentError> {
        self.body.scan(bytes)
    }
}

/// What body a complete head announces (RFC 9112 §6.3), if it does so in exactly one way.
fn body_of(head: &[u8], http11: bool) -> Result<Content, StatusCode> {
    let (mut length, mut coding) = (None, None);
    // Behind the request line, and empty lines that may come before it.
    let lines = head.trim_ascii_start().split(|byte| *byte == b'\n').skip(1);
    for (count, line) in lines.enumerate() {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        if count >= MAX_FIELDS {
            return Err(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
        }
        let (name, value) = (line.get(..colon).unwrap_or_default(), line.get(colon + 1..).unwrap_or_default());
        let slot = if name.eq_ignore_ascii_case(b"content-length") {
            &mut length
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            &mut coding
        } else if looks_like_framing(name) {
            return Err(StatusCode::BAD_REQUEST);
        } else {
            continue;
        };
        if slot.replace(value.trim_ascii()).is_some() {
            return Err(StatusCode::BAD_REQUEST);
        }
    }
    match (length, coding) {
        (None, None) => Ok(Content::default()),
        (Some(value), None) => content_length(value).map(Content::sized).ok_or(StatusCode::BAD_REQUEST),
        (None, Some(value)) if http11 => {
            let known = value.eq_ignore_ascii_case(b"chunked");
            if known { Ok(Content::chunked()) } else { Err(StatusCode::NOT_IMPLEMENTED) }
        }
        // Both, or a coding in HTTP/1.0, which has none.
        _ => Err(StatusCode::BAD_REQUEST),
    }
}

/// Whether a name is not one of the two fields that say where a message ends, but has their letters, and no others:
/// `Content_Length`, `Transfer--Encoding`. There are readers that take it for the field.
pub fn looks_like_framing(name: &[u8]) -> bool {
    const SHORTEST: usize = "contentlength".len();
    // Nearly always this is known after one letter.
    let has_letters_of = |known: &str| {
        let letters = name.iter().filter(|byte| byte.is_ascii_alphanumeric()).map(u8::to_ascii_lowercase);
        letters.eq(known.bytes().filter(|byte| *byte != b'-')) && !name.eq_ignore_ascii_case(known.as_bytes())
    };
    name.len() >= SHORTEST && (has_letters_of("content-length") || has_letters_of("transfer-encoding"))
}

/// `1*DIGIT`, below 2⁶³ so that no reader overflows.
fn content_length(value: &[u8]) -> Option<u64> {
    let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let length: u64 = std::str::from_utf8(value).ok().filter(|_| digits)?.parse().ok()?;
    (length < 1 << 63).then_some(length)
}

#[cfg(test)]
mod tests;
