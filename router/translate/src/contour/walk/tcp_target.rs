//! Destination of a TLS connection.

use std::sync::Arc;

use router_api::contour::types::{ContourProxy, Strategy};
use router_table::table::WeightedService;

/// Destination of a TLS connection.
#[derive(Debug)]
pub struct Tcp<'r> {
    /// The proxy that names the services.
    pub proxy: &'r Arc<ContourProxy>,
    /// The services.
    pub services: Vec<WeightedService>,
    /// Balancing of endpoints.
    pub strategy: Strategy,
}
