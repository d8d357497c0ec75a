//! The translation's writes to a packet in XDP: its checksums are complete, and it keeps its length.

use aya_ebpf::EbpfContext;
use aya_ebpf::helpers::generated::{bpf_xdp_load_bytes, bpf_xdp_store_bytes};
use aya_ebpf::programs::XdpContext;
use router_common::gate::arrival::READABLE;
use router_common::gate::syn_cookie::WORDS;
use router_common::options::OPTIONS_ROOM;
use router_common::packet::Packet;
use router_common::translate::{PacketMut, updated};

use super::packet::XdpPacket;
use crate::options::{self, OptionBytes};
use crate::verifier::{at_most, opaque};

/// Overwrites bytes of a packet.
#[inline(always)]
pub fn write<const N: usize>(ctx: &XdpContext, offset: u32, bytes: &[u8; N]) -> bool {
    // SAFETY: N readable bytes; no pointer into the packet is held.
    unsafe { bpf_xdp_store_bytes(ctx.as_ptr().cast(), offset, bytes.as_ptr().cast_mut().cast(), N as u32) == 0 }
}

/// Exchanges source and destination of the Ethernet header; `false`: it is not in the packet's first buffer.
#[inline(always)]
pub fn swap_addresses(ctx: &XdpContext) -> bool {
    let Some(addresses) = in_first_buffer::<3>(ctx, 0) else { return false };
    // SAFETY: see `in_first_buffer`.
    unsafe {
        let [[a, b], [c, d], [e, f]] = addresses.read();
        addresses.write([[d, e], [f, a], [b, c]]);
    }
    true
}

/// Overwrites words of a packet with the first ones of some; `false`: they are not in its first buffer. As to `offset`, see
/// [`in_first_buffer`].
#[inline(always)]
pub fn write_words<const N: usize>(ctx: &XdpContext, offset: u32, words: &[u32; WORDS]) -> bool {
    const { assert!(N <= WORDS) };
    let Some(to) = in_first_buffer::<N>(ctx, offset) else { return false };
    // SAFETY: see `in_first_buffer`; words have halves, there are as many, and a packet and the program's memory do not overlap.
    unsafe { (&raw const *words).cast::<[[u16; 2]; N]>().copy_to_nonoverlapping(to, 1) };
    true
}

/// Words of a packet at an even offset of at most [`READABLE`], as halves, if they are in its first buffer: they can be read and
/// written until the packet changes its length, and are aligned, because frames begin at even addresses (drivers leave 0 or 2
/// bytes before them, `NET_IP_ALIGN`). Calls of helpers for the writes would take a twentieth of an answer's time.
#[inline(always)]
fn in_first_buffer<const N: usize>(ctx: &XdpContext, offset: u32) -> Option<*mut [[u16; 2]; N]> {
    let begin = ctx.data() + (opaque(offset) & READABLE) as usize;
    if begin + 4 * N > ctx.data_end() {
        return None;
    }
    Some(begin as *mut [[u16; 2]; N])
}

impl XdpPacket<'_> {
    #[inline(always)]
    fn fix(&mut self, offset: u32, difference: u32) -> bool {
        let Some(field) = self.load::<2>(offset) else { return false };
        self.store(offset, &updated(field, difference))
    }
}

impl PacketMut for XdpPacket<'_> {
    #[inline(always)]
    fn store<const N: usize>(&mut self, offset: u32, bytes: &[u8; N]) -> bool {
        write(self.ctx, offset, bytes)
    }

    #[inline(always)]
    fn store_counted<const N: usize>(&mut self, offset: u32, bytes: &[u8; N]) -> bool {
        self.store(offset, bytes)
    }

    #[inline(always)]
    fn fix_ip_checksum(&mut self, offset: u32, difference: u32) -> bool {
        self.fix(offset, difference)
    }

    #[inline(always)]
    fn fix_tcp_checksum(&mut self, offset: u32, difference: u32, _: bool) -> bool {
        self.fix(offset, difference)
    }

    /// Connections between versions of IP are left to TC.
    #[inline(always)]
    fn change_family(&mut self, _: bool) -> bool {
        false
    }

    /// As packets with options of IP are.
    #[inline(always)]
    fn take_out(&mut self, _: bool, _: u32) -> bool {
        false
    }

    #[inline(always)]
    fn rewrite_options(&mut self, offset: u32, len: u32, deltas: [u32; 3]) -> Option<u32> {
        options::rewrite(self, offset, len, &deltas)
    }
}

impl OptionBytes for XdpPacket<'_> {
    #[inline(always)]
    fn load_options(&self, offset: u32, to: &mut [u8; OPTIONS_ROOM], len: u32) -> bool {
        let len = at_most::<OPTIONS_ROOM>(len);
        // SAFETY: `len` is at most the size of the array.
        unsafe { bpf_xdp_load_bytes(self.ctx.as_ptr().cast(), offset, to.as_mut_ptr().cast(), len) == 0 }
    }

    #[inline(always)]
    fn store_options(&self, offset: u32, from: &[u8; OPTIONS_ROOM], len: u32) -> bool {
        let len = at_most::<OPTIONS_ROOM>(len);
        // SAFETY: `len` is at most the size of the array.
        unsafe { bpf_xdp_store_bytes(self.ctx.as_ptr().cast(), offset, from.as_ptr().cast_mut().cast(), len) == 0 }
    }
}
