//! Policies of routes and services in the built rules.

use std::time::Duration;

use router_api::testing::authority;
use router_table::policy::Balance;
use router_table::policy::tls_profile::TlsVersion;
use router_table::table::WeightedService;

use super::*;

fn world(mut objects: Vec<Value>) -> World {
    objects.extend(backends(&["a/web", "a/two"]));
    objects.push(secret("a/tls", &["www.example.com"]));
    World::new(objects)
}

fn root(routes: Value) -> Value {
    proxy("a/root", json!({ "virtualhost": { "fqdn": "www.example.com" }, "routes": routes }))
}

/// The first rule of www.example.com in clear text.
fn first(world: &World) -> &Rule {
    let host_rules = world.host("www.example.com").and_then(|host| host.rules.as_ref()).expect("host rules");
    host_rules.cleartext.as_ref().and_then(|rules| rules.first()).expect("a rule")
}

fn service(world: &World) -> &WeightedService {
    first(world).route.cluster.services.first().expect("a service")
}

#[test]
fn the_protocol_of_a_service_is_h2c_if_written_and_otherwise_http_1() {
    for (protocol, is_h2c) in [(json!(null), false), (json!("h2c"), true)] {
        let mut to = json!({ "name": "web", "port": 80 });
        if !protocol.is_null() {
            to["protocol"] = protocol;
        }
        let world = world(vec![root(json!([{ "services": [to] }]))]);
        assert!(world.endpoints_of(service(&world)).iter().all(|endpoint| endpoint.h2c == is_h2c), "{to}");
    }
}

#[test]
fn annotations_of_a_service_apply_to_the_ports_that_they_list() {
    let with = |protocol: &str, ports: &str| {
        let mut web = router_api::testing::service("a/web", json!([{ "name": "http", "port": 80 }]));
        web["metadata"]["annotations"] = json!({ format!("projectcontour.io/upstream-protocol.{protocol}"): ports });
        World::new(vec![web, slice("a/web", &["10.0.0.1"], 8080), root(json!([{ "services": to("web") }]))])
    };
    for (ports, is_h2c) in
        [("80", true), ("http", true), ("443, 80", true), ("443", false), ("grpc", false), ("", false)]
    {
        let world = with("h2c", ports);
        assert!(world.endpoints_of(service(&world)).iter().all(|endpoint| endpoint.h2c == is_h2c), "{ports:?}");
    }
    // TLS without a CA is rejected, so a valid annotation removes the route.
    assert_eq!(with("tls", "80").errors("a/root").len(), 1);
    assert_eq!(with("tls", "443").errors("a/root").len(), 0);
}

#[test]
fn header_policies_of_a_service_are_its_own() {
    let set = |name: &str| json!({ "set": [{ "name": name, "value": "v" }] });
    let to = json!([{ "name": "web", "port": 80, "requestHeadersPolicy": set("x-request"), "responseHeadersPolicy": set("x-response") }]);
    let world = world(vec![root(json!([{ "services": to }]))]);
    let policy = service(&world).policy.as_ref().expect("a policy");
    let names = |modifiers: &[router_table::header_modifier::HeaderModifier]| -> Vec<String> {
        modifiers.iter().flat_map(|it| it.set.iter().map(|(name, _)| name.to_string())).collect()
    };
    assert_eq!(
        (names(&policy.request_headers), names(&policy.response_headers)),
        (vec!["x-request".into()], vec!["x-response".into()])
    );
}

#[test]
fn strategies_choose_the_balance() {
    for (strategy, expected) in [
        ("RoundRobin", Balance::RoundRobin),
        ("WeightedLeastRequest", Balance::LeastConnections),
        ("Random", Balance::Random),
    ] {
        let world =
            world(vec![root(json!([{ "services": to("web"), "loadBalancerPolicy": { "strategy": strategy } }]))]);
        assert_eq!(first(&world).route.policy.balance, Some(expected), "{strategy}");
    }
    assert_eq!(
        first(&world(vec![root(json!([{ "services": to("web") }]))])).route.policy.balance,
        Some(Balance::RoundRobin)
    );
}

#[test]
fn time_outs_reach_the_route() {
    let with = |timeout: Value| {
        let world = world(vec![root(json!([{ "services": to("web"), "timeoutPolicy": timeout }]))]);
        first(&world).route.policy.server_timeout
    };
    assert_eq!(with(json!({ "response": "7s" })), Some(Duration::from_secs(7)));
    assert_eq!(with(json!({ "response": "infinity" })), Some(MAX));
    assert_eq!(with(json!({})), None);
}

const MAX: Duration = router_api::openshift::route::annotations::values::MAX_TIMEOUT;

#[test]
fn the_default_minimum_tls_version_is_that_of_the_api() {
    let minimum = |object: Value| {
        let world = world(vec![object]);
        world.host("www.example.com").and_then(|host| host.rules.as_ref()?.tls.as_ref()?.minimum).expect("TLS")
    };
    let with = |version: Option<&str>| {
        let mut tls = json!({ "secretName": "tls" });
        if let Some(version) = version {
            tls["minimumProtocolVersion"] = json!(version);
        }
        json!({ "fqdn": "www.example.com", "tls": tls })
    };
    let of_proxy = |version| {
        minimum(proxy("a/root", json!({ "virtualhost": with(version), "routes": [{ "services": to("web") }] })))
    };
    let of_route = |version| {
        minimum(ingress_route(
            "a/root",
            json!({ "virtualhost": with(version), "routes": [{ "match": "/", "services": to("web") }] }),
        ))
    };
    assert_eq!(
        [None, Some("1.2"), Some("1.3")].map(of_proxy),
        [TlsVersion::Tls12, TlsVersion::Tls12, TlsVersion::Tls13]
    );
    assert_eq!(
        [None, Some("1.2"), Some("1.3")].map(of_route),
        [TlsVersion::Tls11, TlsVersion::Tls12, TlsVersion::Tls13]
    );
}

#[test]
fn rules_have_the_path_to_them_as_their_origin() {
    let root = proxy(
        "a/root",
        json!({ "virtualhost": { "fqdn": "www.example.com" }, "includes": [{ "name": "leaf", "namespace": "b" }] }),
    );
    let leaf = proxy("b/leaf", json!({ "routes": [{ "services": to("web") }] }));
    let world = World::new([vec![root, leaf], backends(&["b/web"])].concat());
    let origin = first(&world).origin.to_string();
    assert!(origin.contains("HTTPProxy a/root ▸ HTTPProxy b/leaf/"), "{origin}");
}

#[test]
fn an_expression_below_the_root_path_stays_as_it_is() {
    let root = proxy(
        "a/root",
        json!({ "virtualhost": { "fqdn": "www.example.com" }, "includes": [{ "name": "leaf", "conditions": [{ "prefix": "/" }] }] }),
    );
    let leaf =
        proxy("a/leaf", json!({ "routes": [{ "conditions": [{ "regex": "/v[0-9]+/.*" }], "services": to("web") }] }));
    let world = world(vec![root, leaf]);
    assert_eq!(world.get("http://www.example.com/v1/x"), "a/web");
    assert_eq!(world.get("http://www.example.com/vx/x"), "404");
    assert_eq!(world.get("http://www.example.com/x/v1/x"), "404");
}

#[test]
fn includes_are_duplicates_if_all_conditions_are_equal() {
    let with = |one: Value, other: Value| {
        let includes = json!([{ "name": "one", "conditions": one }, { "name": "two", "conditions": other }]);
        let root = proxy("a/root", json!({ "virtualhost": { "fqdn": "www.example.com" }, "includes": includes }));
        let leaf = |name: &str| proxy(&format!("a/{name}"), json!({ "routes": [{ "services": to("web") }] }));
        world(vec![root, leaf("one"), leaf("two")]).errors("a/root").len()
    };
    let header = |name: &str, value: &str| json!({ "header": { "name": name, "exact": value } });
    let query = |name: &str, value: &str| json!({ "queryParameter": { "name": name, "exact": value } });
    let path = json!({ "prefix": "/x" });
    assert_eq!(with(json!([path, header("a", "1")]), json!([path, header("a", "1")])), 1, "identical");
    assert_eq!(
        with(json!([path, header("a", "1"), header("b", "1")]), json!([path, header("b", "1"), header("a", "1")])),
        1
    );
    assert_eq!(with(json!([path, header("a", "1")]), json!([path, header("a", "2")])), 0, "another value");
    assert_eq!(with(json!([path, header("a", "1")]), json!([path, header("a", "1"), header("b", "1")])), 0, "one more");
    assert_eq!(with(json!([path]), json!([path, header("a", "1")])), 0, "none, and one");
    assert_eq!(with(json!([path, query("a", "1")]), json!([path, query("a", "2")])), 0, "another parameter");
    assert_eq!(with(json!([path, header("a", "1"), query("a", "1")]), json!([path, header("a", "1")])), 0);
    assert_eq!(with(json!([path]), json!([{ "prefix": "/y" }])), 0, "another path");
}

#[test]
fn the_row_of_a_domain_is_admitted_if_it_serves_a_subdomain() {
    let domain = |delegate: &str| {
        ingress_route(
            "a/domain",
            json!({ "virtualhost": { "fqdn": ".example.com" },
                "subdomains": [{ "subdomain": "www.example.com", "delegate": { "name": delegate } }] }),
        )
    };
    let leaf = ingress_route("a/leaf", json!({ "routes": [{ "match": "/", "services": to("web") }] }));
    for (delegate, admitted) in [("leaf", true), ("missing", false)] {
        let world = world(vec![domain(delegate), leaf.clone()]);
        let object = ObjectRef { kind: Kind::IngressRoute, key: ObjectKey::new("a", "domain") };
        assert_eq!(world.translated.statuses[&object].rows[0].admitted, admitted, "{delegate}");
    }
}

#[test]
fn services_are_verified_with_the_named_ca() {
    let ca = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "namespace": "a", "name": "ca" },
        "stringData": { "ca.crt": authority("the CA of the backends") } });
    let to = json!([{ "name": "web", "port": 80, "protocol": "tls", "validation": { "caSecret": "ca", "subjectName": "web.internal" } }]);
    let world = world(vec![ca, root(json!([{ "services": to }]))]);
    let tls = service(&world).policy.as_ref().and_then(|policy| policy.tls.clone()).expect("TLS");
    assert_eq!(tls.server_name().as_ref(), "web.internal");
    assert!(tls.roots().is_some());
}

#[test]
fn a_tcpproxy_without_a_target_has_the_message_of_its_api() {
    let host = json!({ "fqdn": "www.example.com", "tls": { "passthrough": true } });
    let route =
        |to: &str| ingress_route("a/root", json!({ "virtualhost": host, "tcpproxy": { "delegate": { "name": to } } }));
    let proxy_to =
        |to: &str| proxy("a/root", json!({ "virtualhost": host, "tcpproxy": { "include": { "name": to } } }));
    let other = json!({ "fqdn": "other.example.com" });
    let routes = |name: &str| ingress_route(&format!("a/{name}"), json!({ "virtualhost": other, "routes": [] }));
    let of_route = |to: &str, more: Vec<Value>| world([vec![route(to)], more].concat()).ingress("a/root");
    assert_eq!(of_route("none", vec![]), "invalid: tcpproxy: delegate a/none not found");
    let root = "invalid: root ingressroute cannot delegate to another root ingressroute";
    assert_eq!(of_route("other", vec![routes("other")]), root);
    let of_proxy = |to: &str, more: Vec<Value>| world([vec![proxy_to(to)], more].concat()).errors("a/root");
    assert_eq!(of_proxy("none", vec![]), ["TCPProxyIncludeError/IncludeNotFound: include a/none not found"]);
    let rival = proxy("a/other", json!({ "virtualhost": other, "routes": [{ "services": to("web") }] }));
    let root = "TCPProxyIncludeError/RootIncludesRoot: root httpproxy cannot delegate to another root httpproxy";
    assert_eq!(of_proxy("other", vec![rival]), [root]);
}

#[test]
fn rows_have_the_state_as_their_reason() {
    let valid = root(json!([{ "services": to("web") }]));
    let host = json!({ "fqdn": "bad.example.com", "tls": { "secretName": "none" } });
    let bad = proxy("a/bad", json!({ "virtualhost": host, "routes": [{ "services": to("web") }] }));
    let lonely = proxy("a/lonely", json!({ "routes": [{ "services": to("web") }] }));
    let world = world(vec![valid, bad, lonely]);
    let reason = |name: &str| {
        let object = ObjectRef { kind: Kind::HttpProxy, key: ObjectKey::new("a", name) };
        world.translated.statuses[&object].rows[0].reason.clone()
    };
    assert_eq!(["root", "bad", "lonely"].map(reason), ["Valid", "Invalid", "Orphaned"]);
}

#[test]
fn a_delegated_domain_reports_the_fqdn_of_its_delegate() {
    let outer = ingress_route(
        "a/outer",
        json!({ "virtualhost": { "fqdn": ".example.com" },
            "subdomains": [{ "subdomain": ".in.example.com", "delegate": { "name": "inner", "namespace": "b" } }] }),
    );
    let inner = |id: &str, fqdn: &str| {
        ingress_route(
            id,
            json!({ "virtualhost": { "fqdn": fqdn }, "subdomains": [{ "subdomain": "x.in.example.com", "delegate": { "name": "leaf" } }] }),
        )
    };
    let leaf = ingress_route("b/leaf", json!({ "routes": [{ "match": "/", "services": to("web") }] }));
    let status_of = |inners: Vec<Value>| world([vec![outer.clone(), leaf.clone()], inners].concat()).ingress("a/outer");
    let found = status_of(vec![inner("b/inner", ".out.example.com")]);
    assert!(found.contains("delegate b/inner has fqdn \".out.example.com\", expected \".in.example.com\""), "{found}");
    let found = status_of(vec![inner("b/inner", ".in.example.com"), inner("a/rival", ".in.example.com")]);
    assert!(found.contains("fqdn \".in.example.com\" is used in multiple IngressRoutes"), "{found}");
    // A rival in a namespace without a delegation is rejected and has no effect.
    let found = status_of(vec![inner("b/inner", ".in.example.com"), inner("c/rival", ".in.example.com")]);
    assert_eq!(found, "valid: valid IngressRoute (1 of 1 subdomains)");
}

#[test]
fn a_direct_response_has_the_headers_of_its_route() {
    let set = json!([{ "name": "X-Why", "value": "closed" }]);
    let route = json!({ "directResponsePolicy": { "statusCode": 410 }, "responseHeadersPolicy": { "set": set } });
    let world = world(vec![root(json!([route]))]);
    let policy = first(&world).route.rule.as_ref().expect("a policy");
    let [modifier] = policy.response_headers.as_slice() else { panic!("{policy:?}") };
    assert_eq!(modifier.set.iter().map(|(name, value)| (&**name, &**value)).collect::<Vec<_>>(), [("x-why", "closed")]);
}
