//! Traffic policies of routes and routers, as the table has them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use std::sync::Arc;

use router_api::testing::{controller, resources, route};
use router_table::policy::Balance;
use router_table::table::*;
use router_translate::settings::Settings;
use router_translate::translate::translate;
use serde_json::{Value, json};

const NEVER: &str = "haproxy.router.openshift.io/set-forwarded-headers";
const COOKIES: &str = "haproxy.router.openshift.io/disable_cookies";

fn annotated(id: &str, spec: Value, annotations: Value) -> Value {
    let mut object = route(id, 1, spec);
    object["metadata"]["annotations"] = annotations;
    object
}

fn router(objects: impl IntoIterator<Item = Value>) -> Arc<RouterTable> {
    Arc::clone(&translate(&resources(objects), &Settings::default()).table.routers[0])
}

/// The route to which clear text for `h.test` may be steered.
fn steered(objects: impl IntoIterator<Item = Value>) -> Option<String> {
    let router = router(objects);
    let host = router.hosts.iter().find(|host| host.host.to_string() == "h.test")?;
    host.steerable_cleartext().map(|route| route.id.to_string())
}

#[test]
fn clear_text_is_steered_where_no_request_needs_to_be_read() {
    let never = || json!({ NEVER: "never", COOKIES: "true" });
    let one = |spec: Value, annotations: Value| {
        let mut spec = spec;
        spec["host"] = json!("h.test");
        steered([annotated("a/b", spec, annotations)])
    };
    let tls = |termination: &str, insecure: &str| json!({ "tls": { "termination": termination, "insecureEdgeTerminationPolicy": insecure } });
    assert_eq!(one(json!({}), never()).as_deref(), Some("a/b"));
    assert_eq!(one(tls("edge", "Allow"), never()).as_deref(), Some("a/b"));
    let with = |name: &str, text: &str| {
        let mut annotations = never();
        annotations[format!("haproxy.router.openshift.io/{name}")] = json!(text);
        annotations
    };
    // None of these concerns the requests of a clear-text connection; an invalid value is ignored.
    let left_alone = [
        with("balance", "random"),
        with("rewrite-target", "bad"),
        with("hsts_header", "max-age=1"),
        with("rate-limit-connections.rate-http", "5"),
    ];
    for annotations in left_alone {
        assert!(one(tls("edge", "Allow"), annotations.clone()).is_some(), "{annotations}");
    }

    let header_work = json!({ "httpHeaders": { "actions": { "response": [
        { "name": "Server", "action": { "type": "Delete" } },
    ] } } });
    let refused = [
        (json!({}), json!({})),
        (json!({}), json!({ NEVER: "never" })),
        (json!({}), json!({ NEVER: "never", COOKIES: "false" })),
        (json!({}), json!({ NEVER: "if-none", COOKIES: "true" })),
        (json!({}), json!({ NEVER: "Never", COOKIES: "true" })),
        (json!({ "path": "/" }), never()),
        (json!({ "path": "/x" }), never()),
        (tls("edge", "Redirect"), never()),
        (tls("edge", "None"), never()),
        (tls("reencrypt", "Allow"), never()),
        (tls("passthrough", "Redirect"), never()),
        (header_work, never()),
        (json!({}), with("rewrite-target", "/")),
        (json!({}), with("timeout", "5s")),
        (json!({}), with("h1-adjust-case", "true")),
        (json!({}), with("pod-concurrent-connections", "5")),
        (json!({}), with("balance", "source")),
        (json!({}), with("balance", "leastconn")),
    ];
    for (spec, annotations) in refused {
        assert_eq!(one(spec.clone(), annotations.clone()), None, "{spec} {annotations}");
    }

    for limit in ["concurrent-tcp", "rate-tcp", "rate-http"] {
        let mut annotations = with("rate-limit-connections", "true");
        annotations[format!("haproxy.router.openshift.io/rate-limit-connections.{limit}")] = json!("5");
        assert_eq!(one(json!({}), annotations), None, "{limit}");
    }

    // A second clear-text route makes the request decide; one for TLS only does not.
    let plain = || annotated("a/b", json!({ "host": "h.test" }), never());
    let other = |spec: Value| {
        let mut spec = spec;
        spec["host"] = json!("h.test");
        spec["path"] = json!("/other");
        annotated("a/c", spec, never())
    };
    assert_eq!(steered([plain(), other(json!({}))]), None);
    assert_eq!(steered([plain(), other(tls("edge", "Allow"))]), None);
    assert_eq!(steered([plain(), other(tls("edge", "None"))]).as_deref(), Some("a/b"));
}

#[test]
fn settings_of_the_router_hold_for_all_its_routes() {
    let with = |spec: Value, mut annotations: Value| {
        let controller = controller("default", spec);
        annotations[COOKIES] = json!("true");
        steered([controller, annotated("a/b", json!({ "host": "h.test" }), annotations)]).is_some()
    };
    let policy = |policy: &str| json!({ "httpHeaders": { "forwardedHeaderPolicy": policy } });
    assert!(with(policy("Never"), json!({})));
    assert!(!with(policy("Never"), json!({ NEVER: "append" })));
    assert!(!with(policy("Replace"), json!({})));
    assert!(with(policy("Replace"), json!({ NEVER: "never" })));
    // An invalid value is ignored.
    assert!(with(policy("Never"), json!({ NEVER: "Append" })));
    let work = [
        json!({ "httpHeaders": { "uniqueId": { "name": "X-Id" } } }),
        json!({ "httpHeaders": { "actions": { "request": [{ "name": "Accept", "action": { "type": "Delete" } }] } } }),
        json!({ "httpHeaders": { "headerNameCaseAdjustments": ["Host"] } }),
        json!({ "httpCompression": { "mimeTypes": ["text/html"] } }),
        json!({ "tuningOptions": { "serverTimeout": "5s" } }),
        json!({ "logging": { "access": {
            "destination": { "type": "Container" },
            "httpCaptureHeaders": { "request": [{ "name": "Referer", "maxLength": 9 }] },
        } } }),
        json!({ "clientTLS": { "clientCertificatePolicy": "Optional", "clientCA": { "name": "clients" } } }),
    ];
    for work in work {
        assert!(!with(work.clone(), json!({ NEVER: "never" })), "{work}");
    }
    // Then endpoints get normalized paths from every route, also from one that matches every path.
    for (value, is_steered) in [("true", false), ("false", true)] {
        let mut controller = controller("default", json!({}));
        controller["metadata"]["annotations"] = json!({ "router.sluice.dev/normalize-path": value });
        let route = annotated("a/b", json!({ "host": "h.test" }), json!({ NEVER: "never", COOKIES: "true" }));
        assert_eq!(steered([controller, route]).is_some(), is_steered, "{value}");
    }
}

#[test]
fn tunnels_are_timed_by_the_route_and_then_by_the_router() {
    let timeout = |router_says: Value, spec: Value, annotations: Value| {
        let controller = controller("default", json!({ "tuningOptions": { "tunnelTimeout": router_says } }));
        let router = router([controller, annotated("a/b", spec, annotations)]);
        router.routes.values().next().unwrap().tunnel_timeout().map(|timeout| timeout.as_millis())
    };
    let passthrough = || json!({ "host": "h.test", "tls": { "termination": "passthrough" } });
    let plain = || json!({ "host": "h.test" });
    let own = || json!({ "haproxy.router.openshift.io/timeout": "5s" });
    assert_eq!(timeout(json!(null), passthrough(), json!({})), None);
    assert_eq!(timeout(json!("2h"), passthrough(), json!({})), Some(7_200_000));
    assert_eq!(timeout(json!("2h"), passthrough(), own()), Some(5000));
    assert_eq!(timeout(json!("2h"), plain(), own()), Some(7_200_000));
    assert_eq!(timeout(json!("1000h"), plain(), json!({})), Some(2_147_483_647));
}

#[test]
fn the_proxy_header_is_the_passthrough_routes_own_wish() {
    let wants = |termination: &str| {
        let spec = json!({ "host": "h.test", "tls": { "termination": termination } });
        let router = router([annotated("a/b", spec, json!({ "router.sluice.dev/proxy-protocol": "v2" }))]);
        router.routes.values().next().unwrap().proxy_protocol
    };
    assert!(wants("passthrough"));
    assert!(!wants("edge"));
}

#[test]
fn a_passthrough_route_whose_limits_or_balance_the_kernel_cannot_keep_is_relayed() {
    let relay_only = |annotations: Value| {
        let spec = json!({ "host": "h.test", "tls": { "termination": "passthrough" } });
        let router = router([annotated("a/b", spec, annotations)]);
        let route = router.routes.values().next().unwrap();
        assert!(!route.request_work);
        route.relay_only
    };
    let with = |name: &str, text: &str| json!({ format!("haproxy.router.openshift.io/{name}"): text });
    for (name, text) in [("balance", "roundrobin"), ("balance", "random"), ("timeout", "5s"), ("balance", "bad")] {
        assert!(!relay_only(with(name, text)), "{name} {text}");
    }
    for (name, text) in [("balance", "source"), ("balance", "leastconn"), ("pod-concurrent-connections", "5")] {
        assert!(relay_only(with(name, text)), "{name} {text}");
    }
    assert!(!relay_only(json!({ "router.openshift.io/haproxy.health.check.interval": "9s" })));
    let mut limited = with("rate-limit-connections", "true");
    limited["haproxy.router.openshift.io/rate-limit-connections.rate-tcp"] = json!("5");
    assert!(relay_only(limited));
}

#[test]
fn routes_that_ask_for_nothing_share_one_policy() {
    let router = router([
        annotated("a/b", json!({ "host": "b.test" }), json!({})),
        annotated("a/c", json!({ "host": "c.test" }), json!({ "haproxy.router.openshift.io/balance": "bad" })),
        annotated("a/d", json!({ "host": "d.test" }), json!({ "haproxy.router.openshift.io/balance": "source" })),
    ]);
    let policies: Vec<_> = router.routes.values().map(|route| Arc::clone(&route.policy)).collect();
    assert!(Arc::ptr_eq(&policies[0], &policies[1]));
    assert_eq!(policies[2].balance, Some(Balance::Source));
}

#[test]
fn plain_is_a_route_that_has_every_clear_text_request_of_its_host() {
    let plain = |spec: Value, annotations: Value| {
        let router = router([annotated("a/b", spec, annotations)]);
        let route = router.routes.values().next().unwrap();
        let name = router_model::names::Hostname::parse("h.test").unwrap();
        let source = [192, 0, 2, 1].into();
        let found = |path| {
            matches!(router.match_cleartext_request(&name, path), router_table::lookup::RequestMatch::Forward(_))
        };
        // The guarantee of `is_plain`.
        assert!(!route.is_plain || (found("/") && found("/any/path") && route.admits_source(source)), "{route:?}");
        route.is_plain
    };
    let host = |more: Value| {
        let mut spec = json!({ "host": "h.test" });
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        spec
    };
    let edge = |insecure| host(json!({ "tls": { "termination": "edge", "insecureEdgeTerminationPolicy": insecure } }));
    assert!(plain(host(json!({})), json!({})));
    assert!(plain(edge("Allow"), json!({})));
    assert!(!plain(edge("None"), json!({})));
    assert!(!plain(edge("Redirect"), json!({})));
    assert!(!plain(host(json!({ "path": "/shop" })), json!({})));
    assert!(!plain(host(json!({ "tls": { "termination": "passthrough" } })), json!({})));
    assert!(!plain(host(json!({})), json!({ "haproxy.router.openshift.io/ip_allowlist": "198.51.100.0/24" })));
}

#[test]
fn a_service_that_cannot_be_used_fails_with_its_status() {
    let ports = PortChoice::Target(None);
    let key = Arc::new(EndpointsKey { namespace: "a".into(), service: "s".into(), ports });
    let endpoint = Endpoint { address: "10.0.0.1:80".parse().unwrap(), target: None, h2c: false };
    let endpoints: Endpoints = [(Arc::clone(&key), [endpoint].into())].into_iter().collect();
    let service = |failure: Option<Option<u16>>| WeightedService {
        service: "s".into(),
        port: None,
        weight: 1,
        key: Some(Arc::clone(&key)),
        policy: failure.map(|failure| Arc::new(router_table::rule::BackendPolicy { failure, ..Default::default() })),
    };
    for (failure, status) in [(None, None), (Some(None), None), (Some(Some(500)), Some(500))] {
        let service = service(failure);
        assert_eq!((service.failure(), service.is_usable(&endpoints)), (status, status.is_none()));
    }
    let idle = WeightedService { key: None, ..service(None) };
    assert!(!idle.is_usable(&endpoints) && !service(None).is_usable(&Endpoints::default()));
}

#[test]
fn what_is_worked_out_from_a_route_is_made_once_and_of_one_type() {
    let slot = Derived::default();
    assert_eq!((slot.get::<u32>(), format!("{slot:?}").as_str()), (None, "Derived(false)"));
    assert_eq!((slot.get_or_init(|| 7_u32), slot.get_or_init(|| 8_u32)), (Some(&7), Some(&7)));
    assert_eq!((slot.get::<u32>(), slot.get::<u8>(), slot.get_or_init(|| 9_u8)), (Some(&7), None, None));
    assert_eq!(format!("{slot:?}"), "Derived(true)");
}
