//! Objects of Gateway API.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::named;

const GATEWAY_API: &str = "gateway.networking.k8s.io/v1";

/// GatewayClasses, Gateways with all kinds of listeners, routes, grants, slots, policies and definitions.
pub fn objects() -> impl Strategy<Value = Value> {
    let namespace = prop_oneof![Just("red"), Just("green")];
    let host =
        || prop_oneof![Just("a.x.test"), Just("x.test"), Just("*.x.test"), Just("a.y.test"), Just("deep.a.x.test")];
    let class = any::<bool>().prop_map(|ours| {
        let controller = if ours { "sluice.dev/gateway-controller" } else { "example.com/other" };
        json!({ "apiVersion": GATEWAY_API, "kind": "GatewayClass", "metadata": { "name": "sluice" },
            "spec": { "controllerName": controller } })
    });
    let gateways = (namespace.clone(), 0..2u32, 0..8u32, host(), 0..3u8, any::<bool>()).prop_map(
        |(namespace, name, age, host, from, other_port)| {
            let allowed = match from {
                0 => json!({ "namespaces": { "from": "All" } }),
                1 => json!({ "namespaces": { "from": "Same" } }),
                _ => json!({ "namespaces": { "from": "Selector",
                    "selector": { "matchLabels": { "team": "red" } } } }),
            };
            let certificate = json!({ "name": "cert", "namespace": "red" });
            let port = if other_port { 8080 } else { 80 };
            let listeners = json!([
                { "name": "web", "port": port, "protocol": "HTTP", "allowedRoutes": allowed },
                { "name": "named", "port": port, "protocol": "HTTP", "hostname": host, "allowedRoutes": allowed },
                { "name": "tls", "port": 443, "protocol": "TLS", "hostname": host, "allowedRoutes": allowed,
                    "tls": { "mode": "Passthrough" } },
                { "name": "https", "port": 8443, "protocol": "HTTPS", "hostname": host, "allowedRoutes": allowed,
                    "tls": { "certificateRefs": [certificate] } },
            ]);
            let spec = json!({ "gatewayClassName": "sluice", "listeners": listeners });
            named(GATEWAY_API, "Gateway", (namespace, &format!("g{name}")), age, spec)
        },
    );
    let parent = (namespace.clone(), 0..3u32).prop_map(|(namespace, name)| match name {
        0 => json!({ "namespace": "red", "name": "g0" }),
        1 => json!({ "namespace": namespace, "name": "g1" }),
        _ => json!({ "namespace": namespace, "kind": "HTTPRoute", "name": "h0" }),
    });
    let routes = (
        namespace.clone(),
        prop_oneof![3 => Just("HTTPRoute"), 1 => Just("GRPCRoute"), 1 => Just("TLSRoute")],
        (0..3u32, 0..8u32),
        parent,
        host(),
        prop_oneof![Just("/"), Just("/p")],
        prop_oneof![3 => Just(("", "Service", "web")), 1 => Just(("", "Service", "api")),
            1 => Just(("gateway.sluice.dev", "RouteSlot", "slot"))],
        any::<bool>(),
    )
        .prop_map(|(namespace, kind, (name, age), parent, host, path, backend, red)| {
            let (group, target, service) = backend;
            let mut backend = json!({ "group": group, "kind": target, "name": service });
            if target == "Service" {
                backend["port"] = json!(8080);
                if red {
                    backend["namespace"] = json!("red");
                }
            }
            let mut rule = json!({ "backendRefs": [backend] });
            if kind == "HTTPRoute" {
                rule["matches"] = json!([{ "path": { "type": "PathPrefix", "value": path } }]);
            }
            let spec = json!({ "parentRefs": [parent], "hostnames": [host], "rules": [rule] });
            let prefix = kind[..1].to_lowercase();
            named(GATEWAY_API, kind, (namespace, &format!("{prefix}{name}")), age, spec)
        });
    let grants = (namespace.clone(), 0..3u8).prop_map(|(namespace, to)| {
        if to == 0 {
            let from = json!({ "group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": "green" });
            let spec = json!({ "from": [from], "to": [{ "group": "", "kind": "Secret", "name": "cert" }] });
            return named(GATEWAY_API, "ReferenceGrant", ("red", "secrets"), 1, spec);
        }
        let from = ["HTTPRoute", "GRPCRoute", "TLSRoute"]
            .map(|kind| json!({ "group": "gateway.networking.k8s.io", "kind": kind, "namespace": namespace }));
        let spec = json!({ "from": from, "to": [{ "group": "", "kind": "Service" }] });
        named(GATEWAY_API, "ReferenceGrant", ("red", namespace), 1, spec)
    });
    let slots = (namespace, 0..3u8).prop_map(|(namespace, from)| {
        let kind = ["All", "Same", "Selector"][usize::from(from)];
        let mut namespaces = json!({ "from": kind });
        if from == 2 {
            namespaces["selector"] = json!({ "matchLabels": { "team": "red" } });
        }
        let spec = json!({ "allowedRoutes": { "namespaces": namespaces } });
        named("gateway.sluice.dev/v1alpha1", "RouteSlot", (namespace, "slot"), 1, spec)
    });
    let policies = (any::<bool>(), 0..4u32, any::<bool>()).prop_map(|(api, age, pages)| {
        let service = json!({ "group": "", "kind": "Service", "name": if api { "api" } else { "web" } });
        let ca = json!({ "group": "", "kind": "ConfigMap", "name": if pages { "pages" } else { "else" } });
        let spec = json!({ "targetRefs": [service],
            "validation": { "hostname": "web.test", "caCertificateRefs": [ca] } });
        named(GATEWAY_API, "BackendTLSPolicy", ("red", &format!("p{age}")), age, spec)
    });
    let definitions = any::<bool>().prop_map(|old| {
        json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": "gateways.gateway.networking.k8s.io", "annotations": {
                "gateway.networking.k8s.io/bundle-version": if old { "v0.8.0" } else { "v1.2.0" } } },
            "spec": {} })
    });
    prop_oneof![2 => class, 4 => gateways, 8 => routes, 2 => grants, 2 => slots, 2 => policies, 1 => definitions]
}
