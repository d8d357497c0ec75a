//! After each step of a random history, claims, hosts and statuses equal those of a full translation.

mod random_objects;
mod random_trees;

use proptest::collection::vec;
use proptest::prelude::*;
use router_api::resources::Resources;
use router_api::testing::{config_map, good, service};
use router_model::object::{Created, ObjectKey, ObjectRef};
use serde_json::{Value, json};

use self::random_objects::{Edit, base, edits, named, put, secret};
use self::random_trees::tree_edits;
use super::*;
use crate::settings::Settings;
use crate::status::host_conflict::HostOwner;
use crate::traffic_defaults::TrafficDefaults;
use crate::translator::RouterPorts;
use crate::translator::testing::{Claims, Run};

/// Every `.0`th claim, starting at `.1`, is lost to another API; none if `.0` is 0.
type LossPattern = (usize, usize);

fn lost_hosts((each, from): LossPattern, claims: &Claims) -> LostHosts {
    let owner = ObjectRef { kind: router_model::kind::Kind::Route, key: ObjectKey::new("red", "winner") };
    let owner = HostOwner { object: owner, created: Created::default() };
    let lost = claims.keys().enumerate().filter(|(i, _)| each > 0 && i % each == from % each);
    lost.map(|(_, at)| (at.clone(), owner.clone())).collect()
}

/// Applies these objects, and compares with a full translation.
fn step(
    run: &mut Run<Incremental>,
    resources: &Resources,
    routers: &[RouterPorts],
    pattern: LossPattern,
    settings: &Settings,
) -> Result<(), String> {
    let lost = |claims: &Claims| lost_hosts(pattern, claims);
    let mut full = Run::<Incremental>::new(settings);
    run.apply(resources, routers, lost).same_as(full.apply(resources, routers, lost))
}

fn routers(tls: bool) -> Vec<RouterPorts> {
    let ports = |name: &str, http, https| RouterPorts {
        name: router_model::names::RouterName(name.into()),
        http,
        https,
        traffic: TrafficDefaults::default(),
        tls_fault: None,
        gate: None,
    };
    vec![ports("default", Some(80), tls.then_some(443))]
}

fn check(history: &[(Edit, LossPattern)], settings: &Settings) -> Result<(), TestCaseError> {
    let mut run = Run::new(settings);
    let mut resources = base();
    let mut tls = true;
    for (i, (edit, pattern)) in history.iter().enumerate() {
        match edit {
            Edit::Routers => tls = !tls,
            _ => put(&mut resources, edit),
        }
        let step = step(&mut run, &resources, &routers(tls), *pattern, settings);
        prop_assert!(step.is_ok(), "after step {i}, {edit:?}: {}", step.unwrap_err());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn results_do_not_depend_on_history(history in vec((edits(), (0..4usize, 0..3usize)), 1..30)) {
        check(&history, &Settings::default())?;
    }

    #[test]
    fn results_in_trees_do_not_depend_on_history(history in vec((tree_edits(), (0..4usize, 0..3usize)), 1..50)) {
        check(&history, &Settings::default())?;
    }

    #[test]
    fn results_do_not_depend_on_history_with_domain_lists(history in vec((edits(), (0..4usize, 0..3usize)), 1..30)) {
        let mut settings = Settings::default();
        settings.domains.allowed = vec!["a.x.test".to_owned(), "y.test".to_owned()];
        settings.domains.denied = vec!["deep.a.x.test".to_owned()];
        check(&history, &settings)?;
    }
}

/// Two listeners and 20 HTTPRoutes, each with a host and a Service of its own; the first ones in another namespace. The
/// listeners admit only these two namespaces.
fn shop() -> Resources {
    let mut resources = base();
    let names = json!({ "key": "kubernetes.io/metadata.name", "operator": "In", "values": ["red", "green"] });
    let both = json!({ "from": "Selector", "selector": { "matchExpressions": [names] } });
    let http = json!({ "namespaces": both, "kinds": [{ "kind": "HTTPRoute" }] });
    let tls = json!({ "certificateRefs": [{ "name": "tls" }] });
    let listeners = json!([
        { "name": "web", "port": 80, "protocol": "HTTP", "allowedRoutes": { "namespaces": both } },
        { "name": "own", "port": 443, "protocol": "HTTPS", "hostname": "h3.test", "tls": tls, "allowedRoutes": http },
    ]);
    let spec = json!({ "gatewayClassName": "sluice", "listeners": listeners });
    let mut objects = vec![named("Gateway", "red", "g0", 0, spec), secret("red", 0)];
    for i in 0..20 {
        objects.push(service(&format!("red/s{i}"), json!([{ "port": 80 }])));
        objects.push(shop_route(i, "/"));
    }
    objects.into_iter().for_each(|object| resources.insert(&good(object)));
    resources
}

fn shop_route(i: usize, path: &str) -> Value {
    let namespace = if i < 2 { "green" } else { "red" };
    let spec = json!({
        "parentRefs": [{ "namespace": "red", "name": "g0" }],
        "hostnames": [format!("h{i}.test")],
        "rules": [{
            "matches": [{ "path": { "type": "PathPrefix", "value": path } }],
            "backendRefs": [{ "namespace": "red", "name": format!("s{i}"), "port": 80 }],
        }],
    });
    named("HTTPRoute", namespace, &format!("h{i}"), 1, spec)
}

/// A GRPCRoute without hostnames.
fn catch_all(namespace: &str, section: Option<&str>) -> Value {
    let parent = json!({ "namespace": "red", "name": "g0", "sectionName": section });
    let spec = json!({ "parentRefs": [parent], "rules": [{ "backendRefs": [{ "name": "web", "port": 80 }] }] });
    named("GRPCRoute", namespace, "all", 1, spec)
}

#[test]
fn a_change_recomputes_only_its_dependents() {
    let (mut resources, settings) = (shop(), Settings::default());
    let mut run = Run::new(&settings);
    let grant = |name: &str| {
        let from = json!([{ "group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "green" }]);
        let spec = json!({ "from": from, "to": [{ "group": "", "kind": "Service", "name": name }] });
        let mut grant = named("ReferenceGrant", "red", "grant", 1, spec);
        grant["apiVersion"] = json!("gateway.networking.k8s.io/v1beta1");
        grant
    };
    let label =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "red", "labels": { "a": "b" } } });
    let policy = |service: &str, ca: &str| {
        let target = json!({ "group": "", "kind": "Service", "name": service });
        let ca = json!([{ "group": "", "kind": "ConfigMap", "name": ca }]);
        let validation = json!({ "hostname": "s.test", "caCertificateRefs": ca });
        named("BackendTLSPolicy", "red", service, 1, json!({ "targetRefs": [target], "validation": validation }))
    };
    let versions = json!({ "allowedRoutes": { "namespaces": { "from": "All" } } });
    let mut versions = named("RouteSlot", "red", "versions", 1, versions);
    versions["apiVersion"] = json!("gateway.sluice.dev/v1alpha1");
    step(&mut run, &resources, &routers(true), (0, 0), &settings).expect("no difference");
    for (what, object, visited) in [
        ("a path", shop_route(7, "/p"), (1, 1)),
        // And the Gateway, whose listener has one more route.
        ("a new route", shop_route(20, "/"), (1, 2)),
        ("a catch-all of a namespace that is not admitted", catch_all("blue", None), (0, 1)),
        ("a catch-all of a kind that is not admitted", catch_all("red", Some("own")), (0, 1)),
        ("a path of a route beside them", shop_route(3, "/p"), (1, 1)),
        ("a Service of one route", service("red/s9", json!([{ "port": 81 }])), (1, 1)),
        ("a Service of none", service("red/none", json!([{ "port": 81 }])), (0, 0)),
        ("a grant, to two routes of the other namespace", grant("s1"), (2, 2)),
        // `h3.test` is the hostname of the listener with this certificate.
        ("a Secret of one host", secret("red", 1), (1, 0)),
        ("a Secret of none", secret("green", 1), (0, 0)),
        ("labels that no selector matches on", label, (0, 0)),
        ("a ConfigMap of none", config_map("red/ca", json!({})), (0, 0)),
        ("a policy of one Service", policy("s5", "ca5"), (1, 2)),
        ("a policy of another Service", policy("s6", "ca6"), (1, 2)),
        ("the CA of one policy", config_map("red/ca5", json!({ "other": "" })), (1, 2)),
        ("a RouteSlot of none", versions, (0, 1)),
    ] {
        resources.insert(&good(object));
        let step = step(&mut run, &resources, &routers(true), (0, 0), &settings);
        assert_eq!((run.returned.1, run.returned.2, step), (visited.0, visited.1, Ok(())), "{what}");
    }
}

/// A route of a tree whose matches are limited, with its hostname, if it has one of its own.
fn limited(name: &str, age: u32, parent: &Value, matches: usize, host: Option<&str>, backend: &Value) -> Value {
    let matches: Vec<_> = (0..matches).map(|i| json!({ "path": { "value": format!("/{name}{i}") } })).collect();
    let rule = json!({ "matches": matches, "backendRefs": [backend] });
    let mut spec = json!({ "parentRefs": [parent], "rules": [rule] });
    if let Some(host) = host {
        spec["hostnames"] = json!([host]);
    }
    named("HTTPRoute", "red", name, age, spec)
}

/// A RouteSlot, the reference to it, and a backend.
fn slot_and_backends() -> (Value, Value, Value) {
    let spec = json!({ "allowedRoutes": { "namespaces": { "from": "Same" } } });
    let mut slot = named("RouteSlot", "red", "s", 0, spec);
    slot["apiVersion"] = json!("gateway.sluice.dev/v1alpha1");
    let to_slot = json!({ "group": "gateway.sluice.dev", "kind": "RouteSlot", "name": "s" });
    (slot, to_slot, json!({ "name": "web", "port": 8080 }))
}

#[test]
fn a_limit_of_matches_does_not_depend_on_history() {
    let (slot, to_slot, web) = slot_and_backends();
    let top = limited("top", 0, &json!({ "name": "g0" }), 64, None, &to_slot);
    let below = json!({ "kind": "HTTPRoute", "name": "top" });
    let child = |i: u32, matches| limited(&format!("c{i:02}"), i, &below, matches, None, &web);
    // 16 times 1,024 matches, and those of one child more than fit.
    let (mut full, children) = (base(), (0..16).map(|i| child(i, 16)).chain([child(16, 1)]));
    [slot, top].into_iter().chain(children).for_each(|object| full.insert(&good(object)));
    let mut fitting = full.clone();
    put(&mut fitting, &Edit::Remove(child(3, 16)));

    let settings = Settings::default();
    let last = ObjectRef { kind: Kind::HttpRoute, key: ObjectKey::new("red", "c16") };
    for history in [[(&full, false), (&fitting, true)], [(&fitting, true), (&full, false)]] {
        let mut run = Run::new(&settings);
        for (resources, is_accepted) in history {
            step(&mut run, resources, &routers(true), (0, 0), &settings).expect("no difference");
            assert_eq!(run.outcome.statuses[&last].rows[0].admitted, is_accepted);
        }
    }
}

/// A route is decided again without a change of its tree, and the matches of another branch count all the same.
#[test]
fn a_limit_of_matches_does_not_depend_on_who_owns_a_host() {
    let (slot, to_slot, web) = slot_and_backends();
    let parent = |name: &str| json!({ "kind": "HTTPRoute", "name": name });
    let mut objects = vec![slot, limited("top", 0, &json!({ "name": "g0" }), 64, None, &to_slot)];
    // Two branches with 64 matches and 8 or 7 times 1,024 below; 1,024 more do not fit.
    for (branch, children) in [("left", 8), ("right", 7)] {
        objects.push(limited(branch, 1, &parent("top"), 1, None, &to_slot));
        for i in 0..children {
            let host = if (branch, i) == ("right", 0) { "b.test" } else { "a.test" };
            objects.push(limited(&format!("{branch}{i}"), 2, &parent(branch), 16, Some(host), &web));
        }
    }
    objects.push(limited("last", 3, &parent("right"), 16, Some("b.test"), &web));
    let (mut resources, settings) = (base(), Settings::default());
    objects.into_iter().for_each(|object| resources.insert(&good(object)));
    let last = ObjectRef { kind: Kind::HttpRoute, key: ObjectKey::new("red", "last") };
    let mut run = Run::new(&settings);
    for lost in [(0, 0), (2, 1), (0, 0), (2, 0), (1, 0)] {
        step(&mut run, &resources, &routers(true), lost, &settings).expect("no difference");
        assert!(!run.outcome.statuses[&last].rows[0].admitted, "{lost:?}");
    }
}
