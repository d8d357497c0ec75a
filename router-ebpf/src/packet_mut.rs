//! The translation's writes to a packet.

use aya_ebpf::EbpfContext;
use aya_ebpf::bindings::{
    BPF_F_ADJ_ROOM_FIXED_GSO, BPF_F_ADJ_ROOM_NO_CSUM_RESET, BPF_F_PSEUDO_HDR, BPF_F_RECOMPUTE_CSUM,
};
use aya_ebpf::helpers::generated::{
    bpf_l3_csum_replace, bpf_l4_csum_replace, bpf_skb_adjust_room, bpf_skb_load_bytes, bpf_skb_store_bytes,
};
use router_common::options::OPTIONS_ROOM;
use router_common::translate::PacketMut;

use crate::options::{self, OptionBytes};
use crate::skb::Skb;
use crate::verifier::at_most;

/// Room behind the IP header, for `bpf_skb_adjust_room` (linux/bpf.h).
const BPF_ADJ_ROOM_NET: u32 = 0;

impl PacketMut for Skb {
    #[inline(always)]
    fn store<const N: usize>(&mut self, offset: u32, bytes: &[u8; N]) -> bool {
        self.write(offset, bytes, 0)
    }

    #[inline(always)]
    fn store_counted<const N: usize>(&mut self, offset: u32, bytes: &[u8; N]) -> bool {
        self.write(offset, bytes, BPF_F_RECOMPUTE_CSUM as u64)
    }

    #[inline(always)]
    fn fix_ip_checksum(&mut self, offset: u32, difference: u32) -> bool {
        // SAFETY: no pointer into the packet is held anywhere in these programs (here and in all calls below).
        unsafe { bpf_l3_csum_replace(self.0.as_ptr().cast(), offset, 0, difference as u64, 0) == 0 }
    }

    #[inline(always)]
    fn fix_tcp_checksum(&mut self, offset: u32, difference: u32, pseudo: bool) -> bool {
        let flags = if pseudo { BPF_F_PSEUDO_HDR as u64 } else { 0 };
        // SAFETY: see `fix_ip_checksum`.
        unsafe { bpf_l4_csum_replace(self.0.as_ptr().cast(), offset, 0, difference as u64, flags) == 0 }
    }

    #[inline(always)]
    fn change_family(&mut self, v6: bool) -> bool {
        self.turn(v6)
    }

    #[inline(always)]
    fn take_out(&mut self, _: bool, len: u32) -> bool {
        // The segments of a GSO packet keep their size; the checksum state that hardware has set stays valid.
        const FLAGS: u64 = (BPF_F_ADJ_ROOM_FIXED_GSO | BPF_F_ADJ_ROOM_NO_CSUM_RESET) as u64;
        // SAFETY: see `fix_ip_checksum`. The mode takes the IP header's length from its version.
        unsafe { bpf_skb_adjust_room(self.0.as_ptr().cast(), -(len as i32), BPF_ADJ_ROOM_NET, FLAGS) == 0 }
    }

    #[inline(always)]
    fn rewrite_options(&mut self, offset: u32, len: u32, deltas: [u32; 3]) -> Option<u32> {
        options::rewrite(self, offset, len, &deltas)
    }
}

impl OptionBytes for Skb {
    #[inline(always)]
    fn load_options(&self, offset: u32, to: &mut [u8; OPTIONS_ROOM], len: u32) -> bool {
        let len = at_most::<OPTIONS_ROOM>(len);
        // SAFETY: `len` is at most the size of the array.
        unsafe { bpf_skb_load_bytes(self.0.as_ptr().cast(), offset, to.as_mut_ptr().cast(), len) == 0 }
    }

    #[inline(always)]
    fn store_options(&self, offset: u32, from: &[u8; OPTIONS_ROOM], len: u32) -> bool {
        let len = at_most::<OPTIONS_ROOM>(len);
        // SAFETY: `len` is at most the size of the array.
        unsafe { bpf_skb_store_bytes(self.0.as_ptr().cast(), offset, from.as_ptr().cast(), len, 0) == 0 }
    }
}
