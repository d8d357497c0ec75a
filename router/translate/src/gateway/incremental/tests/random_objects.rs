//! Random objects with few names, so that they often interact.

use std::sync::OnceLock;

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use router_api::resources::Resources;
use router_api::testing::{authority, config_map, good, service, slice};
use serde_json::{Value, json};

const API: &str = "gateway.networking.k8s.io/v1";
const HOSTS: [&str; 7] = ["a.x.test", "b.x.test", "*.x.test", "*.test", "a.y.test", "deep.a.x.test", "*.a.x.test"];

/// One change to the objects.
#[derive(Clone, Debug)]
pub enum Edit {
    Put(Value),
    Remove(Value),
    /// Adds or removes the router's TLS port.
    Routers,
}

/// Applies a change.
pub fn put(resources: &mut Resources, edit: &Edit) {
    match edit {
        Edit::Put(value) => resources.insert(&good(value.clone())),
        Edit::Remove(value) => {
            let object = good(value.clone());
            resources.set(object.key().clone(), object.kind(), None, None);
        }
        Edit::Routers => {}
    }
}

pub fn edits() -> impl Strategy<Value = Edit> {
    prop_oneof![60 => objects().prop_map(Edit::Put), 20 => objects().prop_map(Edit::Remove), 1 => Just(Edit::Routers)]
}

/// The objects at the start of each history, so that routes are soon served.
pub fn base() -> Resources {
    let all = json!({ "namespaces": { "from": "All" } });
    let listeners = json!([
        { "name": "web", "port": 80, "protocol": "HTTP", "allowedRoutes": all },
        { "name": "tls", "port": 443, "protocol": "TLS", "tls": { "mode": "Passthrough" }, "allowedRoutes": all },
    ]);
    let spec = json!({ "gatewayClassName": "sluice", "listeners": listeners });
    let ports = json!([{ "name": "http", "port": 8080 }]);
    router_api::testing::resources([
        class(true),
        named("Gateway", "red", "g0", 0, spec),
        service("red/web", ports.clone()),
        service("red/api", ports),
    ])
}

/// An object of this kind, created `age` seconds into 2024.
pub fn named(kind: &str, namespace: &str, name: &str, age: u32, spec: Value) -> Value {
    let metadata = json!({
        "namespace": namespace, "name": name, "uid": format!("{kind}{namespace}{name}"),
        "creationTimestamp": format!("2024-01-01T00:00:{age:02}Z"),
    });
    json!({ "apiVersion": API, "kind": kind, "metadata": metadata, "spec": spec })
}

fn class(is_sluice: bool) -> Value {
    let controller = if is_sluice { "sluice.dev/gateway-controller" } else { "example.com/other" };
    json!({ "apiVersion": API, "kind": "GatewayClass", "metadata": { "name": "sluice" },
        "spec": { "controllerName": controller } })
}

fn objects() -> impl Strategy<Value = Value> {
    prop_oneof![
        1 => prop_oneof![9 => Just(true), 1 => Just(false)].prop_map(class),
        8 => gateways(),
        40 => routes(),
        6 => slots(),
        4 => grants(),
        4 => policies(),
        3 => secrets(),
        3 => config_maps(),
        6 => services(),
        4 => namespaces(),
        1 => definitions(),
    ]
}

fn namespace() -> impl Strategy<Value = &'static str> {
    select(vec!["red", "green"])
}

fn from() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => Just(json!({ "from": "All" })),
        1 => Just(json!({ "from": "Same" })),
        2 => Just(json!({ "from": "Selector", "selector": { "matchLabels": { "team": "red" } } })),
    ]
}

fn gateways() -> impl Strategy<Value = Value> {
    let protocol = select(vec!["HTTP", "HTTP", "HTTPS", "Terminate", "Passthrough"]);
    let hostname = prop_oneof![2 => Just(None), 3 => select(HOSTS.to_vec()).prop_map(Some)];
    let kinds = prop_oneof![4 => Just(None), 1 => Just(Some("HTTPRoute")), 1 => Just(Some("GRPCRoute"))];
    let listener = (protocol, hostname, from(), kinds, any::<bool>(), namespace()).prop_map(
        |(protocol, hostname, from, kinds, other_port, secret)| {
            let mut listener = json!({ "allowedRoutes": { "namespaces": from } });
            if let Some(hostname) = hostname {
                listener["hostname"] = json!(hostname);
            }
            let (name, mode) = match protocol {
                "Terminate" | "Passthrough" => ("TLS", protocol),
                _ => (protocol, "Terminate"),
            };
            if let (Some(kind), true) = (kinds, protocol.starts_with("HTTP")) {
                listener["allowedRoutes"]["kinds"] = json!([{ "kind": kind }]);
            }
            listener["protocol"] = json!(name);
            if protocol != "HTTP" {
                listener["tls"] = json!({ "mode": mode });
                if mode == "Terminate" {
                    listener["tls"]["certificateRefs"] = json!([{ "namespace": secret, "name": "tls" }]);
                }
            }
            let port = match (protocol, other_port) {
                ("HTTP", false) => 80,
                ("HTTP", true) => 8080,
                (_, false) => 443,
                (_, true) => 8443,
            };
            listener["port"] = json!(port);
            listener
        },
    );
    let listeners = prop::collection::vec(listener, 1..5);
    (namespace(), 0..2u32, 0..8u32, listeners).prop_map(|(namespace, name, age, mut listeners)| {
        let mut seen = std::collections::BTreeSet::new();
        listeners
            .retain(|it| seen.insert((it["port"].to_string(), it["protocol"].to_string(), it["hostname"].to_string())));
        for (i, listener) in listeners.iter_mut().enumerate() {
            listener["name"] = json!(["web", "tls", "l2", "l3"][i]);
        }
        let spec = json!({ "gatewayClassName": "sluice", "listeners": listeners });
        named("Gateway", namespace, &format!("g{name}"), age, spec)
    })
}

fn parents() -> impl Strategy<Value = Value> {
    let section = prop_oneof![3 => Just(None), 1 => select(vec!["web", "tls", "l2", "slot"]).prop_map(Some)];
    let parent = (namespace(), 0..6u32, section).prop_map(|(namespace, which, section)| {
        let mut parent = match which {
            0..3 => json!({ "namespace": "red", "name": "g0" }),
            3 => json!({ "namespace": namespace, "name": "g1" }),
            4 => json!({ "namespace": namespace, "kind": "HTTPRoute", "name": "r0" }),
            _ => json!({ "namespace": namespace, "kind": "TLSRoute", "name": "r1" }),
        };
        if let Some(section) = section {
            parent["sectionName"] = json!(section);
        }
        parent
    });
    prop::collection::vec(parent, 1..3).prop_map(|mut parents| {
        let mut seen = std::collections::BTreeSet::new();
        parents.retain(|parent| seen.insert((parent["namespace"].to_string(), parent["name"].to_string())));
        json!(parents)
    })
}

fn backends() -> impl Strategy<Value = Value> {
    (0..6u32, any::<bool>()).prop_map(|(which, red)| {
        let mut backend = match which {
            0 => json!({ "group": "gateway.sluice.dev", "kind": "RouteSlot", "name": "slot" }),
            1 => json!({ "group": "gateway.sluice.dev", "kind": "RouteSlot", "name": "other" }),
            2 => json!({ "name": "api", "port": 8080 }),
            _ => json!({ "name": "web", "port": 8080 }),
        };
        if red && which > 1 {
            backend["namespace"] = json!("red");
        }
        backend
    })
}

fn routes() -> impl Strategy<Value = Value> {
    let kind = select(vec!["HTTPRoute", "HTTPRoute", "HTTPRoute", "GRPCRoute", "TLSRoute", "TLSRoute"]);
    let rule = (backends(), select(vec!["/", "/p"]), any::<bool>(), any::<bool>());
    let hostnames = subsequence(HOSTS.to_vec(), 0..3);
    (namespace(), kind, 0..4u32, 0..8u32, parents(), hostnames, prop::collection::vec(rule, 1..3)).prop_map(
        |(namespace, kind, name, age, parents, mut hostnames, mut rules)| {
            if kind == "TLSRoute" {
                rules.truncate(1);
                if hostnames.is_empty() {
                    hostnames.push("a.x.test");
                }
            }
            let rule = |(i, (backend, path, mirrors, named)): (usize, (Value, &str, bool, bool))| {
                let mut rule = json!({ "backendRefs": [backend] });
                if named && i == 0 {
                    rule["name"] = json!("slot");
                }
                if kind == "HTTPRoute" {
                    rule["matches"] = json!([{ "path": { "type": "PathPrefix", "value": path } }]);
                    if mirrors {
                        let target = json!({ "namespace": "red", "name": "api", "port": 8080 });
                        rule["filters"] =
                            json!([{ "type": "RequestMirror", "requestMirror": { "backendRef": target } }]);
                    }
                }
                rule
            };
            let rules: Vec<Value> = rules.into_iter().enumerate().map(rule).collect();
            let spec = json!({ "parentRefs": parents, "hostnames": hostnames, "rules": rules });
            named_route(kind, namespace, name, age, spec)
        },
    )
}

fn named_route(kind: &str, namespace: &str, name: u32, age: u32, spec: Value) -> Value {
    named(kind, namespace, &format!("r{name}"), age, spec)
}

fn slots() -> impl Strategy<Value = Value> {
    (namespace(), select(vec!["slot", "other"]), from()).prop_map(|(namespace, name, from)| {
        let mut slot = named("RouteSlot", namespace, name, 1, json!({ "allowedRoutes": { "namespaces": from } }));
        slot["apiVersion"] = json!("gateway.sluice.dev/v1alpha1");
        slot
    })
}

fn grants() -> impl Strategy<Value = Value> {
    (namespace(), 0..2u32, any::<bool>(), any::<bool>()).prop_map(|(namespace, name, http, secrets)| {
        let kinds = if http { vec!["HTTPRoute", "Gateway"] } else { vec!["GRPCRoute", "TLSRoute", "Gateway"] };
        let from: Vec<Value> = kinds
            .into_iter()
            .flat_map(|kind| {
                ["red", "green"].map(
                    |namespace| json!({ "group": "gateway.networking.k8s.io", "kind": kind, "namespace": namespace }),
                )
            })
            .collect();
        let to = if secrets { "Secret" } else { "Service" };
        let spec = json!({ "from": from, "to": [{ "group": "", "kind": to }] });
        let mut grant = named("ReferenceGrant", namespace, &format!("n{name}"), 1, spec);
        grant["apiVersion"] = json!("gateway.networking.k8s.io/v1beta1");
        grant
    })
}

fn policies() -> impl Strategy<Value = Value> {
    (0..3u32, 0..8u32, any::<bool>(), any::<bool>()).prop_map(|(name, age, api, of_port)| {
        let mut target = json!({ "group": "", "kind": "Service", "name": if api { "api" } else { "web" } });
        if of_port {
            target["sectionName"] = json!("http");
        }
        let ca = json!([{ "group": "", "kind": "ConfigMap", "name": "ca" }]);
        let validation = json!({ "hostname": "backend.test", "caCertificateRefs": ca });
        let spec = json!({ "targetRefs": [target], "validation": validation });
        named("BackendTLSPolicy", "red", &format!("p{name}"), age, spec)
    })
}

/// A Secret `tls` of a namespace with one of two certificates.
pub fn secret(namespace: &str, which: usize) -> Value {
    static MADE: OnceLock<[(String, String); 2]> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        ["a.x.test", "*.x.test"].map(|name| {
            let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
            (made.cert.pem(), made.signing_key.serialize_pem())
        })
    });
    let (certificate, key) = &made[which];
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "namespace": namespace, "name": "tls" },
        "type": "kubernetes.io/tls", "stringData": { "tls.crt": certificate, "tls.key": key },
    })
}

fn secrets() -> impl Strategy<Value = Value> {
    (namespace(), 0..2usize).prop_map(|(namespace, which)| secret(namespace, which))
}

fn config_maps() -> impl Strategy<Value = Value> {
    static MADE: OnceLock<String> = OnceLock::new();
    any::<bool>().prop_map(|is_valid| {
        let ca = MADE.get_or_init(|| authority("ca"));
        config_map("red/ca", if is_valid { json!({ "ca.crt": ca }) } else { json!({ "other": "" }) })
    })
}

fn services() -> impl Strategy<Value = Value> {
    let protocol = || select(vec![None, None, Some("kubernetes.io/h2c"), Some("https"), Some("other.example/x")]);
    let services = (namespace(), any::<bool>(), select(vec![8080, 9090]), protocol(), any::<bool>()).prop_map(
        |(namespace, api, port, protocol, has_name)| {
            let mut own = json!({ "port": port });
            if has_name {
                own["name"] = json!("http");
            }
            if let Some(protocol) = protocol {
                own["appProtocol"] = json!(protocol);
            }
            service(&format!("{namespace}/{}", if api { "api" } else { "web" }), json!([own]))
        },
    );
    let slices = (namespace(), any::<bool>(), protocol()).prop_map(|(namespace, api, protocol)| {
        let mut slice = slice(&format!("{namespace}/{}", if api { "api" } else { "web" }), &["10.0.0.1"], 8080);
        slice["ports"][0]["appProtocol"] = json!(protocol);
        slice
    });
    prop_oneof![services, slices]
}

fn namespaces() -> impl Strategy<Value = Value> {
    (namespace(), any::<bool>()).prop_map(|(namespace, red)| {
        let labels = if red { json!({ "team": "red" }) } else { json!({ "team": "other" }) };
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace, "labels": labels } })
    })
}

fn definitions() -> impl Strategy<Value = Value> {
    select(vec!["v1.4.0", "v0.8.0"]).prop_map(|version| {
        let annotations = json!({ "gateway.networking.k8s.io/bundle-version": version });
        json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": "gateways.gateway.networking.k8s.io", "annotations": annotations }, "spec": {} })
    })
}
