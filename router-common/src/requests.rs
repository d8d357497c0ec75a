//! Positions of requests in a clear-text client's stream, by sequence numbers: content is skipped by its length or
//! chunk by chunk (RFC 9112 §6), and the next head follows it.

use crate::http::{ContentTracker, Framing, RequestHead, TargetForm, UpgradeProtocol};

/// From this many unacknowledged bytes on, [`is_content`] leaves the segment to [`place`], which advances by the
/// acknowledgement: half of the range that sequence number comparison covers (RFC 9293 §3.4: modulo 2³²), and the
/// largest window (RFC 7323 §2.2).
const MOST_AHEAD: u32 = 1 << 30;

/// Classification of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentPosition {
    /// Content or a retransmission: it is not inspected.
    Passes,
    /// It follows a gap, so its classification is unknown.
    Early,
    /// It is inspected from this position on.
    From(u32),
}

/// The content of a request.
#[inline(always)]
pub fn content(head: &RequestHead) -> ContentTracker {
    if head.framing as u8 == Framing::Chunked as u8 {
        ContentTracker::chunked()
    } else {
        ContentTracker::sized(head.length)
    }
}

/// Whether the bytes that follow a later request on its connection can be classified. A first request always can, if it
/// is carried at all. The answer to a later one is not inspected, so it may ask only for h2c, to which nobody switches
/// on a connection in use.
#[inline(always)]
pub fn can_follow(head: &RequestHead) -> bool {
    head.form as u8 == TargetForm::Origin as u8
        && head.framing as u8 != Framing::Unclear as u8
        && head.upgrade as u8 != UpgradeProtocol::Other as u8
}

/// Whether a segment that ends at a sequence number is entirely content or a retransmission. `content` begins at
/// `judged`.
#[inline(always)]
pub fn is_content(judged: u32, content: &ContentTracker, end: u32) -> bool {
    let ahead = end.wrapping_sub(judged);
    ahead < MOST_AHEAD && ahead as u64 <= content.free()
}

/// Position from which a segment has to be inspected. `judged`: sequence number up to which data is complete and
/// inspected, or needs no inspection. `content` begins there. `acked`: the endpoint's acknowledgement, in the client's
/// numbering.
#[inline(always)]
pub fn place(judged: &mut u32, content: &mut ContentTracker, acked: u32, seq: u32, len: u32) -> SegmentPosition {
    let over = acked.wrapping_sub(*judged);
    if over <= i32::MAX as u32 {
        let free = content.free();
        let over = if over as u64 > free { free as u32 } else { over };
        content.pass(over as u64);
        *judged = judged.wrapping_add(over);
    }
    let ahead = seq.wrapping_add(len).wrapping_sub(*judged);
    if ahead > i32::MAX as u32 || ahead as u64 <= content.free() {
        return SegmentPosition::Passes;
    }
    // Less than `ahead`.
    let from = judged.wrapping_add(content.free() as u32).wrapping_sub(seq);
    if from > i32::MAX as u32 { SegmentPosition::Early } else { SegmentPosition::From(from) }
}

#[cfg(test)]
mod tests;
