//! Explanations as text, line by line.

use router_table::live_state::Trust;
use serde_json::{Value, json};

use crate::explain::explanation::ExplanationStep;
use crate::explain::outcome::OutcomeKind;
use crate::explain::query::QueryError;
use crate::explain::settings::RouteSetting;

mod requests;

use router_api::testing::{controller, resources, route, slice};
use router_table::flag::Flag;

use super::*;
use crate::settings::Settings;
use crate::translate::translate;

fn explained(objects: &[Value], query: &str) -> Explanation {
    explained_with(&Settings::default(), objects, query)
}

fn explained_with(settings: &Settings, objects: &[Value], query: &str) -> Explanation {
    let resources = resources(objects.iter().cloned());
    let translation = translate(&resources, settings);
    let facts = Facts::of(&translation.table, &translation.report, &resources, Trust::default());
    explain(facts, &Query::parse(query).unwrap())
}

#[track_caller]
fn expect(objects: &[Value], query: &str, expected: &str) {
    let found = explained(objects, query).to_string();
    assert_eq!(found.trim(), expected.trim(), "found:\n{found}");
}

fn shop() -> Vec<Value> {
    vec![
        route("shop/cart", 1, json!({ "host": "shop.test", "path": "/cart", "tls": { "termination": "edge" } })),
        route("shop/all", 2, json!({ "host": "shop.test", "tls": { "termination": "edge" } })),
        route("thief/all", 3, json!({ "host": "shop.test", "tls": { "termination": "edge" } })),
        slice("shop/web", &["10.0.0.1", "10.0.0.2"], 8080),
    ]
}

#[test]
fn a_served_url_shows_every_decision() {
    expect(
        &shop(),
        "https://Shop.test/cart/1?q=2",
        "
https://shop.test:443/cart/1?q=2
1. listener
   * router default https port 443: has the port
   - router default http port 80: is for http
2. host
   * shop.test: has a path that covers /cart/1
   - *.test: no admitted route has it
3. path
   * /cart of Route shop/cart: the longest path that covers the request
   - every path of Route shop/all: covers the request too, but an earlier one has it
4. route
   Route shop/cart, created 2024-01-01T00:00:01Z, Admitted True
5. settings
   balance: random
   affinity: by cookie, SameSite=None
   endpoint timeout: 30s
   forwarding headers: append
   tunnel timeout: 1h
6. backends
   service web weight 100: 10.0.0.1:8080, 10.0.0.2:8080
7. others that claim it
   Route thief/all, created 2024-01-01T00:00:03Z, Admitted False (HostAlreadyClaimed)
     HostAlreadyClaimed: a route in another namespace holds shop.test and is older than all
     lost to Route shop/all, created 2024-01-01T00:00:02Z, Admitted True
served: Route shop/cart gets it, on 2 endpoints
",
    );
}

#[test]
fn a_rejected_route_shows_the_reason_and_the_winner() {
    let objects = [
        route("shop/old", 1, json!({ "host": "shop.test", "path": "/cart" })),
        route("thief/new", 2, json!({ "host": "shop.test", "path": "/pay" })),
    ];
    let explanation = explained(&objects, "http://shop.test/pay");
    assert!(!explanation.served);
    assert_eq!(
        explanation.verdict,
        "503: Route thief/new claims it and is rejected (HostAlreadyClaimed: a route in another namespace holds shop.test \
         and is older than new); Route shop/old, created 2024-01-01T00:00:01Z, has it"
    );
    assert_eq!(explanation.fix.unwrap(), "give Route thief/new another host or path, or remove Route shop/old");
    // Only Strict ownership is in the way; the JSON has it as data.
    let json = serde_json::to_value(explained(&objects, "http://shop.test/pay")).unwrap();
    let losers = json["steps"].as_array().unwrap().iter().find(|step| step["stage"] == "losers").unwrap();
    assert_eq!(losers["routes"][0]["winner"]["namespace"], "shop");
    assert_eq!(losers["routes"][0]["winner"]["created"], "2024-01-01T00:00:01Z");
    let shared = json!({ "routeAdmission": { "namespaceOwnership": "InterNamespaceAllowed" } });
    let explanation = explained(&[&objects[..], &[controller("default", shared)]].concat(), "http://shop.test/pay");
    assert!(explanation.verdict.starts_with("503: Route thief/new has it, but"), "{}", explanation.verdict);
}

#[test]
fn a_rejected_wildcard_shows_the_policy() {
    let objects = [route("a/wild", 1, json!({ "host": "www.wild.test", "wildcardPolicy": "Subdomain" }))];
    let explanation = explained(&objects, "http://any.wild.test/");
    assert_eq!(
        explanation.verdict,
        "503: Route a/wild claims it and is not served: RouteNotAdmitted: wildcard routes are not allowed"
    );
    assert!(explanation.fix.unwrap().contains("WildcardsAllowed"));
}

#[test]
fn a_denied_name_below_a_wildcard_is_explained() {
    let mut settings = Settings::default();
    settings.domains.denied = vec!["www.wild.test".to_owned()];
    let admission = json!({ "routeAdmission": { "wildcardPolicy": "WildcardsAllowed" } });
    let wild = route("a/wild", 1, json!({ "host": "any.wild.test", "wildcardPolicy": "Subdomain" }));
    let objects = [controller("default", admission), wild];
    for query in ["http://www.wild.test/", "https://www.wild.test/", "http://deep.www.wild.test/"] {
        let explanation = explained_with(&settings, &objects, query);
        assert!(!explanation.served && explanation.verdict.starts_with("404: "), "{query}: {}", explanation.verdict);
        assert!(explanation.verdict.ends_with("is in the list of denied domains"), "{}", explanation.verdict);
        assert_eq!(explanation.fix.unwrap(), "ask for another host, or change --denied-domains of the agent");
        let text = explained_with(&settings, &objects, query).steps;
        assert!(format!("{text:?}").contains("is in the list of denied domains; wider hosts are not asked"));
    }
}

#[test]
fn an_unknown_host_gets_the_closest_name_and_another_router_is_pointed_out() {
    let ports = |domain: &str, http: u16| {
        json!({ "domain": domain, "endpointPublishingStrategy":
            { "hostNetwork": { "httpPort": http, "httpsPort": http + 1 } } })
    };
    let mut internal = ports("internal.test", 8080);
    internal["routeSelector"] = json!({ "matchLabels": { "shard": "internal" } });
    let mut inside = route("a/inside", 1, json!({ "host": "inside.test" }));
    inside["metadata"]["labels"] = json!({ "shard": "internal" });
    let mut public = ports("apps.test", 80);
    public["routeSelector"] = json!({ "matchExpressions": [{ "key": "shard", "operator": "DoesNotExist" }] });
    let objects = [
        controller("public", public),
        controller("internal", internal),
        inside,
        route("a/shop", 2, json!({ "host": "shop.test" })),
    ];
    let explanation = explained(&objects, "http://shpo.test/");
    assert_eq!(explanation.verdict, "503: no route of router public has shpo.test");
    assert_eq!(explanation.fix.unwrap(), "did you mean shop.test? Otherwise create a Route with host shpo.test");
    let explanation = explained(&objects, "http://inside.test/");
    assert!(explanation.verdict.contains("router public does not select it, router internal does"));
    let explanation = explained(&objects, "http://inside.test:81/");
    assert_eq!(explanation.verdict, "no router listens on port 81 for http");
    assert_eq!(explanation.fix.unwrap(), "ask on port 8080 or 80 for http");
}

#[test]
fn clear_text_is_distinguished_from_tls() {
    let edge = |policy: &str| {
        let tls = json!({ "termination": "edge", "insecureEdgeTerminationPolicy": policy });
        [route("a/edge", 1, json!({ "host": "edge.test", "tls": tls })), slice("a/web", &["10.0.0.1"], 80)]
    };
    let closed = explained(&edge("None"), "http://edge.test/");
    assert_eq!((closed.served, &*closed.verdict), (false, "503: edge.test is known, but no route of it takes this"));
    assert_eq!(
        closed.fix.unwrap(),
        "ask over https, or set spec.tls.insecureEdgeTerminationPolicy to Redirect or Allow"
    );
    let redirect = explained(&edge("Redirect"), "http://edge.test/");
    assert_eq!(
        (redirect.served, &*redirect.verdict),
        (true, "Route a/edge sends clear-text requests to https://edge.test")
    );
    let name = explained(&edge("None"), "edge.test");
    assert_eq!(name.verdict, "TLS for edge.test ends here; the path decides which route gets a request");
    assert!(name.served);
}

/// The lines of the filter step, followed by verdict and fix.
fn filtered(list: &str, tls: Value, query: &str, from: Option<&str>) -> Vec<String> {
    let mut object = route("a/r", 1, json!({ "host": "h.test", "tls": tls }));
    if !list.is_empty() {
        object["metadata"]["annotations"] = json!({ "haproxy.router.openshift.io/ip_whitelist": list });
    }
    let resources = resources([object, slice("a/web", &["10.0.0.1"], 8080)]);
    let translation = translate(&resources, &Settings::default());
    let facts = Facts::of(&translation.table, &translation.report, &resources, Trust::default());
    let query = Query::parse(query).unwrap();
    let query = from.map_or(query.clone(), |from| query.from_client(from.parse().unwrap()));
    let explanation = explain(facts, &query);
    assert!(explanation.served != explanation.verdict.contains("not in its allow-list"), "{explanation}");
    let text = explanation.to_string();
    let mut lines = text.lines().skip_while(|line| !line.ends_with(". filter")).skip(1);
    let steps = lines.by_ref().take_while(|line| line.starts_with("   ")).map(|line| line.trim().to_owned());
    steps.chain([explanation.verdict]).chain(explanation.fix).collect()
}

#[test]
fn the_filter_step_says_whether_a_client_may_connect() {
    let (edge, pass) = (json!({ "termination": "edge" }), json!({ "termination": "passthrough" }));
    let (list, url) = ("10.0.0.0/8 2001:db8::1", "https://h.test/");
    let only = "only 10.0.0.0/8, 2001:db8::1/128 may connect";
    let fix =
        |client: &str| format!("add {client} to the annotation haproxy.router.openshift.io/ip_whitelist of Route a/r");
    let of = |list: &str, tls: &Value, from: Option<&str>| filtered(list, tls.clone(), url, from);
    assert_eq!(
        of(list, &edge, None),
        [only, "Route a/r gets it, on 1 endpoint, for clients of its allow-list"],
        "nobody in particular"
    );
    for client in ["10.1.2.3", "::ffff:10.1.2.3"] {
        let expected = [only, "10.1.2.3 is let in, by 10.0.0.0/8", "Route a/r gets it, on 1 endpoint"];
        assert_eq!(of(list, &edge, Some(client)), expected);
    }
    let refused = [only, "192.0.2.1 is refused", "403: Route a/r has it, but 192.0.2.1 is not in its allow-list"];
    assert_eq!(of(list, &edge, Some("192.0.2.1")), [&refused[..], &[&fix("192.0.2.1")]].concat());
    let refused = [
        only,
        "2001:db8::2 is refused",
        "the connection is reset: Route a/r has it, but 2001:db8::2 is not in its allow-list",
    ];
    assert_eq!(of(list, &pass, Some("2001:db8::2")), [&refused[..], &[&fix("2001:db8::2")]].concat());
    let expected = ["everybody may connect", "192.0.2.1 is let in", "Route a/r gets it, on 1 endpoint"];
    assert_eq!(of("", &edge, Some("192.0.2.1")), expected);
    // The allow-list also rejects clients that would get a redirect.
    let redirect = json!({ "termination": "edge", "insecureEdgeTerminationPolicy": "Redirect" });
    let found = filtered(list, redirect, "http://h.test/", Some("192.0.2.1"));
    assert!(found[2].starts_with("403: Route a/r has it"), "{found:?}");
    let name = filtered(list, edge, "h.test", Some("192.0.2.1"));
    assert!(name[0].ends_with("ask for a URL"), "{name:?}");
}

#[test]
fn missing_backends_say_what_is_missing() {
    let objects = [
        route("a/r", 1, json!({ "host": "h.test", "port": { "targetPort": "metrics" } })),
        json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "namespace": "a", "name": "web" } }),
        slice("a/web", &["10.0.0.1"], 8080),
    ];
    let fix = |objects: &[Value]| explained(objects, "http://h.test/").fix.unwrap();
    assert_eq!(fix(&objects[..1]), "Service a/web does not exist; create it, or name another");
    assert!(fix(&objects[..2]).starts_with("Service a/web has no EndpointSlice"));
    assert_eq!(
        fix(&objects),
        "Service a/web has no port metrics; its ports are 8080 http: correct spec.port.targetPort"
    );
    let loopback = [route("a/r", 1, json!({ "host": "h.test" })), slice("a/web", &["127.0.0.1"], 8080)];
    assert!(fix(&loopback).contains("--endpoint-addresses any"));
}

#[test]
fn queries_are_parsed_or_rejected() {
    let read = |text: &str| Query::parse(text).map(|query| query.to_string());
    assert_eq!(read("HTTP://A.test.").unwrap(), "http://a.test:80/");
    assert_eq!(read("https://a.test:8443?x").unwrap(), "https://a.test:8443/?x");
    assert_eq!(read("a.test").unwrap(), "TLS server name a.test");
    assert_eq!(read("a.test:8443").unwrap(), "TLS server name a.test:8443");
    assert_eq!(read("https://[::1]:1/").unwrap(), "https://[::1]:1/");
    assert_eq!(read("ftp://a.test"), Err(QueryError::Scheme("ftp".to_owned())));
    assert_eq!(read("https://a.test:0/"), Err(QueryError::Port("0".to_owned())));
    assert_eq!(read("http:///x"), Err(QueryError::Host(String::new())));
    assert_eq!(read("under_score!"), Err(QueryError::Host("under_score!".to_owned())));
    let explanation = explained(&shop(), "https://192.0.2.1/");
    assert_eq!(explanation.verdict, "503: 192.0.2.1 is an address, and no route has every host");
}

#[test]
fn settings_are_listed_and_non_default_ones_are_marked() {
    let mut cart =
        route("shop/cart", 1, json!({ "host": "shop.test", "path": "/cart", "tls": { "termination": "edge" } }));
    cart["spec"]["httpHeaders"] =
        json!({ "actions": { "request": [{ "name": "Accept", "action": { "type": "Delete" } }] } });
    cart["metadata"]["annotations"] = json!({
        "haproxy.router.openshift.io/balance": "leastconn",
        "haproxy.router.openshift.io/hsts_header": "max-age=1",
        "haproxy.router.openshift.io/pod-concurrent-connections": "50",
        "haproxy.router.openshift.io/rate-limit-connections": "true",
        "haproxy.router.openshift.io/rate-limit-connections.concurrent-tcp": "5",
        "haproxy.router.openshift.io/rate-limit-connections.rate-http": "100",
        "haproxy.router.openshift.io/rewrite-target": "/",
        "haproxy.router.openshift.io/timeout": "1500ms",
        "router.openshift.io/cookie-same-site": "Lax",
        "router.openshift.io/cookie_name": "cart",
        "router.openshift.io/haproxy.health.check.interval": "1m",
    });
    let mut pass = route("shop/pass", 1, json!({ "host": "pass.test", "tls": { "termination": "passthrough" } }));
    pass["metadata"]["annotations"] = json!({
        "haproxy.router.openshift.io/balance": "source",
        "haproxy.router.openshift.io/timeout": "90s",
        "router.sluice.dev/proxy-protocol": "v2",
    });
    let router = controller("default", json!({ "tuningOptions": { "tunnelTimeout": "2h" } }));
    let objects = [cart, pass, router, slice("shop/web", &["10.0.0.1"], 8080)];
    let settings_of = |query: &str| {
        let explanation = explained(&objects, query);
        let settings = explanation.steps.into_iter().find_map(|step| match step {
            ExplanationStep::Settings { settings } => Some(settings),
            _ => None,
        });
        let text = |setting: RouteSetting| {
            format!("{}{}: {}", if setting.non_default { "* " } else { "" }, setting.what, setting.value)
        };
        settings.unwrap().into_iter().map(text).collect::<Vec<_>>()
    };
    let expected = [
        "* balance: leastconn",
        "* affinity: by cookie cart, SameSite=Lax",
        "* endpoint timeout: 1500ms",
        "forwarding headers: append",
        "* rewrite: /cart to /",
        "* Strict-Transport-Security: max-age=1",
        "* route's header actions: 1 on requests, 0 on responses",
        "* tunnel timeout: 2h",
        "* limit for each client: 5 connections at once, 100 requests in 10 s",
        "* limit for each endpoint: 50 connections at once",
        "* health check: every 1m",
    ];
    assert_eq!(settings_of("https://shop.test/cart"), expected);
    let expected = [
        "* balance: source",
        "* carried by: the proxy, as the kernel does not keep this balance or these limits",
        "* PROXY header: version 2, to endpoints",
        "* tunnel timeout: 90s",
    ];
    assert_eq!(settings_of("pass.test"), expected);
}

const API: &str = "gateway.networking.k8s.io/v1";

fn of_gateway_api(kind: &str, id: &str, age: u32, spec: Value) -> Value {
    let mut object = route(id, age, json!({}));
    object["apiVersion"] = json!(if kind == "RouteSlot" { "gateway.sluice.dev/v1alpha1" } else { API });
    object["kind"] = json!(kind);
    object["spec"] = spec;
    object
}

/// A Gateway, a route with a slot for teams' routes, and the route of a team.
fn delegated() -> Vec<Value> {
    let service = |id: &str| {
        let mut service = of_gateway_api("Service", id, 1, json!({ "ports": [{ "name": "http", "port": 80 }] }));
        service["apiVersion"] = json!("v1");
        service
    };
    let class = json!({ "apiVersion": API, "kind": "GatewayClass", "metadata": { "name": "sluice" },
        "spec": { "controllerName": "sluice.dev/gateway-controller" } });
    let listener = json!({ "name": "web", "port": 80, "protocol": "HTTP", "hostname": "*.shop.test",
        "allowedRoutes": { "namespaces": { "from": "All" } } });
    let prefix = |path: &str| json!([{ "path": { "type": "PathPrefix", "value": path } }]);
    let slot = json!({ "group": "gateway.sluice.dev", "kind": "RouteSlot", "name": "teams" });
    vec![
        class,
        of_gateway_api("Gateway", "shop/public", 1, json!({ "gatewayClassName": "sluice", "listeners": [listener] })),
        of_gateway_api("RouteSlot", "shop/teams", 1, json!({ "allowedRoutes": { "namespaces": { "from": "All" } } })),
        of_gateway_api(
            "HTTPRoute",
            "shop/store",
            2,
            json!({ "parentRefs": [{ "name": "public" }], "hostnames": ["www.shop.test"], "rules": [
                { "name": "teams", "matches": prefix("/team"), "backendRefs": [slot] },
                { "matches": prefix("/old"), "filters": [
                    { "type": "RequestRedirect", "requestRedirect": { "hostname": "new.shop.test" } }] },
            ] }),
        ),
        of_gateway_api(
            "HTTPRoute",
            "red/cart",
            3,
            json!({ "parentRefs": [{ "kind": "HTTPRoute", "namespace": "shop", "name": "store" }], "rules": [
                { "matches": prefix("/cart"), "backendRefs": [{ "name": "web", "port": 80 }] }] }),
        ),
        service("red/web"),
        slice("red/web", &["10.0.0.1"], 8080),
    ]
}

#[test]
fn an_included_rule_shows_the_path_to_it() {
    let explanation = explained(&delegated(), "http://www.shop.test/team/cart/1");
    let text = explanation.to_string();
    for part in [
        "2. host\n   * www.shop.test: is of Gateway shop/public#web, and a rule takes /team/cart/1\n",
        "* /team/cart… of HTTPRoute red/cart: the first rule that takes the request",
        "rule\n   on Gateway shop/public#web\n",
        "HTTPRoute shop/store/teams\n",
        "HTTPRoute red/cart",
        "service web weight 1: 10.0.0.1:8080",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert!(explanation.served, "{text}");
    assert_eq!(explanation.verdict, "HTTPRoute red/cart gets it, on 1 endpoint");
}

#[test]
fn rules_that_redirect_or_answer_and_hosts_that_are_closed_say_so() {
    for (query, served, verdict) in [
        (
            "http://www.shop.test/old/x",
            true,
            "HTTPRoute shop/store redirects to {scheme}://new.shop.test{path} with 302",
        ),
        ("http://www.shop.test/", false, "404: Gateway shop/public#web has www.shop.test, and no rule takes /"),
        (
            "http://any.shop.test/",
            false,
            "404: Gateway shop/public#web has *.shop.test, and no route with it is attached there",
        ),
        (
            "https://www.shop.test/",
            false,
            "404: Gateway shop/public#web has www.shop.test, and no certificate for https",
        ),
        ("http://nobody.test/", false, "404: no object of router default has nobody.test"),
    ] {
        let explanation = explained(&delegated(), query);
        assert_eq!((explanation.served, &*explanation.verdict), (served, verdict), "{explanation}");
    }
}

#[test]
fn claims_of_the_exact_host_are_named_before_those_of_every_host() {
    let class = delegated().swap_remove(0);
    let gateway = |name: &str, listener: Value| {
        let spec = json!({ "gatewayClassName": "sluice", "defaultScope": "All", "listeners": [listener] });
        of_gateway_api("Gateway", &format!("shop/{name}"), 1, spec)
    };
    let objects = [
        class,
        gateway("any", json!({ "name": "web", "port": 80, "protocol": "HTTP" })),
        gateway("bytes", json!({ "name": "tcp", "port": 9000, "protocol": "TCP" })),
        gateway("close", json!({ "name": "web", "port": 80, "protocol": "HTTP", "hostname": "*.shop.test" })),
        gateway("very", json!({ "name": "web", "port": 80, "protocol": "HTTP", "hostname": "a.shop.test" })),
    ];
    let explanation = explained(&objects, "http://a.shop.test/");
    let why = "503: Gateway shop/very claims it and is not served: #web: Invalid: spec.defaultScope: ";
    assert!(explanation.verdict.starts_with(why), "{explanation}");
    let text = explanation.to_string();
    let places = ["shop/very", "shop/close", "shop/any"].map(|name| text.find(&format!("Gateway {name}")));
    assert!(places.is_sorted() && places[0].is_some(), "{places:?} in\n{text}");
    assert!(!text.contains("shop/bytes"), "a TCP listener claims no host:\n{text}");
}

#[test]
fn unrouted_requests_are_explained_as_their_client_sees_them() {
    let mut objects = delegated();
    let listener = json!({ "name": "tls", "port": 443, "protocol": "TLS", "hostname": "*.tls.test",
        "tls": { "mode": "Passthrough" } });
    let tls = json!({ "gatewayClassName": "sluice", "listeners": [listener] });
    objects.push(of_gateway_api("Gateway", "shop/tls", 1, tls));
    let explanation = explained(&objects, "https://a.tls.test/");
    let verdict = "the connection is reset: Gateway shop/tls has *.tls.test, and no TLSRoute is attached for it";
    assert_eq!((explanation.served, &*explanation.verdict), (false, verdict), "{explanation}");
    assert_eq!(explanation.outcome, [OutcomeKind::close(Flag::NoEndpoints).into()]);

    let resources = resources(objects);
    let translation = translate(&resources, &Settings::default());
    let facts = Facts::of(&translation.table, &translation.report, &resources, Trust::default());
    let call = Query::parse("http://www.shop.test/test.Greeter/Hello").unwrap();
    let call = call.with_method("POST").unwrap().with_header("content-type: application/grpc").unwrap();
    let explanation = explain(facts, &call);
    let verdict = "UNIMPLEMENTED: Gateway shop/public#web has www.shop.test, and no rule takes /test.Greeter/Hello";
    assert_eq!((explanation.served, &*explanation.verdict), (false, verdict), "{explanation}");
}

#[test]
fn losers_of_other_kinds_are_named_with_the_winner() {
    let mut objects = delegated();
    objects.push(route("blue/first", 0, json!({ "host": "www.shop.test" })));
    objects.push(slice("blue/web", &["10.0.0.2"], 8080));
    let explanation = explained(&objects, "http://www.shop.test/team/cart");
    assert_eq!(explanation.verdict, "Route blue/first gets it, on 1 endpoint");
    let text = explanation.to_string();
    assert!(text.contains("HTTPRoute shop/store") && text.contains("lost to Route blue/first"), "{text}");

    let late = [&delegated()[..], &[route("blue/late", 9, json!({ "host": "www.shop.test" }))]].concat();
    let explanation = explained(&late, "http://www.shop.test/team/cart");
    assert_eq!(explanation.verdict, "HTTPRoute red/cart gets it, on 1 endpoint");
    let text = explanation.to_string();
    assert!(text.contains("Route blue/late") && text.contains("lost to HTTPRoute shop/store"), "{text}");
}

#[test]
fn two_roots_of_one_host_are_both_reported_as_invalid() {
    let proxy = |id: &str| {
        let (namespace, name) = id.split_once('/').unwrap();
        json!({
            "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy",
            "metadata": { "namespace": namespace, "name": name },
            "spec": {
                "virtualhost": { "fqdn": "two.test" },
                "routes": [{ "services": [{ "name": "web", "port": 80 }] }],
            },
        })
    };
    let explanation = explained(&[proxy("a/one"), proxy("b/two")], "http://two.test/");
    assert_eq!(
        explanation.verdict,
        "503: HTTPProxy a/one claims it and is not served: default: Invalid: fqdn \"two.test\" is used in multiple \
         HTTPProxies: a/one, b/two"
    );
}
