//! Pure translation: Kubernetes objects and settings in, a routing table and a status report out.
//!
//! No clock, no environment, no file system, no sockets: the same objects always give the same table and statuses,
//! in any order of arrival. See `ARCHITECTURE.md` for the flow.
#![forbid(unsafe_code)]

pub mod advice;
pub mod contour;
pub mod domain_lists;
pub mod endpoints;
pub mod engine;
pub mod explain;
mod fnv1a;
pub mod gateway;
mod objects_by;
pub mod openshift;
pub mod owned_age;
pub mod presented_certificates;
pub mod references;
pub mod settings;
pub mod status;
pub mod traffic_defaults;
pub mod translate;
pub mod translator;
pub mod unserved;
pub mod warning;

#[cfg(test)]
mod documented;
