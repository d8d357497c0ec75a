//! Log lines about decisions, dials and ends. Without the cargo feature `log` every function here is empty.
//!
//! Lines hold names, addresses, ports, byte counts and reasons; never what a connection carries.

#[cfg(feature = "log")]
mod lines;
#[cfg(feature = "log")]
mod text;

use router_common::maps::Flow;

/// The newest decision of this CPU's `verdicts`; `named` if its name is in the working memory.
#[inline(always)]
pub fn decided(named: bool) {
    #[cfg(feature = "log")]
    lines::decided(named);
    #[cfg(not(feature = "log"))]
    let _ = named;
}

/// The dial in the working memory has begun.
#[inline(always)]
pub fn dialed() {
    #[cfg(feature = "log")]
    lines::dialed();
}

/// The endpoint has acknowledged the first payload, by the packet whose headers are in memory.
#[inline(always)]
pub fn carried() {
    #[cfg(feature = "log")]
    lines::carried();
}

/// A connection has ended; its two entries in any order.
#[inline(always)]
pub fn ended(one: &Flow, other: &Flow) {
    #[cfg(feature = "log")]
    lines::ended(one, other);
    #[cfg(not(feature = "log"))]
    let _ = (one, other);
}
