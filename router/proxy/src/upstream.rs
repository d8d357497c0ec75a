//! The path from a request to the endpoint that answers it: choosing the endpoint, pooling and opening connections, and
//! sending a request again.
//!
//! ```text
//! ResolvedRoute ─► plan (once per version) ─► choose ─┬─► concurrency_limit (counts, limits, the queue before them)
//!                    ├─► affinity (cookie) ───────────┤
//!                    └─► hashing (of what goes where) ┘
//!                        health (addresses that do not connect rest) ◄── dial, checks, probes
//! ```
//! For a route without special settings, choosing takes no lock and no allocation.

pub mod affinity;
pub mod attempt;
pub mod balancer;
pub mod bucket;
pub mod cause;
pub mod checks;
pub mod choose;
pub mod concurrency_limit;
pub mod connect;
pub mod failure;
pub mod hashing;
pub mod health;
pub mod http2;
mod informational;
pub mod plan;
pub mod pool;
pub mod private;
pub mod private_buckets;
pub mod probes;
pub mod read_activity;
pub mod removed_endpoints;
mod replay;
pub mod request_sender;
pub mod tag;
pub mod target;
#[cfg(test)]
pub(crate) mod testing;
pub mod tls_connect;
pub mod wake_suppression;
pub mod weighted_round_robin;
