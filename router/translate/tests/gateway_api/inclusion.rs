//! HTTPRoute inclusion from manifests to statuses and look-ups.

mod edges;
mod filters;
mod matches;
mod rows;
mod slots;
mod story;
mod trees;

use serde_json::Value;

use crate::world::{Ask, World};

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

/// A world with that Gateway and these objects.
fn world(objects: &[String]) -> World {
    World::new(&documents(objects))
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
    aged(id, 0, parents, hosts, rules)
}

/// A route created `age` seconds into 2024.
fn aged(id: &str, age: u32, parents: &str, hosts: &str, rules: &[String]) -> String {
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
fn under(id: &str) -> String {
    let (namespace, name) = id.split_once('/').unwrap();
    format!("{{kind: HTTPRoute, namespace: {namespace}, name: {name}}}")
}

/// One rule of a route as a parent.
fn under_rule(id: &str, section: &str) -> String {
    let (namespace, name) = id.split_once('/').unwrap();
    format!("{{kind: HTTPRoute, namespace: {namespace}, name: {name}, sectionName: {section}}}")
}

/// A rule that forwards its matches to the slot of this name; `more` are further members.
fn to_slot(name: &str, matches: &str, more: &str) -> String {
    let backend = format!("{{group: gateway.sluice.dev, kind: RouteSlot, name: {name}}}");
    format!("{{name: {name}, matches: [{matches}], backendRefs: [{backend}]{more}}}")
}

/// A rule that forwards its matches to a Service.
fn to(service: &str, matches: &str, more: &str) -> String {
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
fn get(world: &World, url: &str) -> String {
    world.http(80, &Ask::get(url))
}

/// A row of `status.parents`, by the name of its parent.
fn row(world: &World, route: &str, parent: &str) -> Option<Value> {
    let status = world.status(route);
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
fn accepted(world: &World, route: &str, parent: &str) -> String {
    row(world, &format!("HTTPRoute {route}"), parent).map_or("no row".to_owned(), |row| condition(&row, "Accepted"))
}

/// Conditions of a RouteSlot's slot under its only listener: the number of attached routes, then Attached, then those
/// other conditions that report a problem.
fn state_of(world: &World, slot: &str) -> Vec<String> {
    let status = world.status(&format!("RouteSlot {slot}"));
    let entries = status["inclusions"].as_array().cloned().unwrap_or_default();
    let [entry] = entries.as_slice() else { panic!("{slot} has {} entries", entries.len()) };
    let good = ["False NoConflicts", "True ResolvedRefs", "False Supported"];
    let others =
        ["Conflicted", "ResolvedRefs", "NotSupported"].map(|kind| format!("{kind} {}", condition(entry, kind)));
    let others = others.into_iter().filter(|text| !good.iter().any(|good| text.ends_with(good)));
    [entry["attachedRoutes"].to_string(), condition(entry, "Attached")].into_iter().chain(others).collect()
}
