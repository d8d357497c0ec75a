//! References of routes to service ports, through changes of routes and of endpoints.

use router_model::names::{HostMatch, RouteId};
use router_model::one_or_many::OneOrMany;

use super::*;
use crate::policy::{RoutePolicy, RouterPolicy};
use crate::rule::{Mirror, RulePolicy};
use crate::table::{Cluster, Derived, HostIndex, RouteKind, RoutingTable};

fn key(service: &str) -> Arc<EndpointsKey> {
    let ports = PortChoice::Target(None);
    Arc::new(EndpointsKey { namespace: "shop".into(), service: service.into(), ports })
}

fn cluster(services: &[&str]) -> Cluster {
    let service = |name: &&str| {
        let key = Some(key(name));
        WeightedService { service: (*name).into(), port: None, weight: 1, key, policy: None }
    };
    Cluster { services: services.iter().map(service).collect::<OneOrMany<_>>() }
}

/// A route to these services, with copies for others.
fn route(name: &str, services: &[&str], mirrors: &[&str]) -> Arc<ResolvedRoute> {
    let mirrors = mirrors.iter().map(|name| Mirror { cluster: cluster(&[name]), share: (1, 1) }).collect();
    Arc::new(ResolvedRoute {
        derived: Derived::default(),
        policy: RoutePolicy::shared_default(),
        rule: Some(Arc::new(RulePolicy { mirrors, ..RulePolicy::default() })),
        forwarded: Default::default(),
        proxy_protocol: false,
        request_work: false,
        relay_only: false,
        is_plain: false,
        cluster: cluster(services),
        kind: RouteKind::Passthrough { redirect: false },
        rare: None,
        id: RouteId::of_route("shop", name),
        host: HostMatch::Any,
    })
}

fn router(name: &str, routes: &[&Arc<ResolvedRoute>]) -> Arc<RouterTable> {
    Arc::new(RouterTable {
        name: RouterName(name.into()),
        id: 1,
        domain: String::new(),
        http_port: None,
        https_port: None,
        default_certificate: None,
        policy: Arc::new(RouterPolicy::default()),
        hosts: HostIndex::default(),
        routes: routes.iter().copied().cloned().collect(),
        common_allow: None,
    })
}

fn found(host: u8) -> impl Fn(&EndpointsKey) -> Arc<[Endpoint]> {
    move |_| [Endpoint { address: ([10, 0, 0, host], 80).into(), target: None, h2c: false }].into()
}

fn table(before: &RoutingTable, routers: &[Arc<RouterTable>], host: u8) -> RoutingTable {
    let mut endpoints = before.endpoints.clone();
    endpoints.follow(&before.routers, routers, found(host));
    RoutingTable { revision: 0, routers: routers.to_vec(), endpoints }
}

/// `service:host` of each list.
fn lists(table: &RoutingTable) -> Vec<String> {
    let text = |(key, list): (&EndpointsKey, &Arc<[Endpoint]>)| format!("{}:{}", key.service, list[0].address.ip());
    table.endpoints.lists().map(text).collect()
}

fn users(table: &RoutingTable, service: &str) -> Vec<String> {
    table.endpoints.users_of(&key(service)).map(|user| format!("{}/{}", user.router.0, user.route.id.name)).collect()
}

/// `old>new` of each change: the router of the route, or `-`.
fn changes(older: &RoutingTable, newer: &RoutingTable) -> Vec<String> {
    let of = |side: Option<(&RouterTable, &Arc<ResolvedRoute>)>| {
        side.map_or("-".to_owned(), |(router, route)| format!("{}/{}", router.name.0, route.id.name))
    };
    newer.route_changes(older).map(|change| format!("{}>{}", of(change.old), of(change.new))).collect()
}

#[test]
fn what_is_named_is_there_as_long_as_it_is_named() {
    let (a, b) = (route("a", &["x", "y"], &["z"]), route("b", &["x"], &[]));
    let first = table(&RoutingTable::default(), &[router("one", &[&a, &b]), router("two", &[&b])], 1);
    assert_eq!(lists(&first), ["x:10.0.0.1", "y:10.0.0.1", "z:10.0.0.1"]);
    assert_eq!(
        (users(&first, "x"), users(&first, "z")),
        (vec!["one/a".into(), "one/b".into(), "two/b".into()], vec!["one/a".into()])
    );
    assert!(first.endpoints.of(&a.cluster.services[0]) == &*found(1)(&key("x")));

    // A new version of one route refers to another service; the other route was removed from one router.
    let other = route("a", &["w"], &[]);
    let second = table(&first, &[router("one", &[&other]), router("two", &[&b])], 2);
    assert_eq!(lists(&second), ["w:10.0.0.2", "x:10.0.0.1"]);
    assert_eq!(users(&second, "x"), ["two/b"]);
    assert!(Arc::ptr_eq(&second.endpoints.users_of(&key("w")).next().unwrap().route, &other));
    assert_eq!(changes(&first, &second), ["one/a>one/a", "one/b>-"]);

    let third = table(&second, &[router("one", &[&other])], 3);
    assert_eq!((lists(&third), users(&third, "x")), (vec!["w:10.0.0.2".into()], Vec::<String>::new()));
    assert_eq!(changes(&second, &third), ["two/b>-"]);
    assert_eq!(changes(&third, &second), ["->two/b"]);
}

#[test]
fn a_version_that_names_the_same_keeps_its_endpoints_and_is_the_one_that_is_known() {
    let first = table(&RoutingTable::default(), &[router("one", &[&route("a", &["x"], &[])])], 1);
    let newer = route("a", &["x"], &[]);
    let second = table(&first, &[router("one", &[&newer])], 2);
    let list = |table: &RoutingTable| Arc::clone(table.endpoints.list(&key("x")).unwrap());
    assert!(Arc::ptr_eq(&list(&first), &list(&second)));
    assert!(Arc::ptr_eq(&second.endpoints.users_of(&key("x")).next().unwrap().route, &newer));
    assert_eq!(second.endpoints.changes_since(&first.endpoints).count(), 0);
}

#[test]
fn new_endpoints_are_those_of_the_routes_that_name_them() {
    let (a, b, c) = (route("a", &["x", "y"], &[]), route("b", &["w"], &["x"]), route("c", &["w"], &[]));
    let before = table(&RoutingTable::default(), &[router("one", &[&a, &b, &c])], 1);
    let renewed = |services: &[&str], host: u8| {
        let (revision, routers) = (0, before.routers.clone());
        let mut endpoints = before.endpoints.clone();
        services.iter().for_each(|service| endpoints.renew("shop", service, found(host)));
        RoutingTable { revision, routers, endpoints }
    };
    let rebound = |now: &RoutingTable| -> Vec<String> {
        now.rebound_since(&before).iter().map(|user| user.route.id.name.to_string()).collect()
    };
    assert_eq!(rebound(&renewed(&["x", "y", "nobodys"], 2)), ["a", "b"], "each once");
    assert_eq!(lists(&renewed(&["y", "nobodys"], 2)), ["w:10.0.0.1", "x:10.0.0.1", "y:10.0.0.2"]);
    assert_eq!(changes(&before, &renewed(&["y"], 2)), ["one/a>one/a"]);
    assert_eq!(rebound(&renewed(&["x", "y"], 1)), Vec::<String>::new(), "they are the same");
    let endpoints = renewed(&["w", "x", "y"], 3).endpoints;
    assert_eq!(endpoints.changes_since(&before.endpoints).count(), 5, "once for each name of a route");
    // A route that also changed is reported as changed, and not as rebound.
    let newer = table(&renewed(&["y"], 2), &[router("one", &[&route("a", &["y"], &[]), &b, &c])], 2);
    assert_eq!((rebound(&newer), changes(&before, &newer)), (vec![], vec!["one/a>one/a".to_owned()]));
}
