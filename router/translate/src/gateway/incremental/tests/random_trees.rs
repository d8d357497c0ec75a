//! Random objects of inclusion trees: routes that name each other, so that most of them are in one tree.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use router_api::testing::service;
use serde_json::{Value, json};

use super::random_objects::{Edit, named};

const ROUTES: usize = 7;
const HOSTS: [&str; 4] = ["a.x.test", "b.x.test", "*.x.test", "*.test"];
const PATHS: [&str; 4] = ["/", "/a", "/b", "/a/b"];

/// Changes of trees, of what their rules reference, and of the Gateways above them.
pub fn tree_edits() -> impl Strategy<Value = Edit> {
    prop_oneof![12 => objects().prop_map(Edit::Put), 3 => objects().prop_map(Edit::Remove)]
}

fn objects() -> impl Strategy<Value = Value> {
    prop_oneof![40 => routes(), 4 => slots(), 3 => services(), 2 => policies(), 2 => labels(), 1 => gateways()]
}

/// Routes of odd numbers are in one namespace, the others in another.
fn namespace_of(route: usize) -> &'static str {
    if route.is_multiple_of(2) { "red" } else { "green" }
}

fn gateways() -> impl Strategy<Value = Value> {
    let hostname = prop::option::of(select(HOSTS.to_vec()));
    (0..2usize, 0..8u32, hostname, any::<bool>()).prop_map(|(number, age, hostname, other_port)| {
        let port = if other_port { 8080 } else { 80 };
        let allowed = json!({ "namespaces": { "from": "All" } });
        let web =
            json!({ "name": "web", "port": port, "protocol": "HTTP", "hostname": hostname, "allowedRoutes": allowed });
        named("Gateway", "red", &format!("g{number}"), age, json!({ "gatewayClassName": "sluice", "listeners": [web] }))
    })
}

fn parents() -> impl Strategy<Value = Value> {
    let section = || prop::option::weighted(0.4, select(vec!["s0", "s1"]));
    prop_oneof![
        1 => (0..2usize).prop_map(|number| json!({ "namespace": "red", "name": format!("g{number}") })),
        3 => (0..ROUTES, section()).prop_map(|(route, section)| json!({
            "namespace": namespace_of(route), "kind": "HTTPRoute", "name": format!("r{route}"), "sectionName": section,
        })),
    ]
}

fn rules() -> impl Strategy<Value = Value> {
    let backend = prop_oneof![
        3 => (0..2usize).prop_map(|slot| json!({ "group": "gateway.sluice.dev", "kind": "RouteSlot", "name": format!("s{slot}") })),
        2 => Just(json!({ "namespace": "red", "name": "web", "port": 8080 })),
    ];
    (backend, vec(select(PATHS.to_vec()), 1..3), any::<bool>(), prop::bool::weighted(0.2)).prop_map(
        |(backend, paths, is_named, mirrors)| {
            let matches: Vec<Value> = paths.iter().map(|path| json!({ "path": { "value": path } })).collect();
            let mut rule = json!({ "matches": matches, "backendRefs": [backend] });
            if is_named {
                rule["name"] = json!("");
            }
            if mirrors {
                let target = json!({ "namespace": "red", "name": "api", "port": 8080 });
                rule["filters"] = json!([{ "type": "RequestMirror", "requestMirror": { "backendRef": target } }]);
            }
            rule
        },
    )
}

fn routes() -> impl Strategy<Value = Value> {
    let hostnames = prop_oneof![2 => Just(Vec::new()), 1 => subsequence(HOSTS.to_vec(), 1..3)];
    (0..ROUTES, 0..4u32, vec(parents(), 1..4), hostnames, vec(rules(), 1..4)).prop_map(
        |(route, age, mut parents, hostnames, mut rules)| {
            // Two references to one parent need a `sectionName` each.
            parents.sort_by_key(|parent| (parent["name"].to_string(), parent["sectionName"].to_string()));
            parents.dedup_by(|next, one| {
                next["name"] == one["name"]
                    && (one["sectionName"].is_null() || one["sectionName"] == next["sectionName"])
            });
            parents.dedup_by(|next, one| next["name"] == one["name"] && next["sectionName"].is_null());
            let mut sections = ["s0", "s1"].iter();
            for rule in rules.iter_mut().filter(|rule| rule.get("name").is_some()) {
                match sections.next() {
                    Some(section) => rule["name"] = json!(section),
                    None => drop(rule.as_object_mut().and_then(|rule| rule.remove("name"))),
                }
            }
            let spec = json!({ "parentRefs": parents, "hostnames": hostnames, "rules": rules });
            named("HTTPRoute", namespace_of(route), &format!("r{route}"), age, spec)
        },
    )
}

fn slots() -> impl Strategy<Value = Value> {
    let from = prop_oneof![
        2 => Just(json!({ "from": "All" })),
        1 => Just(json!({ "from": "Same" })),
        1 => Just(json!({ "from": "Selector", "selector": { "matchLabels": { "team": "red" } } })),
    ];
    (0..2usize, select(vec!["red", "green"]), from).prop_map(|(number, namespace, from)| {
        let spec = json!({ "allowedRoutes": { "namespaces": from } });
        let mut slot = named("RouteSlot", namespace, &format!("s{number}"), 1, spec);
        slot["apiVersion"] = json!("gateway.sluice.dev/v1alpha1");
        slot
    })
}

fn services() -> impl Strategy<Value = Value> {
    (any::<bool>(), select(vec![8080, 9090]))
        .prop_map(|(api, port)| service(if api { "red/api" } else { "red/web" }, json!([{ "port": port }])))
}

fn policies() -> impl Strategy<Value = Value> {
    any::<bool>().prop_map(|api| {
        let target = json!({ "group": "", "kind": "Service", "name": if api { "api" } else { "web" } });
        let validation = json!({ "hostname": "backend.test", "wellKnownCACertificates": "System" });
        named("BackendTLSPolicy", "red", "policy", 1, json!({ "targetRefs": [target], "validation": validation }))
    })
}

fn labels() -> impl Strategy<Value = Value> {
    (select(vec!["red", "green"]), any::<bool>()).prop_map(|(namespace, red)| {
        let labels = if red { json!({ "team": "red" }) } else { json!({}) };
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace, "labels": labels } })
    })
}
