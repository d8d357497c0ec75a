//! Sluice's kernel programs. `router-common` makes the decisions; this crate contains only what needs the kernel's
//! helpers.
//!
//! `sluice_ingress` (TC ingress, on every interface that clients or endpoints are behind) translates and forwards
//! packets of carried connections; before that it only reads the headers and looks up one entry. A packet to a listener
//! belongs to a first flight, which is gathered until SNI or Host is known, decided, recorded, and dialed. A packet of
//! a carried connection that is not a plain segment is turned into one, or carried in fragments (`irregular_segments`).
//! All other packets, and those in doubt, go up the stack unchanged.
//!
//! `sluice_gate` (XDP, while a listener has a policy, is flooded, or XDP is to forward) rejects packets, answers SYNs and forwards
//! established connections before the others see them: see `xdp`.
//!
//! `sluice_sockets` (sock_ops, while a listener limits connections) is called when a socket is established or closed; what is open
//! is counted by `connections`. The agent runs `sluice_release` for what ends otherwise.
//!
//! `sluice_egress` (TC egress, same interfaces) reads the SYN-ACKs of listeners, and drops the stack's packets of
//! carried connections.
//!
//! ```text
//! SYN ─► handshake   data ─► first_flight ─► connect ─► SYN ─► connecting ─► payload ─► established (translate, send)
//! ```
#![no_std]
#![no_main]
// `verifier::opaque` hides a value from the optimiser with it.
#![feature(asm_experimental_arch)]

mod atomic;
mod connect;
mod connecting;
mod connections;
mod cookie_handshake;
mod cookies;
mod copy;
mod craft;
mod established;
mod first_flight;
mod flow_end;
mod fragments;
mod gate_record;
mod gate_words;
mod handshake;
mod icmp;
mod irregular_segments;
mod known_sockets;
mod log;
mod maps;
mod next_hop;
mod options;
mod packet_mut;
mod pipelined;
mod reject;
mod retry;
mod scratch;
mod skb;
mod socket_lookup;
mod sockets;
mod tables;
mod telemetry;
mod tuple_collisions;
mod verifier;
mod xdp;

use aya_ebpf::bindings::{TC_ACT_OK, TC_ACT_SHOT, TC_ACT_UNSPEC};
use aya_ebpf::macros::classifier;
use aya_ebpf::programs::TcContext;
use router_common::packet::{ACK, SYN};

use crate::skb::{OURS, PASS_UP, Skb};

/// TC ingress.
#[classifier]
pub fn sluice_ingress(ctx: TcContext) -> i32 {
    alone(ingress(Skb(ctx)))
}

/// TC egress.
#[classifier]
pub fn sluice_egress(ctx: TcContext) -> i32 {
    alone(egress(Skb(ctx)))
}

/// Returns `TC_ACT_UNSPEC` in place of `TC_ACT_OK`, so that programs attached after this one see the packet.
#[inline(always)]
fn alone(action: i32) -> i32 {
    if action == TC_ACT_OK { TC_ACT_UNSPEC } else { action }
}

#[inline(always)]
fn ingress(mut skb: Skb) -> i32 {
    if skb.mark() == PASS_UP || skb.is_tagged() || skb.is_of_others() {
        return TC_ACT_OK;
    }
    let mut read = skb::segment(&skb);
    if read.is_none() && skb.restore_mac_header() {
        read = skb::segment(&skb);
    }
    if read.is_none() {
        match irregular_segments::packet(&skb) {
            irregular_segments::LEFT => return icmp::packet(&mut skb),
            irregular_segments::PLAIN => read = skb::segment(&skb),
            irregular_segments::FIRST => return fragments::first(&mut skb),
            irregular_segments::LATER => return fragments::later(&mut skb),
            _ => {}
        }
    }
    let Some(segment) = read else { return TC_ACT_SHOT };
    if let Some(flow) = maps::flow(&segment.flow)
        && let Some(action) = established::packet(&mut skb, segment, flow)
    {
        return action;
    }
    match maps::listener(&segment.flow.destination, segment.flow.destination_port) {
        Some(listener) => first_flight::segment(&skb, segment, listener),
        None => TC_ACT_OK,
    }
}

#[inline(always)]
fn egress(mut skb: Skb) -> i32 {
    if skb.mark() == OURS || skb.mark() == PASS_UP || skb.is_tagged() {
        return TC_ACT_OK;
    }
    let Some(segment) = skb::segment(&skb) else { return TC_ACT_OK };
    if segment.flags & (SYN | ACK) == SYN && !tuple_collisions::may_begin(segment) {
        return TC_ACT_SHOT;
    }
    let Some(listener) = maps::listener(&segment.flow.source, segment.flow.source_port) else {
        return TC_ACT_OK;
    };
    handshake::sent(&mut skb, segment, listener)
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // The verifier rejects a program in which this is reachable.
    loop {}
}

#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 4] = *b"GPL\0";
