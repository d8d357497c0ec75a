//! Where a chunked body ends (RFC 9112 §7.1), as strict as its grammar: a bare LF, a size that two readers may read
//! differently or data without its CRLF is an error, not something to be lenient about.

/// Most bytes of chunk extensions per chunk, and of trailers.
const MAX_LINE: u32 = 16 * 1024;
/// Most hexadecimal digits of a size: more would not fit 64 bits.
const MAX_DIGITS: u32 = 15;

/// The body breaks the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the chunked body is malformed")]
pub struct ChunkError;

/// Follows one chunked body; keeps no bytes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkScanner {
    at: At,
    size: u64,
    line: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Size,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    TrailerStart,
    Trailer,
    TrailerLf,
    EndLf,
}

impl Default for ChunkScanner {
    fn default() -> Self {
        ChunkScanner { at: At::Size, size: 0, line: 0 }
    }
}

impl ChunkScanner {
    /// Looks at the next bytes. `Some(n)`: the body ends after `n` of them; `None`: all belong to it.
    ///
    /// # Errors
    /// At the first byte that breaks the grammar.
    pub fn scan(&mut self, bytes: &[u8]) -> Result<Option<usize>, ChunkError> {
        let mut index = 0;
        while let Some(byte) = bytes.get(index) {
            if self.at == At::Data {
                let rest = (bytes.len() - index) as u64;
                let step = self.size.min(rest);
                self.size -= step;
                // Not more than `rest`, which is a length.
                index += step as usize;
                if self.size == 0 {
                    self.at = At::DataCr;
                }
                continue;
            }
            index += 1;
            if self.step(*byte)? {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    /// One byte that is no data; true when it is the last of the body.
    fn step(&mut self, byte: u8) -> Result<bool, ChunkError> {
        self.at = match (self.at, byte) {
            (At::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => return self.digit(byte),
            (At::Size, b';') if self.line > 0 => self.begin(At::Extension),
            (At::Size, b'\r') if self.line > 0 => At::SizeLf,
            (At::Extension | At::Trailer, b'\r') => {
                if self.at == At::Extension {
                    At::SizeLf
                } else {
                    At::TrailerLf
                }
            }
            (At::Extension | At::Trailer, b'\t' | b' '..=b'~' | 0x80..) => return self.more(),
            (At::SizeLf, b'\n') if self.size == 0 => self.begin(At::TrailerStart),
            (At::SizeLf, b'\n') => At::Data,
            (At::DataCr, b'\r') => At::DataLf,
            (At::DataLf, b'\n') => self.begin(At::Size),
            (At::TrailerStart, b'\r') => At::EndLf,
            // Neither a continuation line nor an empty name.
            (At::TrailerStart, b'!'..=b'~') if byte != b':' => {
                self.at = At::Trailer;
                return self.more();
            }
            (At::TrailerLf, b'\n') => At::TrailerStart,
            (At::EndLf, b'\n') => return Ok(true),
            _ => return Err(ChunkError),
        };
        Ok(false)
    }

    fn begin(&mut self, at: At) -> At {
        self.line = 0;
        at
    }

    fn digit(&mut self, byte: u8) -> Result<bool, ChunkError> {
        let value = char::from(byte).to_digit(16).ok_or(ChunkError)?;
        self.size = if self.line == 0 { 0 } else { self.size << 4 } | u64::from(value);
        self.line += 1;
        if self.line > MAX_DIGITS { Err(ChunkError) } else { Ok(false) }
    }

    fn more(&mut self) -> Result<bool, ChunkError> {
        self.line += 1;
        if self.line > MAX_LINE { Err(ChunkError) } else { Ok(false) }
    }
}

#[cfg(test)]
mod tests;
