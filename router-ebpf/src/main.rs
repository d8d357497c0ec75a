//! Sluice's kernel programs. What decides lives in `router-common`; here is only what needs the kernel's helpers.
//!
//! `sluice_ingress` (TC ingress, on every interface that clients or endpoints are behind): packets of connections that
//! the kernel carries are translated and sent on, nothing before that but the headers and one look-up. A packet to a
//! listener belongs to a first flight, which is gathered until SNI or Host are known, decided, recorded, and dialed.
//! What of a carried connection is no plain segment is made one, or carried in fragments (`odd`).
//! Everything else, and everything that it is not sure of, goes up the stack untouched.
//!
//! `sluice_egress` (TC egress, same interfaces): reads the SYN-ACKs of listeners, and keeps the stack silent where the
//! kernel carries the connection.
//!
//! ```text
//! SYN ─► handshake      data ─► first_flight ─► connect ─► SYN ─► connecting ─► payload ─► established (translate, send)
//! ```
#![no_std]
#![no_main]
// `verifier::opaque` hides a value from the optimiser with it.
#![feature(asm_experimental_arch)]

mod atomic;
mod connect;
mod connecting;
mod craft;
mod established;
mod first_flight;
mod flow_end;
mod fragments;
mod handshake;
mod icmp;
mod log;
mod maps;
mod next_hop;
mod odd;
mod options;
mod packet_mut;
mod pipelined;
mod reject;
mod retry;
mod scratch;
mod skb;
mod strangers;
mod tables;
mod telemetry;
mod verifier;
mod words;

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

/// What passes goes on to whatever program is attached after this one: an action that decides would end the chain.
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
    if read.is_none() {
        match odd::packet(&skb) {
            odd::LEFT => return icmp::packet(&mut skb),
            odd::PLAIN => read = skb::segment(&skb),
            odd::FIRST => return fragments::first(&mut skb),
            odd::LATER => return fragments::later(&mut skb),
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
        Some(listener) => first_flight::segment(&skb, listener),
        None => TC_ACT_OK,
    }
}

#[inline(always)]
fn egress(mut skb: Skb) -> i32 {
    if skb.mark() == OURS || skb.mark() == PASS_UP || skb.is_tagged() {
        return TC_ACT_OK;
    }
    let Some(segment) = skb::segment(&skb) else { return TC_ACT_OK };
    if segment.flags & (SYN | ACK) == SYN && !strangers::may_begin(segment) {
        return TC_ACT_SHOT;
    }
    let Some(listener) = maps::listener(&segment.flow.source, segment.flow.source_port) else {
        return TC_ACT_OK;
    };
    handshake::sent(&mut skb, segment, listener)
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // The verifier refuses a program in which this can be reached.
    loop {}
}

#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 4] = *b"GPL\0";
