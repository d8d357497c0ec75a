//! Where requests stand in what a client of clear text sends, by sequence numbers: content is passed over, by its length or
//! chunk by chunk (RFC 9112 §6), and a head stands behind it.

use crate::http::{Content, Framing, Head, TargetForm, Upgrade};

/// From so many bytes on that were not acknowledged yet, [`is_content`] leaves it to [`place`], which goes on with what is:
/// half of what numbers tell apart (RFC 9293 §3.4: modulo 2³²), and as many as a window has (RFC 7323 §2.2).
const MOST_AHEAD: u32 = 1 << 30;

/// What a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Content, or sent again: nothing of it is looked at.
    Passes,
    /// Something is missing before it that tells what it is.
    Early,
    /// From this position on it is looked at.
    From(u32),
}

/// What the content of a request is.
#[inline(always)]
pub fn content(head: &Head) -> Content {
    if head.framing as u8 == Framing::Chunked as u8 { Content::chunked() } else { Content::sized(head.length) }
}

/// Whether what follows a later request on its connection can be told. Of the first one it can, if it is carried at all; of
/// a later one the answer is not known, so another protocol may follow only where nobody speaks it on a connection in use.
#[inline(always)]
pub fn can_follow(head: &Head) -> bool {
    head.form as u8 == TargetForm::Origin as u8
        && head.framing as u8 != Framing::Unclear as u8
        && head.upgrade as u8 != Upgrade::Other as u8
}

/// Whether all of a segment that ends at a sequence number is content, or sent again. `content` follows `judged`.
#[inline(always)]
pub fn is_content(judged: u32, content: &Content, end: u32) -> bool {
    let ahead = end.wrapping_sub(judged);
    ahead < MOST_AHEAD && ahead as u64 <= content.free()
}

/// Where a segment has something to look at. `judged` is the number up to which nothing is missing and everything was looked
/// at, or needs no look; `content` follows it; `acked` is what the endpoint has acknowledged, as the client counts.
#[inline(always)]
pub fn place(judged: &mut u32, content: &mut Content, acked: u32, seq: u32, len: u32) -> Place {
    let over = acked.wrapping_sub(*judged);
    if over <= i32::MAX as u32 {
        let free = content.free();
        let over = if over as u64 > free { free as u32 } else { over };
        content.pass(over as u64);
        *judged = judged.wrapping_add(over);
    }
    let ahead = seq.wrapping_add(len).wrapping_sub(*judged);
    if ahead > i32::MAX as u32 || ahead as u64 <= content.free() {
        return Place::Passes;
    }
    // Less than `ahead`.
    let from = judged.wrapping_add(content.free() as u32).wrapping_sub(seq);
    if from > i32::MAX as u32 { Place::Early } else { Place::From(from) }
}

#[cfg(test)]
mod tests;
