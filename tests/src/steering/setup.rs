//! Settings of a stage.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::wire::Plan;

/// The host of the stage's route.
pub const HOST: &str = "raw.apps.test";
/// Port of the router for TLS.
pub const ROUTER_PORT: u16 = 8443;
/// Port of the backend.
pub const BACKEND_PORT: u16 = 9000;

/// Version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Address `host` of link `link`.
    pub fn address(self, link: u8, host: u8) -> IpAddr {
        match self {
            Family::V4 => Ipv4Addr::new(10, 81, link, host).into(),
            Family::V6 => Ipv6Addr::new(0xfd81, link.into(), 0, 0, 0, 0, 0, host.into()).into(),
        }
    }

    /// Loopback.
    pub fn loopback(self) -> IpAddr {
        match self {
            Family::V4 => Ipv4Addr::LOCALHOST.into(),
            Family::V6 => Ipv6Addr::LOCALHOST.into(),
        }
    }

    /// The wildcard address, to listen on.
    pub fn any(self) -> IpAddr {
        match self {
            Family::V4 => Ipv4Addr::UNSPECIFIED.into(),
            Family::V6 => Ipv6Addr::UNSPECIFIED.into(),
        }
    }

    /// Size of IP and TCP headers without options, in bytes.
    pub fn headers(self) -> u16 {
        match self {
            Family::V4 => 40,
            Family::V6 => 60,
        }
    }

    /// An address with the prefix length of the link.
    pub fn network(self, link: u8, host: u8) -> String {
        let bits = if self == Family::V4 { 24 } else { 64 };
        format!("{}/{bits}", self.address(link, host))
    }

    /// An address with the prefix length of a single host.
    pub fn alone(self, link: u8, host: u8) -> String {
        let bits = if self == Family::V4 { 32 } else { 128 };
        format!("{}/{bits}", self.address(link, host))
    }

    /// The setting that makes a host forward (see [`crate::netns::Netns::set`]).
    pub fn forwarding(self) -> &'static str {
        match self {
            Family::V4 => "ipv4/ip_forward",
            Family::V6 => "ipv6/conf/all/forwarding",
        }
    }
}

/// Link of the client and the router.
pub const FRONT: u8 = 1;
/// Link of the router and the backend.
pub const BACK: u8 = 2;

/// Settings of a stage.
pub struct Setup {
    /// Version of IP on all links.
    pub family: Family,
    /// The link to the client passes through user space, by this plan.
    pub front: Option<Plan>,
    /// The link to the backend likewise.
    pub back: Option<Plan>,
    /// MTU of the link to the client, and of that to the backend; ignored with a plan.
    pub mtu: (u16, u16),
    /// Whether links use segmentation and checksum offloads; always off with a plan.
    pub offloads: bool,
    /// Endpoints of the route.
    pub endpoints: Vec<SocketAddr>,
    /// Another host, which has one endpoint.
    pub other: Option<(&'static str, SocketAddr)>,
    /// Annotations of the route in YAML's flow style.
    pub annotations: &'static str,
    /// Whether `sluice keep` runs the router.
    pub kept: bool,
    /// Log filter of the router (`RUST_LOG`); `None`: that of the tests' environment.
    pub log: Option<&'static str>,
    /// Further arguments of `sluice run`.
    pub arguments: Vec<String>,
}

impl Setup {
    /// Plain links and one listening endpoint.
    pub fn new(family: Family) -> Setup {
        Setup {
            family,
            front: None,
            back: None,
            mtu: (1500, 1500),
            offloads: true,
            endpoints: vec![SocketAddr::new(family.address(BACK, 2), BACKEND_PORT)],
            other: None,
            annotations: "",
            kept: false,
            log: None,
            arguments: Vec::new(),
        }
    }
}
