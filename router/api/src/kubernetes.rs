//! Objects of Kubernetes' own APIs that routes refer to.

pub mod config_map;
pub mod endpoints;
pub mod secret;
