//! First flights: those that are gathered, and those that wait for their endpoint. And heads of later requests.

use core::mem::offset_of;

use aya_ebpf::bindings::BPF_ANY;
use aya_ebpf::helpers::bpf_ktime_get_boot_ns;
use aya_ebpf::helpers::generated::bpf_probe_read_kernel;
use router_common::maps::{FLIGHT_HEADROOM, FirstFlight, FlowKey, LaterHead, MAX_FLIGHT, SHORT_FLIGHT, ShortFlight};

use super::definitions::{hellos, later_heads, short_hellos};
use crate::scratch::Scratch;
use crate::verifier::at_most_4096;
use crate::words;

/// The first flight that was begun for a connection.
#[inline(always)]
pub fn gathered_flight(flow: &FlowKey) -> Option<&'static mut FirstFlight> {
    // SAFETY: an entry is written by runs of its own connection only; `forget` of the agent's sweep may free it for
    // another connection, and then this one is seconds old and what is read decides nothing but a relay.
    hellos.get_ptr_mut(flow).map(|flight| unsafe { &mut *flight })
}

/// The first flight that waits for its endpoint.
#[inline(always)]
pub fn dialed_flight(flow: &FlowKey) -> Option<&'static mut ShortFlight> {
    if let Some(flight) = short_hellos.get_ptr_mut(flow) {
        // SAFETY: as for `gathered_flight`.
        return Some(unsafe { &mut *flight });
    }
    let flight: *mut ShortFlight = hellos.get_ptr_mut(flow)?.cast();
    // SAFETY: as for `gathered_flight`; a long one begins like a short one, and is larger.
    let flight = unsafe { &mut *flight };
    // Without a pool it is not complete: left over from an older connection, or of a later request.
    (flight.dial.slots != 0).then_some(flight)
}

/// Bytes of a flight before those that were received.
const BEFORE: u32 = offset_of!(FirstFlight, bytes) as u32 + FLIGHT_HEADROOM;

/// Copies a first flight that was begun into the working memory, as far as bytes were received.
#[inline(always)]
pub fn read_gathered_flight(memory: &mut Scratch, flight: &FirstFlight) -> bool {
    const AT: usize = offset_of!(FirstFlight, hello);
    const { assert!(AT as u32 == BEFORE + MAX_FLIGHT && offset_of!(FirstFlight, host) > AT) };
    let (to, from): (*mut u8, *const u8) = ((&raw mut memory.flight).cast(), (&raw const *flight).cast());
    // SAFETY: both are FirstFlights, and each length is at most what they have there; integers only, so any bytes are
    // one. Helper calls, where loops would be followed by the verifier.
    unsafe {
        bpf_probe_read_kernel(to.cast(), BEFORE + at_most_4096(flight.received), from.cast()) == 0
            && bpf_probe_read_kernel(to.add(AT).cast(), (size_of::<FirstFlight>() - AT) as u32, from.add(AT).cast())
                == 0
    }
}

/// Copies a first flight that waits for its endpoint into the working memory, but for what has been read of it.
#[inline(always)]
pub fn read_dialed_flight(memory: &mut Scratch, flight: &ShortFlight) -> bool {
    let (to, from) = ((&raw mut memory.flight).cast(), (&raw const *flight).cast());
    // SAFETY: as in `read_gathered_flight`: of more than a short one's bytes it is the begin of a long one.
    unsafe { bpf_probe_read_kernel(to, BEFORE + at_most_4096(flight.received), from) == 0 }
}

/// Keeps a first flight for the next segment. `false`: no room.
#[inline(always)]
pub fn keep_gathered_flight(flow: &FlowKey, flight: &FirstFlight) -> bool {
    hellos.insert(flow, flight, BPF_ANY as u64).is_ok()
}

/// Keeps a first flight that is complete, in one place. `false`: no room.
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
    // SAFETY: a long one begins like a short one, and is larger.
    short_hellos.insert(flow, unsafe { &*short }, BPF_ANY as u64).is_ok()
}

/// Forgets a first flight that was not dialed for.
#[inline(always)]
pub fn forget_gathered_flight(flow: &FlowKey) {
    // A missing entry is what is wanted.
    let _ = hellos.remove(flow);
}

/// Forgets a first flight, wherever it is.
#[inline(always)]
pub fn forget_first_flight(flow: &FlowKey) {
    let _ = short_hellos.remove(flow);
    forget_gathered_flight(flow);
}

/// Forgets one that has been acknowledged; whether it was there. Of two CPUs that do it at once, one is told so.
#[inline(always)]
pub fn take_dialed_flight(flow: &FlowKey) -> bool {
    short_hellos.remove(flow).is_ok() || hellos.remove(flow).is_ok()
}

/// The later request that has begun on a connection.
#[inline(always)]
pub fn later_head(flow: &FlowKey) -> Option<&'static LaterHead> {
    // SAFETY: as for `gathered_flight`.
    unsafe { later_heads.get(flow) }
}

/// Copies what was read of a later request into the working memory, to where it is read on.
#[inline(always)]
pub fn read_later_head(memory: &mut Scratch, later: &LaterHead) {
    words::copy_head(&mut memory.flight.head, &mut memory.flight.host, &later.head, &later.host);
}

/// Keeps a later request as it was read in the working memory. `false`: no room.
#[inline(always)]
pub fn keep_later_head(flow: &FlowKey, memory: &mut Scratch) -> bool {
    let Scratch { later_head: later, flight, .. } = memory;
    // SAFETY: the helper has no precondition.
    later.read_ns = unsafe { bpf_ktime_get_boot_ns() };
    words::copy_head(&mut later.head, &mut later.host, &flight.head, &flight.host);
    later_heads.insert(flow, &*later, BPF_ANY as u64).is_ok()
}

/// Forgets a later request.
#[inline(always)]
pub fn forget_later_head(flow: &FlowKey) {
    // A missing entry is what is wanted.
    let _ = later_heads.remove(flow);
}
