//! Sluice's kernel programs. What decides lives in `router-common`; here is only what needs the kernel's helpers.
//!
//! `sluice_ingress` (TC ingress, on every interface that clients come in on): reads the SYN of a connection to a
//! listener, gathers its first payload until SNI or Host are known, decides, records the decision, and resets what
//! policy refuses. Everything else, and everything it is not sure of, goes up the stack untouched.
#![no_std]
#![no_main]
// `skb::bounded` hides a value from the optimiser with it.
#![feature(asm_experimental_arch)]

mod first_flight;
mod maps;
mod record;
mod reject;
mod skb;
mod tables;
mod words;

use aya_ebpf::bindings::TC_ACT_OK;
use aya_ebpf::macros::classifier;
use aya_ebpf::programs::TcContext;
use router_common::packet;

use crate::skb::Skb;

/// TC ingress.
#[classifier]
pub fn sluice_ingress(ctx: TcContext) -> i32 {
    let skb = Skb(ctx);
    // No TCP, fragments, extension headers: the stack knows, and a connection that begins with those is relayed.
    let Ok(segment) = packet::segment(&skb) else { return TC_ACT_OK };
    let Some(listener) = maps::listener(&segment.flow) else { return TC_ACT_OK };
    first_flight::segment(&skb, &segment, listener)
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // The verifier refuses a program in which this can be reached.
    loop {}
}

#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 4] = *b"GPL\0";
