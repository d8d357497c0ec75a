//! HTTPRoute inclusion from manifests to statuses and look-ups.

mod edges;
mod filters;
mod matches;
mod rows;
mod slots;
mod story;
mod trees;

use serde_json::Value;

use crate::scenario::{Scenario, TestRequest};

/// A Gateway with one listener for every host, which admits routes of all namespaces.
const GATEWAY: &str = "
kind: Gateway
metadata: {namespace: infra, name: gw}
spec:
  gatewayClassName: sluice
  listeners:
  - {name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
";

/// The CRD of HTTPRoute with the draft's fields.
const OVERLAY: &str = "
kind: CustomResourceDefinition
metadata: {name: httproutes.gateway.networking.k8s.io}
spec:
  group: gateway.networking.k8s.io
  names: {kind: HTTPRoute, plural: httproutes}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              rules:
                type: array
                items:
                  type: object
                  properties:
                    allowedRoutes: {type: object}
";

/// A scenario with that Gateway and these objects.
fn scenario(objects: &[String]) -> Scenario {
    Scenario::new(&documents(objects))
}

fn documents(objects: &[String]) -> String {
    [GATEWAY.to_owned()].iter().chain(objects).cloned().collect::<Vec<_>>().join("\n---\n")
}

/// A RouteSlot that admits routes from these namespaces: `Same`, `All`, or a selector.
fn slot(id: &str, from: &str) -> String {
    let (namespace, name) = id.split_once('/').unwrap();
    format!(
        "
kind: RouteSlot
metadata: {{namespace: {namespace}, name: {name}}}
spec: {{allowedRoutes: {{namespaces: {{from: {from}}}}}}}"
    )
}

/// An HTTPRoute: parents, hosts and rules as items of YAML lists.
fn route(id: &str, parents: &str, hosts: &str, rules: &[String]) -> String {
    route_of_age(id, 0, parents, hosts, rules)
}

/// A route created `age` seconds into 2024.
fn route_of_age(id: &str, age: u32, parents: &str, hosts: &str, rules: &[String]) -> String {
    let (namespace, name) = id.split_once('/').unwrap();
    let rules: String = rules.iter().map(|rule| format!("\n  - {rule}")).collect();
    format!(
        "
kind: HTTPRoute
metadata: {{namespace: {namespace}, name: {name}, creationTimestamp: \"2024-01-01T00:00:{age:02}Z\"}}
spec:
  parentRefs: [{parents}]
  hostnames: [{hosts}]
  rules:{rules}"
    )
}

/// The Gateway as a parent.
const GW: &str = "{name: gw, namespace: infra}";

/// A route as a parent.
fn route_parent(id: &str) -> String {
    let (namespace, name) = id.split_once('/').unwrap();
    format!("{{kind: HTTPRoute, namespace: {namespace}, name: {name}}}")
}

/// One rule of a route as a parent.
fn rule_parent(id: &str, section: &str) -> String {
    let (namespace, name) = id.split_once('/').unwrap();
    format!("{{kind: HTTPRoute, namespace: {namespace}, name: {name}, sectionName: {section}}}")
}

/// A rule that forwards its matches to the slot of this name; `more` are further members.
fn rule_to_slot(name: &str, matches: &str, more: &str) -> String {
    let backend = format!("{{group: gateway.sluice.dev, kind: RouteSlot, name: {name}}}");
    format!("{{name: {name}, matches: [{matches}], backendRefs: [{backend}]{more}}}")
}

/// A rule that forwards its matches to a Service.
fn rule_to_service(service: &str, matches: &str, more: &str) -> String {
    format!("{{matches: [{matches}], backendRefs: [{{name: {service}, port: 8080}}]{more}}}")
}

/// A match of a prefix.
fn prefix(path: &str) -> String {
    format!("{{path: {{type: PathPrefix, value: {path:?}}}}}")
}

/// A match of an exact path.
fn exact(path: &str) -> String {
    format!("{{path: {{type: Exact, value: {path:?}}}}}")
}

/// The result of a `GET`.
fn get(scenario: &Scenario, url: &str) -> String {
    scenario.http(80, &TestRequest::get(url))
}

/// A row of `status.parents`, by the name of its parent.
fn row(scenario: &Scenario, route: &str, parent: &str) -> Option<Value> {
    let status = scenario.status(route);
    let rows = status["parents"].as_array().cloned().unwrap_or_default();
    rows.into_iter().find(|row| {
        let section = row["parentRef"]["sectionName"].as_str().map(|name| format!("#{name}")).unwrap_or_default();
        format!("{}{section}", row["parentRef"]["name"].as_str().unwrap_or_default()) == parent
    })
}

/// `status reason: message` of a condition.
fn condition(owner: &Value, kind: &str) -> String {
    let conditions = owner["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == kind);
    let text = |found: &Value, member: &str| found[member].as_str().unwrap_or_default().to_owned();
    found.map_or("-".to_owned(), |found| {
        let (status, reason, message) = (text(found, "status"), text(found, "reason"), text(found, "message"));
        if message.is_empty() { format!("{status} {reason}") } else { format!("{status} {reason}: {message}") }
    })
}

/// Condition Accepted in the row of a parent; `no row` if there is none.
fn accepted(scenario: &Scenario, route: &str, parent: &str) -> String {
    row(scenario, &format!("HTTPRoute {route}"), parent).map_or("no row".to_owned(), |row| condition(&row, "Accepted"))
}

/// Conditions of a RouteSlot's slot under its only listener: the number of attached routes, then Attached, then those
/// other conditions that report a problem.
fn slot_state(scenario: &Scenario, slot: &str) -> Vec<String> {
    let status = scenario.status(&format!("RouteSlot {slot}"));
    let entries = status["inclusions"].as_array().cloned().unwrap_or_default();
    let [entry] = entries.as_slice() else { panic!("{slot} has {} entries", entries.len()) };
    let valid = ["False NoConflicts", "True ResolvedRefs", "False Supported"];
    let others =
        ["Conflicted", "ResolvedRefs", "NotSupported"].map(|kind| format!("{kind} {}", condition(entry, kind)));
    let others = others.into_iter().filter(|text| !valid.iter().any(|valid| text.ends_with(valid)));
    [entry["attachedRoutes"].to_string(), condition(entry, "Attached")].into_iter().chain(others).collect()
}
