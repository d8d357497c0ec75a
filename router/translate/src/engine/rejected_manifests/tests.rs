//! Statuses of objects without a valid version; objects of other controllers have none.

use router_api::testing::{refused, resources};
use serde_json::Value;

use super::*;
use crate::settings::Settings;
use crate::translate::translate;

const PROBLEM: &str = "a.yaml:3: spec.x: is wrong";

/// The status and the row of a rejected object, beside a class of ours and one of another controller.
fn status_of(kind: Kind, id: (&str, &str), spec: Value) -> Option<(Value, ParentStatus)> {
    let class = |name: &str, controller: &str| {
        json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass", "metadata": {"name": name},
            "spec": {"controllerName": controller}})
    };
    let gateway = |name: &str, class: &str| {
        json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"namespace": "a", "name": name},
            "spec": {"gatewayClassName": class, "listeners": [{"name": "web", "port": 80, "protocol": "HTTP"}]}})
    };
    let mut resources = resources([
        class("ours", CONTROLLER_NAME),
        class("theirs", "example.com/other"),
        gateway("ours", "ours"),
        gateway("theirs", "theirs"),
    ]);
    let key = ObjectKey::new(id.0, id.1);
    let manifest = json!({"apiVersion": kind.api_version(), "kind": kind.name(),
        "metadata": {"namespace": id.0, "name": id.1, "generation": 7}, "spec": spec});
    resources.set(key.clone(), kind, None, Some(refused(manifest, PROBLEM)));
    let report = translate(&resources, &Settings::default()).report;
    let status = report.others.get(&ObjectRef { kind, key })?;
    Some((status.status(), status.rows[0].clone()))
}

/// `status/reason/generation` of the first condition. Checks that its message is the problem.
fn condition(status: &Value) -> String {
    let condition = &status["conditions"][0];
    assert_eq!(condition["message"], PROBLEM);
    format!("{}/{}/{}", condition["status"], condition["reason"], condition["observedGeneration"]).replace('"', "")
}

#[test]
fn classes_and_gateways_of_ours_get_a_condition_and_others_no_status() {
    let of_class = |controller: &str| status_of(Kind::GatewayClass, ("", "c"), json!({ "controllerName": controller }));
    let (status, row) = of_class(CONTROLLER_NAME).unwrap();
    assert_eq!(condition(&status), "False/Unsupported/7");
    assert_eq!((row.admitted, &*row.reason), (false, "InvalidManifest"));
    assert!(row.message.contains(PROBLEM), "{}", row.message);
    assert!(of_class("example.com/other").is_none());
    let of_gateway = |class: &str| status_of(Kind::Gateway, ("a", "g"), json!({ "gatewayClassName": class }));
    assert_eq!(condition(&of_gateway("ours").unwrap().0), "False/Invalid/7");
    assert!(of_gateway("theirs").is_none() && of_gateway("missing").is_none());
}

#[test]
fn routes_get_a_row_for_each_gateway_of_ours_that_they_name() {
    for kind in [Kind::HttpRoute, Kind::GrpcRoute, Kind::TlsRoute] {
        let parents = json!({ "parentRefs": [{ "name": "theirs" }, { "name": "ours" }, { "name": "missing" }] });
        let (status, _) = status_of(kind, ("a", "r"), parents).unwrap();
        let rows = status["parents"].as_array().unwrap();
        assert_eq!(rows.len(), 1, "{kind}");
        assert_eq!(rows[0]["parentRef"]["name"], "ours");
        assert_eq!(condition(&rows[0]), "False/UnsupportedValue/7");
        assert!(status_of(kind, ("a", "r"), json!({ "parentRefs": [{ "name": "theirs" }] })).is_none());
    }
}

#[test]
fn slots_and_contour_objects_report_the_problem() {
    assert_eq!(condition(&status_of(Kind::RouteSlot, ("a", "s"), json!({})).unwrap().0), "False/Invalid/7");
    for kind in [Kind::IngressRoute, Kind::HttpProxy] {
        let (status, _) = status_of(kind, ("a", "p"), json!({})).unwrap();
        assert_eq!((&status["currentStatus"], &status["description"]), (&json!("invalid"), &json!(PROBLEM)), "{kind}");
    }
    assert!(status_of(Kind::HttpProxy, ("a", "p"), json!({ "ingressClassName": "nginx" })).is_none());
}
