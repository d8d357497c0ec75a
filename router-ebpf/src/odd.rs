//! Packets of carried connections that are no plain segments: with IPv4 options, with IPv6 extension headers, in fragments.
//! TCP knows nothing of options and headers before it, and the relay's two connections have none of each other's: they
//! are taken out, and the packet goes on as any other. What is of no connection that the kernel carries is left as it is;
//! a client's that has not been decided about is relayed.

use aya_ebpf::bindings::__sk_buff;
use aya_ebpf::programs::TcContext;
use router_common::extensions::EXTENSION_STEPS;
use router_common::maps::{FlowKey, HANDSHAKE_DECIDED, mapped};
use router_common::packet::{ETHERNET, FRAGMENT_HEADER, Packet};
use router_common::verdict::{DialCounter, Reason};

use crate::first_flight;
use crate::maps;
use crate::scratch::Scratch;
use crate::skb::Skb;

/// Nothing of a carried connection.
pub const LEFT: u32 = 0;
/// It is plain now.
pub const PLAIN: u32 = 1;
/// It is the first fragment of a packet, with nothing else to be said of it.
pub const FIRST: u32 = 2;
/// It is another one, of a packet whose first is known.
pub const LATER: u32 = 3;
/// It is not carried.
pub const DROPPED: u32 = 4;

/// What a packet is that cannot be read as a segment.
#[inline(always)]
pub fn packet(skb: &Skb) -> u32 {
    // SAFETY: the context is the one that the kernel gave.
    unsafe { sluice_odd(skb.0.skb.skb) }
}

/// A global function in the kernel's sense: the verifier walks through it by itself.
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
    if extensions.found == 0 || extensions.is_plain() || !is_carried(&skb) {
        return LEFT;
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

/// Reads one header or option; 0: that was the last. A global function, or the verifier would walk through all of them.
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

/// Whether the kernel carries the packet's connection: by its addresses and ports, or what was known of its first
/// fragment.
#[inline(never)]
fn is_carried(skb: &Skb) -> bool {
    let Some(memory) = maps::scratch_memory() else { return false };
    let Scratch { extensions, key, fragment, fragmented, .. } = memory;
    if extensions.v6 != 0 {
        // One after the other: for the verifier of Linux 6.1 a failure of the first does not rule out its use behind both.
        let Some(source) = skb.load::<16>(ETHERNET + 8) else { return false };
        key.source = source;
        let Some(destination) = skb.load::<16>(ETHERNET + 24) else { return false };
        key.destination = destination;
    } else {
        let Some([a, b, c, d, e, f, g, h]) = skb.load::<8>(ETHERNET + 12) else { return false };
        (key.source, key.destination) = (mapped([a, b, c, d]), mapped([e, f, g, h]));
    }
    (fragment.source, fragment.destination, fragment.id) = (key.source, key.destination, extensions.id);
    if extensions.offset != 0 {
        let Some(found) = maps::fragmented(fragment) else { return false };
        *fragmented = *found;
        return true;
    }
    let Some([p0, p1, q0, q1]) = skb.load::<4>(extensions.at) else { return false };
    key.source_port = u16::from_be_bytes([p0, p1]);
    key.destination_port = u16::from_be_bytes([q0, q1]);
    if maps::flow(key).is_some() {
        return true;
    }
    if extensions.fragment != 0 && maps::is_fragmenting(&key.source) {
        // Relayed for its fragments, of which there are more.
        maps::relay_fragmenting(&key.source);
    }
    left(key);
    false
}

/// A packet of a connection that is not carried: one to a listener, which is relayed from here on.
#[inline(never)]
fn left(key: &FlowKey) {
    if let Some(listener) = maps::listener(&key.destination, key.destination_port)
        && maps::handshake(key).is_none_or(|handshake| handshake.state & HANDSHAKE_DECIDED == 0)
    {
        first_flight::pass(key, listener, Reason::Unreadable);
    }
}

/// Bytes from the Ethernet header to the data of a fragment from which all else was taken out.
#[inline(always)]
pub const fn fragment_data(v6: bool) -> u32 {
    if v6 { ETHERNET + 40 + FRAGMENT_HEADER } else { ETHERNET + 20 }
}
