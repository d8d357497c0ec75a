//! Rewrites a packet's TCP options, one step at a time.

use super::checksum::ChecksumDelta;
use crate::options::{END, MAX_OPTIONS, NOP, OPTIONS_ROOM, SACK, TIMESTAMPS};

/// Translates one option per step, so that the kernel can call it in a loop that the verifier does not unroll. A
/// malformed option ends the walk, as it ends the receiver's, and is unchanged.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Rewriter {
    /// The options.
    pub bytes: [u8; OPTIONS_ROOM],
    /// The difference so far.
    pub difference: ChecksumDelta,
    /// Number of bytes, at most [`MAX_OPTIONS`].
    pub len: u32,
    /// Position of the next option, or of the next number of the current one.
    pub at: u32,
    /// Remaining numbers of the current option.
    pub numbers: u32,
    /// Added to the next number and to the one after it, alternately.
    pub deltas: [u32; 2],
    /// Added to the timestamp value, the timestamp echo reply, and the edges of SACK blocks.
    pub all_deltas: [u32; 3],
}

impl Rewriter {
    /// A rewriter at the beginning of `len` bytes of options, which the caller fills in.
    #[inline(always)]
    pub fn new(len: u32, all_deltas: [u32; 3]) -> Self {
        let difference = ChecksumDelta::default();
        Rewriter { bytes: [0; OPTIONS_ROOM], difference, len, at: 0, numbers: 0, deltas: [0; 2], all_deltas }
    }

    /// The same in place.
    #[inline(always)]
    pub fn begin_anew(&mut self, len: u32, all_deltas: [u32; 3]) {
        self.difference = ChecksumDelta::default();
        self.len = len;
        self.at = 0;
        self.numbers = 0;
        self.all_deltas = all_deltas;
    }

    /// One step of at most [`REWRITER_STEPS`]. `false`: all options are done.
    #[inline(always)]
    pub fn step(&mut self) -> bool {
        if self.numbers != 0 {
            self.numbers -= 1;
            self.number();
            return true;
        }
        let at = self.at;
        // A single last byte can only be padding.
        if at + 1 >= self.len {
            return false;
        }
        let kind = self.byte(at);
        if kind == END {
            return false;
        }
        if kind == NOP {
            self.at = at + 1;
            return true;
        }
        let length = self.byte(at + 1) as u32;
        if length < 2 || at + length > self.len {
            return false;
        }
        let [value, echo, sack] = self.all_deltas;
        if kind == TIMESTAMPS && length == 10 {
            self.begin(2, [value, echo]);
        } else if kind == SACK && length >= 10 && (length - 2).is_multiple_of(8) {
            self.begin((length - 2) / 4, [sack; 2]);
        } else {
            self.at = at + length;
        }
        true
    }

    #[inline(always)]
    fn begin(&mut self, numbers: u32, deltas: [u32; 2]) {
        self.at += 2;
        self.numbers = numbers;
        self.deltas = deltas;
    }

    /// Translates the four-byte number at the current position.
    #[inline(always)]
    fn number(&mut self) {
        let at = self.at;
        let old = [self.byte(at), self.byte(at + 1), self.byte(at + 2), self.byte(at + 3)];
        let new = u32::from_be_bytes(old).wrapping_add(self.deltas[0]).to_be_bytes();
        let mut change = ChecksumDelta::default();
        change.change_bytes(old, new);
        // The Ethernet, IP and TCP headers before the options have an even length.
        self.difference.add_at(at, change);
        self.set(at, new[0]);
        self.set(at + 1, new[1]);
        self.set(at + 2, new[2]);
        self.set(at + 3, new[3]);
        self.at = at + 4;
        self.deltas = [self.deltas[1], self.deltas[0]];
    }

    /// The mask is the bound that the verifier checks.
    #[inline(always)]
    fn byte(&self, at: u32) -> u8 {
        self.bytes[at as usize & (OPTIONS_ROOM - 1)]
    }

    #[inline(always)]
    fn set(&mut self, at: u32, byte: u8) {
        self.bytes[at as usize & (OPTIONS_ROOM - 1)] = byte;
    }
}

/// Most steps of a [`Rewriter`], those of 40 NOPs; other options take fewer per byte.
pub const REWRITER_STEPS: u32 = MAX_OPTIONS;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_are_neither_timestamps_nor_sack_stay_as_they_are() {
        for (kind, length) in (2..=u8::MAX).flat_map(|kind| [2, 3, 4, 8, 10, 18, 26].map(|length| (kind, length))) {
            let mut rewriter = Rewriter::new(28, [1, 1, 1]);
            rewriter.bytes[..28].fill(NOP);
            (rewriter.bytes[0], rewriter.bytes[1]) = (kind, length);
            rewriter.bytes[2..usize::from(length)].fill(7);
            let before = rewriter.bytes;
            while rewriter.step() {}
            let is_known = matches!((kind, length), (TIMESTAMPS, 10) | (SACK, 10 | 18 | 26));
            assert_eq!(rewriter.bytes != before, is_known, "kind {kind}, {length} bytes");
        }
    }
}
