//! Warnings: the objects that cause them, and the text for every kind of route.

use std::sync::Arc;

use router_api::testing::{controller, resources, route, service, slice};
use rustls::RootCertStore;
use serde_json::json;

use super::*;
use crate::endpoints::addresses::EndpointAddresses;
use crate::explain::explain;
use crate::explain::query::Query;
use crate::settings::Settings;
use crate::translate::translate;

/// The message about a service in every kind of object that names it: from `validate`, then from `explain`.
#[track_caller]
fn expect(backend: &[Value], expected: &str) {
    let class = json!({ "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass",
        "metadata": { "name": "sluice" }, "spec": { "controllerName": "sluice.dev/gateway-controller" } });
    let object = |api: &str, kind: &str, name: &str, spec: Value| json!({ "apiVersion": api, "kind": kind, "metadata": { "namespace": "a", "name": name }, "spec": spec });
    let gateway_api = "gateway.networking.k8s.io/v1";
    let to = json!([{ "name": "web", "port": 80 }]);
    let listeners = json!([
        { "name": "web", "port": 80, "protocol": "HTTP" },
        { "name": "tls", "port": 443, "protocol": "TLS", "tls": { "mode": "Passthrough" } },
    ]);
    let of_gateway = |section: &str, host: &str| {
        json!({ "parentRefs": [{ "name": "public", "sectionName": section }], "hostnames": [host],
            "rules": [{ "backendRefs": to }] })
    };
    let mut objects = vec![
        class,
        object(gateway_api, "Gateway", "public", json!({ "gatewayClassName": "sluice", "listeners": listeners })),
        object(gateway_api, "HTTPRoute", "http", of_gateway("web", "http.test")),
        object(gateway_api, "GRPCRoute", "grpc", of_gateway("web", "grpc.test")),
        object(gateway_api, "TLSRoute", "tls", of_gateway("tls", "tls.test")),
        object(
            "projectcontour.io/v1",
            "HTTPProxy",
            "proxy",
            json!({ "virtualhost": { "fqdn": "proxy.test" }, "routes": [{ "services": to }] }),
        ),
        object(
            "contour.heptio.com/v1beta1",
            "IngressRoute",
            "ingress",
            json!({ "virtualhost": { "fqdn": "ingress.test" }, "routes": [{ "match": "/", "services": to }] }),
        ),
        route("a/route", 1, json!({ "host": "route.test" })),
    ];
    objects.extend(backend.iter().cloned());
    let resources = resources(objects);
    let translation = translate(&resources, &Settings::default());
    let found: Vec<String> = translation
        .warnings
        .iter()
        .filter(|warning| warning.message == expected)
        .map(|warning| format!("{} {}", warning.object, warning.path))
        .collect();
    let every_kind = [
        "Route a/route spec.to",
        "HTTPRoute a/http spec.rules[0].backendRefs[0]",
        "GRPCRoute a/grpc spec.rules[0].backendRefs[0]",
        "TLSRoute a/tls spec.rules[0].backendRefs[0]",
        "IngressRoute a/ingress spec.routes[0].services[0]",
        "HTTPProxy a/proxy spec.routes[0].services[0]",
    ];
    let (mut found, mut every_kind) = (found, every_kind.map(str::to_owned));
    found.sort();
    every_kind.sort();
    assert_eq!(found, every_kind, "{expected}: {:#?}", translation.warnings);
    for url in [
        "http://http.test/",
        "http://grpc.test/",
        "http://proxy.test/",
        "http://ingress.test/",
        "http://route.test/",
        "tls.test",
    ] {
        let facts = Facts::of(&translation.table, &translation.report, &resources, Trust::default());
        let query = Query::parse(url).unwrap();
        let query = if url.contains("grpc") { query.with_method("POST").unwrap() } else { query };
        let explanation = explain(facts, &query);
        assert_eq!(explanation.fix.as_deref(), Some(expected), "{url}: {explanation}");
        let outcome = serde_json::to_value(&explanation.outcome).unwrap();
        assert_eq!(outcome[0]["cause"], "no-endpoints", "{url}: {explanation}");
    }
}

fn web(port: Value) -> Value {
    service("a/web", json!([port]))
}

#[test]
fn every_kind_reports_why_a_service_has_no_endpoint() {
    let named = || web(json!({ "name": "http", "port": 80 }));
    expect(&[named()], "Service a/web has no EndpointSlice; one needs the label kubernetes.io/service-name: web");
    let mut unready = slice("a/web", &["10.0.0.1", "10.0.0.2"], 8080);
    for endpoint in unready["endpoints"].as_array_mut().unwrap() {
        endpoint["conditions"] = json!({ "ready": false });
    }
    expect(&[named(), unready], "no endpoint of Service a/web is ready; look at its pods");
    expect(
        &[named(), slice("a/web", &[], 8080)],
        "the EndpointSlices of Service a/web list no endpoint; look at its selector and its pods",
    );
    expect(
        &[named(), slice("a/web", &["127.0.0.1"], 8080)],
        "the endpoint addresses of Service a/web are loopback, link-local or metadata addresses, which are left out; \
         --endpoint-addresses any admits them",
    );
    let mut names = slice("a/web", &[], 8080);
    names["addressType"] = json!("FQDN");
    names["endpoints"] = json!([{ "addresses": ["web.example.test"] }]);
    expect(
        &[named(), names],
        "the endpoints of EndpointSlice a/web-ipv4 are names (addressType FQDN), which are not used; write addresses",
    );
}

#[test]
fn a_gateways_gate_is_in_force_where_nobody_else_has_a_listener() {
    let class = json!({ "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass",
        "metadata": { "name": "sluice" }, "spec": { "controllerName": "sluice.dev/gateway-controller" } });
    let gateway = |name: &str, deny: &str, ports: &[u16]| {
        let listener = |port| {
            let host = format!("{name}.test");
            json!({ "name": format!("on-{port}"), "port": port, "protocol": "HTTP", "hostname": host })
        };
        let listeners: Vec<_> = ports.iter().map(listener).collect();
        let annotations = match deny {
            "" => json!({}),
            deny => json!({ "gate.sluice.dev/deny": deny }),
        };
        json!({ "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
            "metadata": { "namespace": "a", "name": name, "annotations": annotations },
            "spec": { "gatewayClassName": "sluice", "listeners": listeners } })
    };
    let in_force = |gateways: &[Value]| {
        let objects = [class.clone()].into_iter().chain(gateways.iter().cloned());
        let translation = translate(&resources(objects), &Settings::default());
        let gates = translation.table.routers.iter().filter_map(|router| {
            let gate = router.policy.gate.as_ref()?;
            Some(format!("{}: {}", router.name, gate.deny[0]))
        });
        let warnings = translation.warnings.iter().map(|warning| format!("{}: {}", warning.object, warning.message));
        (gates.collect::<Vec<_>>(), warnings.collect::<Vec<_>>())
    };
    let one = gateway("one", "192.0.2.0/24", &[80, 8080, 8081]);
    let of_controller = "Gateway a/one: gate.sluice.dev annotations are not in force on port 80: its policy is that of \
                         IngressController default; write them there";
    let (gates, warnings) = in_force(std::slice::from_ref(&one));
    assert_eq!(gates, ["gateway-8080: 192.0.2.0/24", "gateway-8081: 192.0.2.0/24"]);
    assert_eq!(warnings, [of_controller]);
    let same = gateway("two", "192.0.2.0/24", &[8080]);
    assert_eq!(in_force(&[one.clone(), same]).0, ["gateway-8080: 192.0.2.0/24", "gateway-8081: 192.0.2.0/24"]);
    let others =
        "other Gateways with listeners there have other annotations; write the same ones, or choose another port";
    for deny in ["", "198.51.100.0/24"] {
        let (gates, warnings) = in_force(&[one.clone(), gateway("two", deny, &[8080])]);
        assert_eq!(gates, ["gateway-8081: 192.0.2.0/24"]);
        let not_in_force =
            |name| format!("Gateway a/{name}: gate.sluice.dev annotations are not in force on port 8080: {others}");
        let mut expected = vec![of_controller.to_owned(), not_in_force("one")];
        expected.extend((!deny.is_empty()).then(|| not_in_force("two")));
        expected.sort();
        assert_eq!(warnings, expected);
    }
    // Listeners that are on no router have no policy: of a port of another protocol, and of a Gateway that is rejected.
    let owner = gateway("one", "192.0.2.0/24", &[8080]);
    let mut mixed = gateway("two", "198.51.100.0/24", &[8080]);
    mixed["spec"]["listeners"][0]["protocol"] = json!("TLS");
    mixed["spec"]["listeners"][0]["tls"] = json!({ "mode": "Passthrough" });
    let mut rejected = gateway("two", "198.51.100.0/24", &[80, 8080]);
    rejected["spec"]["addresses"] = json!([{ "type": "IPAddress", "value": "203.0.113.1" }]);
    let mut foreign = gateway("two", "198.51.100.0/24", &[80, 8080]);
    foreign["spec"]["gatewayClassName"] = json!("nginx");
    for other in [mixed, rejected, foreign] {
        let (gates, warnings) = in_force(&[owner.clone(), other.clone()]);
        assert_eq!(gates, ["gateway-8080: 192.0.2.0/24"]);
        assert!(!warnings.iter().any(|warning| warning.contains("gate.sluice.dev")), "{other}: {warnings:?}");
    }
}

/// Warnings about one HTTPProxy, with the output of `explain`.
fn of_port(objects: Vec<Value>) -> (Vec<String>, Option<String>) {
    let proxy = json!({ "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy",
        "metadata": { "namespace": "a", "name": "proxy" },
        "spec": { "virtualhost": { "fqdn": "proxy.test" }, "routes": [{ "services": [{ "name": "web", "port": 80 }] }] } });
    let resources = resources(objects.into_iter().chain([proxy]));
    let translation = translate(&resources, &Settings::default());
    let facts = Facts::of(&translation.table, &translation.report, &resources, Trust::default());
    let explanation = explain(facts, &Query::parse("http://proxy.test/").unwrap());
    (translation.warnings.into_iter().map(|warning| warning.message).collect(), explanation.fix)
}

#[test]
fn ports_that_differ_between_service_and_slices_are_named() {
    let fix_of = |port: Value, slice: Value| {
        let (warnings, fix) = of_port(vec![web(port), slice]);
        assert_eq!(warnings.first(), fix.as_ref());
        fix.unwrap()
    };
    let (addresses, number) = (["10.0.0.1"], 8080);
    assert_eq!(
        fix_of(json!({ "name": "web", "port": 80 }), slice("a/web", &addresses, number)),
        "port 80 (name \"web\") of Service a/web is none of its EndpointSlices', which have 8080 http: give the port of the \
         Service and that of its slices one name"
    );
    assert_eq!(
        fix_of(json!({ "port": 80, "targetPort": 9090 }), slice("a/web", &addresses, number)),
        "port 80 (targetPort 9090) of Service a/web is none of its EndpointSlices', which have 8080 http: correct its \
         targetPort, or the slices' port"
    );
    let mut udp = slice("a/web", &addresses, number);
    udp["ports"][0]["protocol"] = json!("UDP");
    assert!(fix_of(json!({ "name": "http", "port": 80 }), udp).contains("which have no TCP port"));
    // A port of a slice without endpoints does not count.
    let mut empty = slice("a/web", &[], 80);
    (empty["metadata"]["name"], empty["ports"][0]["name"]) = (json!("empty"), json!("web"));
    let (warnings, _) =
        of_port(vec![web(json!({ "name": "web", "port": 80 })), slice("a/web", &addresses, number), empty]);
    assert!(warnings[0].contains("which have 8080 http"), "{warnings:?}");
}

#[test]
fn routes_without_services_or_with_other_ports_are_reported() {
    let missing = [route("a/r", 1, json!({ "host": "r.test" }))];
    let found = translate(&resources(missing), &Settings::default()).warnings;
    assert_eq!(found[0].message, "Service a/web does not exist; create it, or name another");
    let objects = [
        route("a/r", 1, json!({ "host": "r.test", "port": { "targetPort": "metrics" } })),
        web(json!({ "name": "http", "port": 80 })),
        slice("a/web", &["10.0.0.1"], 8080),
    ];
    let found = translate(&resources(objects.clone()), &Settings::default()).warnings;
    assert_eq!(
        found[0].message,
        "Service a/web has no port metrics; its ports are 8080 http: correct spec.port.targetPort"
    );
    // No warning for a Service that exists, nor for a Route without one.
    let loopback = [route("a/r", 1, json!({ "host": "r.test" })), slice("a/web", &["127.0.0.1"], 8080)];
    let any = Settings { endpoint_addresses: EndpointAddresses::Any, ..Settings::default() };
    assert_eq!(translate(&resources(loopback), &any).warnings, []);
}

#[test]
fn endpoints_that_cannot_be_verified_are_reported_for_tls() {
    let tls = json!({ "termination": "reencrypt" });
    let objects = [
        route("a/r", 1, json!({ "host": "r.test", "tls": tls })),
        route("a/edge", 1, json!({ "host": "e.test", "tls": { "termination": "edge" } })),
        web(json!({ "name": "http", "port": 80 })),
        slice("a/web", &["10.0.0.1"], 8080),
        controller("default", json!({})),
    ];
    let resources = resources(objects);
    let table = translate(&resources, &Settings::default()).table;
    let found = unverified(&table, &resources, Trust::default());
    let found: Vec<String> = found.iter().map(|it| format!("{} {}: {}", it.object, it.path, it.message)).collect();
    assert_eq!(
        found,
        ["Route a/r spec.to: there is no CA to verify the endpoints of Service web with: write \
          spec.tls.destinationCACertificate, or start the agent with --service-ca FILE"]
    );
    let mut roots = RootCertStore::empty();
    assert_eq!(
        unverified(&table, &resources, Trust { service_ca: Some(&Arc::new(roots.clone())), system: None }).len(),
        1
    );
    let ca = router_api::testing::authority("ca");
    let ca = rustls_pki_types::CertificateDer::from(pem(&ca));
    roots.add(ca).unwrap();
    assert_eq!(unverified(&table, &resources, Trust { service_ca: Some(&Arc::new(roots)), system: None }), []);
}

fn pem(text: &str) -> Vec<u8> {
    use rustls_pki_types::pem::PemObject;
    rustls_pki_types::CertificateDer::from_pem_slice(text.as_bytes()).unwrap().to_vec()
}
