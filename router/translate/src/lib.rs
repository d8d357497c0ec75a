//! Translation, pure: Kubernetes objects and settings in, a routing table and a status report out.
//!
//! No clock, no environment, no file system, no sockets: the same objects always give the same table and statuses,
//! in any order of arrival. See `ARCHITECTURE.md` for the flow.
#![forbid(unsafe_code)]

pub mod admit;
pub mod advice;
pub mod compile;
pub mod contour;
pub mod controllers;
pub mod engine;
pub mod explain;
pub mod gateway;
pub mod resolve;
pub mod services;
pub mod shown;
pub mod sites;
pub mod status;
pub mod translate;
pub mod unserved;
pub mod warning;

#[cfg(test)]
mod documented;
