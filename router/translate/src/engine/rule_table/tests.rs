//! Hosts that are added, changed and removed, with routes of several hosts.

use router_model::kind::Kind;
use router_model::one_or_many::OneOrMany;
use router_table::policy::RoutePolicy;
use router_table::policy::forwarded::ForwardedHeaders;
use router_table::table::{Cluster, Derived, RouteKind};

use super::*;

fn name(text: &str) -> HostMatch {
    HostMatch::Exact(Hostname::parse(text).unwrap())
}

fn id(name: &str) -> RouteId {
    RouteId { kind: Kind::TlsRoute, ..RouteId::of_route("shop", name) }
}

/// A host of the route of this name, in this version.
fn host(at: &str, route: &str, proxy_protocol: bool) -> (HostMatch, Option<VirtualHost>) {
    let route = ResolvedRoute {
        derived: Derived::default(),
        policy: RoutePolicy::shared_default(),
        rule: None,
        forwarded: ForwardedHeaders::Append,
        proxy_protocol,
        request_work: false,
        relay_only: false,
        is_plain: false,
        cluster: Cluster::default(),
        kind: RouteKind::Passthrough { redirect: false },
        rare: None,
        id: id(route),
        host: name("first.test"),
    };
    let host = VirtualHost {
        host: name(at),
        rules: None,
        cleartext: OneOrMany::default(),
        terminated: OneOrMany::default(),
        passthrough: Some(Arc::new(route)),
        certificate: None,
    };
    (name(at), Some(host))
}

fn removed(at: &str) -> (HostMatch, Option<VirtualHost>) {
    (name(at), None)
}

/// `host: route` of each host. Checks that every host has a route equal to the table's of that id, and that the table
/// has no other route.
fn routes_by_host(table: &RuleTable) -> Vec<String> {
    let HostRulesTable { hosts, routes, .. } = table.table();
    let of = |host: &VirtualHost| Arc::clone(host.passthrough.as_ref().unwrap());
    let used: BTreeSet<RouteId> = hosts.values().map(|host| of(host).id.clone()).collect();
    assert!(used.iter().eq(routes.entries().map(|(id, _)| id)));
    assert!(hosts.values().all(|host| of(host) == routes[&of(host).id]));
    let uses = |id: &RouteId| hosts.values().filter(|host| of(host).id == *id).count();
    assert!(routes.entries().all(|(id, _)| uses(id) == 1 + table.extra_hosts.get(id).copied().unwrap_or_default()));
    assert!(table.extra_hosts.iter().all(|(id, extra)| *extra > 0 && used.contains(id)));
    hosts.entries().map(|(at, host)| format!("{at}: {}", of(host).id.name)).collect()
}

#[test]
fn a_route_stays_as_long_as_a_host_uses_it() {
    let mut table = RuleTable::default();
    table.update(Vec::from([host("a.test", "one", false), host("b.test", "one", false)]));
    table.update(Vec::from([host("c.test", "one", false), host("d.test", "two", false)]));
    assert_eq!(routes_by_host(&table), ["a.test: one", "b.test: one", "c.test: one", "d.test: two"]);
    table.update(Vec::from([removed("a.test"), removed("d.test"), removed("e.test")]));
    assert_eq!(routes_by_host(&table), ["b.test: one", "c.test: one"]);
    // The route moves from its last hosts to another one within one update.
    table.update(Vec::from([removed("b.test"), host("c.test", "two", false), host("a.test", "one", false)]));
    assert_eq!(routes_by_host(&table), ["a.test: one", "c.test: two"]);
    table.update(Vec::from([removed("a.test"), removed("c.test")]));
    assert!(table.is_empty() && table.table().routes.is_empty() && table.extra_hosts.is_empty());
}

#[test]
fn what_is_equal_keeps_its_identity() {
    let mut table = RuleTable::default();
    table.update(Vec::from([host("a.test", "one", false), host("b.test", "one", false)]));
    let before = table.table().clone();
    table.update(Vec::from([host("a.test", "one", false), host("c.test", "one", false)]));
    let HostRulesTable { hosts, routes, .. } = table.table();
    let changed: Vec<String> = hosts.changes_since(&before.hosts).map(|changed| changed.key.to_string()).collect();
    assert_eq!(changed, ["c.test"]);
    assert_eq!(routes.changes_since(&before.routes).count(), 0);
    assert_eq!(routes_by_host(&table).len(), 3);
    table.update(["a.test", "b.test", "c.test"].map(|at| host(at, "one", true)).into());
    assert!(table.table().routes[&id("one")].proxy_protocol);
}

#[test]
fn domains_alone_keep_a_table() {
    let mut table = RuleTable::default();
    table.set_domains(BTreeSet::from([Hostname::parse("corp.test").unwrap()]));
    assert!(!table.is_empty());
    let domains = Arc::clone(&table.table().domains);
    table.set_domains(BTreeSet::from([Hostname::parse("corp.test").unwrap()]));
    assert!(Arc::ptr_eq(&domains, &table.table().domains));
    table.set_domains(BTreeSet::new());
    assert!(table.is_empty());
}
