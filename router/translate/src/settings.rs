//! Settings of the operator that translation depends on.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use router_model::dns_names;

use crate::domain_lists::DomainLists;
use crate::endpoints::addresses::EndpointAddresses;

/// Settings of the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Domain of a router without IngressController, or whose IngressController sets none.
    pub cluster_domain: String,
    /// Allowed endpoint addresses.
    pub endpoint_addresses: EndpointAddresses,
    /// Clear-text port of an IngressController that sets none.
    pub http_port: u16,
    /// TLS port of an IngressController that sets none.
    pub https_port: u16,
    /// Denied and allowed domains of all routers.
    pub domains: DomainLists,
    /// Addresses of the listeners: `status.addresses` of Gateways.
    pub addresses: Vec<GatewayAddress>,
    /// Namespaces that may have roots of IngressRoutes and HTTPProxies; empty for all.
    pub root_namespaces: Vec<String>,
    /// Allow roots for names in a domain (`fqdn: .example.com`) that the domain does not delegate.
    pub allow_undelegated_subdomains: bool,
    /// Maximum number of HTTPRoutes on the path from a listener to a backend.
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

/// An address in `status.addresses` of a Gateway (Gateway API, GatewayStatusAddress).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatewayAddress {
    /// Of type `IPAddress`.
    Ip(IpAddr),
    /// Of type `Hostname`.
    Name(String),
}

impl GatewayAddress {
    /// Its `type`.
    pub fn kind(&self) -> &'static str {
        match self {
            GatewayAddress::Ip(_) => "IPAddress",
            GatewayAddress::Name(_) => "Hostname",
        }
    }
}

impl fmt::Display for GatewayAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GatewayAddress::Ip(address) => address.fmt(f),
            GatewayAddress::Name(name) => name.fmt(f),
        }
    }
}

impl FromStr for GatewayAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text.parse(), dns_names::subdomain_fault(text)) {
            (Ok(address), _) => Ok(GatewayAddress::Ip(address)),
            (Err(_), None) => Ok(GatewayAddress::Name(text.to_owned())),
            (Err(_), Some(fault)) => Err(fault),
        }
    }
}

/// Maximum number of routes on the path from a listener to a backend, first and last included.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_a_gateway_is_an_ip_or_a_name() {
        let read = |text: &str| text.parse().map(|address: GatewayAddress| (address.kind(), address.to_string()));
        for (text, kind) in [("192.0.2.7", "IPAddress"), ("2001:db8::1", "IPAddress"), ("lb.example.com", "Hostname")] {
            assert_eq!(read(text), Ok((kind, text.to_owned())));
        }
        for text in ["", "LB.example.com", "a_b", "*.example.com"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
