//! SYNs that were let pass: one that is sent again takes no second token.
//!
//! A table of sets of eight words, as that of the [sources](super::source_bucket): a word has a tag of the SYN, how often it
//! was sent again, and when it was last let pass. A host sends a SYN again after a second at the earliest (RFC 6298 §2), and
//! a few times: one that comes sooner or more often is counted as a new one, so that a flood of one SYN is limited as any other.

use super::set::{Set, Words, is_not_zero};

/// Bits of a word that have the time, in units of 2²² ns (4.2 ms): 19 hours.
const TIME_BITS: u32 = 24;
/// Bits of a word, above the time, that have the number of repetitions.
const COUNT_BITS: u32 = 3;
const TAG_BITS: u32 = 64 - COUNT_BITS - TIME_BITS;
/// Most repetitions: Linux's `tcp_syn_retries`.
const MOST: u64 = 6;
const TIME: u64 = (1 << TIME_BITS) - 1;
const UNIT: u32 = 22;
/// Shortest time until a SYN is sent again, less than a second by what a network delays; and the longest: Linux waits 64 s
/// after its sixth.
const SOONEST: u64 = 700_000_000 >> UNIT;
const LATEST: u64 = 70_000_000_000 >> UNIT;

/// Whether the SYN with this hash was let pass, and may come again now.
#[inline(always)]
pub fn is_retransmitted(set: &impl Set, hash: u64, now_ns: u64) -> bool {
    let (tag, now) = (tag(hash), now_ns >> UNIT & TIME);
    let found = Words::of(set, |word| 1 - is_not_zero::<TAG_BITS>(tag_of(word) ^ tag)).first();
    let Some(index) = found else { return false };
    let word = set.load(index);
    let count = word >> TIME_BITS & ((1 << COUNT_BITS) - 1);
    // One processor alone lets it pass.
    tag_of(word) == tag && count < MOST && age(word, now) >= SOONEST && age(word, now) <= LATEST && {
        set.exchange(index, word, (tag << COUNT_BITS | (count + 1)) << TIME_BITS | now)
    }
}

/// Records a SYN that is let pass: in place of one that is not sent again any more, or of any.
#[inline(always)]
pub fn record(set: &impl Set, hash: u64, now_ns: u64) {
    let (tag, now) = (tag(hash), now_ns >> UNIT & TIME);
    let is_old = |word: u64| LATEST.wrapping_sub(age(word, now)) >> 63;
    let is_empty = |word: u64| 1 - is_not_zero::<TAG_BITS>(tag_of(word));
    let is_same = |word: u64| 1 - is_not_zero::<TAG_BITS>(tag_of(word) ^ tag);
    let own = Words::of(set, is_same).first();
    let free = own.or_else(|| Words::of(set, |word| is_old(word) | is_empty(word)).first());
    let index = free.unwrap_or(hash as u32 >> 21 & 7);
    // If another SYN takes the word meanwhile, this one is not recorded: sent again, it takes a second token.
    set.exchange(index, set.load(index), tag << (COUNT_BITS + TIME_BITS) | now);
}

#[inline(always)]
fn age(word: u64, now: u64) -> u64 {
    now.wrapping_sub(word & TIME) & TIME
}

#[inline(always)]
fn tag(hash: u64) -> u64 {
    (hash >> (COUNT_BITS + TIME_BITS)) | 1
}

#[inline(always)]
fn tag_of(word: u64) -> u64 {
    word >> (COUNT_BITS + TIME_BITS)
}
