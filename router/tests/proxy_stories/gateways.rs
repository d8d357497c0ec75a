//! Gateway API objects for [`crate::manifests::World`], in namespace `test`.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::manifests::{object, service};
use crate::pki::Ca;

const GROUP: &str = "gateway.networking.k8s.io/v1";

/// A class and a Gateway `public` with these listeners.
pub fn gateway(listeners: Value) -> Vec<Value> {
    let class = json!({ "controllerName": "sluice.dev/gateway-controller" });
    let class = json!({ "apiVersion": GROUP, "kind": "GatewayClass", "metadata": { "name": "sluice" }, "spec": class });
    let spec = json!({ "gatewayClassName": "sluice", "listeners": listeners });
    vec![class, object(GROUP, "Gateway", "public", spec)]
}

/// The same with a listener for clear text.
pub fn web() -> Vec<Value> {
    gateway(json!([{ "name": "web", "port": 80, "protocol": "HTTP" }]))
}

/// A Service with port 80, this `appProtocol` unless it is empty, and its endpoints.
pub fn speaking(name: &str, protocol: &str, endpoints: &[SocketAddr]) -> Vec<Value> {
    let mut objects = service(name, endpoints);
    if !protocol.is_empty() {
        objects[0]["spec"]["ports"][0]["appProtocol"] = json!(protocol);
    }
    objects
}

/// A ConfigMap with the certificate of an authority.
pub fn ca_map(name: &str, ca: &Ca) -> Value {
    let metadata = json!({ "namespace": "test", "name": name });
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": { "ca.crt": ca.pem() } })
}

/// A BackendTLSPolicy for a Service of the same name.
pub fn tls_policy(name: &str, validation: Value) -> Value {
    let target = json!({ "group": "", "kind": "Service", "name": name });
    object(GROUP, "BackendTLSPolicy", name, json!({ "targetRefs": [target], "validation": validation }))
}

/// A route of `public` of this kind, with the host `NAME.world.test` and a rule.
pub fn route(kind: &str, name: &str, rule: Value) -> Value {
    let spec = json!({
        "parentRefs": [{ "name": "public" }],
        "hostnames": [format!("{name}.world.test")],
        "rules": [rule],
    });
    object(GROUP, kind, name, spec)
}

/// A rule whose backends are port 80 of these Services.
pub fn to(backends: &[&str]) -> Value {
    json!({ "backendRefs": crate::manifests::to(backends) })
}
