//! The result does not depend on history: after each change it equals that of a new engine.

use proptest::collection::vec;
use proptest::prelude::*;
use router_api::testing::{good, refused, route, slice};
use serde_json::{Value, json};

use super::super::*;
use super::denied::lists;
use super::worlds::{named, objects};

/// One change to the objects.
#[derive(Clone, Debug)]
pub enum Edit {
    Put(Value),
    /// A newer version of the object is rejected; the last accepted one stays.
    Reject(Value),
    Remove(Value),
}

fn edits() -> impl Strategy<Value = Edit> {
    prop_oneof![
        6 => objects().prop_map(Edit::Put),
        2 => objects().prop_map(Edit::Remove),
        1 => objects().prop_map(Edit::Reject),
    ]
}

pub fn apply(resources: &mut Resources, edit: &Edit) {
    match edit {
        Edit::Put(value) => resources.insert(&good(value.clone())),
        Edit::Remove(value) => {
            let object = good(value.clone());
            resources.set(object.key().clone(), object.kind(), None, None);
        }
        Edit::Reject(value) => {
            let object = good(value.clone());
            let (kind, key) = (object.kind(), object.key().clone());
            let last = resources.object(kind, &key);
            let refused = refused(value.clone(), "r.yaml:1: spec: bad");
            resources.set(key, kind, last.as_ref(), Some(refused));
        }
    }
}

/// Objects at the start of most histories, so that routes are soon served.
pub fn base() -> Resources {
    const API: &str = "gateway.networking.k8s.io/v1";
    let all = json!({ "namespaces": { "from": "All" } });
    let listener = |name: &str, port: u16, protocol: &str| {
        let mut listener = json!({ "name": name, "port": port, "protocol": protocol, "allowedRoutes": all });
        if protocol == "TLS" {
            listener["tls"] = json!({ "mode": "Passthrough" });
        }
        listener
    };
    let listeners = json!([listener("web", 80, "HTTP"), listener("tls", 443, "TLS"), listener("more", 8080, "HTTP")]);
    let spec = json!({ "gatewayClassName": "sluice", "listeners": listeners });
    let class = json!({ "apiVersion": API, "kind": "GatewayClass", "metadata": { "name": "sluice" },
        "spec": { "controllerName": "sluice.dev/gateway-controller" } });
    let service = |name: &str| {
        json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "namespace": "red", "name": name },
            "spec": { "ports": [{ "name": "http", "port": 8080 }] } })
    };
    let gateway = named(API, "Gateway", ("red", "g0"), 0, spec);
    router_api::testing::resources([
        class,
        gateway,
        service("web"),
        service("api"),
        slice("red/web", &["10.0.0.1"], 8080),
    ])
}

/// The table and the report as text.
pub fn outcome(engine: &mut Engine, resources: &Resources) -> String {
    let (table, report) = engine.apply(resources);
    text(&table, &report)
}

fn text(table: &RoutingTable, report: &StatusReport) -> String {
    format!("{table:?}\n{report:?}")
}

/// True if two routers are equal. Unlike their text, this compares certificates.
fn are_equal(one: &RouterTable, other: &RouterTable) -> bool {
    (&one.default_certificate, &one.policy) == (&other.default_certificate, &other.policy)
        && one.hosts.iter().eq(other.hosts.iter())
        && one.routes == other.routes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn history_leaves_no_trace(
        settings in prop_oneof![3 => Just(Settings::default()), 1 => Just(lists(&["b.x.test", "y.test"], &[]))],
        history in vec(edits(), 1..40),
    ) {
        let mut engine = Engine::new(settings.clone());
        let mut resources = base();
        for edit in &history {
            apply(&mut resources, edit);
            let (fresh, fresh_report) = Engine::new(settings.clone()).apply(&resources);
            let (table, report) = engine.apply(&resources);
            prop_assert_eq!(text(&table, &report), text(&fresh, &fresh_report), "after {:?}", edit);
            let equal = table.routers.iter().zip(&fresh.routers).all(|(one, other)| are_equal(one, other));
            prop_assert!(equal, "certificates differ after {:?}", edit);
        }
    }
}

#[test]
fn a_rejected_version_of_its_secret_changes_the_status_of_a_route() {
    let tls = json!({ "termination": "edge", "externalCertificate": { "name": "cert" } });
    let route = route("red/web", 1, json!({ "host": "a.test", "tls": tls }));
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "namespace": "red", "name": "cert" } });
    let (mut engine, mut resources) = (Engine::new(Settings::default()), base());
    for (edit, message) in [(Edit::Put(route), "there is no Secret"), (Edit::Reject(secret), "holds no certificate")] {
        apply(&mut resources, &edit);
        assert!(outcome(&mut engine, &resources).contains(message));
    }
}
