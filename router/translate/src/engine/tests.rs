//! Changes: their result, the part of the table that they rebuild, and removal.

mod batch;
mod contests;
mod denied;
mod dependencies;
mod history;
mod worlds;

use router_api::testing::{controller, good, route, slice};
use router_model::kind::Kind;
use serde_json::json;

use self::history::{Edit, apply, base, outcome};
use self::worlds::named;
use super::*;

#[test]
fn removing_the_last_objects_of_an_api_removes_everything() {
    let spec = json!({ "parentRefs": [{ "name": "g0" }], "hostnames": ["a.x.test"],
        "rules": [{ "backendRefs": [{ "name": "web", "port": 8080 }] }] });
    let route = named("gateway.networking.k8s.io/v1", "HTTPRoute", ("red", "h"), 0, spec);
    let (mut engine, mut resources) = (Engine::new(Settings::default()), base());
    apply(&mut resources, &Edit::Put(route));
    assert!(outcome(&mut engine, &resources).contains("a.x.test"));
    let keys = [(Kind::GatewayClass, ("", "sluice")), (Kind::Gateway, ("red", "g0")), (Kind::HttpRoute, ("red", "h"))];
    for (kind, (namespace, name)) in keys {
        resources.set(ObjectKey::new(namespace, name), kind, None, None);
    }
    let nothing = outcome(&mut Engine::new(Settings::default()), &resources);
    assert_eq!(outcome(&mut engine, &resources), nothing);
}

#[test]
fn a_change_does_not_change_the_rest_of_the_table() {
    let mut resources = Resources::default();
    for i in 0..100 {
        resources.insert(&good(route(&format!("shop/r{i:03}"), i, json!({ "host": format!("h{i}.test") }))));
    }
    let mut engine = Engine::new(Settings::default());
    let (before, _) = engine.apply(&resources);
    resources.insert(&good(route("shop/r007", 7, json!({ "host": "new.test" }))));
    let (after, report) = engine.apply(&resources);

    let (before, after) = (&before.routers[0], &after.routers[0]);
    let hosts: Vec<_> = after.hosts.changes_since(&before.hosts).map(|changed| changed.key.to_string()).collect();
    assert_eq!(hosts, ["h7.test", "new.test"]);
    let routes: Vec<_> = after.routes.changes_since(&before.routes).map(|changed| changed.key.to_string()).collect();
    assert_eq!(routes, ["shop/r007"]);
    assert_eq!(report.routes[&ObjectKey::new("shop", "r007")].to_vec()[0].host, "new.test");

    // The same objects again: the very same table.
    let (again, _) = engine.apply(&resources);
    assert!(Arc::ptr_eq(&again.routers[0], after));
}

#[test]
fn new_endpoints_reach_the_routes_that_use_them_and_rebuild_none() {
    const GATEWAY: &str = "gateway.networking.k8s.io/v1";
    let mut resources = base();
    let backend = json!({ "name": "api", "port": 8080 });
    let parents = json!([{ "name": "g0" }]);
    let rule = json!({ "parentRefs": parents, "hostnames": ["h.test"], "rules": [{ "backendRefs": [backend] }] });
    let root = json!({ "virtualhost": { "fqdn": "c.test" }, "routes": [{ "services": [backend] }] });
    for object in [
        route("red/web", 1, json!({ "host": "web.test" })),
        route("red/api", 2, json!({ "host": "api.test", "to": { "name": "api" } })),
        named(GATEWAY, "HTTPRoute", ("red", "h"), 3, rule),
        named("projectcontour.io/v1", "HTTPProxy", ("red", "c"), 4, root),
    ] {
        resources.insert(&good(object));
    }
    let mut engine = Engine::new(Settings::default());
    let (before, first_report) = engine.apply(&resources);
    resources.insert(&good(slice("red/api", &["10.0.0.9"], 8080)));
    resources.insert(&good(slice("red/foreign", &["10.0.0.8"], 8080)));
    let (after, report) = engine.apply(&resources);

    assert!(after.routers.iter().zip(&before.routers).all(|(after, before)| Arc::ptr_eq(after, before)));
    assert_eq!(
        report.others.changes_since(&first_report.others).count()
            + report.routes.changes_since(&first_report.routes).count(),
        0
    );
    let mut rebound: Vec<String> = after.rebound_since(&before).iter().map(|user| user.route.id.to_string()).collect();
    rebound.sort();
    rebound.dedup();
    assert_eq!(rebound, ["HTTPProxy:red/c:0", "HTTPRoute:red/h:0", "red/api"]);
    let of = |table: &RoutingTable| -> Vec<String> {
        let lists = table.endpoints.lists();
        lists
            .map(|(key, list)| format!("{} {:?}", key.service, list.iter().map(|e| e.address).collect::<Vec<_>>()))
            .collect()
    };
    assert_eq!(of(&before), ["api []", "api []", "web [10.0.0.1:8080]"]);
    assert_eq!(of(&after), ["api [10.0.0.9:8080]", "api [10.0.0.9:8080]", "web [10.0.0.1:8080]"]);

    // The protocol of a slice decides whether the rule can be served.
    let mut other = slice("red/api", &["10.0.0.9"], 8080);
    other["ports"][0]["appProtocol"] = json!("kafka.example/plain");
    resources.insert(&good(other));
    let (rejected, report) = engine.apply(&resources);
    assert_eq!(report.others.changes_since(&first_report.others).count(), 1);
    let is_named_by_h = |table: &RoutingTable| {
        let mut users = table.endpoints.lists().flat_map(|(key, _)| table.endpoints.users_of(key));
        users.any(|user| *user.route.id.name == *"h")
    };
    assert!(is_named_by_h(&after) && !is_named_by_h(&rejected));
}

#[test]
fn the_status_of_an_admitted_route_has_its_wildcard_policy() {
    let wildcards = json!({ "routeAdmission": { "wildcardPolicy": "WildcardsAllowed" } });
    for policy in ["None", "Subdomain"] {
        let mut resources = Resources::default();
        resources.insert(&good(controller("default", wildcards.clone())));
        resources.insert(&good(route("red/r", 1, json!({ "host": "www.x.test", "wildcardPolicy": policy }))));
        let (_, report) = Engine::new(Settings::default()).apply(&resources);
        let entries = report.routes[&ObjectKey::new("red", "r")].to_vec();
        assert_eq!((entries[0].wildcard_policy, entries[0].conditions[0].status()), (policy, "True"));
    }
}

#[test]
fn a_conflict_names_the_winner_until_it_is_removed() {
    let mut resources = Resources::default();
    let wildcards = json!({ "routeAdmission": { "wildcardPolicy": "WildcardsAllowed" } });
    resources.insert(&good(controller("default", wildcards)));
    for (id, age, spec) in [
        ("red/first", 1, json!({ "host": "a.x.test" })),
        ("blue/second", 2, json!({ "host": "a.x.test", "path": "/p" })),
        ("red/slash", 3, json!({ "host": "a.x.test", "path": "/" })),
        ("blue/wild", 4, json!({ "host": "www.x.test", "wildcardPolicy": "Subdomain" })),
    ] {
        resources.insert(&good(route(id, age, spec)));
    }
    let mut engine = Engine::new(Settings::default());
    let winners = |report: &StatusReport| -> Vec<String> {
        let conflicts = report.conflicts.entries();
        conflicts.map(|(key, lost)| format!("{key} lost to {} ({})", lost[0].winner, lost[0].reason)).collect()
    };
    let (_, report) = engine.apply(&resources);
    assert_eq!(
        winners(&report),
        [
            "blue/second lost to Route red/first (HostAlreadyClaimed)",
            "blue/wild lost to Route red/first (HostAlreadyClaimed)",
            "red/slash lost to Route red/first (Shadowed)",
        ]
    );
    resources.routes.remove(&ObjectKey::new("red", "first"));
    let (_, report) = engine.apply(&resources);
    assert_eq!(winners(&report), ["red/slash lost to Route blue/second (HostAlreadyClaimed)"]);
}

#[test]
fn an_object_of_each_kind_alone_is_translated_and_removed_without_a_trace() {
    const GATEWAY: &str = "gateway.networking.k8s.io/v1";
    let class = json!({ "apiVersion": GATEWAY, "kind": "GatewayClass", "metadata": { "name": "sluice" },
        "spec": { "controllerName": "sluice.dev/gateway-controller" } });
    let of = |kind, spec| named(GATEWAY, kind, ("red", "it"), 0, spec);
    let service = json!({ "group": "", "kind": "Service", "name": "web" });
    let alone = [
        class,
        of(
            "Gateway",
            json!({ "gatewayClassName": "sluice",
            "listeners": [{ "name": "web", "port": 80, "protocol": "HTTP" }] }),
        ),
        of("HTTPRoute", json!({})),
        of("GRPCRoute", json!({})),
        of(
            "TLSRoute",
            json!({ "hostnames": ["a.test"], "rules": [{ "backendRefs": [{ "name": "web", "port": 443 }] }] }),
        ),
        of(
            "BackendTLSPolicy",
            json!({ "targetRefs": [service],
            "validation": { "hostname": "web.test", "wellKnownCACertificates": "System" } }),
        ),
        named("gateway.sluice.dev/v1alpha1", "RouteSlot", ("red", "it"), 0, json!({})),
        named("contour.heptio.com/v1beta1", "IngressRoute", ("red", "it"), 0, json!({})),
        named("projectcontour.io/v1", "HTTPProxy", ("red", "it"), 0, json!({})),
        named("projectcontour.io/v1", "TLSCertificateDelegation", ("red", "it"), 0, json!({})),
    ];
    let nothing = outcome(&mut Engine::new(Settings::default()), &Resources::default());
    for object in alone {
        let resources = router_api::testing::resources([object.clone()]);
        let mut engine = Engine::new(Settings::default());
        engine.apply(&resources);
        assert_eq!(outcome(&mut engine, &Resources::default()), nothing, "{object} leaves something behind");
        assert!(engine.others.is_empty(), "{object}");
    }
}

#[test]
fn entries_are_in_order_of_group_and_route() {
    use groups::{GroupEntry, has_routes, routes_of};
    let entry = |group: &str, id: &str, age| {
        let router_api::object::Object::Route(route) = good(route(id, age, json!({}))) else { panic!("a Route") };
        GroupEntry { group: group.into(), route }
    };
    let all = [entry("a", "b/b", 0), entry("b", "a/b", 2), entry("b", "a/c", 1), entry("d", "a/a", 0)];
    for (i, one) in all.iter().enumerate() {
        for (k, other) in all.iter().enumerate() {
            assert_eq!((one.cmp(other), one == other), (i.cmp(&k), i == k), "{one:?} {other:?}");
            assert_eq!(one.partial_cmp(other), Some(i.cmp(&k)));
        }
    }
    let groups: router_model::persistent::OrderedMap<GroupEntry, ()> =
        all.into_iter().map(|entry| (entry, ())).collect();
    let names =
        |group: &str| routes_of(&groups, group).iter().map(|route| route.meta.key.to_string()).collect::<Vec<_>>();
    assert_eq!([names("a"), names("b"), names("c")], [vec!["b/b"], vec!["a/c", "a/b"], vec![]], "the oldest first");
    assert_eq!(
        ["", "a", "b", "c", "d", "e"].map(|group| has_routes(&groups, group)),
        [false, true, true, false, true, false]
    );
}
