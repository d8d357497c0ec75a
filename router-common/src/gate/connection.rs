//! A counted connection: what it lives in, and who gives its place back.
//!
//! A connection lives in a socket of this host, in flow entries of the kernel program, or, while it passes from one to the
//! other, in both; before, in a request socket. The word of its entry says which. Who clears the last of them deletes the entry
//! and takes the connection off its source's count: a compare-and-exchange makes it one only.

use super::bucket::Word;
use crate::maps::FlowKey;

/// It has a socket.
pub const SOCKET: u64 = 1;
/// It has flow entries.
pub const FLOW: u64 = 2;
/// It has ended; its entry is about to be deleted.
pub const ENDED: u64 = 4;
/// One holder more, modulo 32: a holder that comes changes the word, whatever the other bits.
const HOLDER: u64 = 8;
const HOLDERS: u64 = 0xf8;
/// Bits that tell the entry from a later one in the same memory.
const CHECK: u64 = !0xff;
/// Most attempts to change a word. An attempt fails only if another processor changed it meanwhile. So many that the compiler
/// does not unroll the loop, which would cost stack.
const ATTEMPTS: usize = 64;

/// The word of a new entry.
#[inline(always)]
pub fn begun(key: &FlowKey, holder: u64) -> u64 {
    check(key) | holder
}

/// Adds a holder; `false`: the connection has ended, or the word is another one's.
#[inline(always)]
pub fn hold(word: &impl Word, key: &FlowKey, holder: u64) -> bool {
    change(word, key, |old| (old & !HOLDERS) | (old.wrapping_add(HOLDER) & HOLDERS) | holder).is_some()
}

/// Removes a holder, or with 0 none; `true`: there is none left, and the caller deletes the entry.
#[inline(always)]
pub fn let_go(word: &impl Word, key: &FlowKey, holder: u64) -> bool {
    let next = |old: u64| {
        let left = old & !holder;
        if left & (SOCKET | FLOW) == 0 { left | ENDED } else { left }
    };
    change(word, key, next).is_some_and(|now| now & ENDED != 0)
}

/// Removes a holder of a connection that goes on in something else, which will hold it; `false` as for [`hold`].
#[inline(always)]
pub fn unhold(word: &impl Word, key: &FlowKey, holder: u64) -> bool {
    change(word, key, |old| old & !holder).is_some()
}

/// Ends a connection whose word is still this one; `true`: the caller deletes the entry.
#[inline(always)]
pub fn end(word: &impl Word, expected: u64) -> bool {
    expected & ENDED == 0 && word.exchange(expected, expected | ENDED) == expected
}

/// Replaces the word; returns the new one.
#[inline(always)]
fn change(word: &impl Word, key: &FlowKey, next: impl Fn(u64) -> u64) -> Option<u64> {
    let check = check(key);
    let mut old = word.load();
    for _ in 0..ATTEMPTS {
        if old & CHECK != check || old & ENDED != 0 {
            return None;
        }
        let new = next(old);
        let was = word.exchange(old, new);
        if was == old {
            return Some(new);
        }
        old = was;
    }
    None
}

/// Multiplier that spreads a connection's addresses and ports over the check (2⁶⁴ divided by the golden ratio).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline(always)]
fn check(key: &FlowKey) -> u64 {
    let ports = (key.source_port as u64) << 16 | key.destination_port as u64;
    let [a, b] = halves(&key.source);
    let [c, d] = halves(&key.destination);
    let mut mixed = ports;
    for word in [a, b, c, d] {
        mixed = (mixed.rotate_left(23) ^ word).wrapping_mul(SPREAD);
    }
    mixed & CHECK
}

#[inline(always)]
fn halves(address: &[u8; 16]) -> [u64; 2] {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = *address;
    [u64::from_le_bytes([a, b, c, d, e, f, g, h]), u64::from_le_bytes([i, j, k, l, m, n, o, p])]
}

#[cfg(test)]
mod tests;
