//! Ports of Services: with a name, without one, and invalid ones.

use router_api::testing::{resources, service, slice};
use router_table::table::Endpoint;
use serde_json::{Value, json};

use super::*;
use crate::endpoints::addresses::EndpointAddresses;

fn key() -> ObjectKey {
    ObjectKey::new("shop", "web")
}

/// `address h2c` of each endpoint of port 80 of a Service with these ports, or the error.
fn found(ports: Value, slice_ports: Value) -> Result<Vec<String>, ServiceError> {
    let mut slice = slice("shop/web", &["10.0.0.2", "10.0.0.1"], 0);
    slice["ports"] = slice_ports;
    let resources = resources([service("shop/web", ports), slice]);
    let index = EndpointIndex::new(&resources, EndpointAddresses::Filtered);
    let services = Services::new(&resources, &index);
    let text = |endpoint: &Endpoint| format!("{}{}", endpoint.address, if endpoint.h2c { " h2c" } else { "" });
    let endpoints = index.find(&*services.key(&key(), 80, false)?);
    assert!(index.find(&*services.key(&key(), 80, true)?).iter().all(|endpoint| endpoint.h2c));
    Ok(endpoints.iter().map(text).collect())
}

#[test]
fn ports_of_slices_match_by_name() {
    let ports = json!([{ "name": "admin", "port": 81 }, { "name": "web", "port": 80, "targetPort": 9090 }]);
    let slice = json!([{ "name": "admin", "port": 9090 }, { "name": "web", "port": 8080 }, { "port": 80 }]);
    assert_eq!(found(ports, slice).unwrap(), ["10.0.0.1:8080", "10.0.0.2:8080"]);
}

#[test]
fn a_port_without_a_name_matches_a_slice_port_without_one_or_the_target() {
    let table = [
        (json!([{ "port": 80 }]), json!([{ "port": 8080 }]), "10.0.0.1:8080"),
        (json!([{ "port": 80, "targetPort": 8080 }]), json!([{ "name": "http", "port": 8080 }]), "10.0.0.1:8080"),
        (json!([{ "port": 80, "targetPort": "http" }]), json!([{ "name": "http", "port": 3 }]), "10.0.0.1:3"),
        (json!([{ "port": 80 }]), json!([{ "name": "http", "port": 80 }]), "10.0.0.1:80"),
    ];
    for (ports, slice, first) in table {
        assert_eq!(found(ports.clone(), slice).unwrap()[0], first, "{ports}");
    }
    let others = json!([{ "name": "http", "port": 8080 }]);
    assert_eq!(found(json!([{ "port": 80 }]), others).unwrap(), Vec::<String>::new());
}

#[test]
fn the_ports_app_protocol_decides_before_the_slices() {
    let slice = |protocol: Value| json!([{ "name": "web", "port": 1, "appProtocol": protocol }]);
    let port = |protocol: Value| json!([{ "name": "web", "port": 80, "appProtocol": protocol }]);
    let table = [
        (json!("kubernetes.io/h2c"), json!(null), " h2c"),
        (json!("kubernetes.io/ws"), json!("kubernetes.io/h2c"), ""),
        (json!(null), json!("kubernetes.io/h2c"), " h2c"),
        (json!(null), json!(null), ""),
    ];
    for (of_port, of_slice, expected) in table {
        let found = found(port(of_port.clone()), slice(of_slice)).unwrap();
        assert_eq!(found[0], format!("10.0.0.1:1{expected}"), "{of_port}");
    }
}

#[test]
fn unusable_ports_have_an_error() {
    let slice = || json!([{ "port": 80 }]);
    assert_eq!(found(json!([{ "port": 81 }]), slice()), Err(ServiceError::PortNotFound));
    assert_eq!(found(json!([{ "port": 80, "protocol": "UDP" }]), slice()), Err(ServiceError::UnsupportedProtocol));
    let both = json!([{ "port": 80, "protocol": "UDP", "name": "u" }, { "port": 80, "name": "t" }]);
    assert_eq!(found(both, json!([{ "name": "t", "port": 1 }])).unwrap().len(), 2);
    let mut external = service("shop/web", json!([{ "port": 80 }]));
    external["spec"]["type"] = json!("ExternalName");
    let resources = resources([external]);
    let index = EndpointIndex::new(&resources, EndpointAddresses::Filtered);
    let services = Services::new(&resources, &index);
    assert_eq!(services.key(&key(), 80, false), Err(ServiceError::ExternalName));
    assert_eq!(services.key(&ObjectKey::new("shop", "other"), 80, false), Err(ServiceError::NotFound));
}

#[test]
fn protocols_differ_only_if_those_of_the_slices_do() {
    let with = |address: &str, protocol: Value| {
        let mut slice = slice("shop/web", &[address], 0);
        slice["ports"] = json!([{ "name": "web", "port": 1, "appProtocol": protocol }]);
        let resources = resources([slice]);
        resources.endpoint_slices.iter().next().cloned()
    };
    let mut index = EndpointIndex::new(&Resources::default(), EndpointAddresses::Filtered);
    let (service, none) = (BTreeSet::from([key()]), BTreeSet::new());
    let (http, h2c, other) =
        (|| with("10.0.0.1", json!("http")), || with("10.0.0.1", json!("h2c")), || with("10.0.0.2", json!("h2c")));
    assert_eq!(index.replace(None, http()), (service.clone(), service.clone()));
    assert_eq!(index.replace(http(), http()), (service.clone(), none.clone()));
    assert_eq!(index.replace(http(), h2c()), (service.clone(), service.clone()));
    assert_eq!(index.replace(h2c(), other()), (service.clone(), none.clone()));
    assert_eq!(index.replace(other(), None), (service.clone(), service));
    assert_eq!(index.replace(None, None), (none.clone(), none));
}
