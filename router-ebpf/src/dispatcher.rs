//! The dispatcher of libxdp's protocol, version 2: an XDP program that calls up to ten others, which replace its slots.
//!
//! Sluice loads it in the place of libxdp's where the gate joins or leaves a chain
//! (<https://github.com/xdp-project/xdp-tools/blob/main/lib/libxdp/protocol.org>). The version is in the configuration, and not in
//! the BTF as well, which only version 1 needs.
#![no_std]
#![no_main]

use core::ptr::read_volatile;

use aya_ebpf::bindings::xdp_action::{XDP_ABORTED, XDP_PASS};
use aya_ebpf::bindings::xdp_md;
use aya_ebpf::helpers::generated::bpf_xdp_adjust_tail;
use router_common::dispatcher::DispatcherConfig;

/// What a slot returns while no program replaces it; every slot's actions contain it.
const EMPTY: u32 = 31;

/// Written before the program is loaded, frozen from then on: the verifier removes the slots that are not used.
#[unsafe(no_mangle)]
static CONFIG: DispatcherConfig = DispatcherConfig::EMPTY;

macro_rules! dispatcher {
    ($($slot:ident: $number:literal),*) => {
        $(
            /// A slot.
            #[unsafe(no_mangle)]
            #[inline(never)]
            extern "C" fn $slot(ctx: *mut xdp_md) -> u32 {
                // Different in each slot, so that the compiler does not make one function of all.
                let results = [EMPTY, $number];
                if ctx.is_null() {
                    return XDP_ABORTED;
                }
                // No change of the packet, but the call that lets programs that change packets replace the slot.
                // SAFETY: the context is the one that the kernel gave.
                unsafe { bpf_xdp_adjust_tail(ctx, 0) };
                // SAFETY: a variable. The compiler must not know the value.
                unsafe { read_volatile(&raw const results[0]) }
            }
        )*

        /// XDP.
        #[unsafe(no_mangle)]
        #[unsafe(link_section = "xdp.frags")]
        extern "C" fn xdp_dispatcher(ctx: *mut xdp_md) -> u32 {
            // SAFETY: a static. The compiler must not know the value.
            let programs = unsafe { read_volatile(&raw const CONFIG.programs) };
            $(
                if programs <= $number {
                    return XDP_PASS;
                }
                let action = $slot(ctx);
                // SAFETY: as above.
                let continued = unsafe { read_volatile(&raw const CONFIG.continued[$number]) };
                if 1_u32.wrapping_shl(action) & continued == 0 {
                    return action;
                }
            )*
            XDP_PASS
        }
    };
}

dispatcher!(prog0: 0, prog1: 1, prog2: 2, prog3: 3, prog4: 4, prog5: 5, prog6: 6, prog7: 7, prog8: 8, prog9: 9);

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // The verifier rejects a program in which this is reachable.
    loop {}
}

#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 4] = *b"GPL\0";
