//! What translation needs to know beside the objects.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use crate::domain_lists::DomainLists;
use crate::endpoints::addresses::EndpointAddresses;

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

/// How many routes may lie on one way from a listener to a backend, the first and the last included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MaxDepth(u8);

impl MaxDepth {
    /// A limit; `None` unless it is 2 to 8.
    pub fn new(routes: u8) -> Option<Self> {
        (2..=8).contains(&routes).then_some(MaxDepth(routes))
    }

    pub(crate) fn routes(self) -> usize {
        self.0.into()
    }
}

impl Default for MaxDepth {
    fn default() -> Self {
        MaxDepth(4)
    }
}

impl fmt::Display for MaxDepth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for MaxDepth {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().ok().and_then(MaxDepth::new).ok_or_else(|| "write a number from 2 to 8".to_owned())
    }
}
