//! Determines where an HTTP/1 message ends, with the strict parser that the kernel program uses, before hyper reads a
//! byte. hyper is lenient (bare LF, Content-Length beside Transfer-Encoding), and a proxy that frames messages
//! differently than the endpoint allows request smuggling. The host is validated later, when the route is looked up.

use std::ops::Range;

use http::{StatusCode, Uri};
use router_common::http::{
    ContentError, ContentTracker, HeadError, HeadParser, Progress, RequestHead, TargetForm, UnreadHost,
};

use super::escape::escaped;

/// Most fields of a head: as many as hyper parses without an allocation.
pub const MAX_FIELDS: usize = 100;
/// Minor version digit of HTTP/1.1.
const OUR_MINOR: u8 = b'1';
/// Longest request target in bytes: half of the longest head, which leaves room for other fields.
pub const MAX_TARGET: u16 = 16 * 1024;

/// Frames the messages of a connection.
#[derive(Debug)]
pub struct MessageFraming {
    limit: u32,
    parser: HeadParser,
    /// Offset of a minor version digit in the current head that is higher than 1.
    later_minor: Option<usize>,
    /// The complete head as hyper is to read it, if different.
    rewritten: Option<Vec<u8>>,
    body: ContentTracker,
}

/// State of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadStep {
    /// Incomplete.
    Incomplete,
    /// Valid, with its length in bytes.
    Complete(usize),
    /// Invalid: to be answered with this status; `None`: not HTTP, the connection is closed.
    Refused(Option<StatusCode>),
}

impl MessageFraming {
    /// For a new connection. `limit`: longest head in bytes, at most the parser's [`router_common::http::MAX_HEAD`].
    pub fn new(limit: u32) -> Self {
        MessageFraming {
            limit,
            parser: HeadParser::new(),
            later_minor: None,
            rewritten: None,
            body: ContentTracker::default(),
        }
    }

    /// Whether the next byte belongs to a head.
    pub fn at_head(&self) -> bool {
        self.body.is_over()
    }

    /// Whether the current body has a known length.
    pub fn in_sized_body(&self) -> bool {
        self.body.is_sized()
    }

    /// Parses a head: `head` is all of it so far, of which earlier calls had `seen` bytes.
    pub fn head(&mut self, head: &[u8], seen: usize) -> HeadStep {
        let mut progress = self.parser.feed(&mut UnreadHost, head.get(seen..).unwrap_or_default());
        if progress == Progress::Invalid(HeadError::Version) {
            progress = self.read_as_http11(head).unwrap_or(progress);
        }
        let parsed = self.parser.head();
        let is_large = parsed.len > self.limit || progress == Progress::Invalid(HeadError::TooLarge);
        // The status names the part that is to be shortened.
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

    /// Validates what the parser leaves open about a complete head.
    fn accept(&mut self, head: &[u8], parsed: &RequestHead) -> Result<(), StatusCode> {
        let body = body_of(head, parsed.http11)?;
        let start = parsed.target_start as usize;
        let target = head.get(start..).and_then(|rest| rest.get(..parsed.target_len.into())).unwrap_or_default();
        let escaped = escaped(target);
        // A target in origin form needs no further checks.
        if parsed.form != TargetForm::Origin && Uri::try_from(escaped.as_deref().unwrap_or(target)).is_err() {
            return Err(StatusCode::BAD_REQUEST);
        }
        if escaped.is_some() || self.later_minor.is_some() {
            self.rewrite(head, start..start + target.len(), escaped)?;
        }
        self.body = body;
        Ok(())
    }

    /// Rewrites a head for hyper; the result must not exceed the limit either.
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

    /// A later minor version is processed as HTTP/1.1 (RFC 9110 §2.5).
    fn read_as_http11(&mut self, head: &[u8]) -> Option<Progress> {
        // The parser stopped after the digit, or at the CR if that was the last byte.
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

    /// The head that hyper is to read instead of the received one, if any: hyper rejects later minor versions, and some
    /// bytes in targets.
    pub fn take_rewritten(&mut self) -> Option<Vec<u8>> {
        self.rewritten.take()
    }

    /// Parses bytes after a head. Returns how many of them belong to its body.
    ///
    /// # Errors
    /// When the body is malformed.
    pub fn body(&mut self, bytes: &[u8]) -> Result<usize, ContentError> {
        self.body.scan(bytes)
    }
}

/// The body framing of a complete head (RFC 9112 §6.3), if it is unambiguous.
fn body_of(head: &[u8], http11: bool) -> Result<ContentTracker, StatusCode> {
    let (mut length, mut coding) = (None, None);
    // After the request line, and after empty lines before it.
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
        (None, None) => Ok(ContentTracker::default()),
        (Some(value), None) => content_length(value).map(ContentTracker::sized).ok_or(StatusCode::BAD_REQUEST),
        (None, Some(value)) if http11 => {
            let known = value.eq_ignore_ascii_case(b"chunked");
            if known { Ok(ContentTracker::chunked()) } else { Err(StatusCode::NOT_IMPLEMENTED) }
        }
        // Both fields, or a transfer coding in HTTP/1.0, which has none.
        _ => Err(StatusCode::BAD_REQUEST),
    }
}

/// Whether a name differs from a framing field only in non-letters: `Content_Length`, `Transfer--Encoding`. Some
/// receivers treat it as that field.
pub fn looks_like_framing(name: &[u8]) -> bool {
    const SHORTEST: usize = "contentlength".len();
    // Nearly always decided by the first letter.
    let has_letters_of = |known: &str| {
        let letters = name.iter().filter(|byte| byte.is_ascii_alphanumeric()).map(u8::to_ascii_lowercase);
        letters.eq(known.bytes().filter(|byte| *byte != b'-')) && !name.eq_ignore_ascii_case(known.as_bytes())
    };
    name.len() >= SHORTEST && (has_letters_of("content-length") || has_letters_of("transfer-encoding"))
}

/// `1*DIGIT`, less than 2⁶³, so that no receiver overflows.
fn content_length(value: &[u8]) -> Option<u64> {
    let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let length: u64 = std::str::from_utf8(value).ok().filter(|_| digits)?.parse().ok()?;
    (length < 1 << 63).then_some(length)
}

#[cfg(test)]
mod tests;
