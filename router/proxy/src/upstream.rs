//! What lies between a request and the endpoint that answers it: which endpoint that is, which connections there are,
//! how one is made, and when a request may be sent again.
//!
//! ```text
//! ResolvedRoute ─► plan (once per version) ─► choose ─┬─► occupancy (counts, limits, the line before them)
//!                    ├─► affinity (cookie) ───────────┤
//!                    └─► hashing (of what goes where) ┘
//!                        health (addresses that do not connect rest) ◄── dial, checks, probes
//! ```
//! Where a route asks for nothing, choosing takes no lock and no allocation.

pub mod affinity;
pub mod attempt;
pub mod balancer;
pub mod cause;
pub mod checks;
pub mod choose;
pub mod connect;
pub mod failure;
pub mod gone;
pub mod hashing;
pub mod health;
pub mod heard;
pub mod http2;
pub mod hush;
mod kept;
pub mod occupancy;
pub mod plan;
pub mod pool;
pub mod private;
pub mod probes;
pub mod secure;
pub mod tag;
mod tap;
pub mod target;
#[cfg(test)]
pub(crate) mod testing;
pub mod turns;
pub mod wire;
