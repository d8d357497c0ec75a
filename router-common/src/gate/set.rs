//! Sets of eight words, each with a tag and a time, that several processors change.
//!
//! A search has no branches: the kernel's verifier follows each side of one, and eight words with two conditions each would
//! be 65,536 ways.

use crate::maps::SET_WORDS;

/// A set of words.
pub trait Set {
    /// Reads a word; `index` is less than eight.
    fn load(&self, index: u32) -> u64;
    /// Replaces a word by `new` if it is `old`; whether it was.
    fn exchange(&self, index: u32, old: u64, new: u64) -> bool;
}

/// Words of a set, one bit for each.
#[derive(Clone, Copy)]
pub struct Words(u32);

impl Words {
    /// Those for which `holds` returns 1; of the others it returns 0.
    #[inline(always)]
    pub fn of(set: &impl Set, holds: impl Fn(u64) -> u64) -> Words {
        let mut words = 0;
        for index in 0..SET_WORDS as u32 {
            words |= (holds(set.load(index)) as u32) << index;
        }
        Words(words)
    }

    /// The first; `None` if there is none.
    #[inline(always)]
    pub fn first(self) -> Option<u32> {
        let one = self.0 & self.0.wrapping_neg();
        let has = |bits: u32| ((one & bits) + 0xff) >> 8;
        if one == 0 { None } else { Some(has(0xaa) | has(0xcc) << 1 | has(0xf0) << 2) }
    }

    /// Without one of them.
    #[inline(always)]
    pub fn except(self, index: u32) -> Words {
        Words(self.0 & !(1 << index))
    }
}

/// 1 if a number of at most `BITS` bits is not 0, else 0.
#[inline(always)]
pub fn is_not_zero<const BITS: u32>(number: u64) -> u64 {
    (number + ((1 << BITS) - 1)) >> BITS
}
