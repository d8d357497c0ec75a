//! Token buckets of sources, in a table of fixed size that no flood of sources washes out.
//!
//! The table has sets of eight words, and a source has its set by a keyed hash. A word has a tag, further bits of the hash,
//! and the time at which the source's bucket is full again. A full bucket says nothing that an absent one does not, so its
//! word may be taken by another source, and no other word ever is. A source for which its set has no word is not limited:
//! the set has eight sources then that are.

use super::bucket::taken;
use super::set::{Set, Words, is_not_zero};

/// Bits of a word that have the time, in units of 256 ns: 78 hours.
const TIME_BITS: u32 = 40;
const TAG_BITS: u32 = 64 - TIME_BITS;
const TIME: u64 = (1 << TIME_BITS) - 1;
/// Shift from nanoseconds to the unit of the time.
const UNIT: u32 = 8;
/// Longest time in which a bucket fills, in units of the time: 73 minutes. The agent accepts limits of up to an hour. A word
/// that is full later than that is an old one: the time has wrapped.
const LONGEST: u64 = 1 << 34;
/// Most attempts to take a token. An attempt fails only if another processor changed the set meanwhile.
const ATTEMPTS: usize = 8;

/// What a source's bucket gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// A token.
    Taken,
    /// None is left.
    None,
    /// The set has no word for the source.
    NoRoom,
}

/// The limit of a source.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// Time between two tokens, in units of 256 ns.
    pub interval: u64,
    /// Tokens of a full bucket, at least 1; `interval * burst` is at most [`LONGEST`].
    pub burst: u64,
}

/// Takes a token from the bucket of the source with this hash, of which other bits select the set. `now_ns`: monotonic time.
#[inline(always)]
pub fn take(set: &impl Set, hash: u64, now_ns: u64, limit: Limit) -> Token {
    let mut token = None;
    for _ in 0..ATTEMPTS {
        token = attempt(set, hash, now_ns, limit);
        if token.is_some() {
            break;
        }
    }
    token.unwrap_or(Token::None)
}

/// An attempt of [`take`]; `None` if another processor changed the set meanwhile.
#[inline(always)]
pub fn attempt(set: &impl Set, hash: u64, now_ns: u64, limit: Limit) -> Option<Token> {
    // A tag of 0 is that of an empty word.
    let tag = (hash >> TIME_BITS) | 1;
    let now = (now_ns >> UNIT) & TIME;
    let is_tagged = |word: u64| 1 - is_not_zero::<TAG_BITS>((word >> TIME_BITS) ^ tag);
    // Time until a word's bucket is full. It may be one of another policy, with a longer time than this one's.
    let left = |word: u64| (word & TIME).wrapping_sub(now) & TIME;
    let is_live = |word: u64| {
        let is_soon = (left(word).wrapping_sub(1) & TIME).wrapping_sub(LONGEST) >> 63;
        is_soon & is_not_zero::<TAG_BITS>(word >> TIME_BITS)
    };
    let Some(at) = Words::of(set, is_tagged).first().or_else(|| Words::of(set, |word| 1 - is_live(word)).first())
    else {
        return Some(Token::NoRoom);
    };
    let word = set.load(at);
    let (is_own, is_live) = (is_tagged(word) != 0, is_live(word) != 0);
    if is_live && !is_own {
        return None;
    }
    // A longer time than the limit allows is that of an earlier limit.
    let left = if is_live && left(word) <= limit.interval * limit.burst { left(word) } else { 0 };
    let Some(full) = taken(left, 0, limit.interval, limit.burst) else { return Some(Token::None) };
    let new = tag << TIME_BITS | (now + full) & TIME;
    if !set.exchange(at, word, new) {
        return None;
    }
    if is_own || Words::of(set, is_tagged).except(at).first().is_none() {
        return Some(Token::Taken);
    }
    // Two processors met the source at once, and each took a word. The token is taken from the other word; if that one is
    // given up as well, both start again.
    set.exchange(at, new, 0);
    None
}
