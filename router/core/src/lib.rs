//! Sluice's engine, pure: Kubernetes objects and settings in, a routing table and a status report out.
//!
//! No clock, no environment, no file system, no sockets: the same objects always give the same table and statuses,
//! in any order of arrival. See `ARCHITECTURE.md` for the flow.
#![forbid(unsafe_code)]

pub mod admit;
pub mod advice;
pub mod certificate;
pub mod compile;
pub mod contour;
pub mod controllers;
pub mod cors;
pub mod decide;
pub mod dns_names;
pub mod engine;
pub mod explain;
pub mod few;
pub mod field;
pub mod flag;
pub mod gateway;
pub mod header_modifier;
pub mod host_pattern;
pub mod location;
pub mod lookup;
pub mod matchers;
pub mod names;
pub mod object;
pub mod parse;
pub mod path_form;
pub mod persistent;
pub mod policy;
pub mod redirect_spec;
pub mod resolve;
pub mod resources;
pub mod rule;
pub mod selector;
pub mod services;
pub mod shown;
pub mod sites;
pub mod status;
pub mod table;
pub mod tls_offer;
pub mod translate;
pub mod unserved;
pub mod warning;

#[cfg(test)]
mod documented;
#[cfg(test)]
mod testing;
