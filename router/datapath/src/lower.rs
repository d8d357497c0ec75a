//! The routing table as entries of the kernel maps. Pure.

mod ids;

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use router_common::maps::{MAX_ALLOW, MAX_HOSTS, PROTOCOL_HTTP, PROTOCOL_TLS};
use router_common::verdict::Reason;
use router_listener::{BindState, ListenerState, Protocol};
use router_model::names::HostMatch;
use router_table::table::{Endpoints, ResolvedRoute, RouteKind, RouterTable, RoutingTable, User, VirtualHost};

use super::address::sixteen_net;
use super::egress_routes::Paths;
use super::image::{HostEntry, HostName, ListenerEntry, MapImage, RouteLabel, RouteMap, Unsteered, covering};
use super::obstacles::AgentAlone;
use super::pools::Pools;

pub use ids::RouteIds;

/// Lowers a table. `local` are this host's addresses: a listener on every address matches packets to these only, never
/// traffic that is merely forwarded.
pub fn lower(
    table: &RoutingTable,
    listeners: &[ListenerState],
    local: &[IpAddr],
    ids: &RouteIds,
    pools: &mut Pools<impl Paths>,
) -> MapImage {
    let mut image = MapImage::default();
    pools.set_own(listeners, local);
    // Collected first: a sorted map is built faster from all entries than one by one.
    let mut hosts = Vec::new();
    let mut steered = BTreeSet::new();
    for router in &table.routers {
        for route in router.routes.values() {
            lower_route(&mut image, router, route, ids);
        }
        for host in router.hosts.iter().filter(|host| is_lowered(&host.host)) {
            lower_host(&mut hosts, (table, router), host, ids);
            for route in steerable(host, &table.endpoints) {
                let id = ids.of(router.id, &route.id);
                pools.put(id, route, &table.endpoints);
                steered.insert(id);
            }
        }
    }
    pools.retain(&steered);
    pools.fill(&mut image);
    image.hosts = hosts.into_iter().collect();
    let max_segment = pools.max_segment();
    for listener in listeners {
        if listener.state != BindState::Bound {
            continue;
        }
        let protocol = match listener.protocol {
            Protocol::Http => PROTOCOL_HTTP,
            Protocol::Https => PROTOCOL_TLS,
        };
        let (router, has_header) = (listener.router_id, accepts_proxy(table, listener.router_id));
        let is_limited = table.routers.iter().any(|served| served.id == router && limits_connections(served));
        for ip in reachable(listener.address, local) {
            if has_header {
                let why = AgentAlone::ProxyHeader;
                image.unsteered.insert((ip, listener.address.port()), Unsteered { router, protocol, why });
                continue;
            }
            let entry = ListenerEntry { router, protocol, is_limited, max_segment };
            image.listeners.insert((ip, listener.address.port()), entry);
        }
    }
    cut_to_size(&mut image);
    image
}

/// True if connections to a router begin with a PROXY header: only the agent can determine their clients.
fn accepts_proxy(table: &RoutingTable, router: u32) -> bool {
    table.routers.iter().any(|served| served.id == router && served.policy.accept_proxy)
}

/// True if a router limits open connections of a source.
fn limits_connections(router: &RouterTable) -> bool {
    router.policy.gate.as_ref().is_some_and(|gate| gate.source_connections.is_some())
}

/// The difference between two tables, as two images (removed, added): of the changed routes and hosts, and of the hosts
/// whose endpoints changed. `None` if other parts changed, or if the maps have no room for all of it: the whole table
/// must be lowered then. New routes get ids; removed routes keep theirs until [`forget_gone`].
pub fn lower_changes(
    old_table: &RoutingTable,
    new_table: &RoutingTable,
    ids: &mut RouteIds,
    pools: &mut Pools<impl Paths>,
) -> Option<(MapImage, MapImage)> {
    let same = |(a, b): (&Arc<RouterTable>, &Arc<RouterTable>)| {
        let policy = |router: &RouterTable| (router.policy.accept_proxy, limits_connections(router));
        a.id == b.id && a.name == b.name && policy(a) == policy(b)
    };
    let routers = || old_table.routers.iter().zip(&new_table.routers);
    if old_table.routers.len() != new_table.routers.len() || !routers().all(same) {
        return None;
    }
    let (mut gone, mut come) = (MapImage::default(), MapImage::default());
    let max_segment = pools.max_segment();
    let (mut unsteered, mut steered) = (BTreeSet::new(), Vec::new());
    let rebound = new_table.rebound_since(old_table);
    for (old, new) in routers() {
        for changed in new.routes.changes_since(&old.routes) {
            ids.add(new.id, changed.key);
            for (route, image) in [(changed.old, &mut gone), (changed.new, &mut come)] {
                route.into_iter().for_each(|route| lower_route(image, new, route, ids));
            }
        }
        let (mut had, mut has) = (Vec::new(), Vec::new());
        let changed = new.hosts.changes_since(&old.hosts).map(|changed| (changed.old, changed.new));
        for (then, now) in changed.chain(rebound_hosts(&rebound, old, new)) {
            then.into_iter().for_each(|host| lower_host(&mut had, (old_table, new), host, ids));
            now.into_iter().for_each(|host| lower_host(&mut has, (new_table, new), host, ids));
            let of = |route: &ResolvedRoute| ids.of(new.id, &route.id);
            unsteered.extend(then.into_iter().flat_map(|host| steerable(host, &old_table.endpoints)).map(of));
            let steerable = now.into_iter().flat_map(|host| steerable(host, &new_table.endpoints));
            steered.extend(steerable.map(|route| (of(route), route)));
        }
        gone.hosts.extend(had);
        come.hosts.extend(has);
    }
    for (route, resolved) in steered {
        pools.put(route, resolved, &new_table.endpoints);
        unsteered.remove(&route);
    }
    unsteered.into_iter().for_each(|route| pools.remove(route));
    if pools.max_segment() != max_segment {
        // Every listener's entry contains it.
        return None;
    }
    pools.changes(&mut gone, &mut come);
    Some((gone, come))
}

/// Unchanged hosts of a router whose endpoints changed, as entries of the older and the newer table.
fn rebound_hosts<'t>(
    rebound: &[&'t User],
    old: &'t RouterTable,
    new: &'t RouterTable,
) -> impl Iterator<Item = (Option<&'t Arc<VirtualHost>>, Option<&'t Arc<VirtualHost>>)> {
    let of_router = rebound.iter().filter(|user| user.router == new.name);
    // Rules of requests have no entries, whatever their host; a route of connections has one host.
    let hosts: BTreeSet<&HostMatch> = of_router.map(|user| &user.route.host).filter(|host| is_lowered(host)).collect();
    let hosts = hosts.into_iter().map(|host| (old.hosts.entry(host), new.hosts.entry(host)));
    hosts.filter(|(then, now)| then.zip(*now).is_some_and(|(then, now)| Arc::ptr_eq(then, now)))
}

/// True if the maps can contain such a host: they are searched for a name and for its parent's wildcard. Connections to
/// wider hosts go up, like those to unknown names. If a wider host covers the same name as a one-label wildcard, the
/// wildcard is the narrower one in the table, too.
fn is_lowered(host: &HostMatch) -> bool {
    matches!(host, HostMatch::Exact(_) | HostMatch::Wildcard(_))
}

/// The routes of a host whose connections the kernel may dial.
fn steerable<'t>(host: &'t VirtualHost, endpoints: &Endpoints) -> impl Iterator<Item = &'t ResolvedRoute> + use<'t> {
    let passthrough = host.passthrough.as_deref().filter(|route| !route.needs_relay(endpoints));
    passthrough.into_iter().chain(host.steerable_cleartext())
}

/// Deletes the ids of routes that the old table has and the new one has not.
pub fn forget_gone(old: &RoutingTable, new: &RoutingTable, ids: &mut RouteIds) {
    for (old, new) in old.routers.iter().zip(&new.routers) {
        for changed in new.routes.changes_since(&old.routes).filter(|changed| changed.new.is_none()) {
            ids.forget(old.id, changed.key);
        }
    }
}

/// The addresses of this host that packets to a listener have.
pub(crate) fn reachable(address: SocketAddr, local: &[IpAddr]) -> Vec<IpAddr> {
    if !address.ip().is_unspecified() {
        return vec![address.ip()];
    }
    local.iter().copied().filter(|ip| ip.is_ipv4() == address.is_ipv4()).collect()
}

fn lower_route(image: &mut MapImage, router: &RouterTable, route: &ResolvedRoute, ids: &RouteIds) {
    // Rules of requests have no entries.
    if route.is_of_rule() && matches!(route.kind, RouteKind::Http { .. }) {
        return;
    }
    let id = ids.of(router.id, &route.id);
    image.routes.insert(id, RouteLabel { router: router.id, route: route.id.clone() });
    for net in route.allow().into_iter().flatten() {
        let (address, bits) = sixteen_net(net);
        image.allow.insert((id, address, bits));
    }
}

fn lower_host(
    hosts: &mut Vec<(HostName, HostEntry)>,
    (table, router): (&RoutingTable, &RouterTable),
    host: &VirtualHost,
    ids: &RouteIds,
) {
    let name = host.host.to_string();
    let entry = |route: &Arc<ResolvedRoute>, reason| HostEntry {
        route: ids.of(router.id, &route.id),
        reason,
        allow_list: route.allow().is_some(),
        backend: route.backend_name(),
    };
    if let Some(route) = &host.passthrough {
        let entry =
            entry(route, if route.needs_relay(&table.endpoints) { Reason::NeedsRelay } else { Reason::Passthrough });
        hosts.push(((RouteMap::SniPassthrough, router.id, name.clone()), entry.clone()));
        hosts.push(((RouteMap::TcpBe, router.id, name.clone()), entry));
    } else if let Some(route) = host.terminated.first() {
        hosts.push(((RouteMap::EdgeReencrypt, router.id, name.clone()), entry(route, Reason::TlsTerminate)));
    }
    if let Some(route) = host.cleartext.first() {
        let reason = if host.steerable_cleartext().is_some() { Reason::Cleartext } else { Reason::NeedsProxy };
        hosts.push(((RouteMap::HttpBe, router.id, name.clone()), entry(route, reason)));
    }
    let Some(host_rules) = &host.rules else { return };
    // A site's name is in all maps, with route 0, so that no wildcard matches it there. Its rule is not known before
    // the request is read.
    let closed = |reason| HostEntry { route: 0, reason, allow_list: false, backend: host_rules.owner.to_string() };
    if host.passthrough.is_none() {
        hosts.push(((RouteMap::EdgeReencrypt, router.id, name.clone()), closed(Reason::TlsTerminate)));
    }
    hosts.push(((RouteMap::HttpBe, router.id, name), closed(Reason::NeedsProxy)));
}

/// Leaves out what does not fit. A full hash map would reject entries in no particular order; here the choice is the
/// same on every replica: the last in name order, and the hosts of routes whose allow-list does not fit.
fn cut_to_size(image: &mut MapImage) {
    let mut out = BTreeSet::new();
    for map in RouteMap::ALL {
        let entries = image.hosts.range((map, 0, String::new())..).take_while(|(key, _)| key.0 == map);
        out.extend(entries.skip(MAX_HOSTS).map(|((_, router, host), _)| (*router, host.clone())));
    }
    // With a part of its allow-list a route would reject clients that it admits.
    let cut: BTreeSet<u32> = image.allow.iter().skip(MAX_ALLOW).map(|(route, ..)| *route).collect();
    image.allow.retain(|(route, ..)| !cut.contains(route));
    let of_cut = image.hosts.iter().filter(|(_, entry)| cut.contains(&entry.route));
    out.extend(of_cut.map(|((_, router, host), _)| (*router, host.clone())));
    leave_out(image, out);
}

/// Removes hosts from all maps, and with a name the wildcard that covers it, which the kernel would otherwise match for
/// the name.
fn leave_out(image: &mut MapImage, hosts: BTreeSet<(u32, String)>) {
    for (router, host) in hosts {
        for host in covering(&host).into_iter().chain([host]) {
            for map in RouteMap::ALL {
                image.left_out += usize::from(image.hosts.remove(&(map, router, host.clone())).is_some());
            }
        }
    }
}

#[cfg(test)]
mod tests;
