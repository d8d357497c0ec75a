//! Objects of the worlds.

use serde_json::{Value, json};

/// Routes of a namespace, of whatever kind.
pub const EACH: usize = 20;

/// The class, and a namespace with a label.
pub fn common() -> Vec<Value> {
    vec![
        json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass",
            "metadata": { "name": "sluice" },
            "spec": { "controllerName": "sluice.dev/gateway-controller" },
        }),
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": team(1) } }),
    ]
}

/// A Gateway with its Secret.
pub fn gateway(name: &str, listeners: Value) -> [Value; 2] {
    let gateway = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
        "metadata": { "namespace": "infra", "name": name },
        "spec": { "gatewayClassName": "sluice", "listeners": listeners },
    });
    [secret("infra", 0), gateway]
}

pub fn https(name: &str, hostname: &str, secret: &str) -> Value {
    json!({
        "name": name, "port": 443, "protocol": "HTTPS", "hostname": hostname,
        "tls": { "certificateRefs": [{ "name": secret }] },
        "allowedRoutes": { "namespaces": { "from": "All" } },
    })
}

/// An HTTPRoute with its Service and slice.
pub fn http_route_of(namespace: usize, number: usize) -> [Value; 3] {
    let (name, service_name) = (team(namespace), format!("app-{number}"));
    let host = format!("app-{number}.team-{namespace:04}.example.test");
    [
        service(&name, &service_name),
        slice(&name, &service_name, namespace * EACH + number, 0),
        http_route(namespace, number, &host),
    ]
}

pub fn http_route(namespace: usize, number: usize, host: &str) -> Value {
    let mut metadata = metadata(namespace, number);
    metadata["name"] = json!(format!("app-{number}"));
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
        "metadata": metadata,
        "spec": {
            "parentRefs": [{ "namespace": "infra", "name": "public" }],
            "hostnames": [host],
            "rules": [{ "backendRefs": [{ "name": format!("app-{number}"), "port": 80 }] }],
        },
    })
}

pub fn tree_route(name: &str, parents: &Value, rules: &Value) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
        "metadata": { "namespace": "infra", "name": name },
        "spec": { "parentRefs": parents, "rules": rules },
    })
}

/// Rules that are slots, each with a prefix of its own below this one.
pub fn to_slots(slots: usize, below: &str) -> Value {
    let rule = |slot: usize| {
        json!({
            "name": format!("s{slot}"),
            "matches": [{ "path": { "value": format!("{below}/slot-{slot}") } }],
            "backendRefs": [{ "group": "gateway.sluice.dev", "kind": "RouteSlot", "name": format!("s{slot}") }],
        })
    };
    (0..slots).map(rule).collect()
}

/// A root with what it includes, and their Service.
pub fn proxies_of(namespace: usize, included: usize) -> impl Iterator<Item = Value> {
    let name = team(namespace);
    let backend = [service(&name, "web"), slice(&name, "web", namespace, 0)];
    let host = format!("app.team-{namespace:04}.example.test");
    let child = move |number: usize| {
        json!({
            "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy",
            "metadata": { "namespace": team(namespace), "name": format!("part-{number}") },
            "spec": { "routes": [{ "services": [{ "name": "web", "port": 80 }] }] },
        })
    };
    backend.into_iter().chain([root(namespace, included, &host)]).chain((0..included).map(child))
}

/// The first namespace's root is served over TLS with a Secret.
pub fn root(namespace: usize, included: usize, host: &str) -> Value {
    let include = |number: usize| json!({ "name": format!("part-{number}"), "conditions": [{ "prefix": format!("/part-{number}") }] });
    let mut virtual_host = json!({ "fqdn": host });
    if namespace == 0 {
        virtual_host["tls"] = json!({ "secretName": "tls" });
    }
    json!({
        "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy",
        "metadata": metadata(namespace, 0),
        "spec": {
            "virtualhost": virtual_host,
            "routes": [{ "services": [{ "name": "web", "port": 80 }] }],
            "includes": (0..included).map(include).collect::<Vec<_>>(),
        },
    })
}

pub fn service(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "namespace": namespace, "name": name },
        "spec": { "ports": [{ "name": "http", "port": 80, "targetPort": 8080 }] },
    })
}

/// A slice of two endpoints; what the last byte of their addresses starts from is the caller's.
pub fn slice(namespace: &str, service: &str, number: usize, host: u8) -> Value {
    let address = |last: u8| format!("10.{}.{}.{}", number / 256 % 256, number % 256, 2 * host + last);
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "namespace": namespace, "name": format!("{service}-1"),
            "labels": { "kubernetes.io/service-name": service },
        },
        "addressType": "IPv4",
        "endpoints": [{ "addresses": [address(1)] }, { "addresses": [address(2)] }],
        "ports": [{ "name": "http", "port": 8080 }],
    })
}

/// Another certificate in each round.
pub fn secret(namespace: &str, round: usize) -> Value {
    let names = vec!["secure.example.test".to_owned(), format!("round-{round}.example.test")];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": { "namespace": namespace, "name": "tls" },
        "stringData": { "tls.crt": made.cert.pem(), "tls.key": made.signing_key.serialize_pem() },
    })
}

pub fn route(namespace: usize, number: usize) -> Value {
    let mut spec =
        json!({ "to": { "kind": "Service", "name": "web", "weight": 100 }, "port": { "targetPort": "http" } });
    match number {
        0..12 => spec["host"] = json!(format!("app-{number}.team-{namespace:04}.example.test")),
        12..16 => spec["subdomain"] = json!(format!("app-{number}-team-{namespace:04}")),
        _ => {
            spec["host"] = json!(format!("shared.team-{namespace:04}.example.test"));
            spec["path"] = json!(format!("/part-{}", if number == 19 { 16 } else { number }));
        }
    }
    match number % 3 {
        1 => spec["tls"] = json!({ "termination": "edge", "insecureEdgeTerminationPolicy": "Redirect" }),
        2 if number < 16 => spec["tls"] = json!({ "termination": "passthrough" }),
        _ => {}
    }
    let mut metadata = metadata(namespace, number);
    metadata["uid"] = json!(format!("00000000-0000-4000-8000-{:012x}", namespace * EACH + number));
    metadata["labels"] = json!({ "app": format!("app-{number}") });
    json!({ "apiVersion": "route.openshift.io/v1", "kind": "Route", "metadata": metadata, "spec": spec })
}

/// Each object is a second younger than the one before.
pub fn metadata(namespace: usize, number: usize) -> Value {
    let age = namespace * EACH + number;
    json!({
        "namespace": team(namespace), "name": format!("app-{number}"),
        "creationTimestamp": format!("2026-01-{:02}T{:02}:{:02}:{:02}Z",
            1 + age / 86_400, age / 3_600 % 24, age / 60 % 60, age % 60),
    })
}

pub fn team(namespace: usize) -> String {
    format!("team-{namespace:04}")
}
