//! A packet whose headers can be rewritten.

use super::rewriter::Rewriter;
use crate::packet::Packet;

/// A packet that can be changed. Each method is false if the packet is too short or cannot be written; what was changed
/// before stays changed.
pub trait PacketMut: Packet {
    /// Overwrites bytes, no checksum of any kind with them.
    fn store<const N: usize>(&mut self, offset: u32, bytes: &[u8; N]) -> bool;

    /// Overwrites bytes and keeps a sum that hardware made of the whole packet true (`CHECKSUM_COMPLETE`; in the
    /// kernel `BPF_F_RECOMPUTE_CSUM`). The same as [`PacketMut::store`] where there is no such sum.
    fn store_counted<const N: usize>(&mut self, offset: u32, bytes: &[u8; N]) -> bool;

    /// Adds a [`Difference`](super::Difference) to the IPv4 header checksum, whose field is at `offset`.
    fn fix_ip_checksum(&mut self, offset: u32, difference: u32) -> bool;

    /// Adds a [`Difference`](super::Difference) to the TCP checksum, whose field is at `offset`. `pseudo`: of the pseudo
    /// header (RFC 9293 §3.1), which is in the field even when hardware is left to sum up the rest (`CHECKSUM_PARTIAL`); a
    /// difference of the rest does not change the field then.
    fn fix_tcp_checksum(&mut self, offset: u32, difference: u32, pseudo: bool) -> bool;

    /// Makes room for the IP header of the other version, or takes what is too much of it: 20 bytes between Ethernet and
    /// TCP, whose content is left to the caller. False where that cannot be done.
    fn change_family(&mut self, v6: bool) -> bool;

    /// Takes `len` bytes out that stand behind the IP header, of IPv4 behind its first 20 bytes.
    fn take_out(&mut self, v6: bool, len: u32) -> bool;

    /// Runs a [`Rewriter`] with these deltas over the options at `offset`, which is even: the folded
    /// [`Difference`](super::Difference) that it made. The kernel has its own way of going through them.
    fn rewrite_options(&mut self, offset: u32, len: u32, deltas: [u32; 3]) -> Option<u32> {
        let mut rewriter = Rewriter::new(len, deltas);
        for (at, byte) in (offset..offset + len).zip(&mut rewriter.bytes) {
            [*byte] = self.load::<1>(at)?;
        }
        while rewriter.step() {}
        let stored = (offset..offset + len).zip(&rewriter.bytes).all(|(at, byte)| self.store(at, &[*byte]));
        stored.then(|| rewriter.difference.folded())
    }
}
