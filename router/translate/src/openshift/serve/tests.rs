//! Endpoints and their addresses.

use std::net::IpAddr;

use router_api::resources::Resources;
use router_api::testing::{resources, route, slice};
use router_model::object::ObjectKey;
use serde_json::json;

use super::*;
use crate::endpoints::EndpointIndex;
use crate::endpoints::addresses::{EndpointAddresses, is_usable};

fn endpoints(resources: &Resources, addresses: EndpointAddresses) -> Vec<String> {
    let route = resources.routes.get(&ObjectKey::new("shop", "cart")).unwrap();
    let index = EndpointIndex::new(resources, addresses);
    index.find(&key(route, &route.backends[0])).iter().map(|endpoint| endpoint.address.to_string()).collect()
}

#[test]
fn endpoints_of_all_slices_and_families_are_used_once_in_order() {
    let mut second = slice("shop/web", &["10.0.0.2", "10.0.0.1"], 8080);
    second["metadata"]["name"] = json!("another");
    let resources = resources([
        route("shop/cart", 1, json!({})),
        slice("shop/web", &["10.0.0.3", "10.0.0.2"], 8080),
        second,
        slice("shop/web", &["2001:db8::1"], 8080),
        slice("other/web", &["10.9.9.9"], 8080),
        slice("shop/other", &["10.9.9.9"], 8080),
    ]);
    let expected = ["10.0.0.1:8080", "10.0.0.2:8080", "10.0.0.3:8080", "[2001:db8::1]:8080"];
    assert_eq!(endpoints(&resources, EndpointAddresses::Filtered), expected);
}

#[test]
fn a_target_port_is_the_name_or_the_number_of_an_endpoint_port() {
    let found = |target: serde_json::Value| {
        let mut slice = slice("shop/web", &["10.0.0.1"], 8080);
        slice["ports"] =
            json!([{ "name": "http", "port": 8080 }, { "name": "admin", "port": 9090 }, { "name": "8080", "port": 1 }]);
        let spec = if target.is_null() { json!({}) } else { json!({ "port": { "targetPort": target } }) };
        endpoints(&resources([route("shop/cart", 1, spec), slice]), EndpointAddresses::Filtered)
    };
    assert_eq!(found(json!(null)), ["10.0.0.1:1", "10.0.0.1:8080", "10.0.0.1:9090"]);
    assert_eq!(found(json!("admin")), ["10.0.0.1:9090"]);
    assert_eq!(found(json!(8080)), ["10.0.0.1:1", "10.0.0.1:8080"]);
    assert_eq!(found(json!("nothing")), Vec::<String>::new());
}

#[test]
fn endpoints_that_reach_the_node_or_the_cloud_are_not_used() {
    let usable = |text: &str, policy| is_usable(text.parse::<IpAddr>().unwrap(), policy);
    let restricted = [
        "127.0.0.1",
        "127.0.127.1",
        "169.254.169.254",
        "168.63.129.16",
        "::1",
        "fe80::1",
        "fd00:ec2::254",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::127.0.0.1",
        "::127.172.127.172",
    ];
    for address in restricted {
        assert!(!usable(address, EndpointAddresses::Filtered), "{address}");
        assert!(usable(address, EndpointAddresses::Any), "{address}");
    }
    for address in ["0.0.0.0", "::", "224.0.0.1", "ff02::1", "::ffff:0.0.0.0"] {
        assert!(!usable(address, EndpointAddresses::Filtered), "{address}");
        assert!(!usable(address, EndpointAddresses::Any), "{address}");
    }
    for address in ["10.0.0.1", "192.168.1.1", "23.206.60.92", "2001:db8::1", "fd00::1", "::ffff:10.0.0.1"] {
        assert!(usable(address, EndpointAddresses::Filtered), "{address}");
    }
}

#[test]
fn services_without_weight_stay_for_clients_with_a_cookie() {
    let services = |tls: &str, annotation: &str| {
        let mut spec =
            json!({ "to": { "name": "web", "weight": 0 }, "alternateBackends": [{ "name": "b", "weight": 3 }] });
        if !tls.is_empty() {
            spec["tls"] = json!({ "termination": tls });
        }
        let mut route = route("shop/cart", 1, spec);
        route["metadata"]["annotations"] = json!({ annotation: "true" });
        let resources = resources([route, slice("shop/web", &["10.0.0.1"], 80), slice("shop/b", &["10.0.0.2"], 80)]);
        let translation = crate::translate::translate(&resources, &crate::settings::Settings::default());
        let route = Arc::clone(translation.table.routers[0].routes.values().next().unwrap());
        let chosen = route.weighted_endpoints(&translation.table.endpoints);
        assert_eq!(chosen.len(), 1);
        assert_eq!(chosen[0].0.address.to_string(), "10.0.0.2:80");
        route.cluster.services.iter().map(|s| (s.service.to_string(), s.weight)).collect::<Vec<_>>()
    };
    let (zero, three) = (("web".to_owned(), 0), ("b".to_owned(), 3));
    assert_eq!(services("", "example.test/x"), [zero.clone(), three.clone()]);
    assert_eq!(services("edge", "example.test/x"), [zero, three.clone()]);
    assert_eq!(services("edge", "haproxy.router.openshift.io/disable_cookies"), std::slice::from_ref(&three));
    assert_eq!(services("passthrough", "example.test/x"), [three]);
}

#[test]
fn draining_endpoints_serve_where_none_is_ready() {
    let found = |conditions: [serde_json::Value; 3]| {
        let mut slice = slice("shop/web", &["10.0.0.1", "10.0.0.2", "10.0.0.3"], 8080);
        for (i, conditions) in conditions.into_iter().enumerate() {
            slice["endpoints"][i]["conditions"] = conditions;
        }
        endpoints(&resources([route("shop/cart", 1, json!({})), slice]), EndpointAddresses::Filtered)
    };
    let ready = || json!({ "ready": true, "serving": true, "terminating": false });
    let draining = || json!({ "ready": false, "serving": true, "terminating": true });
    let gone = || json!({ "ready": false, "serving": false, "terminating": true });
    let starting = || json!({ "ready": false, "serving": false, "terminating": false });
    assert_eq!(found([ready(), draining(), json!({})]), ["10.0.0.1:8080", "10.0.0.3:8080"]);
    assert_eq!(found([starting(), draining(), gone()]), ["10.0.0.2:8080"]);
    assert_eq!(found([starting(), json!({ "ready": false, "terminating": true }), gone()]), Vec::<String>::new());
    assert_eq!(found([json!({ "ready": false, "serving": true }), gone(), gone()]), Vec::<String>::new());
}

#[test]
fn the_protocol_of_a_port_says_which_endpoints_speak_http2_in_clear_text() {
    let h2c = |name: &str, protocol: serde_json::Value| {
        let mut slice = slice("shop/web", &["10.0.0.1"], 8080);
        slice["ports"] = json!([{ "name": name, "port": 8080, "appProtocol": protocol }]);
        let resources = resources([route("shop/cart", 1, json!({})), slice]);
        let route = resources.routes.get(&ObjectKey::new("shop", "cart")).unwrap();
        let index = EndpointIndex::new(&resources, EndpointAddresses::Filtered);
        index.find(&key(route, &route.backends[0]))[0].h2c
    };
    for protocol in ["h2c", "kubernetes.io/h2c"] {
        assert!(h2c("http", json!(protocol)), "{protocol}");
    }
    for protocol in ["http", "H2C", "kubernetes.io/ws", "kubernetes.io/wss", "https"] {
        assert!(!h2c("h2c", json!(protocol)), "{protocol}");
    }
    for name in ["h2c", "http2", "grpc", "h2c-web", "http2-web", "grpc-api"] {
        assert!(h2c(name, json!(null)), "{name}");
    }
    for name in ["", "http", "h2", "grpcx", "http-grpc", "https"] {
        assert!(!h2c(name, json!(null)), "{name}");
    }
}
