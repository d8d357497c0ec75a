//! Numbers of open connections of sources, in a table of fixed size.
//!
//! The table has sets of eight words, and a source has its set by a keyed hash. A word has a tag, further bits of the hash,
//! and the source's number of connections. A word with the number 0 is free; no other is ever taken by another source. A source
//! for which its set has no word is not counted: the set has eight sources then that are.

use super::set::{Set, Words, is_not_zero};
use crate::maps::SET_WORDS;

/// Bits of a word that have the number.
const COUNT_BITS: u32 = 24;
const TAG_BITS: u32 = 64 - COUNT_BITS;
const COUNT: u64 = (1 << COUNT_BITS) - 1;
/// No limit.
pub const UNLIMITED: u32 = u32::MAX;
/// Most attempts to count a connection. An attempt fails only if another processor changed the set meanwhile.
const ATTEMPTS: usize = 8;

/// A set of words with numbers.
pub trait Counts: Set {
    /// Subtracts one from a word, whatever it is by then; `index` is less than eight.
    fn subtract_one(&self, index: u32);
}

/// Whether a connection is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// In the word with this index: [`Counts::subtract_one`] takes it back.
    In(u32),
    /// The source has as many as it may, or other processors changed the set at every attempt.
    Full,
    /// The set has no word for the source.
    NoRoom,
}

/// Connections of the source with this hash, of which other bits select the set.
#[inline(always)]
pub fn count(set: &impl Set, hash: u64) -> u32 {
    let mut sum = 0;
    for index in 0..SET_WORDS as u32 {
        let word = set.load(index);
        sum += (word & COUNT) * is_tagged(word, tag(hash));
    }
    sum as u32
}

/// Counts a connection of the source, unless it has `limit`. Of processors that meet at the limit's last place, one gets it.
#[inline(always)]
pub fn take(set: &impl Counts, hash: u64, limit: u32) -> Counted {
    let mut taken = None;
    for _ in 0..ATTEMPTS {
        taken = attempt(set, hash, limit);
        if taken.is_some() {
            break;
        }
    }
    taken.unwrap_or(Counted::Full)
}

/// An attempt of [`take`]; `None` if another processor changed the set meanwhile.
#[inline(always)]
pub fn attempt(set: &impl Counts, hash: u64, limit: u32) -> Option<Counted> {
    let tag = tag(hash);
    let is_own = |word: u64| is_tagged(word, tag) & is_used(word);
    let own = Words::of(set, is_own).first();
    let Some(at) = own.or_else(|| Words::of(set, |word| 1 - is_used(word)).first()) else {
        return Some(Counted::NoRoom);
    };
    let word = set.load(at);
    if is_used(word) != 0 && is_own(word) == 0 {
        return None;
    }
    if word & COUNT >= limit as u64 {
        return Some(Counted::Full);
    }
    if !set.exchange(at, word, tag << COUNT_BITS | ((word & COUNT) + 1)) {
        return None;
    }
    // Of two words of one source, neither has a connection that is let pass: who sees another one gives its own back.
    if Words::of(set, is_own).except(at).first().is_none() {
        return Some(Counted::In(at));
    }
    set.subtract_one(at);
    None
}

/// Connections that a word counts; 0 if it is free.
pub fn of_word(word: u64) -> u32 {
    (word & COUNT) as u32
}

#[inline(always)]
fn tag(hash: u64) -> u64 {
    hash >> COUNT_BITS
}

#[inline(always)]
fn is_tagged(word: u64, tag: u64) -> u64 {
    1 - is_not_zero::<TAG_BITS>((word >> COUNT_BITS) ^ tag)
}

#[inline(always)]
fn is_used(word: u64) -> u64 {
    is_not_zero::<COUNT_BITS>(word & COUNT)
}

#[cfg(test)]
mod tests;
