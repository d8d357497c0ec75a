//! A packet as a TC program sees it: the only file that calls packet helpers, besides `packet_mut.rs`.

use core::mem::{MaybeUninit, offset_of};

use aya_ebpf::EbpfContext;
use aya_ebpf::bindings::{
    __sk_buff, BPF_CSUM_LEVEL_QUERY, BPF_F_INGRESS, BPF_F_RECOMPUTE_CSUM, BPF_TCP_LISTEN, TC_ACT_SHOT,
    bpf_hdr_start_off::BPF_HDR_START_MAC, bpf_sock_tuple,
};
use aya_ebpf::helpers::generated::{
    bpf_clone_redirect, bpf_csum_diff, bpf_csum_level, bpf_l4_csum_replace, bpf_redirect_neigh, bpf_redirect_peer,
    bpf_sk_release, bpf_skb_change_head, bpf_skb_change_proto, bpf_skb_change_tail, bpf_skb_change_type,
    bpf_skb_load_bytes, bpf_skb_load_bytes_relative, bpf_skb_store_bytes,
};
use aya_ebpf::programs::TcContext;
pub use router_common::maps::OURS;
use router_common::maps::{FlowKey, GATE_HEAD};
use router_common::packet::{self, ETHERNET, Headers, Packet, Segment};

use crate::gate_record::Head;
use crate::maps;
use crate::socket_lookup::{Sockets, look_up};
use crate::verifier::at_most;

/// Mark of packets that the ingress program has sent up the stack; it lets them pass.
pub const PASS_UP: u32 = 0x51ce_0002;
/// Ethernet types (linux/if_ether.h).
const ETH_P_IP: u32 = 0x0800;
const ETH_P_IPV6: u32 = 0x86dd;
/// Type of a packet for this host (linux/if_packet.h).
const PACKET_HOST: u32 = 0;
/// The loopback device of every network namespace (linux/net: `LOOPBACK_IFINDEX`).
pub const LOOPBACK: u32 = 1;

/// A packet.
pub struct Skb(pub TcContext);

impl Packet for Skb {
    #[inline(always)]
    fn load<const N: usize>(&self, offset: u32) -> Option<[u8; N]> {
        // Not zeroed first: zeroing would be a loop on the path of every packet.
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

impl Head for Skb {
    #[inline(always)]
    unsafe fn copy_head(&self, to: *mut [u8; GATE_HEAD], length: u32) -> bool {
        // SAFETY: the helper writes exactly `length` bytes, which fit, or fails.
        unsafe { bpf_skb_load_bytes(self.0.as_ptr().cast(), 0, to.cast(), length) == 0 }
    }
}

impl Skb {
    #[inline(always)]
    pub fn write<const N: usize>(&self, offset: u32, bytes: &[u8; N], flags: u64) -> bool {
        // SAFETY: N readable bytes; and see `fix_ip_checksum`.
        unsafe { bpf_skb_store_bytes(self.0.as_ptr().cast(), offset, bytes.as_ptr().cast(), N as u32, flags) == 0 }
    }

    /// Copies N bytes at `offset` to `to`.
    #[inline(always)]
    fn copy<const N: usize>(&self, offset: u32, to: &mut [u8; N]) -> bool {
        // SAFETY: the helper writes exactly N bytes to an array of N: those of the packet, or zeros.
        unsafe { bpf_skb_load_bytes(self.0.as_ptr().cast(), offset, to.as_mut_ptr().cast(), N as u32) == 0 }
    }

    /// Overwrites bytes of the Ethernet header. At ingress a packet checksum computed by hardware does not cover it.
    #[inline(always)]
    pub fn put_ethernet<const N: usize>(&self, offset: u32, bytes: &[u8; N]) -> bool {
        self.write(offset, bytes, 0)
    }

    /// Copies `len` bytes (1 ..= 4,096) from `offset` on to `to`.
    ///
    /// # Safety
    /// 4,096 bytes from `to` on may be written.
    #[inline(always)]
    pub unsafe fn load_to(&self, offset: u32, to: *mut u8, len: u32) -> bool {
        let len = at_most::<4096>(len);
        // SAFETY: the caller's promise.
        unsafe { bpf_skb_load_bytes(self.0.as_ptr().cast(), offset, to.cast(), len) == 0 }
    }

    /// Overwrites `len` bytes (1 ..= 4,096) at `offset` with those at `from`.
    ///
    /// # Safety
    /// 4,096 bytes from `from` on may be read.
    #[inline(always)]
    pub unsafe fn put_from(&self, offset: u32, from: *const u8, len: u32) -> bool {
        let (len, flags) = (at_most::<4096>(len), BPF_F_RECOMPUTE_CSUM as u64);
        // SAFETY: the caller's promise.
        unsafe { bpf_skb_store_bytes(self.0.as_ptr().cast(), offset, from.cast(), len, flags) == 0 }
    }

    /// True if the packet is IPv6.
    #[inline(always)]
    pub fn is_v6(&self) -> bool {
        // SAFETY: the context is the one that the kernel gave, so its fields are readable.
        unsafe { (*self.0.skb.skb).protocol == (ETH_P_IPV6 as u16).to_be() as u32 }
    }

    /// Turns the packet into IPv6 (`v6`) or IPv4. The caller then writes the new IP header.
    #[inline(always)]
    pub fn turn(&self, v6: bool) -> bool {
        let protocol = if v6 { ETH_P_IPV6 } else { ETH_P_IP } as u16;
        // SAFETY: see `fix_ip_checksum`.
        unsafe { bpf_skb_change_proto(self.0.as_ptr().cast(), protocol.to_be(), 0) == 0 }
    }

    /// Truncates the packet to `len` bytes, or extends it to `len` with zeros.
    #[inline(always)]
    pub fn set_len(&self, len: u32) -> bool {
        // SAFETY: see `fix_ip_checksum`.
        unsafe { bpf_skb_change_tail(self.0.as_ptr().cast(), len, 0) == 0 }
    }

    /// True if the TCP checksum field holds the pseudo-header sum only (`CHECKSUM_PARTIAL`): the helper then leaves the
    /// field unchanged for a change that is not in the pseudo-header.
    #[inline(always)]
    pub fn checksum_is_partial(&self, field: u32) -> bool {
        let before = self.load::<2>(field);
        // SAFETY: see `fix_ip_checksum`.
        let updated = unsafe { bpf_l4_csum_replace(self.0.as_ptr().cast(), field, 0, 1, 2) == 0 };
        if updated && before == self.load::<2>(field) {
            return true;
        }
        // Restored, because a packet checksum computed by hardware covers the field's old value.
        if let Some(before) = before {
            self.write(field, &before, 0);
        }
        false
    }

    /// True if hardware, or the kernel before this program, has verified the packet's checksums.
    #[inline(always)]
    pub fn is_verified(&self) -> bool {
        // SAFETY: see `fix_ip_checksum`; the helper only queries.
        unsafe { bpf_csum_level(self.0.as_ptr().cast(), BPF_CSUM_LEVEL_QUERY as u64) >= 0 }
    }

    /// Index of the interface that the packet arrived on (ingress) or leaves by (egress).
    #[inline(always)]
    pub fn interface(&self) -> u32 {
        // SAFETY: the context is the one that the kernel gave, so its fields are readable.
        unsafe { (*self.0.skb.skb).ifindex }
    }

    /// True if the packet arrived on the loopback device. Its route, to this host, is then already set.
    #[inline(always)]
    pub fn is_looped(&self) -> bool {
        self.interface() == LOOPBACK
    }

    /// True if the packet has a VLAN tag: it arrives once more, untagged, on the VLAN's own interface.
    #[inline(always)]
    pub fn is_tagged(&self) -> bool {
        // SAFETY: see `interface`.
        unsafe { (*self.0.skb.skb).vlan_present != 0 }
    }

    /// True if the frame is addressed to another host: the interface is promiscuous, or in a segment that floods. The
    /// stack drops it.
    #[inline(always)]
    pub fn is_of_others(&self) -> bool {
        // SAFETY: see `interface`.
        unsafe { (*self.0.skb.skb).pkt_type != PACKET_HOST }
    }

    /// Puts the Ethernet header back in front of a packet that lacks it; `false` if it does not lack it, or cannot have it.
    ///
    /// Generic XDP copies most packets, and the copy loses the length of the header (Linux since 6.9, `skb_pp_cow_data`):
    /// packets of such an interface come here without it. Whatever is left so is not read as TCP.
    #[inline(never)]
    pub fn restore_mac_header(&self) -> bool {
        let mut header = MaybeUninit::<[u8; ETHERNET as usize]>::uninit();
        let (skb, to) = (self.0.skb.skb, header.as_mut_ptr().cast());
        // SAFETY: the helper writes exactly that many bytes to an array of them, or fails.
        let read = unsafe { bpf_skb_load_bytes_relative(skb.cast(), 0, to, ETHERNET, BPF_HDR_START_MAC) };
        if read != 0 {
            return false;
        }
        // SAFETY: the helper succeeded, so all bytes are written.
        let header = unsafe { header.assume_init() };
        // SAFETY: see `interface`.
        let protocol = unsafe { (*skb).protocol } as u16;
        // The whole header: the packet's bytes 12 and 13 alone may be those of an IPv4 source address.
        if u16::from_ne_bytes([header[12], header[13]]) != protocol || self.load(0) == Some(header) {
            return false;
        }
        // SAFETY: see `fix_ip_checksum`.
        unsafe { bpf_skb_change_head(skb, ETHERNET, 0) == 0 && self.put_ethernet(0, &header) }
    }

    /// The packet's mark.
    #[inline(always)]
    pub fn mark(&self) -> u32 {
        // SAFETY: see `interface`.
        unsafe { (*self.0.skb.skb).mark }
    }

    /// Sets the packet's mark, which later copies inherit.
    #[inline(always)]
    pub fn set_mark(&self, mark: u32) {
        const { assert!(offset_of!(__sk_buff, mark) == 8) };
        // The verifier accepts only the context pointer itself with a constant offset; the compiler may otherwise keep
        // the field's address for the next use.
        // SAFETY: the field is writable for TC programs.
        unsafe { core::arch::asm!("*(u32 *)({0} + 8) = {1}", in(reg) self.0.skb.skb, in(reg) mark) };
    }

    /// Sends a copy out of an interface, with the packet's current Ethernet header and the mark [`OURS`].
    #[inline(always)]
    pub fn send_copy(&self, interface: u32) -> bool {
        self.set_mark(OURS);
        // SAFETY: see `fix_ip_checksum`.
        unsafe { bpf_clone_redirect(self.0.as_ptr().cast(), interface, 0) == 0 }
    }

    /// Sends a copy up the stack, past this program. On loopback the copy is sent out, and arrives again: an injected
    /// copy has lost its route, and a packet from a local address without a route is a martian; a sent copy keeps it.
    #[inline(always)]
    pub fn send_copy_up(&self) -> bool {
        self.set_mark(PASS_UP);
        let interface = self.interface();
        let direction = if interface == LOOPBACK { 0 } else { BPF_F_INGRESS as u64 };
        // SAFETY: see `fix_ip_checksum`.
        unsafe { bpf_clone_redirect(self.0.as_ptr().cast(), interface, direction) == 0 }
    }

    /// Passes a copy of the packet, as it is now, to the stack; the packet itself may then be changed. Except on
    /// loopback, the copy passes this program once more, and must not match a flow entry then.
    #[inline(always)]
    pub fn leave_copy(&self) -> bool {
        if self.is_looped() {
            return self.send_copy_up();
        }
        // SAFETY: see `fix_ip_checksum`.
        unsafe { bpf_clone_redirect(self.0.as_ptr().cast(), self.interface(), BPF_F_INGRESS as u64) == 0 }
    }

    /// True if a socket of this host has the connection that such a packet would belong to. `tuple` is memory for the
    /// look-up's parameters. A socket bound to another interface than the packet's is not found.
    #[inline(always)]
    pub fn has_socket(&self, packet: &FlowKey, tuple: &mut bpf_sock_tuple) -> bool {
        // SAFETY: see `interface`.
        let socket = unsafe { look_up(self.0.as_ptr().cast(), packet, tuple, Sockets::All) };
        if socket.is_null() {
            return false;
        }
        // SAFETY: not null, so it points to a socket, which is referenced until it is released.
        let listens = unsafe { (*socket).state } == BPF_TCP_LISTEN;
        // SAFETY: found above, and not used afterwards.
        unsafe { bpf_sk_release(socket.cast()) };
        // A listening socket does not have this connection.
        !listens
    }

    /// Redirects the packet to the other end of an interface, with these Ethernet addresses, as if it had passed the
    /// pair: without a queue in between, and past all egress hooks of the interface. Only at ingress. If there is no
    /// other end, or none in another network namespace, the packet is dropped.
    #[inline(always)]
    pub fn send_to_peer(&self, interface: u32, macs: &[u8; 12]) -> i32 {
        // A packet that changes its network namespace loses its mark, except by this redirect.
        self.set_mark(0);
        // Before Linux 6.16 the redirect does not set the packet's type for the other end.
        // SAFETY: see `interface` and `fix_ip_checksum`.
        let typed = unsafe {
            (*self.0.skb.skb).pkt_type == PACKET_HOST || bpf_skb_change_type(self.0.as_ptr().cast(), PACKET_HOST) == 0
        };
        if !typed || !self.put_ethernet(0, macs) {
            return TC_ACT_SHOT;
        }
        // SAFETY: no pointer is passed.
        unsafe { bpf_redirect_peer(interface, 0) as i32 }
    }

    /// Sends the packet out of an interface, with the mark [`OURS`]. The kernel finds the route and the neighbour.
    #[inline(always)]
    pub fn send(&self, interface: u32) -> i32 {
        self.set_mark(OURS);
        // SAFETY: without parameters the helper looks the neighbour up itself.
        let action = unsafe { bpf_redirect_neigh(interface, core::ptr::null_mut(), 0, 0) };
        if action < 0 { TC_ACT_SHOT } else { action as i32 }
    }
}

/// Reads a packet's headers into map memory. On the stack, whose 512 bytes all active frames share, they would be part
/// of every frame.
#[inline(always)]
pub fn segment(skb: &Skb) -> Option<&'static Segment> {
    let memory = maps::segment_memory()?;
    read_segment(skb, memory).then_some(&*memory)
}

/// Length of the headers of the smallest segment, which is IPv4, in bytes.
const AHEAD: u32 = ETHERNET + 20 + 20;

/// The first bytes of a packet, copied at once. The words of an IPv4 header and of the header behind it are aligned.
#[repr(C, align(8))]
struct First {
    pad: [u8; 2],
    bytes: [u8; AHEAD as usize],
}

/// A packet whose first bytes were copied at once, instead of a few at a time. Bytes behind them, or at offsets that
/// the compiler does not know, are copied over the place of the TCP header.
struct Ahead<'a> {
    skb: &'a Skb,
    bytes: &'a mut [u8; AHEAD as usize],
}

impl Headers for Ahead<'_> {
    #[inline(always)]
    fn bytes<const N: usize>(&mut self, offset: u32) -> Option<&[u8; N]> {
        // Offsets of the Ethernet type, the IPv4 header and the TCP header, each a constant here: no bound must be
        // proved.
        match offset {
            12 => self.bytes.get(12..)?.first_chunk(),
            ETHERNET => self.bytes.get(ETHERNET as usize..)?.first_chunk(),
            TCP_AFTER_IPV4 => self.bytes.get(TCP_AFTER_IPV4 as usize..)?.first_chunk(),
            _ => {
                let room = self.bytes.get_mut(TCP_AFTER_IPV4 as usize..)?.first_chunk_mut()?;
                self.skb.copy(offset, room).then_some(&*room)
            }
        }
    }

    #[inline(always)]
    fn copy<const N: usize>(&self, offset: u32, to: &mut [u8; N]) -> bool {
        self.skb.copy(offset, to)
    }

    #[inline(always)]
    fn packet_len(&self) -> u32 {
        self.skb.len()
    }
}

const TCP_AFTER_IPV4: u32 = ETHERNET + 20;

/// Reads a first fragment's headers into the memory that [`segment`] uses.
#[inline(never)]
pub fn first_fragment(skb: &Skb, v6: bool) -> Option<&'static mut Segment> {
    let memory = maps::segment_memory()?;
    packet::read_fragment(skb, v6, memory).is_ok().then_some(memory)
}

/// A separate function: its stack frame is free again after it returns.
#[inline(never)]
fn read_segment(skb: &Skb, to: &mut Segment) -> bool {
    let mut first = MaybeUninit::<First>::uninit();
    // SAFETY: a field of a value that exists, though nothing was written to it.
    let bytes = unsafe { &raw mut (*first.as_mut_ptr()).bytes };
    // SAFETY: the helper writes exactly that many bytes, or zeros.
    let read = unsafe { bpf_skb_load_bytes(skb.0.as_ptr().cast(), 0, bytes.cast(), AHEAD) };
    if read != 0 {
        return false;
    }
    // SAFETY: the helper succeeded, so all bytes are written.
    let bytes = unsafe { &mut *bytes };
    // `false`: not a plain TCP segment. `odd` handles fragments, options and extension headers.
    packet::read(&mut Ahead { skb, bytes }, to).is_ok()
}

/// The Internet checksum's sum (RFC 1071) of `len` bytes (a multiple of 4, at most 512), in native order.
///
/// # Safety
/// 512 bytes from `from` on may be read.
#[inline(always)]
pub unsafe fn sum_of(from: *const u8, len: u32, seed: u32) -> u32 {
    let len = at_most::<512>(len);
    // SAFETY: the caller's promise; the helper only reads.
    unsafe { bpf_csum_diff(core::ptr::null_mut(), 0, from.cast_mut().cast(), len, seed) as u32 }
}
