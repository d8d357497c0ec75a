//! Three-valued logic, and bytes of which only some bits are known.

use std::cmp::Ordering;

/// A truth value, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Truth {
    /// False.
    No,
    /// Unknown.
    Perhaps,
    /// True.
    Yes,
}

impl Truth {
    /// A known value.
    pub fn of(holds: bool) -> Truth {
        if holds { Truth::Yes } else { Truth::No }
    }

    /// The conjunction.
    pub fn and(self, other: Truth) -> Truth {
        self.min(other)
    }

    /// The negation, if `inverted`.
    pub fn invert(self, inverted: bool) -> Truth {
        match (self, inverted) {
            (Truth::No, true) => Truth::Yes,
            (Truth::Yes, true) => Truth::No,
            (truth, _) => truth,
        }
    }
}

/// Bytes with a mask of the bits that are known. Unknown bits of `value` are 0; both have the same length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits<'a> {
    /// The bytes.
    pub value: &'a [u8],
    /// Set bits are known.
    pub known: &'a [u8],
}

impl<'a> Bits<'a> {
    /// Whether all bits are known.
    pub fn is_known(self) -> bool {
        self.known.iter().all(|byte| *byte == 0xff)
    }

    /// A part of the bytes, clamped to their length.
    pub fn part(self, at: usize, len: usize) -> Bits<'a> {
        let range = at.min(self.value.len())..(at + len).min(self.value.len());
        Bits { value: &self.value[range.clone()], known: &self.known[range] }
    }

    /// Whether the bytes equal others. Only the shorter length is compared.
    pub fn equals(self, other: &[u8]) -> Truth {
        let mut truth = Truth::Yes;
        for ((value, known), other) in self.value.iter().zip(self.known).zip(other) {
            if (value ^ other) & known != 0 {
                return Truth::No;
            }
            if *known != 0xff {
                truth = Truth::Perhaps;
            }
        }
        truth
    }

    /// The lowest and the highest possible ordering of the bytes relative to others, as big-endian numbers.
    fn compare(self, other: &[u8]) -> (Ordering, Ordering) {
        let highest = self.value.iter().zip(self.known).map(|(value, known)| value | !known);
        (self.value.iter().cmp(other.iter()), highest.cmp(other.iter().copied()))
    }

    /// Whether the bytes are less than others, as big-endian numbers.
    pub fn is_less(self, other: &[u8]) -> Truth {
        match self.compare(other) {
            (_, Ordering::Less) => Truth::Yes,
            (Ordering::Less, _) => Truth::Perhaps,
            _ => Truth::No,
        }
    }

    /// Whether the bytes are greater than others, as big-endian numbers.
    pub fn is_greater(self, other: &[u8]) -> Truth {
        match self.compare(other) {
            (Ordering::Greater, _) => Truth::Yes,
            (_, Ordering::Greater) => Truth::Perhaps,
            _ => Truth::No,
        }
    }

    /// Whether the bytes are in a range, both ends included.
    pub fn is_within(self, low: &[u8], high: &[u8]) -> Truth {
        self.is_less(low).invert(true).and(self.is_greater(high).invert(true))
    }
}

/// A 32-bit number of which some bits are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownBits {
    /// The number; unknown bits are 0.
    pub value: u32,
    /// Set bits are known.
    pub known: u32,
}

impl KnownBits {
    /// Nothing is known.
    pub const UNKNOWN: KnownBits = KnownBits { value: 0, known: 0 };

    /// All bits are known.
    pub const fn of(value: u32) -> KnownBits {
        KnownBits { value, known: u32::MAX }
    }

    /// The bits known of a number that is either of two.
    pub fn or(self, other: KnownBits) -> KnownBits {
        let known = self.known & other.known & !(self.value ^ other.value);
        KnownBits { value: self.value & known, known }
    }

    /// With the bits under a mask replaced.
    pub fn replaced(self, mask: u32, value: u32) -> KnownBits {
        // The kernel's `xt_mark`: bits of the value beyond the mask are flipped.
        let known = self.known | mask;
        KnownBits { value: ((self.value & !mask) ^ value) & known, known }
    }

    /// Whether the bits under a mask equal those of `value`.
    pub fn has(self, mask: u32, value: u32) -> Truth {
        if (self.value ^ value) & mask & self.known != 0 || value & !mask != 0 {
            return Truth::No;
        }
        if mask & !self.known == 0 { Truth::Yes } else { Truth::Perhaps }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_compare_as_far_as_they_are_known() {
        let known = Bits { value: &[0x1f, 0x90], known: &[0xff, 0xff] };
        assert_eq!(known.equals(&[0x1f, 0x90]), Truth::Yes);
        assert_eq!(known.equals(&[0x1f, 0x91]), Truth::No);
        assert_eq!(known.is_within(&[0, 0], &[0x1f, 0x90]), Truth::Yes);
        assert_eq!(known.is_within(&[0x1f, 0x91], &[0xff, 0xff]), Truth::No);
        let half = Bits { value: &[0x10, 0], known: &[0xff, 0] };
        assert_eq!(half.equals(&[0x10, 7]), Truth::Perhaps);
        assert_eq!(half.equals(&[0x11, 7]), Truth::No);
        assert_eq!(half.is_less(&[0x11, 0]), Truth::Yes);
        assert_eq!(half.is_less(&[0x10, 1]), Truth::Perhaps);
        assert_eq!(half.is_less(&[0x10, 0]), Truth::No);
        assert_eq!(half.is_greater(&[0x10, 0xff]), Truth::No);
        assert_eq!(half.is_greater(&[0x10, 0xfe]), Truth::Perhaps);
        assert_eq!(half.is_within(&[0x10, 0], &[0x10, 0xff]), Truth::Yes);
        assert_eq!(half.is_within(&[0x10, 1], &[0x10, 0xff]), Truth::Perhaps);
    }

    #[test]
    fn a_word_that_is_one_of_two_has_what_both_have() {
        let marked = KnownBits::of(0).replaced(0x4000, 0x4000);
        assert_eq!(marked, KnownBits::of(0x4000));
        let either = marked.or(KnownBits::of(0));
        assert_eq!(either.has(0x4000, 0x4000), Truth::Perhaps);
        assert_eq!(either.has(0x8000, 0x8000), Truth::No);
        assert_eq!(either.has(0x8000, 0), Truth::Yes);
        assert_eq!(KnownBits::UNKNOWN.has(0, 0), Truth::Yes);
        assert_eq!(KnownBits::UNKNOWN.has(1, 1), Truth::Perhaps);
    }
}
