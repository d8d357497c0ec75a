//! The one pure entry: objects and settings in, routing table and status report out.

use std::net::IpAddr;

use crate::admit::DomainLists;
use crate::advice::warnings;
use crate::engine::Engine;
use crate::gateway::inclusion::MaxDepth;
use crate::resolve::EndpointAddresses;
use crate::status::StatusReport;
use crate::warning::Warning;
use router_api::resources::Resources;
use router_table::table::RoutingTable;

/// What translation needs to know beside the objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Domain of the router when there is no IngressController, or when one names none.
    pub cluster_domain: String,
    /// Which endpoint addresses may be used.
    pub endpoint_addresses: EndpointAddresses,
    /// Port for clear text where an IngressController names none.
    pub http_port: u16,
    /// Port for TLS where an IngressController names none.
    pub https_port: u16,
    /// Domains that no router serves, or that alone are served.
    pub domains: DomainLists,
    /// Addresses that listeners are reached at: `status.addresses` of Gateways.
    pub addresses: Vec<IpAddr>,
    /// Namespaces that roots of IngressRoutes and HTTPProxies may be in; empty: all.
    pub root_namespaces: Vec<String>,
    /// Names under the suffix of an IngressRoute (`fqdn: .example.com`) that it does not delegate may have roots of
    /// their own.
    pub allow_undelegated_subdomains: bool,
    /// How many HTTPRoutes may lie on one way from a listener to a backend.
    pub max_inclusion_depth: MaxDepth,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            cluster_domain: "apps.localhost".to_owned(),
            endpoint_addresses: EndpointAddresses::default(),
            http_port: 80,
            https_port: 443,
            domains: DomainLists::default(),
            addresses: Vec::new(),
            root_namespaces: Vec::new(),
            allow_undelegated_subdomains: false,
            max_inclusion_depth: MaxDepth::default(),
        }
    }
}

/// What comes out.
#[derive(Debug)]
pub struct Translation {
    /// What traffic needs; its revision is 0, whoever publishes it numbers it.
    pub table: RoutingTable,
    /// What objects are told.
    pub report: StatusReport,
    /// What is odd and has no place in a status, in order of object.
    pub warnings: Vec<Warning>,
}

/// Decides everything. The result depends on the objects and settings alone, not on order, time or history. Whoever
/// translates again and again keeps an [`Engine`].
pub fn translate(resources: &Resources, settings: &Settings) -> Translation {
    let (table, report) = Engine::new(settings.clone()).apply(resources);
    let warnings = warnings(resources, &table, &report);
    Translation { table, report, warnings }
}

#[cfg(test)]
mod tests;
