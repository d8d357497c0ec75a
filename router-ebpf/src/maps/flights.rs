//! First flights that are being gathered, first flights that wait for their endpoint, and heads of later requests.

use core::mem::offset_of;

use aya_ebpf::bindings::BPF_ANY;
use aya_ebpf::helpers::bpf_ktime_get_boot_ns;
use aya_ebpf::helpers::generated::bpf_probe_read_kernel;
use router_common::maps::{FLIGHT_HEADROOM, FirstFlight, FlowKey, LaterHead, MAX_FLIGHT, SHORT_FLIGHT, ShortFlight};

use super::definitions::{hellos, later_heads, short_hellos};
use crate::copy;
use crate::scratch::Scratch;
use crate::verifier::at_most;

/// The first flight that is being gathered for a connection.
#[inline(always)]
pub fn gathered_flight(flow: &FlowKey) -> Option<&'static mut FirstFlight> {
    // SAFETY: only packets of its own connection write an entry. The agent's sweep may delete it, and another
    // connection reuse its memory; this one is then seconds old, and the bytes read lead to a relay at most.
    hellos.get_ptr_mut(flow).map(|flight| unsafe { &mut *flight })
}

/// The complete first flight that waits for its endpoint.
#[inline(always)]
pub fn dialed_flight(flow: &FlowKey) -> Option<&'static mut ShortFlight> {
    if let Some(flight) = short_hellos.get_ptr_mut(flow) {
        // SAFETY: as for `gathered_flight`.
        return Some(unsafe { &mut *flight });
    }
    let flight: *mut ShortFlight = hellos.get_ptr_mut(flow)?.cast();
    // SAFETY: as for `gathered_flight`; a `FirstFlight` begins like a `ShortFlight`, and is larger.
    let flight = unsafe { &mut *flight };
    // Without a pool it is incomplete: of an older connection, or of a later request.
    (flight.dial.slots != 0).then_some(flight)
}

/// Bytes of a `FirstFlight` before the received ones.
const BEFORE: u32 = offset_of!(FirstFlight, bytes) as u32 + FLIGHT_HEADROOM;

/// Copies a gathered first flight into the working memory; of its bytes, only those received. `false`: the helper
/// failed.
#[inline(always)]
pub fn read_gathered_flight(memory: &mut Scratch, flight: &FirstFlight) -> bool {
    const AT: usize = offset_of!(FirstFlight, hello);
    const { assert!(AT as u32 == BEFORE + MAX_FLIGHT && offset_of!(FirstFlight, host) > AT) };
    let (to, from): (*mut u8, *const u8) = ((&raw mut memory.flight).cast(), (&raw const *flight).cast());
    // SAFETY: both are FirstFlights, and no length exceeds their fields there; integers only, so every bit pattern is
    // valid. Helper calls, because the verifier would follow loops.
    unsafe {
        bpf_probe_read_kernel(to.cast(), BEFORE + at_most::<4096>(flight.received), from.cast()) == 0
            && bpf_probe_read_kernel(to.add(AT).cast(), (size_of::<FirstFlight>() - AT) as u32, from.add(AT).cast())
                == 0
    }
}

/// Copies a first flight that waits for its endpoint into the working memory, without the parsers. `false`: the helper
/// failed.
#[inline(always)]
pub fn read_dialed_flight(memory: &mut Scratch, flight: &ShortFlight) -> bool {
    let (to, from) = ((&raw mut memory.flight).cast(), (&raw const *flight).cast());
    // SAFETY: as in `read_gathered_flight`; a flight with more bytes than a short one holds is the beginning of a long
    // one.
    unsafe { bpf_probe_read_kernel(to, BEFORE + at_most::<4096>(flight.received), from) == 0 }
}

/// Stores a first flight for the next segment. `false`: no room.
#[inline(always)]
pub fn keep_gathered_flight(flow: &FlowKey, flight: &FirstFlight) -> bool {
    hellos.insert(flow, flight, BPF_ANY as u64).is_ok()
}

/// Stores a complete first flight, in one of the two maps only. `false`: no room.
#[inline(always)]
pub fn keep_dialed_flight(flow: &FlowKey, flight: &FirstFlight) -> bool {
    if flight.received > SHORT_FLIGHT {
        let _ = short_hellos.remove(flow);
        return keep_gathered_flight(flow, flight);
    }
    if flight.segments > 1 {
        forget_gathered_flight(flow);
    }
    let short: *const ShortFlight = (&raw const *flight).cast();
    // SAFETY: a `FirstFlight` begins like a `ShortFlight`, and is larger.
    short_hellos.insert(flow, unsafe { &*short }, BPF_ANY as u64).is_ok()
}

/// Deletes a first flight that was not dialed for.
#[inline(always)]
pub fn forget_gathered_flight(flow: &FlowKey) {
    // A missing entry is no error.
    let _ = hellos.remove(flow);
}

/// Deletes a first flight from both maps.
#[inline(always)]
pub fn forget_first_flight(flow: &FlowKey) {
    let _ = short_hellos.remove(flow);
    forget_gathered_flight(flow);
}

/// Deletes an acknowledged first flight; true if it existed. If two CPUs do so at once, only one of them gets `true`.
#[inline(always)]
pub fn take_dialed_flight(flow: &FlowKey) -> bool {
    short_hellos.remove(flow).is_ok() || hellos.remove(flow).is_ok()
}

/// The partial head of a later request on a connection.
#[inline(always)]
pub fn later_head(flow: &FlowKey) -> Option<&'static LaterHead> {
    // SAFETY: as for `gathered_flight`.
    unsafe { later_heads.get(flow) }
}

/// Copies the partial head of a later request into the working memory, where the parser continues.
#[inline(always)]
pub fn read_later_head(memory: &mut Scratch, later: &LaterHead) {
    copy::copy_head(&mut memory.flight.head, &mut memory.flight.host, &later.head, &later.host);
}

/// Stores the partial head of a later request from the working memory. `false`: no room.
#[inline(always)]
pub fn keep_later_head(flow: &FlowKey, memory: &mut Scratch) -> bool {
    let Scratch { later_head: later, flight, .. } = memory;
    // SAFETY: the helper has no precondition.
    later.read_ns = unsafe { bpf_ktime_get_boot_ns() };
    copy::copy_head(&mut later.head, &mut later.host, &flight.head, &flight.host);
    later_heads.insert(flow, &*later, BPF_ANY as u64).is_ok()
}

/// Deletes the partial head of a later request.
#[inline(always)]
pub fn forget_later_head(flow: &FlowKey) {
    // A missing entry is no error.
    let _ = later_heads.remove(flow);
}
