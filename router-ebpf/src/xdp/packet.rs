//! A packet as an XDP program sees it.

use core::mem::MaybeUninit;

use aya_ebpf::EbpfContext;
use aya_ebpf::helpers::generated::{bpf_xdp_get_buff_len, bpf_xdp_load_bytes};
use aya_ebpf::programs::XdpContext;
use router_common::gate::arrival::{Arrival, READABLE};
use router_common::maps::GATE_HEAD;
use router_common::packet::Packet;

use crate::gate_record::Head;
use crate::verifier::opaque;

/// A packet, of one buffer or several.
pub struct XdpPacket<'a> {
    pub(super) ctx: &'a XdpContext,
    len: u32,
}

impl<'a> XdpPacket<'a> {
    /// The packet of a context.
    #[inline(always)]
    pub fn new(ctx: &'a XdpContext) -> Self {
        // SAFETY: the context is the one that the kernel gave.
        let len = unsafe { bpf_xdp_get_buff_len(ctx.as_ptr().cast()) } as u32;
        XdpPacket { ctx, len }
    }

    /// The packet whose headers were read.
    #[inline(always)]
    pub fn of(ctx: &'a XdpContext, arrival: &Arrival) -> Self {
        XdpPacket { ctx, len: arrival.len }
    }

    /// Whether the packet is in one buffer.
    #[inline(always)]
    pub fn is_linear(&self) -> bool {
        self.ctx.data() + self.len as usize == self.ctx.data_end()
    }
}

impl Head for XdpPacket<'_> {
    #[inline(always)]
    unsafe fn copy_head(&self, to: *mut [u8; GATE_HEAD], length: u32) -> bool {
        // SAFETY: the helper writes exactly `length` bytes, which fit, or fails.
        unsafe { bpf_xdp_load_bytes(self.ctx.as_ptr().cast(), 0, to.cast(), length) == 0 }
    }
}

impl Packet for XdpPacket<'_> {
    #[inline(always)]
    fn load<const N: usize>(&self, offset: u32) -> Option<[u8; N]> {
        const { assert!((READABLE + 1).is_power_of_two()) };
        if offset > READABLE {
            return None;
        }
        // The bound in a form that the verifier sees.
        let begin = self.ctx.data() + (opaque(offset) & READABLE) as usize;
        if begin + N <= self.ctx.data_end() {
            // SAFETY: N bytes from `begin` on are in the packet's first buffer.
            return Some(unsafe { (begin as *const [u8; N]).read_unaligned() });
        }
        // Beyond the first buffer, or beyond the packet.
        let mut bytes = MaybeUninit::<[u8; N]>::uninit();
        // SAFETY: the helper writes exactly N bytes to an array of N, or fails.
        let result =
            unsafe { bpf_xdp_load_bytes(self.ctx.as_ptr().cast(), offset, bytes.as_mut_ptr().cast(), N as u32) };
        if result != 0 {
            return None;
        }
        // SAFETY: the helper succeeded, so all N bytes are written.
        Some(unsafe { bytes.assume_init() })
    }

    #[inline(always)]
    fn len(&self) -> u32 {
        self.len
    }
}
