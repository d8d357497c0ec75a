//! Test helpers of several crates: objects from short descriptions, names in documents.
#![allow(clippy::expect_used, clippy::panic, reason = "a test stops at the first surprise")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use router_model::certificate::MaterialCache;
use router_model::field::FieldError;
use router_model::object::Origin;
use serde_json::{Value, json};

use crate::defaults::Defaults;
use crate::object::Object;
use crate::parse::{ParseOutcome, Parsed, parse};
use crate::resources::{RejectedManifest, Resources};

/// Parses one object with the default settings.
pub fn parsed(value: Value) -> Parsed {
    parse(value, Origin::default(), &Defaults::default(), &mut MaterialCache::new())
}

/// Parses an object that must be valid.
pub fn good(value: Value) -> Object {
    match parsed(value).outcome {
        ParseOutcome::Good(object) => object,
        other => panic!("not a good object: {other:?}"),
    }
}

/// The errors of an object that must be rejected, as `path: message`.
pub fn refusals(value: Value) -> Vec<String> {
    let texts = |errors: Vec<FieldError>| errors.iter().map(ToString::to_string).collect();
    match parsed(value).outcome {
        ParseOutcome::Refused { errors, .. } | ParseOutcome::Unidentified(errors) => texts(errors),
        other => panic!("not refused: {other:?}"),
    }
}

/// Resources of objects that must be valid.
pub fn resources(values: impl IntoIterator<Item = Value>) -> Resources {
    let mut resources = Resources::default();
    for value in values {
        resources.insert(&good(value));
    }
    resources
}

/// A version of `value` that is rejected with this problem.
pub fn refused(value: Value, problem: &str) -> Arc<RejectedManifest> {
    Arc::new(RejectedManifest { problem: problem.to_owned(), manifest: router_model::object::Manifest::new(&value) })
}

/// A route `namespace/name`, created `age` seconds into 2024, with this `spec` beside a backend named `web`.
pub fn route(id: &str, age: u32, spec: Value) -> Value {
    let (namespace, name) = id.split_once('/').expect("namespace/name");
    let mut object = json!({
        "apiVersion": "route.openshift.io/v1",
        "kind": "Route",
        "metadata": {
            "namespace": namespace,
            "name": name,
            "creationTimestamp": format!("2024-01-01T{:02}:{:02}:{:02}Z", age / 3600, age / 60 % 60, age % 60),
        },
        "spec": { "to": { "name": "web" } },
    });
    for (key, value) in spec.as_object().expect("a mapping") {
        object["spec"][key] = value.clone();
    }
    object
}

/// A slice of the service `namespace/name` with one port.
pub fn slice(service: &str, addresses: &[&str], port: u16) -> Value {
    let (namespace, name) = service.split_once('/').expect("namespace/name");
    let family = if addresses.iter().any(|address| address.contains(':')) { "IPv6" } else { "IPv4" };
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "namespace": namespace,
            "name": format!("{name}-{}", family.to_lowercase()),
            "labels": { "kubernetes.io/service-name": name },
        },
        "addressType": family,
        "endpoints": addresses.iter().map(|address| json!({ "addresses": [address] })).collect::<Vec<_>>(),
        "ports": [{ "name": "http", "port": port }],
    })
}

/// A ConfigMap `namespace/name`.
pub fn config_map(id: &str, data: Value) -> Value {
    let (namespace, name) = id.split_once('/').expect("namespace/name");
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "namespace": namespace, "name": name },
        "data": data,
    })
}

/// The certificate of a new CA of this name, as PEM.
pub fn authority(name: &str) -> String {
    let mut params = rcgen::CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    let key = rcgen::KeyPair::generate().expect("a key");
    params.self_signed(&key).expect("a certificate").pem()
}

/// An IngressController with this `spec`.
pub fn controller(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "operator.openshift.io/v1",
        "kind": "IngressController",
        "metadata": { "namespace": "openshift-ingress-operator", "name": name },
        "spec": spec,
    })
}

/// A Service `namespace/name` with these ports.
pub fn service(id: &str, ports: Value) -> Value {
    let (namespace, name) = id.split_once('/').expect("namespace/name");
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "namespace": namespace, "name": name },
        "spec": { "ports": ports },
    })
}

/// The names in code of the first cells of a document's tables.
pub fn documented(document: &str) -> BTreeSet<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(document);
    let text = fs::read_to_string(file).expect("a document");
    let rows = text.lines().filter_map(|line| line.strip_prefix("| "));
    let cells = rows.filter_map(|row| row.split_once(" |")).map(|(cell, _)| cell);
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}
