//! The routing table, with final values, for the proxy and the kernel data path; and the matching of requests to
//! routes.
#![forbid(unsafe_code)]

pub mod cors;
pub mod decide;
pub mod flag;
pub mod header_modifier;
pub mod host_pattern;
pub mod live_state;
pub mod location;
pub mod lookup;
pub mod matchers;
pub mod path_form;
pub mod pattern;
pub mod policy;
pub mod recent;
pub mod rule;
pub mod table;
pub mod tls_offer;
