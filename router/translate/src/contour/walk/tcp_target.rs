//! Where the bytes of a TLS connection go.

use std::sync::Arc;

use router_api::contour::types::{ContourProxy, Strategy};
use router_table::table::ServiceEndpoints;

/// Where bytes go.
#[derive(Debug)]
pub struct Tcp<'r> {
    /// The vertex that names the services.
    pub vertex: &'r Arc<ContourProxy>,
    /// The services.
    pub services: Vec<ServiceEndpoints>,
    /// How endpoints are chosen.
    pub strategy: Strategy,
}
