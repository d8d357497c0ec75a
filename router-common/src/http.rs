//! HTTP/1 request head → method, path and Host, as bytes arrive (RFC 9112 §2 – §5, RFC 9110 §5, §7.2).
//!
//! As strict as the RFC permits a server to be: input that two readers may interpret differently is an error. The
//! parser stores positions and no bytes, so a head may be split anywhere.

mod byte_runs;
mod content;
mod framing;
mod head;
mod host;
mod token;

use crate::hostname::HostKind;

use byte_runs::{IN_HOST, IN_TARGET, IN_TOKEN, last_eight, plain, run};
pub use content::{ContentError, ContentTracker};
use framing::FramingReader;
pub use head::{Framing, HeadError, HeadHost, Progress, RequestHead, TargetForm, UpgradeProtocol};
pub use host::{HostReader, UnreadHost};
use token::is_token;

/// Longest request head, in bytes; OpenShift's `headerBufferBytes` default.
pub const MAX_HEAD: u32 = 32 * 1024;

/// Longest method, in bytes.
const MAX_METHOD: u16 = 32;

const START: u8 = 0;
const START_LF: u8 = 1;
const METHOD: u8 = 2;
const TARGET_START: u8 = 3;
const TARGET: u8 = 4;
const VERSION: u8 = 5;
const LINE_LF: u8 = 6; // the LF of the request line or of a header line
const LINE_START: u8 = 7;
const NAME: u8 = 8;
const VALUE_START: u8 = 9; // blanks before a value
const VALUE: u8 = 10;
const HOST_START: u8 = 11;
const HOST: u8 = 12;
const HOST_END: u8 = 13; // blanks after the Host value
const END_LF: u8 = 14;

const FLAG_HOST: u8 = 1;
const FLAG_HOST_NAME: u8 = 2;
const FLAG_HOST_LITERAL: u8 = 4;
const FLAG_HTTP11: u8 = 8;
const FLAG_CONNECT: u8 = 16;
const FLAG_NO_USE: u8 = 32; // of a method without defined semantics for content

/// Reads one request head. `repr(C)` without padding, because it is stored in map values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct HeadParser {
    acc: u64, // the method, the version, or the last bytes of a header name
    framing: FramingReader,
    offset: u32,
    method_start: u32,
    target_start: u32,
    method_len: u16,
    target_len: u16,
    name_len: u16,
    state: u8,
    flags: u8,
    form: u8,
    pad: [u8; 3],
}

impl Default for HeadParser {
    fn default() -> Self {
        Self::new()
    }
}

impl HeadParser {
    /// A parser at the first byte of a connection; all zero, so zeroed map memory is a valid parser.
    pub const fn new() -> Self {
        HeadParser {
            acc: 0,
            framing: FramingReader::new(),
            offset: 0,
            method_start: 0,
            target_start: 0,
            method_len: 0,
            target_len: 0,
            name_len: 0,
            state: START,
            flags: 0,
            form: 0,
            pad: [0; 3],
        }
    }

    /// The result; valid after [`Progress::Complete`].
    #[inline(always)]
    pub fn head(&self) -> RequestHead {
        RequestHead {
            method_start: self.method_start,
            method_len: self.method_len,
            target_start: self.target_start,
            target_len: self.target_len,
            form: match self.form {
                1 => TargetForm::Absolute,
                2 => TargetForm::Authority,
                3 => TargetForm::Asterisk,
                _ => TargetForm::Origin,
            },
            host: if self.flags & FLAG_HOST_NAME == 0 {
                HeadHost::None
            } else if self.flags & FLAG_HOST_LITERAL != 0 {
                HeadHost::IpLiteral
            } else {
                HeadHost::Name
            },
            http11: self.flags & FLAG_HTTP11 != 0,
            len: self.offset,
            framing: self.framing(),
            length: self.framing.length(),
            upgrade: self.framing.upgrade(),
        }
    }

    /// How the end of the content is determined; `Unclear` unless every reader finds the same end.
    #[inline(always)]
    fn framing(&self) -> Framing {
        let (framing, content) = (self.framing.framing(), self.framing.has_content());
        let is_old_chunked = framing as u8 == Framing::Chunked as u8 && self.flags & FLAG_HTTP11 == 0;
        // Some servers parse content as the next request if the method does not define content, or if they answered an
        // expectation instead of reading on. Bytes after CONNECT may be a tunnel.
        let is_unread = content && (self.flags & FLAG_NO_USE != 0 || self.framing.expects());
        if is_old_chunked || is_unread || self.flags & FLAG_CONNECT != 0 { Framing::Unclear } else { framing }
    }

    /// Whether nothing but empty lines was read.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.state == START
    }

    /// Consumes all of `bytes`, or as many as the head needs.
    pub fn feed<H: HostReader>(&mut self, host: &mut H, bytes: &[u8]) -> Progress {
        let mut left = bytes;
        while let [byte, rest @ ..] = left {
            match self.step(host, *byte) {
                Progress::Incomplete => {}
                end => return end,
            }
            left = rest.get(self.skip::<H>(rest)..).unwrap_or_default();
        }
        Progress::Incomplete
    }

    /// Consumes a run of bytes on which [`HeadParser::step`] would act alike; returns their number.
    fn skip<H: HostReader>(&mut self, bytes: &[u8]) -> usize {
        let room = MAX_HEAD.saturating_sub(self.offset) as usize;
        let bytes = bytes.get(..room).unwrap_or(bytes);
        // No run is longer than MAX_HEAD.
        let taken = match self.state {
            METHOD => {
                let most = MAX_METHOD.saturating_sub(self.method_len) as usize;
                let run = run(bytes.get(..most).unwrap_or(bytes), IN_TOKEN);
                self.method_len += run as u16;
                self.acc = last_eight(bytes, run).fold(self.acc, |acc, byte| acc << 8 | (*byte | 0x20) as u64);
                run
            }
            // In other forms every byte matters.
            TARGET if self.form == TargetForm::Origin as u8 => {
                let run = run(bytes, IN_TARGET);
                self.target_len += run as u16;
                self.acc = last_eight(bytes, run).fold(self.acc, |acc, byte| acc << 8 | *byte as u64);
                run
            }
            NAME if self.framing.is_ordinary() => {
                let run = run(bytes, IN_TOKEN);
                self.name_len += run as u16;
                self.acc = last_eight(bytes, run).fold(self.acc, |acc, byte| acc << 8 | (*byte | 0x20) as u64);
                run
            }
            HOST if !H::READS => run(bytes, IN_HOST),
            VALUE_START | VALUE if self.framing.is_ordinary() => plain(bytes),
            _ => 0,
        };
        self.offset += taken as u32;
        taken
    }

    /// Consumes one byte.
    #[inline(always)]
    pub fn step<H: HostReader>(&mut self, host: &mut H, byte: u8) -> Progress {
        if self.offset >= MAX_HEAD {
            return Progress::Invalid(HeadError::TooLarge);
        }
        self.offset += 1;
        match self.state {
            START => self.start(byte),
            START_LF => self.go_if(byte == b'\n', START, HeadError::LineEnd),
            METHOD => self.method(byte),
            TARGET_START => self.target_first(byte),
            TARGET => self.target(byte),
            VERSION => self.version(byte),
            LINE_LF => self.go_if(byte == b'\n', LINE_START, HeadError::LineEnd),
            LINE_START => self.line_start(byte),
            NAME => self.name(byte),
            VALUE_START | VALUE => self.value(byte),
            HOST_START | HOST | HOST_END => self.host_value(host, byte),
            END_LF => self.end(byte),
            _ => Progress::Invalid(HeadError::NotHttp),
        }
    }

    #[inline(always)]
    fn go(&mut self, state: u8) -> Progress {
        self.state = state;
        Progress::Incomplete
    }

    #[inline(always)]
    fn go_if(&mut self, good: bool, state: u8, error: HeadError) -> Progress {
        if good { self.go(state) } else { Progress::Invalid(error) }
    }

    #[inline(always)]
    fn start(&mut self, byte: u8) -> Progress {
        if byte == b'\r' {
            // Empty lines before a request line are ignored (RFC 9112 §2.2).
            return self.go(START_LF);
        }
        if !is_token(byte) {
            return Progress::Invalid(HeadError::NotHttp);
        }
        self.method_start = self.offset - 1;
        self.method_len = 1;
        self.acc = (byte | 0x20) as u64;
        self.go(METHOD)
    }

    #[inline(always)]
    fn method(&mut self, byte: u8) -> Progress {
        if byte == b' ' {
            // In upper and lower case: some servers ignore the case of methods.
            match (self.method_len, self.acc) {
                (7, CONNECT) => self.flags |= FLAG_CONNECT,
                (3, GET) | (4, HEAD) | (5, TRACE) => self.flags |= FLAG_NO_USE,
                _ => {}
            }
            return self.go(TARGET_START);
        }
        if !is_token(byte) || self.method_len >= MAX_METHOD {
            return Progress::Invalid(HeadError::Method);
        }
        self.acc = self.acc << 8 | (byte | 0x20) as u64;
        self.method_len += 1;
        Progress::Incomplete
    }

    #[inline(always)]
    fn target_first(&mut self, byte: u8) -> Progress {
        self.form = match byte {
            b'/' => TargetForm::Origin as u8,
            b'*' => TargetForm::Asterisk as u8,
            // A target with `://` is absolute, any other an authority. Decided when the target ends.
            _ if byte.is_ascii_alphanumeric() || byte == b'[' => TargetForm::Authority as u8,
            _ => return Progress::Invalid(HeadError::Target),
        };
        self.acc = byte as u64;
        self.target_start = self.offset - 1;
        self.target_len = 1;
        self.go(TARGET)
    }

    #[inline(always)]
    fn target(&mut self, byte: u8) -> Progress {
        if byte == b' ' {
            if self.form == TargetForm::Asterisk as u8 && self.target_len > 1 {
                return Progress::Invalid(HeadError::Target);
            }
            self.acc = 0;
            return self.go(VERSION);
        }
        // RFC 3986 allows neither controls nor non-ASCII in a URI, and `#` only begins a fragment, which is never sent.
        if byte <= b' ' || byte >= 0x7f || byte == b'#' {
            return Progress::Invalid(HeadError::Target);
        }
        self.acc = self.acc << 8 | byte as u64;
        if self.form == TargetForm::Authority as u8 && self.acc & 0xff_ffff == SCHEME_END {
            self.form = TargetForm::Absolute as u8;
        }
        self.target_len += 1;
        Progress::Incomplete
    }

    #[inline(always)]
    fn version(&mut self, byte: u8) -> Progress {
        if byte == b'\r' {
            if self.acc == HTTP11 {
                self.flags |= FLAG_HTTP11;
            } else if self.acc != HTTP10 {
                return Progress::Invalid(HeadError::Version);
            }
            return self.go(LINE_LF);
        }
        if byte == b'\n' {
            return Progress::Invalid(HeadError::LineEnd);
        }
        // `acc` already has eight bytes, and no version has nine; leading NULs would not be visible in it.
        if self.acc >> 56 != 0 || byte <= b' ' {
            return Progress::Invalid(HeadError::Version);
        }
        self.acc = self.acc << 8 | byte as u64;
        Progress::Incomplete
    }

    #[inline(always)]
    fn line_start(&mut self, byte: u8) -> Progress {
        if byte == b'\r' {
            return self.go(END_LF);
        }
        if byte == b' ' || byte == b'\t' {
            return Progress::Invalid(HeadError::Fold);
        }
        if byte == b'\n' {
            return Progress::Invalid(HeadError::LineEnd);
        }
        if !is_token(byte) {
            return Progress::Invalid(HeadError::HeaderName);
        }
        self.acc = (byte | 0x20) as u64;
        self.name_len = 1;
        self.framing.name_begins(byte);
        self.go(NAME)
    }

    #[inline(always)]
    fn name(&mut self, byte: u8) -> Progress {
        if byte != b':' {
            if !is_token(byte) {
                return Progress::Invalid(HeadError::HeaderName);
            }
            // `| 0x20` lower-cases letters; no other byte that it changes becomes a letter of "host".
            self.acc = self.acc << 8 | (byte | 0x20) as u64;
            self.name_len += 1;
            self.framing.name(byte);
            return Progress::Incomplete;
        }
        self.framing.name_ends();
        if self.name_len != 4 || self.acc != HOST_NAME {
            return self.go(VALUE_START);
        }
        if self.flags & FLAG_HOST != 0 {
            return Progress::Invalid(HeadError::DuplicateHost);
        }
        self.flags |= FLAG_HOST;
        self.go(HOST_START)
    }

    #[inline(always)]
    fn value(&mut self, byte: u8) -> Progress {
        if byte == b'\r' {
            self.framing.value_ends();
            return self.go(LINE_LF);
        }
        if byte == b'\n' {
            return Progress::Invalid(HeadError::LineEnd);
        }
        if (byte < b' ' && byte != b'\t') || byte == 0x7f {
            return Progress::Invalid(HeadError::HeaderValue);
        }
        self.framing.value(byte);
        Progress::Incomplete
    }

    #[inline(always)]
    fn host_value<H: HostReader>(&mut self, host: &mut H, byte: u8) -> Progress {
        let blank = byte == b' ' || byte == b'\t';
        if byte == b'\r' {
            if self.state != HOST_START {
                match host.finish() {
                    Ok(HostKind::Name) => self.flags |= FLAG_HOST_NAME,
                    Ok(HostKind::IpLiteral) => self.flags |= FLAG_HOST_NAME | FLAG_HOST_LITERAL,
                    Err(_) => return Progress::Invalid(HeadError::BadHost),
                }
            }
            return self.go(LINE_LF);
        }
        if byte == b'\n' {
            return Progress::Invalid(HeadError::LineEnd);
        }
        if blank {
            let next = if self.state == HOST_START { HOST_START } else { HOST_END };
            return self.go(next);
        }
        if self.state == HOST_END || host.push_authority(byte).is_err() {
            return Progress::Invalid(HeadError::BadHost);
        }
        self.go(HOST)
    }

    #[inline(always)]
    fn end(&mut self, byte: u8) -> Progress {
        if byte != b'\n' {
            return Progress::Invalid(HeadError::LineEnd);
        }
        if self.flags & FLAG_HTTP11 != 0 && self.flags & FLAG_HOST == 0 {
            return Progress::Invalid(HeadError::NoHost);
        }
        Progress::Complete
    }
}

const SCHEME_END: u64 = u64::from_be_bytes(*b"\0\0\0\0\0://");
const HTTP11: u64 = u64::from_be_bytes(*b"HTTP/1.1");
const HTTP10: u64 = u64::from_be_bytes(*b"HTTP/1.0");
const CONNECT: u64 = u64::from_be_bytes(*b"\0connect");
const GET: u64 = u64::from_be_bytes(*b"\0\0\0\0\0get");
const HEAD: u64 = u64::from_be_bytes(*b"\0\0\0\0head");
const TRACE: u64 = u64::from_be_bytes(*b"\0\0\0trace");
const HOST_NAME: u64 = u64::from_be_bytes(*b"\0\0\0\0host");

#[cfg(test)]
mod tests;
