//! A denied name below a wildcard does not match the wildcard, in the kernel's maps as in the proxy's table.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test reports by panicking")]

use std::net::SocketAddr;

use router_api::defaults::Defaults;
use router_api::parse::{ParseOutcome, parse};
use router_api::resources::Resources;
use router_common::maps::{PROTOCOL_HTTP, PROTOCOL_TLS};
use router_common::verdict::{Reason, Verdict};
use router_datapath::egress_routes::Path;
use router_datapath::image::MapImage;
use router_datapath::lower::{RouteIds, lower};
use router_datapath::pools::Pools;
use router_model::certificate::MaterialCache;
use router_model::object::Origin;
use router_translate::settings::Settings;
use router_translate::translate::translate;
use serde_json::{Value, json};

/// The maps' content for a wildcard Route, while `www.d.test` is denied; and the router's id.
fn lowered(tls: Value) -> (MapImage, u32) {
    let annotations = json!({
        "haproxy.router.openshift.io/set-forwarded-headers": "never",
        "haproxy.router.openshift.io/disable_cookies": "true",
    });
    let objects = [
        json!({"apiVersion": "operator.openshift.io/v1", "kind": "IngressController",
            "metadata": {"namespace": "openshift-ingress-operator", "name": "default"},
            "spec": {"routeAdmission": {"wildcardPolicy": "WildcardsAllowed"}}}),
        json!({"apiVersion": "route.openshift.io/v1", "kind": "Route",
            "metadata": {"namespace": "ns", "name": "wild", "annotations": annotations},
            "spec": {"host": "x.d.test", "wildcardPolicy": "Subdomain", "to": {"name": "web"}, "tls": tls}}),
        json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"namespace": "ns", "name": "web-1", "labels": {"kubernetes.io/service-name": "web"}},
            "addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}], "ports": [{"port": 8080}]}),
    ];
    let mut resources = Resources::default();
    for object in objects {
        match parse(object, Origin::default(), &Defaults::default(), &mut MaterialCache::new()).outcome {
            ParseOutcome::Good(object) => resources.insert(&object),
            other => panic!("{other:?}"),
        }
    }
    let mut settings = Settings::default();
    settings.domains.denied = vec!["www.d.test".to_owned()];
    let table = translate(&resources, &settings).table;
    let (mut ids, source) = (RouteIds::default(), "10.0.0.9".parse().unwrap());
    ids.assign(&table);
    let path = |_: SocketAddr| Ok(Path { source, interface: 1, max_segment: 1460 });
    let image = lower(&table, &[], &[], &ids, &mut Pools::new(path));
    (image, table.routers[0].id)
}

#[test]
fn a_denied_name_below_a_wildcard_is_not_steered() {
    let client = "192.0.2.1".parse().unwrap();
    for (tls, protocol, steered, not) in [
        (json!({"termination": "passthrough"}), PROTOCOL_TLS, Reason::Passthrough, Reason::TlsTerminate),
        (Value::Null, PROTOCOL_HTTP, Reason::Cleartext, Reason::NeedsProxy),
    ] {
        let (image, router) = lowered(tls);
        let reason = |name: &str| image.decide_name(router, protocol, client, name).reason;
        assert_eq!((reason("x.d.test"), reason("www.d.test")), (steered, not));
        assert_eq!((steered.verdict(), not.verdict()), (Verdict::Steer, Verdict::Pass));
    }
}
