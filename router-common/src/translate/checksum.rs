//! The effect of changes on an Internet checksum.

/// Σ(~old + new) over changed words (RFC 1624 eqn. 3), in memory byte order: the sum does not depend on it (RFC 1071
/// §2(B)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct ChecksumDelta(u64);

impl ChecksumDelta {
    /// Adds a change of four bytes at an even offset, given as a number in network byte order. A field of two bytes is
    /// passed as one of four with leading zeros.
    #[inline(always)]
    pub fn change(&mut self, old: u32, new: u32) {
        self.change_bytes(old.to_be_bytes(), new.to_be_bytes());
    }

    /// Adds a change of four bytes at an even offset.
    #[inline(always)]
    pub fn change_bytes(&mut self, old: [u8; 4], new: [u8; 4]) {
        let (old, new) = (!u32::from_ne_bytes(old) as u64, u32::from_ne_bytes(new) as u64);
        // About 2³¹ changes fit.
        self.0 = self.0.wrapping_add(old).wrapping_add(new);
    }

    /// Adds the changes of a [`folded`](Self::folded) difference whose bytes begin at an even offset.
    #[inline(always)]
    pub fn add_folded(&mut self, folded: u32) {
        self.0 = self.0.wrapping_add(folded as u64);
    }

    /// Adds the changes of another difference whose bytes begin at `offset`. At an odd offset each byte is in the other
    /// half of its word, so the sum's bytes are swapped (RFC 1071 §2(B)): that multiplies it by 2⁸, modulo 2¹⁶ − 1.
    #[inline(always)]
    pub fn add_at(&mut self, offset: u32, other: ChecksumDelta) {
        self.0 = self.0.wrapping_add((other.folded() as u64) << ((offset & 1) * 8));
    }

    /// The sum in 32 bits, the argument of `bpf_l3_csum_replace` and `bpf_l4_csum_replace` with size 0.
    #[inline(always)]
    pub fn folded(self) -> u32 {
        let once = (self.0 & 0xffff_ffff) + (self.0 >> 32);
        ((once & 0xffff_ffff) + (once >> 32)) as u32
    }

    /// The sum in 16 bits, in memory byte order.
    #[inline(always)]
    pub(super) fn sum16(self) -> u16 {
        let folded = self.folded();
        let once = (folded & 0xffff) + (folded >> 16);
        ((once & 0xffff) + (once >> 16)) as u16
    }
}

/// The field of a complete checksum after a [`folded`](ChecksumDelta::folded) difference: what `bpf_l3_csum_replace` and
/// `bpf_l4_csum_replace` with size 0 write.
#[inline(always)]
pub fn updated(field: [u8; 2], difference: u32) -> [u8; 2] {
    let mut sum = ChecksumDelta(!u32::from(u16::from_ne_bytes(field)) as u64);
    sum.add_folded(difference);
    (!sum.sum16()).to_ne_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_folding_carries_is_folded_too() {
        let mut difference = ChecksumDelta::default();
        for change in [u32::MAX, u32::MAX, 1] {
            difference.add_folded(change);
        }
        assert_eq!(difference.folded(), 1);
    }
}
