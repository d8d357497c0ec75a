//! The ways from client to backend: through Sluice, or through one of its peers; with one host, or with many.

use std::net::{Ipv4Addr, SocketAddrV4};

use super::names::{self, Hosts};
use crate::bench::network::Middle;
use crate::bench::programs::Peer;

/// Where routers listen.
pub const HTTP_PORT: u16 = 80;
/// The same for TLS.
pub const HTTPS_PORT: u16 = 443;

/// The router of a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Router {
    /// Sluice's proxy.
    Sluice,
    /// Another project's.
    Peer(Peer),
}

/// How requests get from client to backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// Through whom.
    pub router: Router,
    /// Among how many others.
    pub hosts: Hosts,
}

impl Way {
    /// In the order of tables.
    pub fn all() -> impl Iterator<Item = Way> {
        let routers = [Router::Sluice].into_iter().chain([Peer::HaProxy, Peer::Nginx, Peer::Envoy].map(Router::Peer));
        [Hosts::One, Hosts::Many]
            .into_iter()
            .flat_map(move |hosts| routers.clone().map(move |router| Way { router, hosts }))
    }

    /// Name in tables.
    pub fn name(self) -> String {
        let name = match self.router {
            Router::Sluice => "Sluice",
            Router::Peer(peer) => peer.name(),
        };
        match self.hosts {
            Hosts::One => name.to_owned(),
            Hosts::Many => format!("{name} {}k", names::MANY / 1000),
        }
    }

    /// For `--ways`.
    pub fn id(self) -> String {
        self.name().to_lowercase().replace(' ', "-")
    }

    /// Whether it is another project's.
    pub fn is_peer(self) -> bool {
        matches!(self.router, Router::Peer(_))
    }
}

/// Where backends listen, on one way: for requests, and for WebSockets.
pub fn endpoints(middle: &Middle, port: u16) -> Vec<SocketAddrV4> {
    let addresses = middle.endpoints().map(|endpoint| *endpoint.ip());
    addresses.map(|address: Ipv4Addr| SocketAddrV4::new(address, port)).to_vec()
}
