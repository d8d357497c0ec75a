//! The lines. The level is a constant that the loader sets, so the verifier removes the calls of levels that are off.
//!
//! Global functions in the kernel's sense (see [`crate::first_flight`]) write them: the verifier checks each once, not
//! for each caller and its states. They read values from this CPU's memory, or get a connection's entries as arguments.

use aya_log_ebpf::macro_support::{Level, level_enabled};
use aya_log_ebpf::{debug, trace};
use router_common::hostname::NAME_FIELD;
use router_common::maps::{Flow, MAX_VERDICTS, SIDE_CLIENT};

use super::text::{self, ascii};
use crate::maps;

/// Placeholder for a name that was not read.
static NO_NAME: [u8; NAME_FIELD] = [0; NAME_FIELD];

#[inline(always)]
pub fn decided(named: bool) {
    if level_enabled(Level::Debug) {
        sluice_log_decided(named as u32);
    }
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn sluice_log_decided(named: u32) -> i32 {
    let Some(memory) = maps::scratch_memory() else { return 0 };
    let newest = memory.decided.wrapping_sub(1) & (MAX_VERDICTS as u32 - 1);
    let Some(decided) = maps::verdict(newest) else { return 0 };
    let host = if named != 0 { &memory.flight.host.exact } else { &NO_NAME };
    debug!(
        (),
        target: "sluice::kernel",
        "{} host={} route={} client={:i} port={} listener={:i} port={}",
        text::reason(decided.verdict.reason),
        ascii(host),
        decided.verdict.route,
        decided.flow.source,
        decided.flow.source_port,
        decided.flow.destination,
        decided.flow.destination_port
    );
    0
}

#[inline(always)]
pub fn dialed() {
    if level_enabled(Level::Debug) {
        sluice_log_dialed();
    }
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn sluice_log_dialed() -> i32 {
    let Some(memory) = maps::scratch_memory() else { return 0 };
    let to = &memory.client.rewrite.to;
    debug!(
        (),
        target: "sluice::kernel",
        "dial endpoint={:i} port={} from port={} attempt={} client={:i} port={}",
        to.destination,
        to.destination_port,
        to.source_port,
        memory.flight.dial.attempts as u32 + 1,
        memory.key.source,
        memory.key.source_port
    );
    0
}

#[inline(always)]
pub fn carried() {
    if level_enabled(Level::Trace) {
        sluice_log_carried();
    }
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn sluice_log_carried() -> i32 {
    let Some(segment) = maps::segment_memory() else { return 0 };
    trace!(
        (),
        target: "sluice::kernel",
        "carried endpoint={:i} port={} from port={}",
        segment.flow.source,
        segment.flow.source_port,
        segment.flow.destination_port
    );
    0
}

#[inline(always)]
pub fn ended(one: &Flow, other: &Flow) {
    if level_enabled(Level::Debug) {
        let (client, backend) = if one.side == SIDE_CLIENT { (one, other) } else { (other, one) };
        // SAFETY: two entries of the map.
        unsafe { sluice_log_ended(client, backend) };
    }
}

/// # Safety
/// The pointers are null or valid.
#[unsafe(no_mangle)]
#[inline(never)]
unsafe extern "C" fn sluice_log_ended(client: *const Flow, backend: *const Flow) -> i32 {
    // The verifier assumes that a global function's pointer arguments may be null.
    // SAFETY: the caller's promise.
    let (Some(client), Some(backend)) = (unsafe { client.as_ref() }, unsafe { backend.as_ref() }) else { return 0 };
    debug!(
        (),
        target: "sluice::kernel",
        "end {} route={} client={:i} port={} endpoint={:i} port={} bytes in={} out={}",
        text::end(client.end),
        client.route,
        backend.rewrite.to.destination,
        backend.rewrite.to.destination_port,
        client.rewrite.to.destination,
        client.rewrite.to.destination_port,
        client.bytes,
        backend.bytes
    );
    0
}
