//! Objects from the flat descriptions of cases, and an engine that applies their changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use router_api::defaults::Defaults;
use router_api::object::Object;
use router_api::parse::{ParseOutcome, Parsed, parse};
use router_api::resources::{RejectedManifest, Resources};
use router_model::certificate::MaterialCache;
use router_model::kind::Kind;
use router_model::object::{ObjectKey, Origin};
use router_table::table::{Endpoints, RouterTable, RoutingTable};
use router_translate::engine::Engine;
use router_translate::settings::Settings;
use router_translate::status::report::StatusReport;
use serde_json::{Value, json};

/// Parses an object with the default settings.
pub fn read(value: Value) -> Parsed {
    parse(value, Origin::default(), &Defaults::default(), &mut MaterialCache::new())
}

/// The object of a valid manifest.
pub fn good(value: Value) -> Object {
    match read(value.clone()).outcome {
        ParseOutcome::Good(object) => object,
        other => panic!("{value} is refused: {other:?}"),
    }
}

/// A case's flat description of a route as a manifest. An empty string is left out, as in the API's JSON, except in a
/// nested mapping.
pub fn manifest(flat: &Value) -> Value {
    let mut metadata = json!({ "namespace": "ns", "name": "name" });
    let mut spec = json!({ "to": { "name": "web" } });
    for (member, value) in flat.as_object().unwrap() {
        match member.as_str() {
            "namespace" | "name" | "creationTimestamp" if value == "" => {}
            "namespace" | "name" | "creationTimestamp" | "uid" | "resourceVersion" | "labels" | "annotations" => {
                metadata[member] = value.clone();
            }
            _ => spec[member] = expanded(value),
        }
    }
    json!({ "apiVersion": "route.openshift.io/v1", "kind": "Route", "metadata": metadata, "spec": spec })
}

/// Expands `{"repeat_empty_item": n}`.
fn expanded(value: &Value) -> Value {
    match value {
        Value::Object(map) => match map.get("repeat_empty_item").and_then(Value::as_u64) {
            Some(count) => Value::Array((0..count).map(|_| json!({})).collect()),
            None => Value::Object(map.iter().map(|(key, value)| (key.clone(), expanded(value))).collect()),
        },
        other => other.clone(),
    }
}

/// `namespace/name` of a flat description.
pub fn id_of(flat: &Value) -> String {
    let metadata = &manifest(flat)["metadata"];
    format!("{}/{}", metadata["namespace"].as_str().unwrap(), metadata["name"].as_str().unwrap())
}

/// The IngressController of a case's policy.
pub fn controller(policy: &Value) -> Value {
    let member = |name: &str| policy.get(name).cloned().unwrap_or(Value::Null);
    json!({
        "apiVersion": "operator.openshift.io/v1",
        "kind": "IngressController",
        "metadata": { "namespace": "openshift-ingress-operator", "name": "router" },
        "spec": {
            "domain": member("routerDomain"),
            "routeAdmission": {
                "namespaceOwnership": member("namespaceOwnership"),
                "wildcardPolicy": member("wildcardPolicy"),
            },
            "namespaceSelector": member("namespaceSelector"),
            "routeSelector": member("routeSelector"),
        },
    })
}

/// Objects that change, and the engine that applies the changes.
pub struct World {
    engine: Engine,
    resources: Resources,
    table: RoutingTable,
    report: StatusReport,
}

/// A router's verdict on a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is served.
    Admitted,
    /// Reason and message.
    Refused(String, String),
    /// The router does not select it, or it does not exist.
    Unknown,
}

impl World {
    /// One router with this policy.
    pub fn new(policy: &Value) -> Self {
        let texts = |name: &str| -> Vec<String> {
            let list = policy.get(name).and_then(Value::as_array);
            list.into_iter().flatten().map(|text| text.as_str().unwrap().to_owned()).collect()
        };
        let mut settings = Settings::default();
        settings.domains.denied = texts("deniedDomains");
        settings.domains.allowed = texts("allowedDomains");
        let suffix = policy.get("deniedDomainSuffix").and_then(Value::as_str);
        settings.domains.denied.extend(suffix.map(|suffix| suffix.trim_start_matches('.').to_owned()));
        let mut engine = Engine::new(settings);
        let mut resources = Resources::default();
        resources.insert(&good(controller(policy)));
        let (table, report) = engine.apply(&resources);
        World { engine, resources, table, report }
    }

    /// The endpoints of the router's routes.
    pub fn endpoints(&self) -> &Endpoints {
        &self.table.endpoints
    }

    /// The router of the current table.
    pub fn router(&self) -> Arc<RouterTable> {
        Arc::clone(&self.table.routers[0])
    }

    /// Selects only these namespaces from now on.
    pub fn select_namespaces(&mut self, policy: &Value, allowed: &Value) {
        let mut values = allowed.clone();
        if values.as_array().is_some_and(Vec::is_empty) {
            values = json!(["no-namespace"]);
        }
        let mut policy = policy.clone();
        let name = "kubernetes.io/metadata.name";
        policy["namespaceSelector"] =
            json!({ "matchExpressions": [{ "key": name, "operator": "In", "values": values }] });
        self.insert(controller(&policy));
    }

    /// Inserts an object; a rejected one is recorded as rejected.
    pub fn insert(&mut self, value: Value) {
        match read(value.clone()).outcome {
            ParseOutcome::Good(object) => self.resources.insert(&object),
            ParseOutcome::Refused { kind, key, errors, manifest } => {
                let refused = RejectedManifest { problem: format!("{errors:?}"), manifest };
                let last = self.resources.object(kind, &key);
                self.resources.set(key, kind, last.as_ref(), Some(Arc::new(refused)));
            }
            other => panic!("{value}: {other:?}"),
        }
        (self.table, self.report) = self.engine.apply(&self.resources);
    }

    /// Removes a route.
    pub fn remove(&mut self, id: &str) {
        self.resources.set(key(id), Kind::Route, None, None);
        (self.table, self.report) = self.engine.apply(&self.resources);
    }

    /// Executes a step of a case.
    pub fn step(&mut self, policy: &Value, step: &Value) {
        match step["op"].as_str().unwrap() {
            "namespaces" => self.select_namespaces(policy, &step["allowed"]),
            "delete" | "remove" => self.remove(&id_of(&step["route"])),
            "add" | "modify" => self.insert(manifest(&step["route"])),
            other => panic!("op {other:?}"),
        }
    }

    /// The router's verdict on a route.
    pub fn verdict(&self, id: &str) -> Verdict {
        let entry = self.report.routes.get(&key(id)).and_then(|entries| entries.to_vec().into_iter().next());
        match entry.map(|entry| entry.conditions[0].clone()) {
            None => Verdict::Unknown,
            Some(condition) if condition.holds => Verdict::Admitted,
            Some(condition) => Verdict::Refused(condition.reason, condition.message),
        }
    }

    /// `status.ingress[].host` of a route.
    pub fn status_host(&self, id: &str) -> Option<String> {
        self.report.routes.get(&key(id)).and_then(|entries| entries.to_vec().into_iter().next()).map(|entry| entry.host)
    }

    /// Served routes: effective host and path, by route.
    pub fn exposed(&self) -> BTreeMap<String, String> {
        let served = self.table.routers.iter().flat_map(|router| router.routes.values());
        let text = |id: &str, path: &str| format!("{}{path}", self.status_host(id).unwrap_or_default());
        served.map(|route| (route.id.to_string(), text(&route.id.to_string(), route.path()))).collect()
    }

    /// True if the router selects a route.
    pub fn selects(&self, id: &str) -> bool {
        self.verdict(id) != Verdict::Unknown
    }

    /// Served routes by uid, each with its path, by host.
    pub fn active(&self) -> BTreeMap<String, BTreeSet<(String, String)>> {
        let mut active: BTreeMap<String, BTreeSet<(String, String)>> = BTreeMap::new();
        for (id, route) in self.routes() {
            if self.verdict(&id) == Verdict::Admitted {
                active.entry(route.0).or_default().insert((route.1, route.2));
            }
        }
        active
    }

    /// Rejected routes by uid, by host.
    pub fn inactive(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut inactive: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (id, (host, uid, _)) in self.routes() {
            if matches!(self.verdict(&id), Verdict::Refused(..)) {
                inactive.entry(host).or_default().insert(uid);
            }
        }
        inactive
    }

    /// Host, uid and path of every route.
    fn routes(&self) -> Vec<(String, (String, String, String))> {
        let described = self.resources.routes.iter().map(|route| {
            let facts = (route.host.to_string(), route.meta.uid.to_string(), route.traffic.path().to_owned());
            (route.meta.key.to_string(), facts)
        });
        described.collect()
    }
}

fn key(id: &str) -> ObjectKey {
    let (namespace, name) = id.split_once('/').unwrap();
    ObjectKey::new(namespace, name)
}
