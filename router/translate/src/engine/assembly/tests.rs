//! Additions to a table, removals, and parts that keep their `Arc`.

use router_model::kind::Kind;
use router_model::names::RouterName;
use router_model::one_or_many::OneOrMany;
use router_table::policy::RoutePolicy;
use router_table::policy::forwarded::ForwardedHeaders;
use router_table::table::{Cluster, Derived, HostIndex, RareSettings, RouteKind};

use super::*;

fn name(text: &str) -> HostMatch {
    HostMatch::Exact(Hostname::parse(text).unwrap())
}

fn route(kind: Kind, id: &str, host: &str) -> Arc<ResolvedRoute> {
    Arc::new(ResolvedRoute {
        derived: Derived::default(),
        policy: RoutePolicy::shared_default(),
        rule: None,
        forwarded: ForwardedHeaders::Append,
        proxy_protocol: false,
        request_work: false,
        relay_only: false,
        is_plain: false,
        cluster: Cluster::default(),
        kind: RouteKind::Passthrough { redirect: false },
        rare: None,
        id: RouteId { kind, ..RouteId::of_route("shop", id) },
        host: name(host),
    })
}

fn virtual_host(route: &Arc<ResolvedRoute>) -> Arc<VirtualHost> {
    Arc::new(VirtualHost {
        host: route.host.clone(),
        rules: None,
        cleartext: OneOrMany::default(),
        terminated: OneOrMany::default(),
        passthrough: Some(Arc::clone(route)),
        certificate: None,
    })
}

/// Routes of these hosts, named after them, in place of the `removed` ones.
fn routes(removed: &[&str], hosts: &[&str]) -> Option<ChangedRoutes> {
    let routes: Vec<_> = hosts.iter().map(|host| route(Kind::Route, host, host)).collect();
    Some(ChangedRoutes {
        removed: removed.iter().map(|&id| RouteId::of_route("shop", id)).collect(),
        hosts: routes.iter().map(virtual_host).collect(),
        routes: routes.into_iter().collect(),
    })
}

fn rules(hosts: &[&str], domains: &[&str]) -> HostRulesTable {
    let routes: Vec<_> = hosts.iter().map(|host| route(Kind::TlsRoute, host, host)).collect();
    HostRulesTable {
        hosts: routes.iter().map(|route| MatchedHost(virtual_host(route))).collect(),
        routes: routes.into_iter().collect(),
        domains: Arc::new(domains.iter().map(|domain| Hostname::parse(domain).unwrap()).collect()),
    }
}

fn router() -> Assembled {
    Assembled::new(RouterTable {
        name: RouterName("default".into()),
        id: 0,
        domain: String::new(),
        http_port: Some(80),
        https_port: None,
        default_certificate: None,
        policy: Arc::default(),
        hosts: HostIndex::default(),
        routes: KeyedMap::default(),
        common_allow: None,
    })
}

/// Each host with the kind that owns it. Checks that every route of the table is that of a host.
fn hosts_by_kind(router: &Assembled) -> Vec<String> {
    let table = router.table();
    let routes: Vec<_> = table.hosts.iter().filter_map(|host| host.passthrough.as_ref()).collect();
    assert_eq!((table.routes.len(), table.hosts.iter().count()), (routes.len(), routes.len()));
    assert!(routes.iter().all(|route| Arc::ptr_eq(&table.routes[&route.id], route)));
    routes.iter().map(|route| format!("{}: {}", route.host, route.id.kind.name())).collect()
}

#[test]
fn hosts_move_between_kinds_in_one_step() {
    let mut router = router();
    router.assemble(routes(&[], &["a.test", "b.test"]), &rules(&["c.test"], &[]));
    assert_eq!(hosts_by_kind(&router), ["a.test: Route", "b.test: Route", "c.test: TLSRoute"]);
    router.assemble(routes(&["b.test"], &["c.test"]), &rules(&["b.test"], &[]));
    assert_eq!(hosts_by_kind(&router), ["a.test: Route", "b.test: TLSRoute", "c.test: Route"]);
    router.assemble(routes(&["a.test", "c.test"], &[]), &rules(&[], &[]));
    assert_eq!(hosts_by_kind(&router), Vec::<String>::new());
    assert_eq!(router.table().hosts.exact.of_routes() + router.table().hosts.exact.of_other_kinds(), 0);
}

#[test]
fn a_route_that_moves_is_removed_from_its_old_host() {
    let mut router = router();
    router.assemble(routes(&[], &["a.test"]), &HostRulesTable::default());
    let moved = route(Kind::Route, "a.test", "b.test");
    let changed =
        ChangedRoutes { removed: vec![moved.id.clone()], hosts: vec![virtual_host(&moved)], routes: vec![moved] };
    router.assemble(Some(changed), &HostRulesTable::default());
    assert_eq!(hosts_by_kind(&router), ["b.test: Route"]);
}

#[test]
fn an_allow_list_is_common_while_every_route_has_it() {
    let listed = |id: &str, nets: &[&str]| {
        let mut route = route(Kind::Route, id, id);
        let allow = Some(nets.iter().map(|net| net.parse().unwrap()).collect());
        Arc::get_mut(&mut route).unwrap().rare = RareSettings { allow, tunnel_timeout: None }.boxed();
        route
    };
    let changed = |removed: &[&str], added: &[Arc<ResolvedRoute>]| {
        Some(ChangedRoutes {
            removed: removed.iter().map(|id| RouteId::of_route("shop", *id)).collect(),
            hosts: added.iter().map(virtual_host).collect(),
            routes: added.to_vec(),
        })
    };
    let mut router = router();
    let none = HostRulesTable::default();
    let common = |router: &Assembled| {
        router.table().common_allow.as_ref().map(|nets| nets.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    assert_eq!(common(&router), None);
    router.assemble(changed(&[], &[listed("a.test", &["10.0.0.0/9", "10.128.0.0/9"])]), &none);
    assert_eq!(common(&router), Some(vec!["10.0.0.0/8".to_owned()]));
    router.assemble(changed(&[], &[listed("b.test", &["10.0.0.0/8"])]), &none);
    assert_eq!(common(&router), Some(vec!["10.0.0.0/8".to_owned()]));
    router.assemble(changed(&["b.test"], &[listed("b.test", &["10.0.0.0/8", "192.0.2.1/32"])]), &none);
    assert_eq!(common(&router), None, "they differ");
    router.assemble(changed(&["a.test"], &[]), &none);
    assert_eq!(common(&router), Some(vec!["10.0.0.0/8".to_owned(), "192.0.2.1/32".to_owned()]));
    router.assemble(None, &rules(&["c.test"], &[]));
    assert_eq!(common(&router), None, "one of another kind has none");
    router.assemble(None, &none);
    assert!(common(&router).is_some());
    router.assemble(changed(&["b.test"], &[]), &none);
    assert_eq!(common(&router), None, "no route is left");
}

#[test]
fn a_change_of_one_side_does_not_change_the_other() {
    let mut router = router();
    let served = rules(&["c.test", "d.test"], &["corp.test"]);
    router.assemble(routes(&[], &["a.test", "b.test"]), &served);
    let before = Arc::clone(router.table());
    let differ = |router: &Assembled| -> Vec<String> {
        let hosts = router.table().hosts.changes_since(&before.hosts).map(|changed| changed.key.to_string());
        let routes = router.table().routes.changes_since(&before.routes).map(|changed| changed.key.to_string());
        hosts.chain(routes).collect()
    };

    router.assemble(None, &served);
    assert!(Arc::ptr_eq(router.table(), &before), "nothing changed");
    router.assemble(routes(&["b.test"], &["b.test"]), &served);
    assert_eq!(differ(&router), ["b.test", "shop/b.test"]);
    // A rebuilt host, and a removed one.
    let mut newer = rules(&["c.test"], &["corp.test"]);
    newer.hosts.put(MatchedHost(Arc::clone(&served.hosts[&name("c.test")])));
    newer.routes = served.routes.clone();
    newer.routes.remove(&route(Kind::TlsRoute, "d.test", "d.test").id);
    router.assemble(None, &newer);
    assert_eq!(differ(&router), ["b.test", "d.test", "shop/b.test", "TLSRoute:shop/d.test:0"]);
}

#[test]
fn delegated_domains_alone_are_a_change() {
    let mut router = router();
    let corp = Hostname::parse("www.corp.test").unwrap();
    router.assemble(None, &rules(&[], &["corp.test"]));
    let delegating = Arc::clone(router.table());
    assert!(delegating.hosts.finds_nothing(Some(&corp)));
    router.assemble(None, &rules(&[], &["corp.test"]));
    assert!(Arc::ptr_eq(router.table(), &delegating), "equal domains");
    router.assemble(None, &rules(&[], &[]));
    assert!(!router.table().hosts.finds_nothing(Some(&corp)));
}
