//! The fields that determine where a request's content ends, and whether another protocol may follow: Content-Length,
//! Transfer-Encoding, Expect, Upgrade. Byte by byte, alongside the parser that finds names and values.

use super::head::{Framing, UpgradeProtocol};

// The field that a name may be, or that a value belongs to.
const ORDINARY: u8 = 0;
const LENGTH: u8 = 1;
const CODING: u8 = 2;
const UPGRADE: u8 = 3;
const EXPECT: u8 = 4;
/// No letter of the name was read yet.
const OPEN: u8 = 5;
const KIND: u8 = 7;
/// The name has its hyphen in the right place.
const HYPHEN: u8 = 64;
/// The name has other characters beside its letters.
const ODD: u8 = 128;

// Bits of the findings.
const HAS_LENGTH: u8 = 1;
const HAS_CODING: u8 = 2;
const UNCLEAR: u8 = 4;
const EXPECTS: u8 = 8;
const UPGRADES: u8 = 16;
const UPGRADES_ELSE: u8 = 32;

/// Bit of [`FramingReader::count`]: a blank followed the value.
const ENDED: u8 = 128;
/// Lengths from here on may exceed what some reader supports.
const MOST: u64 = 1 << 59;

const CHUNKED: u64 = u64::from_be_bytes(*b"\0chunked");
const H2C: u64 = u64::from_be_bytes(*b"\0\0\0\0\0h2c");

/// Reads the fields. `repr(C)` without padding, because it is stored in map values; all zero is the initial state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(feature = "zerocopy", derive(zerocopy::FromBytes, zerocopy::Immutable, zerocopy::IntoBytes))]
pub struct FramingReader {
    length: u64,
    value: u64, // its last bytes
    field: u8,
    count: u8, // letters of the name, or bytes of the value, read so far
    found: u8,
    pad: [u8; 5],
}

impl FramingReader {
    pub const fn new() -> FramingReader {
        FramingReader { length: 0, value: 0, field: ORDINARY, count: 0, found: 0, pad: [0; 5] }
    }

    /// How the fields determine the content's end.
    #[inline(always)]
    pub fn framing(&self) -> Framing {
        const BOTH: u8 = HAS_LENGTH | HAS_CODING;
        if self.found & UNCLEAR != 0 || self.found & BOTH == BOTH {
            Framing::Unclear
        } else if self.found & HAS_CODING != 0 {
            Framing::Chunked
        } else {
            Framing::Sized
        }
    }

    /// The value of Content-Length; 0 without.
    #[inline(always)]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Whether the request may have content.
    #[inline(always)]
    pub fn has_content(&self) -> bool {
        self.length != 0 || self.found & (HAS_CODING | UNCLEAR) != 0
    }

    /// Whether the client may wait for a response before it sends content (Expect).
    #[inline(always)]
    pub fn expects(&self) -> bool {
        self.found & EXPECTS != 0
    }

    /// The protocol that the request asks for.
    #[inline(always)]
    pub fn upgrade(&self) -> UpgradeProtocol {
        if self.found & UPGRADES == 0 {
            UpgradeProtocol::No
        } else if self.found & UPGRADES_ELSE == 0 {
            UpgradeProtocol::H2c
        } else {
            UpgradeProtocol::Other
        }
    }

    /// Whether the rest of this name or value does not matter here.
    #[inline(always)]
    pub fn is_ordinary(&self) -> bool {
        self.field == ORDINARY
    }

    /// The first byte of a name.
    #[inline(always)]
    pub fn name_begins(&mut self, byte: u8) {
        self.field = OPEN;
        self.count = 0;
        self.name(byte);
    }

    /// A byte of a name. Some readers identify a field by its letters alone: other characters make the name odd instead
    /// of another one.
    #[inline(always)]
    pub fn name(&mut self, byte: u8) {
        let kind = self.field & KIND;
        if kind == ORDINARY {
            return;
        }
        if !byte.is_ascii_alphanumeric() {
            let is_first = byte == b'-' && self.field & HYPHEN == 0;
            let is_hyphen = is_first && self.count != 0 && self.count == hyphen(kind);
            self.field |= if is_hyphen { HYPHEN } else { ODD };
            return;
        }
        let letter = byte | 0x20;
        if kind == OPEN {
            let kind = match letter {
                b'c' => LENGTH,
                b't' => CODING,
                b'u' => UPGRADE,
                b'e' => EXPECT,
                _ => {
                    self.field = ORDINARY;
                    return;
                }
            };
            self.field = kind | self.field & ODD;
            self.count = 1;
        } else if expected(kind, self.count) == letter {
            self.count += 1;
        } else {
            self.field = ORDINARY;
        }
    }

    /// The colon after a name.
    #[inline(always)]
    pub fn name_ends(&mut self) {
        let (kind, is_odd) = (self.field & KIND, self.field & ODD != 0);
        let is_whole = self.count == letters(kind);
        let is_exact = is_whole && !is_odd && (self.field & HYPHEN != 0 || hyphen(kind) == 0);
        self.field = ORDINARY;
        self.count = 0;
        self.value = 0;
        if !is_exact {
            if is_whole && hyphen(kind) != 0 {
                self.found |= UNCLEAR;
            }
            return;
        }
        let has = match kind {
            LENGTH => HAS_LENGTH,
            CODING => HAS_CODING,
            UPGRADE => UPGRADES,
            _ => {
                self.found |= EXPECTS;
                return;
            }
        };
        if self.found & has != 0 {
            // The field is repeated.
            self.found |= if kind == UPGRADE { UPGRADES_ELSE } else { UNCLEAR };
        }
        self.found |= has;
        self.field = kind;
    }

    /// A byte of a value, or a blank around it.
    #[inline(always)]
    pub fn value(&mut self, byte: u8) {
        if self.field == ORDINARY {
            return;
        }
        if byte == b' ' || byte == b'\t' {
            if self.count != 0 {
                self.count |= ENDED;
            }
            return;
        }
        if self.count & ENDED != 0 {
            self.found |= if self.field == UPGRADE { UPGRADES_ELSE } else { UNCLEAR };
        }
        if self.field != LENGTH {
            self.value = self.value << 8 | (byte | 0x20) as u64;
        } else if byte.is_ascii_digit() && self.length < MOST && (self.count == 0 || self.length != 0) {
            // Not after a leading zero, which some readers interpret as octal.
            self.length = self.length * 10 + (byte - b'0') as u64;
        } else {
            self.found |= UNCLEAR;
        }
        if self.count & !ENDED < 100 {
            self.count += 1;
        }
    }

    /// The end of a value.
    #[inline(always)]
    pub fn value_ends(&mut self) {
        let count = self.count & !ENDED;
        match self.field {
            LENGTH if count == 0 => self.found |= UNCLEAR,
            CODING if count != 7 || self.value != CHUNKED => self.found |= UNCLEAR,
            UPGRADE if count != 3 || self.value != H2C => self.found |= UPGRADES_ELSE,
            _ => {}
        }
    }
}

/// Number of letters of a field's name.
#[inline(always)]
const fn letters(kind: u8) -> u8 {
    match kind {
        LENGTH => 13,
        CODING => 16,
        UPGRADE => 7,
        EXPECT => 6,
        // More than the counter reaches.
        _ => u8::MAX,
    }
}

/// Number of letters before the hyphen; 0 if the name has none.
#[inline(always)]
const fn hyphen(kind: u8) -> u8 {
    match kind {
        LENGTH => 7,
        CODING => 8,
        _ => 0,
    }
}

/// The letter of a field's name after the first `count` ones, or 0.
#[inline(always)]
const fn expected(kind: u8, count: u8) -> u8 {
    const fn word(letters: &[u8; 8]) -> u64 {
        u64::from_be_bytes(*letters)
    }
    const NAMES: [[u64; 2]; 4] = [
        [word(b"contentl"), word(b"ength\0\0\0")],
        [word(b"transfer"), word(b"encoding")],
        [word(b"upgrade\0"), 0],
        [word(b"expect\0\0"), 0],
    ];
    // Not by index: a table would be a memory access that the verifier has to track.
    let name = match kind {
        LENGTH => NAMES[0],
        CODING => NAMES[1],
        UPGRADE => NAMES[2],
        _ => NAMES[3],
    };
    let word = match count {
        0..8 => name[0],
        8..16 => name[1],
        _ => 0,
    };
    (word >> (56 - 8 * (count & 7))) as u8
}

#[cfg(test)]
mod tests;
