//! API-server defaulting (`default` in the API's CustomResourceDefinitions). Values of the wrong type are not changed.

use router_model::kind::Kind;
use serde_json::{Map, Value, json};

use crate::gateway_api::types::GROUP;

type JsonObject = Map<String, Value>;

/// Sets the defaults of an object's kind.
pub fn fill(kind: Kind, object: &mut Value) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    match kind {
        Kind::Gateway => gateway(spec),
        Kind::HttpRoute => {
            default(spec, "rules", json!([{ "matches": [{ "path": { "type": "PathPrefix", "value": "/" } }] }]));
            route(spec);
        }
        Kind::GrpcRoute | Kind::TlsRoute => route(spec),
        Kind::RouteSlot => {
            default(spec, "allowedRoutes", json!({ "namespaces": { "from": "Same" } }));
            allowed_routes(spec);
        }
        _ => {}
    }
    if matches!(kind, Kind::HttpRoute | Kind::GrpcRoute) {
        for rule in items(spec, "rules") {
            if kind == Kind::HttpRoute {
                http_matches(rule);
                allowed_routes(rule);
            } else {
                for entry in items(rule, "matches") {
                    member(entry, "method").into_iter().for_each(|method| default(method, "type", "Exact"));
                    items(entry, "headers").for_each(|header| default(header, "type", "Exact"));
                }
            }
            filters(rule);
            items(rule, "backendRefs").for_each(filters);
        }
    }
}

fn gateway(spec: &mut JsonObject) {
    items(spec, "addresses").for_each(|address| default(address, "type", "IPAddress"));
    for listener in items(spec, "listeners") {
        default(listener, "allowedRoutes", json!({ "namespaces": { "from": "Same" } }));
        allowed_routes(listener);
        if let Some(tls) = member(listener, "tls") {
            default(tls, "mode", "Terminate");
            items(tls, "certificateRefs").for_each(|reference| reference_to(reference, "", "Secret"));
        }
    }
    if let Some(allowed) = member(spec, "allowedListeners") {
        default(allowed, "namespaces", json!({ "from": "None" }));
        member(allowed, "namespaces").into_iter().for_each(|it| default(it, "from", "None"));
    }
}

/// Defaults of all kinds of routes.
fn route(spec: &mut JsonObject) {
    items(spec, "parentRefs").for_each(|parent| reference_to(parent, GROUP, "Gateway"));
    for rule in items(spec, "rules") {
        for backend in items(rule, "backendRefs") {
            reference_to(backend, "", "Service");
            default(backend, "weight", 1);
        }
    }
}

fn http_matches(rule: &mut JsonObject) {
    default(rule, "matches", json!([{ "path": { "type": "PathPrefix", "value": "/" } }]));
    for entry in items(rule, "matches") {
        default(entry, "path", json!({ "type": "PathPrefix", "value": "/" }));
        if let Some(path) = member(entry, "path") {
            default(path, "type", "PathPrefix");
            default(path, "value", "/");
        }
        items(entry, "headers").for_each(|header| default(header, "type", "Exact"));
        items(entry, "queryParams").for_each(|parameter| default(parameter, "type", "Exact"));
    }
}

/// `allowedRoutes` of a listener, a slot or a rule, if present.
fn allowed_routes(holder: &mut JsonObject) {
    let Some(allowed) = member(holder, "allowedRoutes") else { return };
    default(allowed, "namespaces", json!({ "from": "Same" }));
    member(allowed, "namespaces").into_iter().for_each(|it| default(it, "from", "Same"));
    items(allowed, "kinds").for_each(|kind| default(kind, "group", GROUP));
}

fn filters(holder: &mut JsonObject) {
    for filter in items(holder, "filters") {
        if let Some(mirror) = member(filter, "requestMirror") {
            member(mirror, "backendRef").into_iter().for_each(|reference| reference_to(reference, "", "Service"));
            member(mirror, "fraction").into_iter().for_each(|fraction| default(fraction, "denominator", 100));
        }
        member(filter, "requestRedirect").into_iter().for_each(|redirect| default(redirect, "statusCode", 302));
        member(filter, "cors").into_iter().for_each(|cors| default(cors, "maxAge", 5));
    }
}

fn reference_to(reference: &mut JsonObject, group: &str, kind: &str) {
    default(reference, "group", group);
    default(reference, "kind", kind);
}

/// `null` counts as absent, as in the API server for fields with a default.
fn default(members: &mut JsonObject, name: &str, value: impl Into<Value>) {
    let entry = members.entry(name).or_insert(Value::Null);
    if entry.is_null() {
        *entry = value.into();
    }
}

fn member<'m>(members: &'m mut JsonObject, name: &str) -> Option<&'m mut JsonObject> {
    members.get_mut(name)?.as_object_mut()
}

fn items<'m>(members: &'m mut JsonObject, name: &str) -> impl Iterator<Item = &'m mut JsonObject> {
    members.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}
