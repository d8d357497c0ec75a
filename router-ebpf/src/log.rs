//! Log lines about decisions, dials and ends. Without the cargo feature `log` every function here is empty.
//!
//! Lines contain names, addresses, ports, byte counts and reasons, never payload.

#[cfg(feature = "log")]
mod lines;
#[cfg(feature = "log")]
mod text;

use router_common::maps::Flow;

/// Logs the newest decision of this CPU's `verdicts`; `named` if its name is in the working memory.
#[inline(always)]
pub fn decided(named: bool) {
    #[cfg(feature = "log")]
    lines::decided(named);
    #[cfg(not(feature = "log"))]
    let _ = named;
}

/// Logs that the dial in the working memory has begun.
#[inline(always)]
pub fn dialed() {
    #[cfg(feature = "log")]
    lines::dialed();
}

/// Logs that the endpoint has acknowledged the first payload, by the packet whose headers are in memory.
#[inline(always)]
pub fn carried() {
    #[cfg(feature = "log")]
    lines::carried();
}

/// Logs the end of a connection, given its two entries in any order.
#[inline(always)]
pub fn ended(one: &Flow, other: &Flow) {
    #[cfg(feature = "log")]
    lines::ended(one, other);
    #[cfg(not(feature = "log"))]
    let _ = (one, other);
}
