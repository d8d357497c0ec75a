//! The Route as the API server would store it: the manifest with every default written out
//! (docs/openshift.md#stored-routes).

use router_model::object::Manifest;
use serde_json::{Map, Value, json};

use super::backends::DEFAULT_WEIGHT;
use super::{HOST_GENERATED, Route};
use crate::openshift::route::traffic::Traffic;

/// Sets the defaults in the manifest of a valid `route`.
pub fn stored(mut manifest: Value, route: &Route) -> Manifest {
    let Some(object) = manifest.as_object_mut() else { return Manifest::new(&manifest) };
    if route.host_generated {
        let metadata = object.entry("metadata").or_insert_with(|| json!({}));
        if let Some(metadata) = metadata.as_object_mut() {
            let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
            if annotations.is_null() {
                *annotations = json!({});
            }
            annotations[HOST_GENERATED] = json!("true");
        }
    }
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        if !route.host.is_empty() {
            spec.insert("host".to_owned(), json!(route.host));
        }
        spec.insert("wildcardPolicy".to_owned(), json!(route.wildcard_policy.as_str()));
        if let Some(to) = spec.get_mut("to").and_then(Value::as_object_mut) {
            fill_backend(to);
        }
        for alternate in spec.get_mut("alternateBackends").and_then(Value::as_array_mut).into_iter().flatten() {
            alternate.as_object_mut().into_iter().for_each(fill_backend);
        }
        if let Some(tls) = spec.get_mut("tls").and_then(Value::as_object_mut) {
            let termination = match (&route.traffic, tls.get("termination").and_then(Value::as_str)) {
                (Traffic::Passthrough { .. }, _) => "passthrough",
                (_, Some("reencrypt" | "Reencrypt")) => "reencrypt",
                _ => "edge",
            };
            tls.insert("termination".to_owned(), json!(termination));
        }
    }
    Manifest::new(&manifest)
}

fn fill_backend(backend: &mut Map<String, Value>) {
    if backend.get("kind").and_then(Value::as_str).unwrap_or_default().is_empty() {
        backend.insert("kind".to_owned(), json!("Service"));
    }
    if backend.get("weight").is_none_or(Value::is_null) {
        backend.insert("weight".to_owned(), json!(DEFAULT_WEIGHT));
    }
}
