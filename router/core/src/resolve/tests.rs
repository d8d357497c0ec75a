//! Endpoints, addresses, lists of networks.

use crate::object::TextMap;
use std::net::IpAddr;

use serde_json::json;

use super::*;
use crate::object::ObjectKey;
use crate::testing::{resources, route, slice};

fn endpoints(resources: &Resources, addresses: EndpointAddresses) -> Vec<String> {
    let route = resources.routes.get(&ObjectKey::new("shop", "cart")).unwrap();
    let index = EndpointIndex::new(resources, addresses);
    index.endpoints(route, &route.backends[0]).iter().map(|endpoint| endpoint.address.to_string()).collect()
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
fn allowlists_keep_what_is_valid_and_close_when_nothing_is() {
    let list = |annotations: &[(&str, &str)]| {
        let annotations: TextMap =
            annotations.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        allowlist(&annotations)
    };
    assert_eq!(list(&[]), None);
    let texts = |list: AllowList| list.nets.iter().map(ToString::to_string).collect::<Vec<_>>();
    let mixed =
        "192.168.1.0 2001:0db8:85a3:0000:0000:8a2e:0370 172.16.14.10/24 64:ff9b::192.168.0.1 10. ::ffff:1.2.3.4/120";
    let found = list(&[(ALLOWLIST, mixed), (WHITELIST, "0.0.0.0/0")]).unwrap();
    assert_eq!(found.invalid, ["2001:0db8:85a3:0000:0000:8a2e:0370", "10."]);
    assert_eq!(texts(found), ["192.168.1.0/32", "172.16.14.0/24", "64:ff9b::c0a8:1/128", "1.2.3.0/24"]);
    assert_eq!(texts(list(&[(WHITELIST, "10.0.0.0/8")]).unwrap()), ["10.0.0.0/8"]);
    for nothing in ["", "  ", "192.168.10.5/64"] {
        assert_eq!(list(&[(ALLOWLIST, nothing)]).unwrap().nets, []);
    }
}

#[test]
fn services_without_weight_are_left_out() {
    let spec = json!({ "to": { "name": "web", "weight": 0 }, "alternateBackends": [{ "name": "b", "weight": 3 }] });
    let resources = resources([route("shop/cart", 1, spec)]);
    let translation = crate::translate::translate(&resources, &crate::translate::Settings::default());
    let services = &translation.table.routers[0].routes.values().next().unwrap().cluster.services;
    assert_eq!(services.iter().map(|s| (&*s.service, s.weight)).collect::<Vec<_>>(), [("b", 3)]);
}
