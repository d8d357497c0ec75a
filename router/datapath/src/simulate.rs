//! Simulates the kernel's decision about a first flight from a map image: for `explain`, and to test that kernel and
//! user space agree.

use std::net::IpAddr;

use router_common::decide::{self, ConnectionDecision, HostKeyKind, HostRef, Tables};
use router_common::hostname::{self, HostBuilder, HostKind, field_text};
use router_common::http::{self, HeadParser};
use router_common::maps::{MAX_FLIGHT, PROTOCOL_TLS};
use router_common::tls::{self, AlpnSet, ClientHello, HelloParser, Sni};

use super::address::sixteen;
use super::image::{MapImage, RouteMap, flags};

impl MapImage {
    /// The decision about the first `bytes` that `client` sends to a listener of `router`; `None` if they are
    /// incomplete.
    pub fn decide(&self, router: u32, protocol: u8, client: IpAddr, bytes: &[u8]) -> Option<ConnectionDecision> {
        let seen = bytes.get(..MAX_FLIGHT as usize).unwrap_or(bytes);
        let full = seen.len() == MAX_FLIGHT as usize;
        let mut host = HostBuilder::new();
        if protocol == PROTOCOL_TLS {
            let mut parser = HelloParser::new();
            match parser.feed(&mut host, seen) {
                tls::Progress::Incomplete => full.then_some(ConnectionDecision::of(decide::too_long(protocol))),
                tls::Progress::Invalid(_) => Some(ConnectionDecision::of(decide::malformed(protocol))),
                tls::Progress::Complete => Some(decide::tls(parser.hello(), &self.tables(router, client, &host))),
            }
        } else {
            let mut parser = HeadParser::new();
            match parser.feed(&mut host, seen) {
                http::Progress::Incomplete => full.then_some(ConnectionDecision::of(decide::too_long(protocol))),
                http::Progress::Invalid(_) => Some(ConnectionDecision::of(decide::malformed(protocol))),
                http::Progress::Complete => {
                    // At most MAX_FLIGHT.
                    let received = seen.len() as u32;
                    Some(decide::http(parser.head(), received, &self.tables(router, client, &host)))
                }
            }
        }
    }

    /// The decision about a complete, well-formed first flight with this name.
    pub fn decide_name(&self, router: u32, protocol: u8, client: IpAddr, name: &str) -> ConnectionDecision {
        let Ok((host, kind)) = hostname::normalise(name.as_bytes()) else {
            return ConnectionDecision::of(decide::malformed(protocol));
        };
        let is_name = kind == HostKind::Name;
        let tables = self.tables(router, client, &host);
        if protocol == PROTOCOL_TLS {
            let sni = if is_name { Sni::Name } else { Sni::IpLiteral };
            decide::tls(ClientHello { sni, alpn: AlpnSet::default() }, &tables)
        } else {
            let request = format!("GET / HTTP/1.1\r\nHost: {name}\r\n\r\n");
            self.decide(router, protocol, client, request.as_bytes())
                .unwrap_or(ConnectionDecision::of(decide::malformed(protocol)))
        }
    }

    fn tables<'a>(&'a self, router: u32, client: IpAddr, host: &'a HostBuilder) -> ImageTables<'a> {
        ImageTables {
            image: self,
            router,
            client: sixteen(client),
            exact: field_text(&host.exact),
            wildcard: field_text(&host.wildcard),
        }
    }
}

struct ImageTables<'a> {
    image: &'a MapImage,
    router: u32,
    client: [u8; 16],
    exact: &'a str,
    wildcard: &'a str,
}

impl ImageTables<'_> {
    fn find(&self, map: RouteMap, candidate: HostKeyKind) -> Option<HostRef> {
        let host = match candidate {
            HostKeyKind::Exact => self.exact,
            HostKeyKind::Wildcard => self.wildcard,
        };
        let entry = self.image.hosts.get(&(map, self.router, host.to_owned()))?;
        Some(HostRef { route: entry.route, reason: entry.reason as u16, flags: flags(entry) })
    }
}

impl Tables for ImageTables<'_> {
    fn is_passthrough(&self, candidate: HostKeyKind) -> bool {
        self.find(RouteMap::SniPassthrough, candidate).is_some()
    }

    fn tcp_be(&self, candidate: HostKeyKind) -> Option<HostRef> {
        self.find(RouteMap::TcpBe, candidate)
    }

    fn edge_reencrypt(&self, candidate: HostKeyKind) -> Option<HostRef> {
        self.find(RouteMap::EdgeReencrypt, candidate)
    }

    fn http_be(&self, candidate: HostKeyKind) -> Option<HostRef> {
        self.find(RouteMap::HttpBe, candidate)
    }

    fn source_allowed(&self, route: u32) -> bool {
        self.image.allow.iter().any(|(of, network, bits)| *of == route && covers(network, *bits, &self.client))
    }
}

fn covers(network: &[u8; 16], bits: u8, address: &[u8; 16]) -> bool {
    let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
    u128::from_be_bytes(*network) & mask == u128::from_be_bytes(*address) & mask
}

#[cfg(test)]
mod tests;
