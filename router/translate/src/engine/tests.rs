//! Whatever happened before: the engine makes of the present objects what a new one makes of them.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use router_api::testing::{config_map, controller, good, refused, route, slice};
use router_model::kind::Kind;
use serde_json::{Value, json};

use super::*;

/// One change to the objects.
#[derive(Clone, Debug)]
enum Edit {
    Put(Value),
    /// A newer version of the object is refused; the last good one stays.
    Refuse(Value),
    Remove(Value),
}

fn routes() -> impl Strategy<Value = Value> {
    let host = prop_oneof![
        Just("a.x.test"),
        Just("b.x.test"),
        Just("x.test"),
        Just("a.y.test"),
        Just("localhost"),
        Just("intranet"),
        Just("deep.a.x.test"),
    ];
    let tls = prop_oneof![Just(None), Just(Some("edge")), Just(Some("passthrough"))];
    let path = prop_oneof![Just(""), Just("/"), Just("/p")];
    (0..2usize, 0..5usize, 0..8u32, host, tls, path, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(namespace, name, age, host, tls, path, wildcard, subdomain, labelled)| {
            let mut spec = json!({});
            if subdomain && !wildcard {
                spec["subdomain"] = json!("sub");
            } else {
                spec["host"] = json!(host);
            }
            if wildcard {
                spec["wildcardPolicy"] = json!("Subdomain");
            }
            if let Some(termination) = tls {
                spec["tls"] = json!({ "termination": termination });
            }
            if tls != Some("passthrough") {
                spec["path"] = json!(path);
            }
            if age % 2 == 0 {
                spec["to"] = json!({ "name": "api" });
            }
            let mut object = route(&format!("{}/r{name}", ["red", "green"][namespace]), age, spec);
            object["metadata"]["uid"] = json!(format!("{namespace}{name}"));
            if labelled {
                object["metadata"]["labels"] = json!({ "shard": "one" });
            }
            object
        },
    )
}

fn objects() -> impl Strategy<Value = Value> {
    let protocols = prop_oneof![4 => Just(None), 1 => Just(Some("h2c")), 1 => Just(Some("other.example/x"))];
    let slices = (any::<bool>(), 1..4u8, protocols).prop_map(|(api, n, protocol)| {
        let mut slice = slice(if api { "red/api" } else { "red/web" }, &[&format!("10.0.0.{n}")], 8080);
        slice["ports"][0]["appProtocol"] = json!(protocol);
        slice
    });
    let controllers =
        (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(second, shared, wildcards, shard)| {
            let mut spec = json!({
                "domain": if second { "two.test" } else { "one.test" },
                "endpointPublishingStrategy": { "hostNetwork": {
                    "httpPort": if second { 81 } else { 80 },
                    "httpsPort": if second { 444 } else { 443 },
                } },
                "httpErrorCodePages": { "name": if shared { "pages" } else { "others" } },
                "routeAdmission": {
                    "namespaceOwnership": if shared { "InterNamespaceAllowed" } else { "Strict" },
                    "wildcardPolicy": if wildcards { "WildcardsAllowed" } else { "WildcardsDisallowed" },
                },
            });
            if shard {
                spec["routeSelector"] = json!({ "matchLabels": { "shard": "one" } });
                spec["namespaceSelector"] = json!({ "matchLabels": { "team": "red" } });
            }
            controller(if second { "second" } else { "default" }, spec)
        });
    let namespaces = any::<bool>().prop_map(|red| {
        json!({ "apiVersion": "v1", "kind": "Namespace",
            "metadata": { "name": "red", "labels": { "team": if red { "red" } else { "none" } } } })
    });
    let config_maps = (any::<bool>(), any::<bool>(), 0..3u8).prop_map(|(used, named, n)| {
        let namespace = if used { "openshift-config" } else { "other" };
        let page = format!("HTTP/1.0 503 Busy\n\n{n}");
        config_map(
            &format!("{namespace}/{}", if named { "pages" } else { "else" }),
            json!({ "error-page-503.http": page }),
        )
    });
    prop_oneof![
        8 => routes(),
        4 => slices,
        1 => controllers,
        1 => namespaces,
        1 => config_maps,
        6 => gateway_api(),
        2 => contour(),
    ]
}

fn named(api_version: &str, kind: &str, (namespace, name): (&str, &str), age: u32, spec: Value) -> Value {
    let mut object = route(&format!("{namespace}/{name}"), age, json!({}));
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(kind);
    object["metadata"]["uid"] = json!(format!("{namespace}{kind}{name}"));
    object["spec"] = spec;
    object
}

/// Gateways with all kinds of listeners, and what hangs on them.
fn gateway_api() -> impl Strategy<Value = Value> {
    const API: &str = "gateway.networking.k8s.io/v1";
    let namespace = prop_oneof![Just("red"), Just("green")];
    let host =
        || prop_oneof![Just("a.x.test"), Just("x.test"), Just("*.x.test"), Just("a.y.test"), Just("deep.a.x.test")];
    let class = any::<bool>().prop_map(|ours| {
        let controller = if ours { "sluice.dev/gateway-controller" } else { "example.com/other" };
        json!({ "apiVersion": API, "kind": "GatewayClass", "metadata": { "name": "sluice" },
            "spec": { "controllerName": controller } })
    });
    let gateways = (namespace.clone(), 0..2u32, 0..8u32, host(), any::<bool>(), any::<bool>()).prop_map(
        |(namespace, name, age, host, shared, other_port)| {
            let from = if shared { "All" } else { "Same" };
            let allowed = json!({ "namespaces": { "from": from } });
            let port = if other_port { 8080 } else { 80 };
            let listeners = json!([
                { "name": "web", "port": port, "protocol": "HTTP", "allowedRoutes": allowed },
                { "name": "named", "port": port, "protocol": "HTTP", "hostname": host, "allowedRoutes": allowed },
                { "name": "tls", "port": 443, "protocol": "TLS", "hostname": host, "allowedRoutes": allowed,
                    "tls": { "mode": "Passthrough" } },
            ]);
            let spec = json!({ "gatewayClassName": "sluice", "listeners": listeners });
            named(API, "Gateway", (namespace, &format!("g{name}")), age, spec)
        },
    );
    let parent = (namespace.clone(), 0..3u32).prop_map(|(namespace, name)| match name {
        0 => json!({ "namespace": "red", "name": "g0" }),
        1 => json!({ "namespace": namespace, "name": "g1" }),
        _ => json!({ "namespace": namespace, "kind": "HTTPRoute", "name": "h0" }),
    });
    let routes = (
        namespace.clone(),
        prop_oneof![3 => Just("HTTPRoute"), 1 => Just("GRPCRoute"), 1 => Just("TLSRoute")],
        (0..3u32, 0..8u32),
        parent,
        host(),
        prop_oneof![Just("/"), Just("/p")],
        prop_oneof![3 => Just(("", "Service", "web")), 1 => Just(("", "Service", "api")),
            1 => Just(("gateway.sluice.dev", "RouteSlot", "slot"))],
        any::<bool>(),
    )
        .prop_map(|(namespace, kind, (name, age), parent, host, path, backend, red)| {
            let (group, target, service) = backend;
            let mut backend = json!({ "group": group, "kind": target, "name": service });
            if target == "Service" {
                backend["port"] = json!(8080);
                if red {
                    backend["namespace"] = json!("red");
                }
            }
            let mut rule = json!({ "backendRefs": [backend] });
            if kind == "HTTPRoute" {
                rule["matches"] = json!([{ "path": { "type": "PathPrefix", "value": path } }]);
            }
            let spec = json!({ "parentRefs": [parent], "hostnames": [host], "rules": [rule] });
            let prefix = kind[..1].to_lowercase();
            named(API, kind, (namespace, &format!("{prefix}{name}")), age, spec)
        });
    let grants = namespace.clone().prop_map(|namespace| {
        let from = ["HTTPRoute", "GRPCRoute", "TLSRoute"]
            .map(|kind| json!({ "group": "gateway.networking.k8s.io", "kind": kind, "namespace": namespace }));
        let spec = json!({ "from": from, "to": [{ "group": "", "kind": "Service" }] });
        named(API, "ReferenceGrant", ("red", namespace), 1, spec)
    });
    let slots = (namespace, any::<bool>()).prop_map(|(namespace, all)| {
        let from = if all { "All" } else { "Same" };
        let spec = json!({ "allowedRoutes": { "namespaces": { "from": from } } });
        named("gateway.sluice.dev/v1alpha1", "RouteSlot", (namespace, "slot"), 1, spec)
    });
    prop_oneof![1 => class, 2 => gateways, 4 => routes, 1 => grants, 1 => slots, 1 => services()]
}

fn services() -> impl Strategy<Value = Value> {
    (any::<bool>(), any::<bool>()).prop_map(|(api, named_port)| {
        let port = if named_port { json!({ "name": "http", "port": 8080 }) } else { json!({ "port": 8080 }) };
        json!({ "apiVersion": "v1", "kind": "Service",
            "metadata": { "namespace": "red", "name": if api { "api" } else { "web" } },
            "spec": { "ports": [port] } })
    })
}

/// Roots, and what they delegate to.
fn contour() -> impl Strategy<Value = Value> {
    let fqdn =
        prop_oneof![Just("a.x.test"), Just("x.test"), Just("a.y.test"), Just(".x.test"), Just("*.x.test"), Just("")];
    (any::<bool>(), 0..2u32, 0..8u32, fqdn, any::<bool>()).prop_map(|(red, name, age, fqdn, delegates)| {
        let namespace = if red { "red" } else { "green" };
        let mut spec = json!({});
        if !fqdn.is_empty() {
            spec["virtualhost"] = json!({ "fqdn": fqdn });
        }
        let delegate = json!({ "name": format!("i{}", 1 - name), "namespace": "red" });
        let own_name = format!("i{name}");
        let own = (namespace, &*own_name);
        if fqdn.starts_with('*') {
            spec["routes"] = json!([{ "services": [{ "name": "web", "port": 8080 }] }]);
            return named("projectcontour.io/v1", "HTTPProxy", own, age, spec);
        }
        if fqdn.starts_with('.') {
            spec["subdomains"] = json!([{ "subdomain": "deep.a.x.test", "delegate": delegate }]);
        } else if delegates {
            spec["routes"] = json!([{ "match": "/", "delegate": delegate }]);
        } else {
            spec["routes"] = json!([{ "match": "/", "services": [{ "name": "web", "port": 8080 }] }]);
        }
        named("contour.heptio.com/v1beta1", "IngressRoute", own, age, spec)
    })
}

fn edits() -> impl Strategy<Value = Edit> {
    prop_oneof![
        6 => objects().prop_map(Edit::Put),
        2 => objects().prop_map(Edit::Remove),
        1 => objects().prop_map(Edit::Refuse),
    ]
}

fn apply(resources: &mut Resources, edit: &Edit) {
    match edit {
        Edit::Put(value) => resources.insert(&good(value.clone())),
        Edit::Remove(value) => {
            let object = good(value.clone());
            resources.set(object.key().clone(), object.kind(), None, None);
        }
        Edit::Refuse(value) => {
            let object = good(value.clone());
            let (kind, key) = (object.kind(), object.key().clone());
            let last = resources.object(kind, &key);
            let refused = refused(value.clone(), "r.yaml:1: spec: bad");
            resources.set(key, kind, last.as_ref(), Some(refused));
        }
    }
}

/// What most histories begin with, so that they soon come to routes that are served.
fn base() -> Resources {
    const API: &str = "gateway.networking.k8s.io/v1";
    let all = json!({ "namespaces": { "from": "All" } });
    let listener = |name: &str, port: u16, protocol: &str| {
        let mut listener = json!({ "name": name, "port": port, "protocol": protocol, "allowedRoutes": all });
        if protocol == "TLS" {
            listener["tls"] = json!({ "mode": "Passthrough" });
        }
        listener
    };
    let listeners = json!([listener("web", 80, "HTTP"), listener("tls", 443, "TLS"), listener("more", 8080, "HTTP")]);
    let spec = json!({ "gatewayClassName": "sluice", "listeners": listeners });
    let class = json!({ "apiVersion": API, "kind": "GatewayClass", "metadata": { "name": "sluice" },
        "spec": { "controllerName": "sluice.dev/gateway-controller" } });
    let service = |name: &str| {
        json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "namespace": "red", "name": name },
            "spec": { "ports": [{ "name": "http", "port": 8080 }] } })
    };
    let gateway = named(API, "Gateway", ("red", "g0"), 0, spec);
    router_api::testing::resources([
        class,
        gateway,
        service("web"),
        service("api"),
        slice("red/web", &["10.0.0.1"], 8080),
    ])
}

/// Everything that can be seen of a translation.
fn outcome(engine: &mut Engine, resources: &Resources) -> String {
    let (table, report) = engine.apply(resources);
    format!("{table:?}\n{report:?}")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn history_leaves_no_trace(history in vec(edits(), 1..40)) {
        let mut engine = Engine::new(Settings::default());
        let mut resources = base();
        for edit in &history {
            apply(&mut resources, edit);
            let fresh = outcome(&mut Engine::new(Settings::default()), &resources);
            prop_assert_eq!(outcome(&mut engine, &resources), fresh, "after {:?}", edit);
        }
    }
}

#[test]
fn the_last_objects_of_an_api_leave_nothing_behind() {
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
fn a_change_leaves_the_rest_of_the_table_as_it_is() {
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
fn new_endpoints_reach_the_routes_that_use_them_and_make_none_anew() {
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
    let (before, told) = engine.apply(&resources);
    resources.insert(&good(slice("red/api", &["10.0.0.9"], 8080)));
    resources.insert(&good(slice("red/foreign", &["10.0.0.8"], 8080)));
    let (after, report) = engine.apply(&resources);

    assert!(after.routers.iter().zip(&before.routers).all(|(after, before)| Arc::ptr_eq(after, before)));
    assert_eq!(
        report.others.changes_since(&told.others).count() + report.routes.changes_since(&told.routes).count(),
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

    // What a slice says of its protocol decides whether the rule may send anything there at all.
    let mut other = slice("red/api", &["10.0.0.9"], 8080);
    other["ports"][0]["appProtocol"] = json!("kafka.example/plain");
    resources.insert(&good(other));
    let (refused, report) = engine.apply(&resources);
    assert_eq!(report.others.changes_since(&told.others).count(), 1);
    let is_named_by_h = |table: &RoutingTable| {
        let mut users = table.endpoints.lists().flat_map(|(key, _)| table.endpoints.users_of(key));
        users.any(|user| *user.route.id.name == *"h")
    };
    assert!(is_named_by_h(&after) && !is_named_by_h(&refused));
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
fn a_loser_knows_its_winner_until_that_goes() {
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
fn each_kind_of_another_api_alone_is_reason_enough_to_ask_that_api() {
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
        assert!(host_rules::are_wanted(&resources), "{object}");
        let mut engine = Engine::new(Settings::default());
        engine.apply(&resources);
        assert_eq!(outcome(&mut engine, &Resources::default()), nothing, "{object} leaves something behind");
        assert!(engine.sites.is_empty(), "{object}");
    }
    assert!(!host_rules::are_wanted(&router_api::testing::resources([route("red/web", 0, json!({}))])));
}

#[test]
fn members_are_in_order_of_group_and_route() {
    use groups::{GroupEntry, has_routes, routes_of};
    let member = |group: &str, id: &str, age| {
        let router_api::object::Object::Route(route) = good(route(id, age, json!({}))) else { panic!("a Route") };
        GroupEntry { group: group.into(), route }
    };
    let all = [member("a", "b/b", 0), member("b", "a/b", 2), member("b", "a/c", 1), member("d", "a/a", 0)];
    for (i, one) in all.iter().enumerate() {
        for (k, other) in all.iter().enumerate() {
            assert_eq!((one.cmp(other), one == other), (i.cmp(&k), i == k), "{one:?} {other:?}");
            assert_eq!(one.partial_cmp(other), Some(i.cmp(&k)));
        }
    }
    let members: OrderedMap<GroupEntry, ()> = all.into_iter().map(|member| (member, ())).collect();
    let names =
        |group: &str| routes_of(&members, group).iter().map(|route| route.meta.key.to_string()).collect::<Vec<_>>();
    assert_eq!([names("a"), names("b"), names("c")], [vec!["b/b"], vec!["a/c", "a/b"], vec![]], "the oldest first");
    assert_eq!(
        ["", "a", "b", "c", "d", "e"].map(|group| has_routes(&members, group)),
        [false, true, true, false, true, false]
    );
}
