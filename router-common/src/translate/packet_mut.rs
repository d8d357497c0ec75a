//! Write access to a packet.

use super::rewriter::Rewriter;
use crate::packet::Packet;

/// A packet that can be modified. Each method returns false if the packet is too short or cannot be written; earlier
/// modifications remain.
pub trait PacketMut: Packet {
    /// Overwrites bytes without updating any checksum.
    fn store<const N: usize>(&mut self, offset: u32, bytes: &[u8; N]) -> bool;

    /// Overwrites bytes, and updates the hardware's sum over the whole packet (`CHECKSUM_COMPLETE`; in the kernel
    /// `BPF_F_RECOMPUTE_CSUM`). The same as [`PacketMut::store`] if there is no such sum.
    fn store_counted<const N: usize>(&mut self, offset: u32, bytes: &[u8; N]) -> bool;

    /// Adds a [`ChecksumDelta`](super::ChecksumDelta) to the IPv4 header checksum, whose field is at `offset`.
    fn fix_ip_checksum(&mut self, offset: u32, difference: u32) -> bool;

    /// Adds a [`ChecksumDelta`](super::ChecksumDelta) to the TCP checksum, whose field is at `offset`. `pseudo`: the
    /// difference is of the pseudo header (RFC 9293 §3.1), whose sum is in the field even if hardware has to complete
    /// the checksum (`CHECKSUM_PARTIAL`). Other differences do not change the field then.
    fn fix_tcp_checksum(&mut self, offset: u32, difference: u32, pseudo: bool) -> bool;

    /// Grows or shrinks the packet by 20 bytes between Ethernet and TCP, for an IP header of the other version, which
    /// the caller writes. False if that is not possible.
    fn change_family(&mut self, v6: bool) -> bool;

    /// Removes `len` bytes after the IP header; for IPv4, after its first 20 bytes.
    fn take_out(&mut self, v6: bool, len: u32) -> bool;

    /// Runs a [`Rewriter`] with these deltas over the options at `offset`, which is even; returns the folded
    /// [`ChecksumDelta`](super::ChecksumDelta). The kernel implements its own loop.
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
