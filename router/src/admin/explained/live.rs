//! The kernel's part of an explanation: the keys that its program looks up, the entries found, and the intended ones.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use router_common::maps::{PROTOCOL_HTTP, PROTOCOL_TLS, names};
use router_common::verdict::{Reason, Verdict};
use router_datapath::PinFolder;
use router_datapath::address::network;
use router_datapath::dump::{DumpError, dump, host_entry};
use router_datapath::image::{MapImage, RelayReason, RouteMap};
use router_datapath::obstacles::AgentAlone;
use router_translate::explain::data_path::{KernelDecision, MapKey, MapNet};
use router_translate::explain::query::{Query, QueryProtocol};
use serde_json::Value;

use crate::admin::views::intended::intended_row;

/// Stands for an unknown client address.
const SOME_CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// Maps that can be read.
pub trait MapReader {
    /// The entry of a host, as `sluice bpf dump` shows it.
    ///
    /// # Errors
    /// The map cannot be read.
    fn host(&self, map: RouteMap, router: u32, host: &str) -> Result<Option<Value>, DumpError>;
    /// All entries of `allowlists`, as `sluice bpf dump` shows them.
    ///
    /// # Errors
    /// The map cannot be read.
    fn allow_lists(&self) -> Result<Vec<Value>, DumpError>;
}

/// The kernel's maps.
pub struct Pins<'p>(pub &'p PinFolder);

impl MapReader for Pins<'_> {
    fn host(&self, map: RouteMap, router: u32, host: &str) -> Result<Option<Value>, DumpError> {
        host_entry(self.0, map, router, host)
    }

    fn allow_lists(&self) -> Result<Vec<Value>, DumpError> {
        dump(self.0, names::ALLOWLISTS)
    }
}

/// The kernel program's decision on the query, the keys that it looks up, and the entries found. Without a client, the
/// decision is for one that no allow-list contains.
pub fn kernel(image: &MapImage, live: &impl MapReader, router: u32, query: &Query) -> KernelDecision {
    let protocol = match query.protocol {
        QueryProtocol::Http => PROTOCOL_HTTP,
        QueryProtocol::Https => PROTOCOL_TLS,
    };
    let decision = image.decide_name(router, protocol, query.from.unwrap_or(SOME_CLIENT), &query.host);
    let what = match decision.verdict() {
        Verdict::Steer if relayed(image, decision.route).is_some() => "pass: the agent relays it",
        Verdict::Steer => "steer: the stream goes to an endpoint as it is",
        Verdict::Pass => "pass: the agent takes it",
        Verdict::Drop if query.from.is_some() => "drop: refused",
        Verdict::Drop => "drop: refused, unless the client is in the allow-list",
    };
    let wildcard = query.hostname().and_then(|host| host.parent().map(|parent| format!("*.{parent}")));
    let maps: &[RouteMap] = match query.protocol {
        QueryProtocol::Http => &[RouteMap::HttpBe],
        QueryProtocol::Https => &[RouteMap::SniPassthrough, RouteMap::TcpBe, RouteMap::EdgeReencrypt],
    };
    let (mut keys, mut routes) = (Vec::new(), BTreeSet::new());
    for host in std::iter::once(query.host.clone()).chain(wildcard) {
        for map in maps {
            let intended = image.hosts.get(&(*map, router, host.clone()));
            routes.extend(intended.filter(|entry| entry.allow_list).map(|entry| entry.route));
            let intended = intended.map(|entry| intended_row(*map, router, &host, entry));
            keys.push(key(*map, router, &host, intended, live.host(*map, router, &host)));
        }
    }
    let mut verdict = match relayed(image, decision.route).filter(|_| decision.verdict() == Verdict::Steer) {
        Some(why) => format!("{what} ({why})"),
        None => format!("{what} ({})", decision.reason.text()),
    };
    verdict.push_str(&at_other_listeners(image, router, protocol));
    let allow = match allow_lists(image, live, &routes) {
        Ok(allow) => allow,
        Err(error) => {
            verdict.push_str(&format!("; allowlists cannot be read: {error}"));
            Vec::new()
        }
    };
    if keys.iter().any(|key| key.problem.is_some()) || allow.iter().any(|net| net.problem.is_some()) {
        verdict.push_str(", if the maps held what is intended; they do not");
    }
    KernelDecision { mode: "kernel".to_owned(), verdict, keys, allow }
}

/// Why the program has no endpoint to dial for a route that it might steer.
fn relayed(image: &MapImage, route: u32) -> Option<String> {
    if let Some(RelayReason { endpoint, obstacle }) = image.relayed.get(&route) {
        return Some(format!("{}: endpoint {endpoint}: {}", Reason::NoEndpoint.text(), obstacle.text()));
    }
    let has_slots = image.pools.get(&route).is_some_and(|pool| pool.slots > 0);
    (!has_slots).then(|| Reason::NoEndpoint.text().to_owned())
}

/// Listeners of a router whose connections all go to the agent, by reason.
fn at_other_listeners(image: &MapImage, router: u32, protocol: u8) -> String {
    let mut by_reason: BTreeMap<&AgentAlone, Vec<String>> = BTreeMap::new();
    for ((address, port), listener) in &image.unsteered {
        if (listener.router, listener.protocol) == (router, protocol) {
            by_reason.entry(&listener.why).or_default().push(SocketAddr::new(*address, *port).to_string());
        }
    }
    let said = by_reason.into_iter().map(|(why, addresses)| {
        format!("; the agent takes all connections at {}: {}", addresses.join(", "), why.text())
    });
    said.collect()
}

fn key(
    map: RouteMap,
    router: u32,
    host: &str,
    intended: Option<Value>,
    live: Result<Option<Value>, DumpError>,
) -> MapKey {
    let key = |entry: Option<Value>, problem| MapKey {
        map: map.name().to_owned(),
        router,
        host: host.to_owned(),
        value: entry.as_ref().map(words),
        entry,
        problem,
    };
    match live {
        Err(error) => key(None, Some(format!("cannot be read: {error}"))),
        Ok(live) => {
            let problem = match (&live, &intended) {
                (live, intended) if live == intended => None,
                (None, Some(intended)) => Some(format!("missing: should be {}", words(intended))),
                (_, Some(intended)) => Some(format!("differs from what is intended: {}", words(intended))),
                (_, None) => Some("is not intended".to_owned()),
            };
            key(live, problem)
        }
    }
}

/// Description of a host map's entry.
fn words(entry: &Value) -> String {
    let text = |member: &str| entry.get(member).and_then(Value::as_str);
    match (text("backend"), text("reason")) {
        (Some(backend), Some(reason)) => {
            let list = if entry.get("allowList") == Some(&Value::Bool(true)) { ", allow-list" } else { "" };
            format!("{backend}, route {}, {reason}{list}", entry.get("route").unwrap_or(&Value::Null))
        }
        // `sni_passthrough` has keys without values.
        _ => "passthrough".to_owned(),
    }
}

/// Allow-lists of these routes.
fn allow_lists(image: &MapImage, live: &impl MapReader, routes: &BTreeSet<u32>) -> Result<Vec<MapNet>, DumpError> {
    if routes.is_empty() {
        return Ok(Vec::new());
    }
    let intended: BTreeSet<(u32, String)> = image
        .allow
        .iter()
        .filter(|(route, ..)| routes.contains(route))
        .map(|(route, address, bits)| (*route, network(address, *bits)))
        .collect();
    let found: BTreeSet<(u32, String)> = live
        .allow_lists()?
        .iter()
        .filter_map(|entry| {
            let route = u32::try_from(entry.get("route")?.as_u64()?).ok()?;
            Some((route, entry.get("source")?.as_str()?.to_owned()))
        })
        .filter(|(route, _)| routes.contains(route))
        .collect();
    let net = |(route, source): &(u32, String)| {
        let problem = match (found.contains(&(*route, source.clone())), intended.contains(&(*route, source.clone()))) {
            (true, true) => None,
            (false, _) => Some("missing".to_owned()),
            (true, false) => Some("is not intended".to_owned()),
        };
        MapNet { route: *route, source: source.clone(), problem }
    };
    Ok(found.union(&intended).map(net).collect())
}

#[cfg(test)]
mod tests;
