//! Gateway API: from GatewayClass, Gateway, routes, grants and policies to sites and statuses.

pub mod backend_tls;
pub mod hostnames;
pub mod inclusion;
pub mod spec;
