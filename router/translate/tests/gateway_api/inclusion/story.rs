//! The draft's own example, in both notations.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::OVERLAY;
use crate::scenario::{Scenario, TestRequest};

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/inclusion").join(name);
    fs::read_to_string(path).unwrap()
}

#[test]
fn statuses_of_the_example() {
    let scenario = Scenario::new(&fixture("two-gateways.yaml"));
    let expected: Map<String, Value> = serde_saphyr::from_str(&fixture("two-gateways.status.yaml")).unwrap();
    assert_eq!(expected.len(), 3);
    for (object, status) in expected {
        let found = scenario.status(&object);
        assert_eq!(found, status, "{object}: {found:#}");
    }
}

#[test]
fn requests_of_the_example() {
    let scenario = Scenario::new(&fixture("two-gateways.yaml"));
    for (url, answer) in [
        ("testdomain.example.com/", "foo-svc"),
        ("testdomain.example.com/any", "foo-svc"),
        // If the child has no matching rule, the parent's own rule comes before its slot.
        ("other.example.com/", "default-svc"),
        // Under the other Gateway, no child is attached to the slot.
        ("subdomain.example.com/", "default-svc"),
        ("subdomain.example.com/any", "default-svc"),
        ("example.com/", "404"),
    ] {
        assert_eq!(scenario.http(80, &TestRequest::get(url)), answer, "{url}");
    }
}

/// The same with `allowedRoutes` in the rule, as the draft writes it.
fn literal() -> String {
    let slot = "    backendRefs: [{group: gateway.sluice.dev, kind: RouteSlot, name: teams}]\n";
    let manifests = fixture("two-gateways.yaml");
    let changed =
        manifests.replace(slot, "    allowedRoutes: {kinds: [{kind: HTTPRoute}], namespaces: {from: Same}}\n");
    assert_ne!(changed, manifests);
    changed
}

#[test]
fn the_drafts_notation_is_equivalent_if_the_crd_has_its_fields() {
    let stock = Scenario::new(&fixture("two-gateways.yaml"));
    let scenario = Scenario::new(&format!("{}\n---{OVERLAY}", literal()));
    for url in ["testdomain.example.com/", "other.example.com/", "subdomain.example.com/", "subdomain.example.com/any"]
    {
        assert_eq!(scenario.http(80, &TestRequest::get(url)), stock.http(80, &TestRequest::get(url)), "{url}");
    }
    // Each entry of the slot is in the row of its Gateway.
    let slot = stock.status("RouteSlot default/teams");
    let parent = scenario.status("HTTPRoute default/http-parent");
    for i in 0..2 {
        let mut entry = slot["inclusions"][i].clone();
        entry.as_object_mut().unwrap().retain(|name, _| name != "parentRef" && name != "routeRef");
        for condition in entry["conditions"].as_array_mut().unwrap() {
            condition["observedGeneration"] = json!(2);
        }
        assert_eq!(parent["parents"][i]["inclusions"], json!([entry]));
    }
    // The child's row has each path, from the listener down.
    let child = scenario.status("HTTPRoute default/http-child");
    let paths = &child["parents"][0]["inclusionPaths"];
    assert_eq!(
        paths[0],
        json!({
            "path": [
                { "kind": "Gateway", "namespace": "default", "name": "gateway-a", "sectionName": "http" },
                { "kind": "HTTPRoute", "namespace": "default", "name": "http-parent", "sectionName": "teams" },
                { "kind": "HTTPRoute", "namespace": "default", "name": "http-child" },
            ],
            "hostnames": ["testdomain.example.com"],
            "conditions": [
                { "type": "Accepted", "status": "True", "reason": "Accepted", "message": "", "observedGeneration": 5 },
            ],
        })
    );
    assert_eq!(paths[1]["hostnames"], json!([]));
    assert_eq!(paths[1]["conditions"][0]["reason"], "NoMatchingListenerHostname");
    assert_eq!(paths.as_array().unwrap().len(), 2);
    // If the API server would prune these fields, they are not written.
    assert!(!stock.status("HTTPRoute default/http-parent").to_string().contains("inclusions"));
    assert!(!stock.status("HTTPRoute default/http-child").to_string().contains("inclusionPaths"));
}

#[test]
fn allowed_routes_without_the_crds_field_are_rejected() {
    let scenario = Scenario::new(&literal());
    let rows = scenario.status("HTTPRoute default/http-parent");
    assert!(rows["parents"][0].to_string().contains("CRD of HTTPRoute"), "{rows:#}");
    // The parent's other rule serves these requests: a rejected rule takes none from valid ones.
    assert_eq!(scenario.http(80, &TestRequest::get("testdomain.example.com/")), "default-svc");
}
