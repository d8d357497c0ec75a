//! Sending packets to their next hop, without a route look-up for each packet.
//!
//! `bpf_redirect_neigh` looks up a packet's route unless the next hop is given. So each CPU caches next hops that
//! `bpf_fib_lookup` has found, for [`STANDS`]; a changed route takes effect within that time. The kernel resolves the
//! neighbour, except for copies ([`send_copy`]) and for packets to the other end of the interface. If the look-up fails
//! (an old kernel, addresses of this host, forwarding off), `bpf_redirect_neigh` finds the route itself.
//!
//! `bpf_redirect_peer` hands packets to the other end of a veth pair in a pod's network namespace, without this CPU's
//! backlog queue. The agent permits it for each interface, in `peers`.

use core::ptr::null_mut;

use aya_ebpf::bindings::{
    BPF_FIB_LKUP_RET_NO_NEIGH, BPF_FIB_LKUP_RET_UNSUPP_LWT, BPF_FIB_LOOKUP_OUTPUT, TC_ACT_SHOT,
    bpf_fib_lookup as FibLookup, bpf_redir_neigh as Neighbour,
};
use aya_ebpf::helpers::generated::{bpf_fib_lookup, bpf_ktime_get_coarse_ns, bpf_redirect_neigh};
use router_common::maps::FlowKey;
use router_common::packet::ETHERNET;

use crate::copy::{is_v4, word, words};
use crate::maps;
use crate::scratch::{MAX_HOPS, NextHop, Scratch};
use crate::skb::{LOOPBACK, OURS, Skb};

/// Nanoseconds until a cached next hop is looked up again.
const STANDS: u64 = 100_000_000;
/// Nanoseconds for which XDP uses it beyond that.
const LINGERS: u64 = 400_000_000;
// linux/bpf.h, since 6.10: rules see the mark. Older kernels reject it.
const MARK: u32 = 32;
// linux/socket.h
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const PROTOCOL_TCP: u8 = 6;

/// Sends the packet, which already has these addresses, out of an interface, with the mark [`OURS`].
#[inline(always)]
pub fn send(skb: &Skb, to: &FlowKey, interface: u32) -> i32 {
    // SAFETY: the helper has no precondition.
    send_at(skb, to, interface, unsafe { bpf_ktime_get_coarse_ns() })
}

/// Likewise, at a known time.
#[inline(always)]
pub fn send_at(skb: &Skb, to: &FlowKey, interface: u32, now: u64) -> i32 {
    match hop(skb, to, interface, now) {
        Some(hop) if hop.peer != 0 && may_go_straight(skb, to) => skb.send_to_peer(interface, &hop.macs),
        hop => send_by(skb, hop, interface),
    }
}

/// Likewise for a packet that follows copies: through the same queue.
#[inline(always)]
pub fn send_last(skb: &Skb, to: &FlowKey, interface: u32) -> i32 {
    // SAFETY: the helper has no precondition.
    let now = unsafe { bpf_ktime_get_coarse_ns() };
    send_by(skb, hop(skb, to, interface, now), interface)
}

#[inline(always)]
fn send_by(skb: &Skb, hop: Option<&mut NextHop>, interface: u32) -> i32 {
    skb.set_mark(OURS);
    let (neighbour, len) = match hop {
        Some(hop) if hop.known != 0 => (&raw mut hop.neighbour, size_of::<Neighbour>() as i32),
        _ => (null_mut(), 0),
    };
    // SAFETY: without parameters the helper looks the neighbour up itself; else they are those of the entry.
    let action = unsafe { bpf_redirect_neigh(interface, neighbour, len, 0) };
    if action < 0 { TC_ACT_SHOT } else { action as i32 }
}

/// The Ethernet addresses of a next hop that this CPU has sent a packet to lately, for XDP, which makes no look-up of its own:
/// in each [`STANDS`] and [`LINGERS`] some packets go the ordinary way, by which the kernel checks the neighbour. `None`: this
/// one does, or it is longer than the interface's MTU.
#[inline(always)]
pub fn lately_resolved(to: &FlowKey, interface: u32, now: u64, len: u32) -> Option<&'static [u8; 12]> {
    let hop = &*maps::hop(place(to))?;
    let stands =
        hop.interface == interface && now < hop.until_ns.wrapping_add(LINGERS) && same_addresses(&hop.flow, to);
    (stands && hop.resolved != 0 && len <= hop.mtu + ETHERNET).then_some(&hop.macs)
}

/// True if the packet can go to an interface's other end unchanged. Not if it has a route of this host, which kernels
/// before 6.16 would follow there; nor if its version of IP was changed, because a checksum computed by hardware is
/// then wrong.
#[inline(always)]
fn may_go_straight(skb: &Skb, to: &FlowKey) -> bool {
    let Some(segment) = maps::segment_memory() else { return false };
    !skb.is_looped() && segment.v6 != is_v4(&to.destination)
}

/// Sends a copy of the packet, with the mark [`OURS`], if the neighbour's address is known. The packet may have another
/// Ethernet header afterwards.
#[inline(always)]
pub fn send_copy(skb: &Skb, to: &FlowKey, interface: u32) -> bool {
    // SAFETY: the helper has no precondition.
    let now = unsafe { bpf_ktime_get_coarse_ns() };
    let Some(hop) = hop(skb, to, interface, now) else { return false };
    hop.resolved != 0 && skb.put_ethernet(0, &hop.macs) && skb.send_copy(interface)
}

/// True if this host's packets to a client leave by the interface of the client's packet, unencapsulated. Also if the
/// look-up fails.
#[inline(never)]
pub fn leads_back(skb: &Skb, client: &FlowKey) -> bool {
    let Some(memory) = maps::scratch_memory() else { return true };
    if skb.is_looped() {
        return true;
    }
    let Scratch { fib, .. } = memory;
    ask(fib, &client.destination, &client.source);
    // As for a locally generated packet: from the loopback device, to any interface.
    fib.ifindex = LOOPBACK;
    let lookup: *mut FibLookup = &raw mut *fib;
    // SAFETY: the context is the one that the kernel gave, the parameters are map memory of their size.
    let found = unsafe { bpf_fib_lookup(skb.0.skb.skb.cast(), lookup, size_of::<FibLookup>() as i32, 0) };
    match found as u32 {
        0 | BPF_FIB_LKUP_RET_NO_NEIGH => fib.ifindex == skb.interface(),
        BPF_FIB_LKUP_RET_UNSUPP_LWT => false,
        _ => true,
    }
}

/// Parameters of a route look-up between two addresses, without the interface.
#[inline(always)]
fn ask(fib: &mut FibLookup, from: &[u8; 16], to: &[u8; 16]) {
    let v4 = is_v4(to);
    fib.family = if v4 { AF_INET } else { AF_INET6 };
    fib.l4_protocol = PROTOCOL_TCP;
    fib.sport = 0;
    fib.dport = 0;
    // 0: the packet's own length is compared with the MTU.
    fib.__bindgen_anon_1.tot_len = 0;
    fib.__bindgen_anon_2.flowinfo = 0;
    let (source, destination) = (words(from), words(to));
    fib.__bindgen_anon_3.ipv6_src = if v4 { [source[3], 0, 0, 0] } else { source };
    fib.__bindgen_anon_4.ipv6_dst = if v4 { [destination[3], 0, 0, 0] } else { destination };
}

/// The cached next hop, unless it has expired.
#[inline(always)]
fn hop(skb: &Skb, to: &FlowKey, interface: u32, now: u64) -> Option<&'static mut NextHop> {
    let hop = maps::hop(place(to))?;
    let stands = hop.interface == interface && now < hop.until_ns && same_addresses(&hop.flow, to);
    if !stands {
        find(skb, hop, to, interface, now);
    }
    Some(hop)
}

/// Looks up the next hop.
#[inline(never)]
fn find(skb: &Skb, hop: &mut NextHop, to: &FlowKey, interface: u32, now: u64) {
    (hop.known, hop.resolved, hop.peer) = (0, 0, 0);
    let Some(memory) = maps::scratch_memory() else { return };
    hop.flow = *to;
    hop.interface = interface;
    hop.until_ns = now.wrapping_add(STANDS);
    let Scratch { fib, .. } = memory;
    ask(fib, &to.source, &to.destination);
    fib.ifindex = interface;
    // The mark shares its place with the Ethernet addresses of the result.
    let [m0, m1, m2, m3] = OURS.to_ne_bytes();
    fib.smac = [m0, m1, m2, m3, 0, 0];
    let flags = BPF_FIB_LOOKUP_OUTPUT | MARK;
    let lookup: *mut FibLookup = &raw mut *fib;
    // SAFETY: the context is the one that the kernel gave, the parameters are map memory of their size.
    let found = unsafe { bpf_fib_lookup(skb.0.skb.skb.cast(), lookup, size_of::<FibLookup>() as i32, flags) };
    let resolved = found == 0;
    if (resolved || found == BPF_FIB_LKUP_RET_NO_NEIGH as i64) && fib.ifindex == interface {
        hop.neighbour.nh_family = fib.family as u32;
        // SAFETY: integers only; of an IPv4 next hop the first is the address.
        hop.neighbour.__bindgen_anon_1.ipv6_nh = unsafe { fib.__bindgen_anon_4.ipv6_dst };
        hop.known = 1;
        let ([a, b, c, d, e, f], [g, h, i, j, k, l]) = (fib.dmac, fib.smac);
        hop.macs = [a, b, c, d, e, f, g, h, i, j, k, l];
        // SAFETY: an integer, which a look-up that has succeeded writes in place of the length.
        hop.mtu = unsafe { fib.__bindgen_anon_1.mtu_result } as u32;
        hop.resolved = u32::from(resolved);
        hop.peer = u32::from(resolved && now < maps::peer_until(interface));
    }
}

/// Index of a pair of addresses in the cache. A collision costs a look-up, as each packet would without the cache.
#[inline(always)]
fn place(to: &FlowKey) -> u32 {
    let (source, destination) = (word(&to.source, 3), word(&to.destination, 3));
    let mixed = (destination ^ source.rotate_left(16)).wrapping_mul(0x9e37_79b1);
    // The upper bits alone depend on all bits of both.
    mixed >> (u32::BITS - MAX_HOPS.ilog2())
}

#[inline(always)]
fn same_addresses(one: &FlowKey, other: &FlowKey) -> bool {
    let mut differ = 0;
    let mut at = 0;
    while at < 4 {
        differ |= word(&one.destination, at) ^ word(&other.destination, at);
        differ |= word(&one.source, at) ^ word(&other.source, at);
        at += 1;
    }
    differ == 0
}
