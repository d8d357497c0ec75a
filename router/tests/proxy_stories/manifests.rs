//! Manifests served in this process: the bytes on the wire, explanations, and statuses.

use std::net::SocketAddr;
use std::sync::Arc;

use router_api::defaults::Defaults;
use router_api::parse::{ParseOutcome, parse};
use router_api::resources::Resources;
use router_model::certificate::MaterialCache;
use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef, Origin};
use router_proxy::ProxyConfig;
use router_table::live_state::Trust;
use router_table::table::{RouterTable, RoutingTable};
use router_translate::endpoints::addresses::EndpointAddresses;
use router_translate::explain::explain;
use router_translate::explain::explanation::{Explanation, ExplanationStep};
use router_translate::explain::facts::Facts;
use router_translate::explain::query::Query;
use router_translate::settings::Settings;
use router_translate::translate::{Translation, translate};
use serde_json::{Value, json};

use crate::tables::Rig;

/// Objects, their translation, and a proxy that serves it.
pub struct World {
    pub rig: Rig,
    resources: Resources,
    translation: Translation,
}

impl World {
    pub async fn of(objects: impl IntoIterator<Item = Value>) -> World {
        World::with(ProxyConfig::default(), objects).await
    }

    pub async fn with(config: ProxyConfig, objects: impl IntoIterator<Item = Value>) -> World {
        let resources = resources(objects);
        let (translation, served) = (translated(&resources), served(&resources));
        World { rig: Rig::start(config, served).await, resources, translation }
    }

    /// Replaces all objects.
    pub fn become_of(&mut self, objects: impl IntoIterator<Item = Value>) {
        self.resources = resources(objects);
        self.translation = translated(&self.resources);
        self.rig.tables.send_replace(served(&self.resources));
    }

    pub fn explain(&self, query: &str) -> Explanation {
        self.ask(&Query::parse(query).unwrap())
    }

    pub fn ask(&self, query: &Query) -> Explanation {
        let Translation { table, report, .. } = &self.translation;
        explain(Facts::of(table, report, &self.resources, Trust::default()), query)
    }

    /// The value of a setting in the output of `explain`.
    pub fn setting(&self, query: &str, what: &str) -> Option<String> {
        let settings = self.explain(query).steps.into_iter().find_map(|step| match step {
            ExplanationStep::Settings { settings } => Some(settings),
            _ => None,
        });
        settings?.into_iter().find(|setting| setting.what == what).map(|setting| setting.value)
    }

    /// The status of an object.
    pub fn status(&self, kind: Kind, id: &str) -> Value {
        let (namespace, name) = id.split_once('/').expect("namespace/name");
        let object = ObjectRef { kind, key: ObjectKey::new(namespace, name) };
        self.translation.report.others.get(&object).map_or(Value::Null, |told| told.status())
    }

    /// `status/reason` and message of a condition in the first row of a route (`parents`) or policy (`ancestors`).
    pub fn condition(&self, kind: Kind, id: &str, condition: &str) -> (String, String) {
        let status = self.status(kind, id);
        let rows = ["parents", "ancestors"].iter().find_map(|rows| status[*rows].as_array()).cloned();
        let row = rows.unwrap_or_default().first().cloned().unwrap_or_default();
        let conditions = row["conditions"].as_array().cloned().unwrap_or_default();
        let Some(found) = conditions.iter().find(|known| known["type"] == condition) else {
            return ("-".to_owned(), String::new());
        };
        let text = |member: &str| found[member].as_str().unwrap().to_owned();
        (format!("{}/{}", text("status"), text("reason")), text("message"))
    }

    /// The messages of an HTTPProxy's errors or warnings.
    pub fn messages(&self, id: &str, member: &str) -> Vec<String> {
        let status = self.status(Kind::HttpProxy, id);
        let list = status["conditions"][0][member].as_array().cloned().unwrap_or_default();
        list.iter().map(|item| item["message"].as_str().unwrap().to_owned()).collect()
    }
}

fn resources(objects: impl IntoIterator<Item = Value>) -> Resources {
    let mut resources = Resources::default();
    for object in objects {
        match parse(object, Origin::default(), &Defaults::default(), &mut MaterialCache::new()).outcome {
            ParseOutcome::Good(object) => resources.insert(&object),
            other => panic!("{other:?}"),
        }
    }
    resources
}

fn translated(resources: &Resources) -> Translation {
    translate(resources, &Settings { endpoint_addresses: EndpointAddresses::Any, ..Settings::default() })
}

/// The table with the ports left to the system.
fn served(resources: &Resources) -> Arc<RoutingTable> {
    let RoutingTable { routers, endpoints, .. } = translated(resources).table;
    let routers = routers.into_iter().map(|router| {
        let router = Arc::try_unwrap(router).expect("a table of one's own");
        Arc::new(RouterTable { http_port: Some(0), https_port: Some(0), ..router })
    });
    Arc::new(RoutingTable { revision: 1, routers: routers.collect(), endpoints })
}

/// A root HTTPProxy `test/NAME` of the host `NAME.test`, with this `spec`.
pub fn root(name: &str, spec: Value) -> Value {
    let mut object = object("projectcontour.io/v1", "HTTPProxy", name, spec);
    object["spec"]["virtualhost"]["fqdn"] = json!(format!("{name}.test"));
    object
}

/// A root HTTPProxy `test/NAME` of the host `NAME.test` with one route, which has these members.
pub fn proxy(name: &str, route: Value) -> Value {
    root(name, json!({ "routes": [route] }))
}

/// An object `test/NAME`.
pub fn object(api_version: &str, kind: &str, name: &str, spec: Value) -> Value {
    let metadata = json!({ "namespace": "test", "name": name });
    json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec })
}

/// A Service `test/NAME` with port 80 and these endpoints.
pub fn service(name: &str, endpoints: &[SocketAddr]) -> Vec<Value> {
    let ports = json!({ "ports": [{ "name": "http", "port": 80 }] });
    let mut objects = vec![object("v1", "Service", name, ports)];
    for (number, endpoint) in endpoints.iter().enumerate() {
        objects.push(json!({
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "namespace": "test",
                "name": format!("{name}-{number}"),
                "labels": { "kubernetes.io/service-name": name },
            },
            "addressType": if endpoint.is_ipv6() { "IPv6" } else { "IPv4" },
            "endpoints": [{ "addresses": [endpoint.ip().to_string()] }],
            "ports": [{ "name": "http", "port": endpoint.port() }],
        }));
    }
    objects
}

/// `services` of an object: those of these names, port 80.
pub fn to(names: &[&str]) -> Value {
    names.iter().map(|name| json!({ "name": name, "port": 80 })).collect()
}
