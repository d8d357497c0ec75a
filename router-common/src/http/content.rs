//! The end of a message's content (RFC 9112 §6, §7.1), parsed strictly: a bare LF, a chunk size that two readers may
//! interpret differently, and data without its CRLF are errors.

/// Most bytes of chunk extensions per chunk, and of trailers.
const MAX_LINE: u32 = 16 * 1024;
/// Most hexadecimal digits of a chunk size, so that it fits 64 bits.
const MAX_DIGITS: u32 = 15;

/// The content violates the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentError;

impl core::fmt::Display for ContentError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the chunked body is malformed")
    }
}

impl core::error::Error for ContentError {}

// Position of the next byte in the content.
const OVER: u8 = 0;
const SIZED: u8 = 1; // of a known length
const DATA: u8 = 2; // of a chunk
const SIZE: u8 = 3;
const EXTENSION: u8 = 4;
const SIZE_LF: u8 = 5;
const DATA_CR: u8 = 6;
const DATA_LF: u8 = 7;
const TRAILER_START: u8 = 8;
const TRAILER: u8 = 9;
const TRAILER_LF: u8 = 10;
const END_LF: u8 = 11;

/// Tracks the content of one message, without storing its bytes. `repr(C)` without padding, because it is stored in map
/// values; all zero means that the content has ended and a head follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct ContentTracker {
    left: u64, // remaining bytes of SIZED and DATA; while the size of DATA is read, its value so far
    line: u32, // length of the element that is limited
    at: u8,
    pad: [u8; 3],
}

impl ContentTracker {
    /// Content of this length, in bytes.
    #[inline(always)]
    pub const fn sized(len: u64) -> ContentTracker {
        ContentTracker { left: len, line: 0, at: if len == 0 { OVER } else { SIZED }, pad: [0; 3] }
    }

    /// Chunked content.
    #[inline(always)]
    pub const fn chunked() -> ContentTracker {
        ContentTracker { left: 0, line: 0, at: SIZE, pad: [0; 3] }
    }

    /// Whether the content has ended.
    #[inline(always)]
    pub const fn is_over(&self) -> bool {
        self.at == OVER
    }

    /// Whether it is content of known length that has not ended.
    #[inline(always)]
    pub const fn is_sized(&self) -> bool {
        self.at == SIZED
    }

    /// Number of following bytes that are data.
    #[inline(always)]
    pub const fn free(&self) -> u64 {
        if self.at == SIZED || self.at == DATA { self.left } else { 0 }
    }

    /// Skips this many bytes of data, at most [`ContentTracker::free`].
    #[inline(always)]
    pub const fn pass(&mut self, bytes: u64) {
        if bytes == 0 {
            return;
        }
        self.left -= bytes;
        if self.left == 0 {
            self.at = if self.at == SIZED { OVER } else { DATA_CR };
        }
    }

    /// Consumes a byte that is not data, before the end of the content. `false`: it violates the grammar.
    #[inline(always)]
    pub const fn step(&mut self, byte: u8) -> bool {
        match (self.at, byte) {
            (SIZE, b'0'..=b'9') => return self.digit(byte - b'0'),
            (SIZE, b'a'..=b'f') => return self.digit(byte - b'a' + 10),
            (SIZE, b'A'..=b'F') => return self.digit(byte - b'A' + 10),
            (SIZE, b';') if self.line > 0 => self.begin(EXTENSION),
            (SIZE | EXTENSION, b'\r') if self.line > 0 || self.at == EXTENSION => self.at = SIZE_LF,
            (TRAILER, b'\r') => self.at = TRAILER_LF,
            (EXTENSION | TRAILER, b'\t' | b' '..=b'~' | 0x80..) => return self.more(),
            (SIZE_LF, b'\n') if self.left == 0 => self.begin(TRAILER_START),
            (SIZE_LF, b'\n') => self.at = DATA,
            (DATA_CR, b'\r') => self.at = DATA_LF,
            (DATA_LF, b'\n') => self.begin(SIZE),
            (TRAILER_START, b'\r') => self.at = END_LF,
            // No continuation line and no empty name.
            (TRAILER_START, b'!'..=b'~') if byte != b':' => {
                self.at = TRAILER;
                return self.more();
            }
            (TRAILER_LF, b'\n') => self.at = TRAILER_START,
            (END_LF, b'\n') => self.begin(OVER),
            _ => return false,
        }
        true
    }

    /// Consumes bytes up to the end of the content; returns their number. All of them, unless the content ends.
    ///
    /// # Errors
    /// At the first byte that violates the grammar.
    pub fn scan(&mut self, bytes: &[u8]) -> Result<usize, ContentError> {
        let mut index = 0;
        while !self.is_over()
            && let Some(byte) = bytes.get(index)
        {
            let free = self.free();
            if free != 0 {
                let bytes = free.min((bytes.len() - index) as u64);
                self.pass(bytes);
                // At most the length of the rest, so it fits a `usize`.
                index += bytes as usize;
            } else if self.step(*byte) {
                index += 1;
            } else {
                return Err(ContentError);
            }
        }
        Ok(index)
    }

    #[inline(always)]
    const fn begin(&mut self, at: u8) {
        self.line = 0;
        self.at = at;
    }

    #[inline(always)]
    const fn digit(&mut self, value: u8) -> bool {
        // `left` is 0 after the previous chunk.
        self.left = self.left << 4 | value as u64;
        self.line += 1;
        self.line <= MAX_DIGITS
    }

    #[inline(always)]
    const fn more(&mut self) -> bool {
        self.line += 1;
        self.line <= MAX_LINE
    }
}

#[cfg(test)]
mod tests;
