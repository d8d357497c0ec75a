//! Sending packets to the neighbour that the routes name, without asking the routes for every packet.
//!
//! `bpf_redirect_neigh` looks a packet's route up, with all that the stack keeps of one, unless it is told the next hop.
//! So each CPU remembers those that `bpf_fib_lookup` has found, for a moment: a route that changes is followed within
//! [`STANDS`]. Neighbours are the kernel's, for every packet but a copy ([`send_copy`]) and those for the other end of the
//! interface. Where the look-up does not say (an old kernel, addresses of this host, forwarding switched off),
//! `bpf_redirect_neigh` finds the way itself.
//!
//! The other end of a veth in a pod's network namespace takes packets by `bpf_redirect_peer`, without a turn through
//! the queue of this CPU. Where that is allowed the agent says, in `peers`.

use core::ptr::null_mut;

use aya_ebpf::bindings::{
    BPF_FIB_LKUP_RET_NO_NEIGH, BPF_FIB_LKUP_RET_UNSUPP_LWT, BPF_FIB_LOOKUP_OUTPUT, TC_ACT_SHOT,
    bpf_fib_lookup as FibLookup, bpf_redir_neigh as Neighbour,
};
use aya_ebpf::helpers::generated::{bpf_fib_lookup, bpf_ktime_get_coarse_ns, bpf_redirect_neigh};
use router_common::maps::FlowKey;

use crate::maps;
use crate::scratch::{Hop, MAX_HOPS, Scratch};
use crate::skb::{LOOPBACK, OURS, Skb};
use crate::words::{is_v4, word, words};

/// Nanoseconds for which a next hop is used without asking again.
const STANDS: u64 = 100_000_000;
// linux/bpf.h, since 6.10: rules see the mark. Older kernels refuse it.
const MARK: u32 = 32;
// linux/socket.h
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const PROTOCOL_TCP: u8 = 6;

/// Sends the packet, which has been given these addresses, out of an interface. Marked as ours.
#[inline(always)]
pub fn send(skb: &Skb, to: &FlowKey, interface: u32) -> i32 {
    // SAFETY: the helper has no precondition.
    send_at(skb, to, interface, unsafe { bpf_ktime_get_coarse_ns() })
}

/// The same, at a time that is known.
#[inline(always)]
pub fn send_at(skb: &Skb, to: &FlowKey, interface: u32, now: u64) -> i32 {
    match hop(skb, to, interface, now) {
        Some(hop) if hop.peer != 0 && may_go_straight(skb, to) => skb.send_to_peer(interface, &hop.macs),
        hop => send_by(skb, hop, interface),
    }
}

/// The same behind copies: through the queue that they are in.
#[inline(always)]
pub fn send_last(skb: &Skb, to: &FlowKey, interface: u32) -> i32 {
    // SAFETY: the helper has no precondition.
    let now = unsafe { bpf_ktime_get_coarse_ns() };
    send_by(skb, hop(skb, to, interface, now), interface)
}

#[inline(always)]
fn send_by(skb: &Skb, hop: Option<&mut Hop>, interface: u32) -> i32 {
    skb.set_mark(OURS);
    let (neighbour, len) = match hop {
        Some(hop) if hop.known != 0 => (&raw mut hop.neighbour, size_of::<Neighbour>() as i32),
        _ => (null_mut(), 0),
    };
    // SAFETY: without parameters the helper looks the neighbour up itself; else they are those of the entry.
    let action = unsafe { bpf_redirect_neigh(interface, neighbour, len, 0) };
    if action < 0 { TC_ACT_SHOT } else { action as i32 }
}

/// Whether the packet can go to an interface's other end as it is. Not one with a route of this host, by which kernels
/// before 6.16 would go on there; and not one that was of the other version of IP, for which a sum that hardware made
/// of the packet is not kept true.
#[inline(always)]
fn may_go_straight(skb: &Skb, to: &FlowKey) -> bool {
    let Some(segment) = maps::segment_memory() else { return false };
    !skb.is_looped() && segment.v6 != is_v4(&to.destination)
}

/// Sends a copy of the packet there, if the neighbour's address is known. Marked as ours; the packet may have another
/// Ethernet header afterwards.
#[inline(always)]
pub fn send_copy(skb: &Skb, to: &FlowKey, interface: u32) -> bool {
    // SAFETY: the helper has no precondition.
    let now = unsafe { bpf_ktime_get_coarse_ns() };
    let Some(hop) = hop(skb, to, interface, now) else { return false };
    hop.resolved != 0 && skb.put_ethernet(0, &hop.macs) && skb.send_copy(interface)
}

/// Whether answers of this host to a client leave by the interface that it came in by, and as they are. Where the look-up
/// does not say, nothing else is known.
#[inline(never)]
pub fn leads_back(skb: &Skb, client: &FlowKey) -> bool {
    let Some(memory) = maps::scratch_memory() else { return true };
    if skb.is_looped() {
        return true;
    }
    let Scratch { fib, .. } = memory;
    ask(fib, &client.destination, &client.source);
    // As a packet that begins here: from the loopback device, to whatever interface.
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

/// Parameters of a look-up of the way between two addresses, but for its interface.
#[inline(always)]
fn ask(fib: &mut FibLookup, from: &[u8; 16], to: &[u8; 16]) {
    let v4 = is_v4(to);
    fib.family = if v4 { AF_INET } else { AF_INET6 };
    fib.l4_protocol = PROTOCOL_TCP;
    fib.sport = 0;
    fib.dport = 0;
    // 0: the packet's own length is compared with the interface's.
    fib.__bindgen_anon_1.tot_len = 0;
    fib.__bindgen_anon_2.flowinfo = 0;
    let (source, destination) = (words(from), words(to));
    fib.__bindgen_anon_3.ipv6_src = if v4 { [source[3], 0, 0, 0] } else { source };
    fib.__bindgen_anon_4.ipv6_dst = if v4 { [destination[3], 0, 0, 0] } else { destination };
}

/// What is remembered of the way, no older than it may be.
#[inline(always)]
fn hop(skb: &Skb, to: &FlowKey, interface: u32, now: u64) -> Option<&'static mut Hop> {
    let hop = maps::hop(place(to))?;
    let stands = hop.interface == interface && now < hop.until_ns && same_addresses(&hop.flow, to);
    if !stands {
        find(skb, hop, to, interface, now);
    }
    Some(hop)
}

/// Asks for the next hop.
#[inline(never)]
fn find(skb: &Skb, hop: &mut Hop, to: &FlowKey, interface: u32, now: u64) {
    (hop.known, hop.resolved, hop.peer) = (0, 0, 0);
    let Some(memory) = maps::scratch_memory() else { return };
    hop.flow = *to;
    hop.interface = interface;
    hop.until_ns = now.wrapping_add(STANDS);
    let Scratch { fib, .. } = memory;
    ask(fib, &to.source, &to.destination);
    fib.ifindex = interface;
    // The mark is where the Ethernet addresses will be.
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
        hop.resolved = u32::from(resolved);
        hop.peer = u32::from(resolved && now < maps::peer_until(interface));
    }
}

/// The place of a pair of addresses. Whoever makes others share it costs them a look-up, which is what each packet
/// would cost without.
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
