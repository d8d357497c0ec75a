//! A packet as the kernel shows it to a TC program: the only file that calls packet helpers.
//!
//! Verifier rule kept here: a length that is not constant is masked to a power of two in inline assembly's shadow
//! (`bounded`), because compilers otherwise check a copy of the register and pass the unchecked one.

use core::mem::MaybeUninit;

use aya_ebpf::EbpfContext;
use aya_ebpf::bindings::BPF_F_RECOMPUTE_CSUM;
use aya_ebpf::helpers::generated::{bpf_clone_redirect, bpf_skb_change_tail, bpf_skb_load_bytes};
use aya_ebpf::programs::TcContext;
use router_common::packet::Packet;

/// A packet.
pub struct Skb(pub TcContext);

impl Packet for Skb {
    #[inline(always)]
    fn load<const N: usize>(&self, offset: u32) -> Option<[u8; N]> {
        // Not zeroed first: that would be a loop on the path of every packet.
        let mut bytes = MaybeUninit::<[u8; N]>::uninit();
        // SAFETY: the helper writes exactly N bytes to an array of N, or fails.
        let result = unsafe { bpf_skb_load_bytes(self.0.as_ptr().cast(), offset, bytes.as_mut_ptr().cast(), N as u32) };
        if result != 0 {
            return None;
        }
        // SAFETY: the helper succeeded, so all N bytes are written.
        Some(unsafe { bytes.assume_init() })
    }

    #[inline(always)]
    fn len(&self) -> u32 {
        self.0.len()
    }
}

impl Skb {
    /// Copies `len` bytes (1 ..= MAX, a power of two) from `offset` on into `to`.
    #[inline(always)]
    pub fn load_into<const MAX: usize>(&self, offset: u32, to: &mut [u8; MAX], len: u32) -> bool {
        const { assert!(MAX.is_power_of_two()) };
        let len = bounded::<MAX>(len);
        // SAFETY: `len` is at most MAX, the size of the array.
        unsafe { bpf_skb_load_bytes(self.0.as_ptr().cast(), offset, to.as_mut_ptr().cast(), len) == 0 }
    }

    /// Overwrites bytes at `offset`, keeping a complete hardware checksum true.
    #[inline(always)]
    pub fn store<T>(&self, offset: u32, value: &T) -> bool {
        self.0.store(offset as usize, value, BPF_F_RECOMPUTE_CSUM as u64).is_ok()
    }

    /// Cuts the packet to `len` bytes.
    #[inline(always)]
    pub fn set_len(&self, len: u32) -> bool {
        // SAFETY: no pointer into the packet is held anywhere in this program.
        unsafe { bpf_skb_change_tail(self.0.as_ptr().cast(), len, 0) == 0 }
    }

    /// Sends a copy out of the interface that the packet came in on.
    #[inline(always)]
    pub fn send_copy_back(&self) -> bool {
        // SAFETY: the context is the one that the kernel gave, so `ifindex` is readable.
        let ifindex = unsafe { (*self.0.skb.skb).ifindex };
        // SAFETY: no pointer into the packet is held anywhere in this program.
        unsafe { bpf_clone_redirect(self.0.as_ptr().cast(), ifindex, 0) == 0 }
    }
}

/// `len` for 1 ..= MAX, in a form whose bound the verifier sees.
#[inline(always)]
fn bounded<const MAX: usize>(len: u32) -> u32 {
    let mut less_one = len.wrapping_sub(1);
    // SAFETY: a move of a register to itself; it hides the value's history from the optimiser, so that the mask stays.
    // (An empty template would give two lines of BTF line info to one instruction, which the kernel refuses.)
    unsafe { core::arch::asm!("{0} = {0}", inout(reg) less_one) };
    (less_one & (MAX as u32 - 1)) + 1
}
