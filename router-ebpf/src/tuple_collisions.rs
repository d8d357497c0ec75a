//! Connections of other senders that leave with addresses and ports of carried ones: connection tracking chooses ports
//! for masqueraded connections and does not know those of these programs.

use router_common::maps::{SIDE_BACKEND, STATE_CLOSING};
use router_common::packet::Segment;
use router_common::verdict::DialCounter;

use crate::connect;
use crate::maps;

/// True if a SYN of another sender may leave. A carried connection that has ended releases its port. A live one keeps
/// it: the collision is reported to the agent, which makes connection tracking choose another port before the SYN is
/// retransmitted.
#[inline(never)]
pub fn may_begin(segment: &Segment) -> bool {
    let back = segment.flow.reversed();
    let Some(flow) = maps::flow(&back) else { return true };
    if flow.side != SIDE_BACKEND {
        return true;
    }
    if flow.state != STATE_CLOSING {
        maps::count(DialCounter::Clashed);
        maps::report_clash(&back);
        return false;
    }
    if connect::give_back(flow) {
        maps::remove_flow(&back);
    }
    true
}
