//! A program that the agent runs, and that is attached nowhere: it ends a connection that is counted and lives in nothing any
//! more, in one step with the programs that count it.

use aya_ebpf::bindings::xdp_action::{XDP_ABORTED, XDP_DROP, XDP_PASS};
use aya_ebpf::macros::xdp;
use aya_ebpf::programs::XdpContext;
use router_common::maps::GateRelease;

use crate::connections;

/// Of a [`GateRelease`] in place of a packet: `XDP_DROP` if the connection was ended, `XDP_PASS` if it has changed.
#[xdp]
pub fn sluice_release(ctx: XdpContext) -> u32 {
    let begin = ctx.data();
    if begin + size_of::<GateRelease>() > ctx.data_end() {
        return XDP_ABORTED;
    }
    // SAFETY: so many bytes are there, and every bit pattern is valid.
    let release = unsafe { (begin as *const GateRelease).read_unaligned() };
    if connections::end(&release.key, release.state, release.at_ns) { XDP_DROP } else { XDP_PASS }
}
