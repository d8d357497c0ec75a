//! Reading TCP options. They are copied to map memory at once, and `bpf_loop` handles one option per iteration. (The
//! verifier would follow a loop over helper calls through every combination of options: 600,000 instructions.)

use core::ffi::c_void;
use core::ptr::null_mut;

use aya_ebpf::helpers::generated::bpf_loop;
use router_common::options::{MAX_OPTIONS, OPTIONS_ROOM, TcpOptions, all_of_syn, only_timestamps};
use router_common::packet::Segment;
use router_common::translate::REWRITER_STEPS;

use crate::maps;
use crate::skb::Skb;

/// The options of a segment; empty if they cannot be read.
#[inline(always)]
pub fn read(skb: &Skb, segment: &Segment) -> TcpOptions {
    match only_timestamps(skb, segment).or_else(|| all_of_syn(skb, segment)) {
        Some(found) => found,
        None => read_all(skb, segment),
    }
}

#[inline(never)]
fn read_all(skb: &Skb, segment: &Segment) -> TcpOptions {
    let Some(memory) = maps::scratch_memory() else { return TcpOptions::default() };
    let reader = &mut memory.options;
    reader.begin = segment.tcp + 20;
    reader.len = segment.payload - reader.begin;
    reader.at = 0;
    reader.found = TcpOptions::default();
    if reader.len == 0 || reader.len > MAX_OPTIONS || !skb.load_options(reader.begin, &mut reader.bytes, reader.len) {
        return TcpOptions::default();
    }
    // SAFETY: the callback has the signature that the helper expects and does not use its context.
    unsafe {
        bpf_loop(MAX_OPTIONS, step as unsafe extern "C" fn(u32, *mut c_void) -> i64 as *mut c_void, null_mut(), 0);
    }
    memory.options.found
}

/// Callback of `bpf_loop`: reads one option. 1 ends the loop.
unsafe extern "C" fn step(_: u32, _: *mut c_void) -> i64 {
    let Some(memory) = maps::scratch_memory() else { return 1 };
    i64::from(!memory.options.step())
}

/// A packet whose options are copied.
pub trait OptionBytes {
    /// Copies `len` bytes (1 ..= 64) from `offset` on.
    fn load_options(&self, offset: u32, to: &mut [u8; OPTIONS_ROOM], len: u32) -> bool;

    /// Overwrites `len` bytes (1 ..= 64) at `offset`, without updating any checksum.
    fn store_options(&self, offset: u32, from: &[u8; OPTIONS_ROOM], len: u32) -> bool;
}

/// Translates `len` bytes of options at `offset`. Returns the folded checksum difference; `None` if the bytes cannot be
/// read or written.
#[inline(never)]
pub fn rewrite(packet: &impl OptionBytes, offset: u32, len: u32, deltas: &[u32; 3]) -> Option<u32> {
    let memory = maps::scratch_memory()?;
    let rewriter = &mut memory.rewriter;
    rewriter.begin_anew(len, *deltas);
    if len == 0 || len > MAX_OPTIONS || !packet.load_options(offset, &mut rewriter.bytes, len) {
        return None;
    }
    // SAFETY: as in `read_all`.
    unsafe {
        bpf_loop(
            REWRITER_STEPS,
            rewrite_step as unsafe extern "C" fn(u32, *mut c_void) -> i64 as *mut c_void,
            null_mut(),
            0,
        );
    }
    let rewriter = &memory.rewriter;
    packet.store_options(offset, &rewriter.bytes, len).then(|| rewriter.difference.folded())
}

/// Callback of `bpf_loop`: one step of the translation. 1 ends the loop.
unsafe extern "C" fn rewrite_step(_: u32, _: *mut c_void) -> i64 {
    let Some(memory) = maps::scratch_memory() else { return 1 };
    i64::from(!memory.rewriter.step())
}
