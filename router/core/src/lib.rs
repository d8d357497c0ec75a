//! Sluice's engine, pure: Kubernetes objects and settings in, a routing table and a status report out.
//!
//! No clock, no environment, no file system, no sockets: the same objects always give the same table and statuses,
//! in any order of arrival. See `ARCHITECTURE.md` for the flow.
#![forbid(unsafe_code)]

pub mod lookup;
pub mod model;
pub mod table;
