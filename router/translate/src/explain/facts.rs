//! What an explanation is made from.

use crate::status::report::StatusReport;
use router_api::resources::Resources;
use router_table::table::{Endpoint, ResolvedRoute, RoutingTable, ServiceEndpoints};
use rustls::RootCertStore;
use std::fmt;
use std::sync::Arc;

/// What an explanation is made from: one translation and the objects it was made of.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'f> {
    /// The table that traffic asks.
    pub table: &'f RoutingTable,
    /// What the objects are told.
    pub report: &'f StatusReport,
    /// The objects.
    pub resources: &'f Resources,
    /// What endpoints are verified with.
    pub trust: Trust<'f>,
    /// What a running agent knows beside; `None`: none is asked.
    pub live: Option<&'f dyn Live>,
}

/// What a running agent alone knows.
pub trait Live: fmt::Debug {
    /// Why an endpoint of a route gets nothing while there are others; `None`: as far as is known it is well.
    fn trouble(&self, route: &ResolvedRoute, service: &ServiceEndpoints, endpoint: &Endpoint) -> Option<String>;
}

/// What endpoints are verified with, beside what objects name.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trust<'f> {
    /// For re-encrypt routes without a CA of their own.
    pub service_ca: Option<&'f Arc<RootCertStore>>,
    /// The system's roots, for policies that ask for them.
    pub system: Option<&'f Arc<RootCertStore>>,
}
