//! Connections of others that leave with addresses and ports of ours: what connection tracking gives to whom it masquerades
//! for, it does not ask of these programs.

use router_common::maps::{SIDE_BACKEND, STATE_CLOSING};
use router_common::packet::Segment;
use router_common::verdict::DialCounter;

use crate::connect;
use crate::maps;

/// Whether a SYN that is not ours may leave. An ended connection of ours gives its port back. One that lives keeps it: the
/// agent is told, and has connection tracking choose another port by the time the SYN is sent again.
#[inline(never)]
pub fn may_begin(segment: &Segment) -> bool {
    let back = segment.flow.reversed();
    let Some(flow) = maps::flow(&back) else { return true };
    if flow.side != SIDE_BACKEND {
        return true;
    }
    if flow.state != STATE_CLOSING {
        maps::count(DialCounter::Clashed);
        maps::tell_clash(&back);
        return false;
    }
    if connect::give_back(flow) {
        maps::remove_flow(&back);
    }
    true
}
