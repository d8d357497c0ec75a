//! Packets of carried connections that are not plain segments: with IPv4 options, with IPv6 extension headers, in
//! fragments. Options and extension headers are removed, as a relay would do, and the packet is then handled like any
//! other. Packets of connections that the kernel does not carry stay unchanged; undecided connections are relayed.

use aya_ebpf::bindings::__sk_buff;
use aya_ebpf::programs::TcContext;
use router_common::ip_extensions::EXTENSION_STEPS;
use router_common::maps::{FlowKey, HANDSHAKE_DECIDED, mapped};
use router_common::packet::{ETHERNET, FRAGMENT_HEADER, Packet};
use router_common::verdict::{DialCounter, Reason};

use crate::connections;
use crate::first_flight;
use crate::maps;
use crate::scratch::Scratch;
use crate::skb::Skb;

/// Not a packet of a carried connection.
pub const LEFT: u32 = 0;
/// Now a plain segment.
pub const PLAIN: u32 = 1;
/// First fragment of a packet, without other oddities.
pub const FIRST: u32 = 2;
/// Later fragment of a packet whose first fragment is known.
pub const LATER: u32 = 3;
/// Dropped.
pub const DROPPED: u32 = 4;

/// Classifies a packet that cannot be read as a segment.
#[inline(always)]
pub fn packet(skb: &Skb) -> u32 {
    // SAFETY: the context is the one that the kernel gave.
    unsafe { sluice_odd(skb.0.skb.skb) }
}

/// A global function in the kernel's sense: the verifier checks it once, separately from its callers.
///
/// # Safety
/// `ctx` is the program's context.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn sluice_odd(ctx: *mut __sk_buff) -> u32 {
    let mut skb = Skb(TcContext::new(ctx));
    let Some(memory) = maps::scratch_memory() else { return LEFT };
    if !memory.extensions.begin(&skb) {
        return LEFT;
    }
    let mut turn = 0;
    while turn < EXTENSION_STEPS {
        turn += 1;
        // SAFETY: as in `packet`.
        if unsafe { sluice_extension(ctx) } == 0 {
            break;
        }
    }
    let Some(memory) = maps::scratch_memory() else { return LEFT };
    let extensions = &memory.extensions;
    if extensions.found == 0 || extensions.is_plain() {
        return LEFT;
    }
    let owner = owner(&skb);
    if owner != CARRIED {
        return owner;
    }
    let Some(memory) = maps::scratch_memory() else { return LEFT };
    let extensions = &memory.extensions;
    if extensions.refused != 0 || !extensions.take_out(&mut skb) {
        maps::count(DialCounter::RefusedHeaders);
        return DROPPED;
    }
    match (extensions.fragment, extensions.offset) {
        (0, _) => PLAIN,
        (_, 0) => FIRST,
        _ => LATER,
    }
}

/// Reads one header or option; 0: that was the last. A global function, so that the verifier checks it once, not for
/// each header.
///
/// # Safety
/// `ctx` is the program's context.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn sluice_extension(ctx: *mut __sk_buff) -> u32 {
    let skb = Skb(TcContext::new(ctx));
    let Some(memory) = maps::scratch_memory() else { return 0 };
    memory.extensions.step(&skb) as u32
}

/// [`owner`]: the kernel carries the packet's connection.
const CARRIED: u32 = 5;

/// [`CARRIED`], [`LEFT`] or [`DROPPED`], by the packet's addresses and ports or its first fragment.
#[inline(never)]
fn owner(skb: &Skb) -> u32 {
    let Some(memory) = maps::scratch_memory() else { return LEFT };
    let Scratch { extensions, key, fragment, fragmented, .. } = memory;
    if extensions.v6 != 0 {
        // Two conditions, not one: the verifier of Linux 6.1 does not conclude from the failure of the first that its
        // value is unused after both.
        let Some(source) = skb.load::<16>(ETHERNET + 8) else { return LEFT };
        key.source = source;
        let Some(destination) = skb.load::<16>(ETHERNET + 24) else { return LEFT };
        key.destination = destination;
    } else {
        let Some([a, b, c, d, e, f, g, h]) = skb.load::<8>(ETHERNET + 12) else { return LEFT };
        (key.source, key.destination) = (mapped([a, b, c, d]), mapped([e, f, g, h]));
    }
    (fragment.source, fragment.destination, fragment.id) = (key.source, key.destination, extensions.id);
    if extensions.offset != 0 {
        let Some(found) = maps::fragmented(fragment) else { return LEFT };
        *fragmented = *found;
        return CARRIED;
    }
    let Some([p0, p1, q0, q1]) = skb.load::<4>(extensions.at) else { return LEFT };
    key.source_port = u16::from_be_bytes([p0, p1]);
    key.destination_port = u16::from_be_bytes([q0, q1]);
    if maps::flow(key).is_some() {
        return CARRIED;
    }
    if extensions.fragment != 0 && maps::is_fragmenting(&key.source) {
        // Relayed because of its fragments, of which more follow.
        maps::relay_fragmenting(&key.source);
    }
    if connections::might_pass_unread(skb, key) {
        return DROPPED;
    }
    left(key);
    LEFT
}

/// Handles a packet of a connection that is not carried: if it is for a listener, the connection is relayed from here
/// on.
#[inline(never)]
fn left(key: &FlowKey) {
    if let Some(listener) = maps::listener(&key.destination, key.destination_port)
        && maps::handshake(key).is_none_or(|handshake| handshake.state & HANDSHAKE_DECIDED == 0)
    {
        first_flight::pass(key, listener, Reason::Unreadable);
    }
}

/// Bytes from the Ethernet header to the data of a fragment from which options and other headers were removed.
#[inline(always)]
pub const fn fragment_data(v6: bool) -> u32 {
    if v6 { ETHERNET + 40 + FRAGMENT_HEADER } else { ETHERNET + 20 }
}
