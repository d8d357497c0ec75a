//! Property tests of ReferenceGrants: Secrets and Services of other namespaces are used only if permitted.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::scenario::{Scenario, TestRequest, secret};

const NAMESPACES: [&str; 3] = ["infra", "web", "app"];

/// A grant: its namespace, kind and namespace of the referrer, kind and name of the target.
type Grant = (&'static str, &'static str, &'static str, &'static str, Option<&'static str>);

fn grants(from: &'static str, to: &'static str, name: &'static str) -> impl Strategy<Value = Vec<Grant>> {
    let kinds = move || select(vec![from, "TLSRoute"]);
    let names = prop_oneof![Just(None), Just(Some(name)), Just(Some("other"))];
    let to = select(vec![to, "ConfigMap"]);
    proptest::collection::vec((select(&NAMESPACES[..]), kinds(), select(&NAMESPACES[..]), to, names), 0..4)
}

fn manifest(nth: usize, (namespace, from, of, to, name): &Grant) -> Value {
    let mut target = json!({ "group": "", "kind": to });
    if let Some(name) = name {
        target["name"] = json!(name);
    }
    json!({
        "kind": "ReferenceGrant",
        "metadata": { "namespace": namespace, "name": format!("grant-{nth}") },
        "spec": { "from": [{ "group": "gateway.networking.k8s.io", "kind": from, "namespace": of }], "to": [target] },
    })
}

/// The API's rule for grants, restated simply.
fn is_permitted(grants: &[Grant], own: &str, (from, to, name): (&str, &str, &str), target: &str) -> bool {
    let gives = |grant: &Grant| {
        (grant.0, grant.1, grant.2, grant.3) == (target, from, own, to) && grant.4.is_none_or(|known| known == name)
    };
    own == target || grants.iter().any(gives)
}

fn all_grants(grants: &[Grant]) -> impl Iterator<Item = Value> {
    grants.iter().enumerate().map(|(nth, grant)| manifest(nth, grant))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A Secret of another namespace is served if and only if a grant permits it.
    #[test]
    fn certificates_are_served_only_if_granted(
        own in select(&NAMESPACES[..]),
        references in proptest::collection::vec(select(&NAMESPACES[..]), 1..4),
        grants in grants("Gateway", "Secret", "tls"),
    ) {
        let wanted: Vec<_> = references.iter().map(|ns| json!({ "namespace": ns, "name": "tls" })).collect();
        let gateway = json!({
            "kind": "Gateway",
            "metadata": { "namespace": own, "name": "g" },
            "spec": { "gatewayClassName": "sluice", "listeners": [
                { "name": "l", "port": 443, "protocol": "HTTPS", "tls": { "certificateRefs": wanted } },
            ] },
        });
        let secrets = NAMESPACES.map(|namespace| secret(&format!("{namespace}/tls"), &[&format!("{namespace}.example.org")]));
        let scenario = Scenario::with("", secrets.into_iter().chain([gateway]).chain(all_grants(&grants)));
        let host_rules = scenario.host_rules(443, "a.example.org").unwrap();
        let shown: BTreeSet<&str> = NAMESPACES
            .into_iter()
            .filter(|namespace| {
                let name = format!("{namespace}.example.org");
                let certificates = host_rules.tls.iter().flat_map(|tls| &tls.certificates);
                certificates.into_iter().any(|pair| router_model::certificate::subject::covers(pair, &name))
            })
            .collect();
        let permitted: BTreeSet<&str> =
            references.iter().copied().filter(|ns| is_permitted(&grants, own, ("Gateway", "Secret", "tls"), ns)).collect();
        prop_assert_eq!(&shown, &permitted);
        let rejected = references.iter().any(|namespace| !permitted.contains(namespace));
        let reason = if rejected { "False/RefNotPermitted" } else { "True/ResolvedRefs" };
        prop_assert_eq!(scenario.of_listener(&format!("{own}/g"), "l", "ResolvedRefs"), reason);
    }

    /// A Service of another namespace is reached if and only if a grant permits it.
    #[test]
    fn services_are_reached_only_if_granted(
        own in select(&NAMESPACES[..]),
        target in select(vec![("infra", "v1"), ("web", "web"), ("app", "v1")]),
        grants in grants("HTTPRoute", "Service", "v1"),
    ) {
        let gateway = json!({
            "kind": "Gateway",
            "metadata": { "namespace": "infra", "name": "g" },
            "spec": { "gatewayClassName": "sluice", "listeners": [
                { "name": "l", "port": 80, "protocol": "HTTP", "allowedRoutes": { "namespaces": { "from": "All" } } },
            ] },
        });
        let (namespace, name) = target;
        let backend = json!({ "namespace": namespace, "name": name, "port": 8080 });
        let route = json!({
            "kind": "HTTPRoute",
            "metadata": { "namespace": own, "name": "r" },
            "spec": {
                "parentRefs": [{ "namespace": "infra", "name": "g" }],
                "rules": [{ "backendRefs": [backend] }],
            },
        });
        let scenario = Scenario::with("", [gateway, route].into_iter().chain(all_grants(&grants)));
        let is_reached = scenario.http(80, &TestRequest::get("a.test/")) != "500";
        prop_assert_eq!(is_reached, is_permitted(&grants, own, ("HTTPRoute", "Service", name), namespace));
    }
}
