//! Host name normalisation, shared by SNI, `Host`, `:authority`, route hosts and certificate names.
//!
//! A normalised name is lower-case ASCII letters, digits, `-` and `_` in labels of 1 – 63 bytes, at most 253 bytes in
//! all, without the trailing dot of an absolute name (RFC 1034 §3.1, RFC 1123 §2.1). `_` is not a host name character,
//! but it occurs in practice. It is accepted and matches no route, because routes cannot contain it.

/// Longest normalised name, in bytes (RFC 1035 §2.3.4: 255 octets on the wire, 253 as text).
pub const MAX_NAME: usize = 253;
/// Longest label, in bytes (RFC 1035 §2.3.4).
pub const MAX_LABEL: u8 = 63;
/// Size of a name field in map keys: a power of two, so that `index & 255` is a bound that the verifier accepts.
pub const NAME_FIELD: usize = 256;

/// Why bytes are not a host name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum HostError {
    /// No bytes.
    Empty = 1,
    /// Two dots in a row, or a dot at the start.
    EmptyLabel,
    /// More than [`MAX_LABEL`] bytes between dots.
    LongLabel,
    /// More than [`MAX_NAME`] bytes.
    LongName,
    /// A byte that no host name contains: controls, space, `*`, `/`, `@`, `,`, non-ASCII …
    BadByte,
    /// A port that is not a number of at most 65535, or where no port is allowed.
    BadPort,
}

impl HostError {
    /// Description for an error message.
    pub const fn describe(self) -> &'static str {
        match self {
            HostError::Empty => "the name is empty",
            HostError::EmptyLabel => "a label is empty (two dots in a row, or a dot at the start)",
            HostError::LongLabel => "a label is longer than 63 bytes",
            HostError::LongName => "the name is longer than 253 bytes",
            HostError::BadByte => "a character is not allowed in a host name",
            HostError::BadPort => "the port is not a number from 0 to 65535",
        }
    }
}

/// Kind of a complete name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostKind {
    /// A DNS name.
    Name,
    /// An IPv4 or IPv6 literal, which no route has (RFC 6066 §3 forbids literals in SNI).
    IpLiteral,
}

const PORT: u8 = 1; // in the port part
const ALPHA_LABEL: u8 = 2; // the current label has a byte other than a digit
const BRACKET: u8 = 4; // inside `[` … `]`
const BRACKETED: u8 = 8; // after `]`
const COLONS: u8 = 16; // a colon where no port is allowed: an IPv6 literal, or invalid
const NO_HEX: u8 = 32; // a byte that no IPv6 literal contains

/// Normalises a name byte by byte into two map-key fields: the name itself and the wildcard `*.<parent>` that would
/// cover it. Unused bytes are zero. `repr(C)` without padding, because it is stored in map values; aligned, so that the
/// kernel program copies it in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(8))]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct HostBuilder {
    /// The normalised name, zero-filled.
    pub exact: [u8; NAME_FIELD],
    /// `*.` and everything after the first dot, zero-filled; all zero for a name without a dot.
    pub wildcard: [u8; NAME_FIELD],
    port: u32,
    len: u16,
    wildcard_len: u16,
    label_len: u8,
    flags: u8,
    port_digits: u8,
    pending_dot: u8,
    pad: u32,
}

impl Default for HostBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl HostBuilder {
    /// An empty builder.
    pub const fn new() -> Self {
        HostBuilder {
            exact: [0; NAME_FIELD],
            wildcard: [0; NAME_FIELD],
            port: 0,
            len: 0,
            wildcard_len: 0,
            label_len: 0,
            flags: 0,
            port_digits: 0,
            pending_dot: 0,
            pad: 0,
        }
    }

    /// Bytes of the normalised name so far.
    #[inline(always)]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether the name is empty so far.
    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The port after the name, if one with at least one digit was given.
    pub const fn port(&self) -> Option<u16> {
        if self.port_digits > 0 { Some(self.port as u16) } else { None }
    }

    /// Consumes one byte of an SNI `host_name` or of a route's host.
    ///
    /// # Errors
    /// The first rule that the name violates. A builder that has failed must not be used further.
    #[inline(always)]
    pub fn push(&mut self, byte: u8) -> Result<(), HostError> {
        if byte == b'.' {
            return self.dot();
        }
        if byte == b':' {
            // Only an IPv6 literal has colons here, never after a dot; `finish` reports it.
            if self.pending_dot != 0 {
                return Err(HostError::BadByte);
            }
            self.flags |= COLONS;
            return self.put(byte);
        }
        let lower = if byte.is_ascii_uppercase() { byte | 0x20 } else { byte };
        let digit = lower.is_ascii_digit();
        if !(digit || lower.is_ascii_lowercase() || lower == b'-' || lower == b'_') {
            return Err(HostError::BadByte);
        }
        if self.pending_dot != 0 {
            self.commit_dot()?;
        }
        if !digit {
            self.flags |= ALPHA_LABEL;
            if !lower.is_ascii_hexdigit() {
                self.flags |= NO_HEX;
            }
        }
        if self.label_len >= MAX_LABEL {
            return Err(HostError::LongLabel);
        }
        self.label_len += 1;
        self.put(lower)
    }

    /// Consumes one byte of a `Host` field or an authority: `uri-host [ ":" port ]` (RFC 9110 §7.2).
    ///
    /// # Errors
    /// As [`HostBuilder::push`], and [`HostError::BadPort`].
    #[inline(always)]
    pub fn push_authority(&mut self, byte: u8) -> Result<(), HostError> {
        if self.flags & PORT != 0 {
            if !byte.is_ascii_digit() {
                return Err(HostError::BadPort);
            }
            self.port = self.port * 10 + (byte - b'0') as u32;
            if self.port > 65535 || self.port_digits >= 9 {
                return Err(HostError::BadPort);
            }
            self.port_digits += 1;
            return Ok(());
        }
        if self.flags & BRACKET != 0 {
            if byte == b']' {
                self.flags = (self.flags & !BRACKET) | BRACKETED;
                return Ok(());
            }
            if byte == b':' || byte == b'.' || byte.is_ascii_hexdigit() {
                self.flags |= COLONS;
                return self.put(byte | 0x20);
            }
            return Err(HostError::BadByte);
        }
        if byte == b':' {
            if self.len == 0 {
                return Err(HostError::Empty);
            }
            self.flags |= PORT;
            return Ok(());
        }
        if self.flags & BRACKETED != 0 {
            return Err(HostError::BadByte);
        }
        if byte == b'[' {
            if self.len != 0 || self.pending_dot != 0 {
                return Err(HostError::BadByte);
            }
            self.flags |= BRACKET;
            return Ok(());
        }
        self.push(byte)
    }

    /// Ends the name.
    ///
    /// # Errors
    /// [`HostError::Empty`] without a name, [`HostError::BadByte`] for colons outside an IPv6 literal.
    #[inline(always)]
    pub fn finish(&mut self) -> Result<HostKind, HostError> {
        if self.flags & BRACKET != 0 {
            return Err(HostError::BadByte);
        }
        if self.len == 0 {
            return Err(HostError::Empty);
        }
        if self.flags & COLONS != 0 {
            // For example `a.test:443`, where no port is allowed.
            let hex = self.flags & NO_HEX == 0;
            return if hex { Ok(HostKind::IpLiteral) } else { Err(HostError::BadByte) };
        }
        // If the last label is all digits, the name is an IPv4 literal or invalid (RFC 1123 §2.1).
        if self.flags & ALPHA_LABEL == 0 {
            return Ok(HostKind::IpLiteral);
        }
        Ok(HostKind::Name)
    }

    #[inline(always)]
    fn dot(&mut self) -> Result<(), HostError> {
        // One trailing dot is dropped, so a dot is appended only when a byte follows it.
        if self.label_len == 0 || self.pending_dot != 0 {
            return Err(HostError::EmptyLabel);
        }
        self.pending_dot = 1;
        Ok(())
    }

    #[inline(always)]
    fn commit_dot(&mut self) -> Result<(), HostError> {
        self.pending_dot = 0;
        self.label_len = 0;
        self.flags &= !ALPHA_LABEL;
        if self.wildcard_len == 0 {
            self.wildcard[0] = b'*';
            self.wildcard_len = 1;
        }
        self.put(b'.')
    }

    #[inline(always)]
    fn put(&mut self, byte: u8) -> Result<(), HostError> {
        if self.len as usize >= MAX_NAME {
            return Err(HostError::LongName);
        }
        self.exact[self.len as usize & (NAME_FIELD - 1)] = byte;
        self.len += 1;
        if self.wildcard_len > 0 {
            self.wildcard[self.wildcard_len as usize & (NAME_FIELD - 1)] = byte;
            self.wildcard_len += 1;
        }
        Ok(())
    }
}

/// The text of a zero-filled field; empty if it is not UTF-8.
pub fn field_text(field: &[u8]) -> &str {
    let len = field.iter().position(|b| *b == 0).unwrap_or(field.len());
    field.get(..len).and_then(|bytes| core::str::from_utf8(bytes).ok()).unwrap_or("")
}

/// Normalises a whole name with [`HostBuilder::push`].
///
/// # Errors
/// The first rule that the name violates.
pub fn normalise(name: &[u8]) -> Result<(HostBuilder, HostKind), HostError> {
    let mut builder = HostBuilder::new();
    for byte in name {
        builder.push(*byte)?;
    }
    let kind = builder.finish()?;
    Ok((builder, kind))
}

/// Normalises a whole `Host` field value or authority with [`HostBuilder::push_authority`].
///
/// # Errors
/// The first rule that the value violates.
pub fn normalise_authority(value: &[u8]) -> Result<(HostBuilder, HostKind), HostError> {
    let mut builder = HostBuilder::new();
    for byte in value {
        builder.push_authority(*byte)?;
    }
    let kind = builder.finish()?;
    Ok((builder, kind))
}

/// Class of each byte in a normalised name; 0 if it cannot occur.
static PARTS: [u8; 256] = {
    let mut parts = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        parts[byte] = match byte as u8 {
            b'.' => PART_DOT,
            b'0'..=b'9' => PART_DIGIT,
            b'a'..=b'z' | b'-' | b'_' => PART_OTHER,
            _ => 0,
        };
        byte += 1;
    }
    parts
};

const PART_DOT: u8 = 1;
const PART_DIGIT: u8 = 2;
const PART_OTHER: u8 = 4;

/// A normalised name, borrowed from the text that contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NormalName<'t>(&'t str);

impl<'t> NormalName<'t> {
    /// The name of a `Host` field value or authority, if it is already normalised, as nearly all are. `None`:
    /// [`normalise_authority`] has to decide, at a much higher cost.
    pub fn of_authority(value: &'t [u8]) -> Option<Self> {
        // Where the label begins, and the classes of its bytes.
        let (mut length, mut begin, mut parts) = (0, 0, 0);
        for byte in value {
            let part = PARTS[*byte as usize];
            if part <= PART_DOT {
                if part == 0 {
                    break;
                }
                if length == begin || length - begin > MAX_LABEL as usize {
                    return None;
                }
                (begin, parts) = (length + 1, 0);
            }
            parts |= part;
            length += 1;
        }
        // An all-digit last label may belong to an address; an empty one is invalid.
        if parts & PART_OTHER == 0 || length - begin > MAX_LABEL as usize || length > MAX_NAME {
            return None;
        }
        let (name, port) = value.split_at_checked(length)?;
        let is_port = match port {
            [] => true,
            [b':', digits @ ..] => {
                let is_in_range = digits.len() < 5 || (digits.len() == 5 && digits <= b"65535");
                is_in_range && digits.iter().all(u8::is_ascii_digit)
            }
            _ => false,
        };
        if is_port { core::str::from_utf8(name).ok().map(NormalName) } else { None }
    }

    /// The name.
    pub fn as_str(self) -> &'t str {
        self.0
    }
}

#[cfg(test)]
mod tests;
