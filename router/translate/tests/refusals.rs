//! Rejected objects, with all their errors.
//!
//! `fixtures/refusals.txt`, `fixtures/gateway_refusals.txt` and `fixtures/contour_refusals.txt` have blocks of a title,
//! a kind with a `spec`, and the expected errors. After an intended change, `UPDATE_GOLDENS=1 cargo test -p
//! router-translate --test refusals` rewrites them; review the difference.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

use std::collections::BTreeSet;
use std::path::Path;

use router_api::defaults::Defaults;
use router_api::parse::{ParseOutcome, parse};
use router_model::certificate::MaterialCache;
use router_model::object::Origin;
use serde_json::{Value, json};

/// Words of a message that advise a fix.
const ADVICE: [&str; 10] =
    ["write", "remove", "use ", "keep ", "lower it", "need", "begin", "close", "three different ports", "such as"];

fn object(kind: &str, spec: &str) -> Value {
    let spec: Value = serde_json::from_str(spec).unwrap_or_else(|error| panic!("{spec}: {error}"));
    match kind {
        "Route" => {
            let mut object = json!({
                "apiVersion": "route.openshift.io/v1",
                "kind": "Route",
                "metadata": { "namespace": "shop", "name": "cart" },
                "spec": { "to": { "name": "web" } },
            });
            for (member, value) in spec.as_object().unwrap() {
                object["spec"][member] = value.clone();
            }
            object
        }
        "IngressController" => json!({
            "apiVersion": "operator.openshift.io/v1",
            "kind": "IngressController",
            "metadata": { "namespace": "openshift-ingress-operator", "name": "default" },
            "spec": spec,
        }),
        kind => with_base(kind, &spec),
    }
}

/// A Gateway API or Contour object of this kind: its required members, overridden by the members of `spec`.
fn with_base(kind: &str, spec: &Value) -> Value {
    let service = json!({ "group": "", "kind": "Service", "name": "web" });
    let base = match kind {
        "GatewayClass" => json!({ "controllerName": "sluice.dev/gateway-controller" }),
        "Gateway" => json!({
            "gatewayClassName": "sluice",
            "listeners": [{ "name": "web", "port": 80, "protocol": "HTTP" }],
        }),
        "HTTPRoute" | "GRPCRoute" | "RouteSlot" | "IngressRoute" | "HTTPProxy" | "TLSCertificateDelegation" => {
            json!({})
        }
        "TLSRoute" => {
            json!({ "hostnames": ["a.test"], "rules": [{ "backendRefs": [{ "name": "web", "port": 443 }] }] })
        }
        "ReferenceGrant" => json!({
            "from": [{ "group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "shop" }],
            "to": [{ "group": "", "kind": "Service" }],
        }),
        "BackendTLSPolicy" => json!({
            "targetRefs": [service],
            "validation": { "hostname": "web.test", "wellKnownCACertificates": "System" },
        }),
        other => panic!("kind {other:?}"),
    };
    let api_version = match kind {
        "RouteSlot" => "gateway.sluice.dev/v1alpha1",
        "IngressRoute" => "contour.heptio.com/v1beta1",
        "HTTPProxy" | "TLSCertificateDelegation" => "projectcontour.io/v1",
        _ => "gateway.networking.k8s.io/v1",
    };
    let metadata = match kind {
        "GatewayClass" => json!({ "name": "it" }),
        _ => json!({ "namespace": "shop", "name": "it" }),
    };
    let mut object = json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": base });
    for (member, value) in spec.as_object().unwrap() {
        object["spec"][member] = value.clone();
    }
    object
}

fn errors(kind: &str, spec: &str) -> Vec<String> {
    let parsed = parse(object(kind, spec), Origin::default(), &Defaults::default(), &mut MaterialCache::new());
    match parsed.outcome {
        ParseOutcome::Refused { errors, .. } => errors.iter().map(ToString::to_string).collect(),
        other => panic!("{kind} {spec} is not refused: {other:?}"),
    }
}

#[test]
fn every_refusal_names_the_field_and_what_to_write() {
    check("refusals.txt", 100);
}

#[test]
fn every_refusal_of_gateway_api_objects_does_so_too() {
    check("gateway_refusals.txt", 140);
}

#[test]
fn every_refusal_of_contour_objects_does_so_too() {
    check("contour_refusals.txt", 30);
}

fn check(file: &str, least: usize) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(file);
    let expected = std::fs::read_to_string(&path).unwrap();
    let (mut found, mut titles, mut count) = (String::new(), BTreeSet::new(), 0);
    for block in expected.trim_end().split("\n\n") {
        let mut lines = block.lines();
        let (title, input) = (lines.next().unwrap(), lines.next().unwrap());
        assert!(title.starts_with("# ") && titles.insert(title), "{title}");
        let (kind, spec) = input.split_once(' ').unwrap();
        let errors = errors(kind, spec);
        for error in &errors {
            assert!(error.starts_with("spec."), "{title}: {error}");
            assert!(ADVICE.iter().any(|word| error.contains(word)), "{title}: no advice in {error}");
        }
        found.push_str(&format!("{title}\n{input}\n{}\n\n", errors.join("\n")));
        count += 1;
    }
    assert!(count >= least, "only {count} cases");
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::write(&path, found).unwrap();
        return;
    }
    let difference = expected.lines().zip(found.lines()).find(|(expected, found)| expected != found);
    assert!(expected == found, "first difference (expected, found): {difference:?}");
}
