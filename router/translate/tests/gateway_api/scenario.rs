//! Test fixture: translates manifests, and queries the statuses and the routing table.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use router_api::defaults::Defaults;
use router_api::object::Object;
use router_api::parse::{ParseOutcome, parse};
use router_api::resources::Resources;
use router_model::certificate::MaterialCache;
use router_model::kind::Kind;
use router_model::names::Hostname;
use router_model::object::{ObjectKey, ObjectRef, Origin};
use router_table::lookup::{Request, RequestMatch, SniMatch, joined};
use router_table::rule::{Action, HostRules, PathChange, RedirectPort, RulePolicy};
use router_table::table::{Cluster, Endpoints, ResolvedRoute, RouterTable, RoutingTable};
use router_translate::engine::Engine;
use router_translate::settings::Settings;
use router_translate::status::report::StatusReport;
use router_translate::translate::translate;
use serde_json::{Value, json};

/// Services of every test, with one endpoint each. Every test also has a GatewayClass and namespaces.
const SERVICES: [(&str, &str); 7] = [
    ("infra", "v1"),
    ("infra", "v2"),
    ("infra", "v3"),
    ("infra", "idle"),
    ("web", "web"),
    ("app", "v1"),
    ("app", "v2"),
];

/// The translation of a set of manifests.
pub struct Scenario {
    resources: Resources,
    engine: Engine,
    pub table: RoutingTable,
    report: StatusReport,
}

/// A request.
#[derive(Clone, Debug)]
pub struct TestRequest {
    method: &'static str,
    host: String,
    path: String,
    query: Option<String>,
    headers: Vec<(String, String)>,
}

impl TestRequest {
    /// `GET` of `host/path?query`.
    pub fn get(url: &str) -> Self {
        let (host, rest) = url.split_at(url.find('/').unwrap_or(url.len()));
        let (path, query) = match rest.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (rest, None),
        };
        let path = if path.is_empty() { "/" } else { path };
        TestRequest { method: "GET", host: host.to_owned(), path: path.to_owned(), query, headers: Vec::new() }
    }

    /// A call of a gRPC method, `host/service/method`.
    pub fn grpc(url: &str) -> Self {
        TestRequest { method: "POST", ..TestRequest::get(url) }.with("content-type", "application/grpc")
    }

    /// With another method.
    pub fn method(self, method: &'static str) -> Self {
        TestRequest { method, ..self }
    }

    /// With a header.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_ascii_lowercase(), value.to_owned()));
        self
    }
}

impl Request for TestRequest {
    fn method(&self) -> &str {
        self.method
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }

    fn header(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        joined(name, self.headers.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_bytes()))
    }
}

impl Scenario {
    /// From manifests as YAML documents; `apiVersion` is filled in.
    pub fn new(manifests: &str) -> Self {
        Self::with(manifests, [])
    }

    /// From YAML manifests and further objects.
    pub fn with(manifests: &str, more: impl IntoIterator<Item = Value>) -> Self {
        Self::with_settings(&Settings::default(), manifests, more)
    }

    /// From settings, YAML manifests and further objects.
    pub fn with_settings(settings: &Settings, manifests: &str, more: impl IntoIterator<Item = Value>) -> Self {
        let mut resources = Resources::default();
        let class = json!({
            "kind": "GatewayClass",
            "metadata": { "name": "sluice" },
            "spec": { "controllerName": "sluice.dev/gateway-controller" },
        });
        let namespaces = ["infra", "web", "app"].map(|name| {
            let labels = json!({ "team": name });
            json!({ "kind": "Namespace", "metadata": { "name": name, "labels": labels } })
        });
        let services = SERVICES.iter().zip(1..).flat_map(|((namespace, name), n)| service(namespace, name, n));
        let documents = serde_saphyr::from_multiple::<Value>(manifests).expect("YAML");
        let all = [class].into_iter().chain(namespaces).chain(services).chain(documents).chain(more);
        for value in all {
            resources.insert(&valid_object(value));
        }
        let settings = Settings { addresses: vec!["192.0.2.1".parse().unwrap()], ..settings.clone() };
        let mut engine = Engine::new(settings);
        let (table, report) = engine.apply(&resources);
        Scenario { resources, engine, table, report }
    }

    /// Inserts or replaces an object, as a running agent does.
    pub fn change(&mut self, value: Value) {
        self.resources.insert(&valid_object(value));
        (self.table, self.report) = self.engine.apply(&self.resources);
    }

    /// Removes an object such as `Gateway infra/web`.
    pub fn remove(&mut self, object: &str) {
        let object = reference(object);
        self.resources.set(object.key, object.kind, None, None);
        (self.table, self.report) = self.engine.apply(&self.resources);
    }

    /// Warnings: findings that no status reports.
    pub fn warnings(&self) -> Vec<String> {
        let warnings = translate(&self.resources, &Settings::default()).warnings;
        warnings.iter().map(|warning| format!("{}: {}: {}", warning.object, warning.path, warning.message)).collect()
    }

    /// Status of an object, such as `Gateway infra/web`.
    pub fn status(&self, object: &str) -> Value {
        let object = reference(object);
        let status = self.report.others.get(&object);
        status.map_or(Value::Null, |status| status.status())
    }

    /// The new status of an object whose old one was `before`.
    pub fn merged(&self, object: &str, before: &Value) -> Value {
        let now = jiff::Timestamp::UNIX_EPOCH;
        self.report.merged(&reference(object), Some(before), None, now).expect("a report")
    }

    /// `<parent>: <reason>` of each row of an object; `!` marks rows of parents that do not admit it.
    pub fn rows(&self, object: &str) -> Vec<String> {
        let status = self.report.others.get(&reference(object)).expect("a report");
        let mark = |admitted: bool| if admitted { "" } else { "!" };
        status.rows.iter().map(|row| format!("{}{}: {}", mark(row.admitted), row.parent, row.reason)).collect()
    }

    /// `status/reason` of a condition of an object.
    pub fn condition(&self, object: &str, kind: &str) -> String {
        status_and_reason(&self.status(object), kind)
    }

    /// The status of a listener.
    pub fn listener(&self, gateway: &str, name: &str) -> Value {
        let status = self.status(&format!("Gateway {gateway}"));
        let listeners = status["listeners"].as_array().cloned().unwrap_or_default();
        listeners.into_iter().find(|listener| listener["name"] == name).unwrap_or_default()
    }

    /// `status/reason` of a condition of a listener.
    pub fn of_listener(&self, gateway: &str, name: &str, kind: &str) -> String {
        status_and_reason(&self.listener(gateway, name), kind)
    }

    /// `status.parents` of a route: for each the name of the parent with its section, Accepted and ResolvedRefs.
    pub fn parents(&self, route: &str) -> Vec<String> {
        let status = self.status(route);
        let rows = status["parents"].as_array().cloned().unwrap_or_default();
        let of = |row: &Value| {
            let parent = &row["parentRef"];
            let section = parent["sectionName"].as_str().map(|name| format!("#{name}")).unwrap_or_default();
            let name = parent["name"].as_str().unwrap_or_default();
            format!("{name}{section} {} {}", status_and_reason(row, "Accepted"), status_and_reason(row, "ResolvedRefs"))
        };
        rows.iter().map(of).collect()
    }

    /// The result of a clear-text request to a port.
    pub fn http(&self, port: u16, request: &TestRequest) -> String {
        let Some(table) = self.table(|table| table.http_port == Some(port)) else { return "refused".to_owned() };
        let endpoints = &self.table.endpoints;
        let host = Hostname::parse(&request.host).ok();
        answer(endpoints, &table.match_cleartext_request(&host, request))
    }

    /// The result of a request over TLS with its own host as SNI.
    pub fn https(&self, port: u16, request: &TestRequest) -> String {
        let Some(table) = self.table(|table| table.https_port == Some(port)) else { return "refused".to_owned() };
        let endpoints = &self.table.endpoints;
        let host = Hostname::parse(&request.host).ok();
        match table.match_sni(host.as_ref()) {
            SniMatch::Passthrough(route) => format!("passthrough {}", shares(endpoints, &route.cluster)),
            SniMatch::Terminate(host)
                if host.rules.as_ref().and_then(|host_rules| host_rules.tls.as_ref()?.tcp.as_ref()).is_some() =>
            {
                let host_rules = host.rules.as_ref().and_then(|host_rules| host_rules.tls.as_ref()?.tcp.clone());
                format!("tcp {}", host_rules.map(|route| shares(endpoints, &route.cluster)).unwrap_or_default())
            }
            SniMatch::Terminate(_) => answer(endpoints, &table.match_tls_request(&host, request)),
            SniMatch::Default => {
                format!("default certificate, {}", answer(endpoints, &table.match_tls_request(&host, request)))
            }
        }
    }

    /// The rule that matches a clear-text request.
    pub fn rule(&self, port: u16, request: &TestRequest) -> RulePolicy {
        self.route(port, request).and_then(|route| route.rule.as_deref().cloned()).expect("a rule")
    }

    /// The prefix that a rewrite replaces for a clear-text request.
    pub fn prefix(&self, port: u16, request: &TestRequest) -> String {
        let table = self.table(|table| table.http_port == Some(port)).expect("a router");
        match table.match_cleartext_request(&Hostname::parse(&request.host).ok(), request) {
            RequestMatch::Rule(rule) => rule.prefix.to_string(),
            other => panic!("no rule: {other:?}"),
        }
    }

    /// The route that matches a clear-text request.
    pub fn route(&self, port: u16, request: &TestRequest) -> Option<Arc<ResolvedRoute>> {
        let table = self.table(|table| table.http_port == Some(port))?;
        let host = Hostname::parse(&request.host).ok();
        match table.match_cleartext_request(&host, request) {
            RequestMatch::Rule(rule) => Some(Arc::clone(&rule.route)),
            _ => None,
        }
    }

    /// The host rules of a host on a port for TLS.
    pub fn host_rules(&self, port: u16, host: &str) -> Option<HostRules> {
        let table = self.table(|table| table.https_port == Some(port))?;
        let host = Hostname::parse(host).ok();
        table.candidates(&host).find_map(|found| found.rules.as_deref().cloned())
    }

    /// The served ports, for clear text and for TLS.
    pub fn ports(&self) -> BTreeMap<String, (Option<u16>, Option<u16>)> {
        let routers = self.table.routers.iter();
        routers.map(|table| (table.name.to_string(), (table.http_port, table.https_port))).collect()
    }

    fn table(&self, is: impl Fn(&RouterTable) -> bool) -> Option<&Arc<RouterTable>> {
        self.table.routers.iter().find(|table| is(table))
    }
}

/// Parses a manifest, which must be valid.
pub fn valid_object(mut value: Value) -> Object {
    if value.get("apiVersion").is_none() {
        let kind = Kind::ALL.into_iter().find(|kind| value["kind"] == kind.name()).expect("a known kind");
        value["apiVersion"] = json!(kind.api_version());
    }
    match parse(value.clone(), Origin::default(), &Defaults::default(), &mut MaterialCache::new()).outcome {
        ParseOutcome::Good(object) => object,
        other => panic!("{value} is refused: {other:?}"),
    }
}

/// A Service with port 8080 and one endpoint.
fn service(namespace: &str, name: &str, n: u32) -> [Value; 2] {
    let addresses: Vec<String> = if name == "idle" { Vec::new() } else { vec![format!("10.0.0.{n}")] };
    let metadata = json!({ "namespace": namespace, "name": name });
    [
        json!({
            "kind": "Service",
            "metadata": metadata,
            "spec": { "ports": [{ "name": "http", "port": 8080, "targetPort": 3000 }] },
        }),
        json!({
            "kind": "EndpointSlice",
            "metadata": {
                "namespace": namespace,
                "name": format!("{name}-1"),
                "labels": { "kubernetes.io/service-name": name },
            },
            "addressType": "IPv4",
            "endpoints": addresses.iter().map(|address| json!({ "addresses": [address] })).collect::<Vec<_>>(),
            "ports": [{ "name": "http", "port": 3000 }],
        }),
    ]
}

/// A Secret with a certificate for these names.
pub fn secret(id: &str, names: &[&str]) -> Value {
    let (namespace, name) = id.split_once('/').unwrap();
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    json!({
        "kind": "Secret",
        "metadata": { "namespace": namespace, "name": name },
        "type": "kubernetes.io/tls",
        "stringData": { "tls.crt": made.cert.pem(), "tls.key": made.signing_key.serialize_pem() },
    })
}

/// `Kind namespace/name`.
pub fn reference(text: &str) -> ObjectRef {
    let (kind, id) = text.split_once(' ').expect("a kind");
    let kind = Kind::ALL.into_iter().find(|known| known.name() == kind).expect("a known kind");
    let (namespace, name) = id.split_once('/').unwrap_or(("", id));
    ObjectRef { kind, key: ObjectKey::new(namespace, name) }
}

/// `status/reason` of a condition among `conditions`.
pub fn status_and_reason(owner: &Value, kind: &str) -> String {
    let conditions = owner["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == kind);
    let text = |condition: &Value, member: &str| condition[member].as_str().unwrap_or_default().to_owned();
    found.map_or("-".to_owned(), |found| format!("{}/{}", text(found, "status"), text(found, "reason")))
}

/// The result of a request, in short: the services that share it, a status, or the target of a redirect.
fn answer(endpoints: &Endpoints, found: &RequestMatch<'_>) -> String {
    let rule = match found {
        RequestMatch::Rule(rule) => rule,
        RequestMatch::Closed => return "404".to_owned(),
        other => return format!("{other:?}"),
    };
    let policy = rule.route.rule.as_deref().cloned().unwrap_or_default();
    match policy.action {
        Action::Answer(status) | Action::Direct(status) => status.to_string(),
        Action::Forward => shares(endpoints, &rule.route.cluster),
        Action::Redirect(to) => {
            let path = match &to.path {
                Some(PathChange::Full(path)) => format!(" path={path}"),
                Some(PathChange::Prefix(prefix)) => format!(" prefix={}→{prefix}", rule.prefix),
                None => String::new(),
            };
            let host = to.hostname.as_ref().map(|host| format!(" host={host}")).unwrap_or_default();
            let scheme = to.scheme.as_ref().map(|scheme| format!(" scheme={scheme}")).unwrap_or_default();
            let port = match to.port {
                Some(RedirectPort::Number(port)) => format!(" port={port}"),
                Some(RedirectPort::RouterHttps) => " port=router".to_owned(),
                None => String::new(),
            };
            format!("{}{scheme}{host}{port}{path}", to.status)
        }
    }
}

/// `namespace/service×weight` of each; the namespace only if it is not the route's, `!500` if the backend fails.
fn shares(endpoints: &Endpoints, cluster: &Cluster) -> String {
    let one = |service: &router_table::table::WeightedService| {
        let policy = service.policy.as_deref();
        let namespace =
            policy.and_then(|policy| policy.namespace.as_ref()).map(|ns| format!("{ns}/")).unwrap_or_default();
        let weight = if cluster.services.len() > 1 { format!("×{}", service.weight) } else { String::new() };
        let failure = policy.and_then(|policy| policy.failure).map(|status| format!("!{status}")).unwrap_or_default();
        let idle = if endpoints.of(service).is_empty() && failure.is_empty() { "(idle)" } else { "" };
        format!("{namespace}{}{weight}{failure}{idle}", service.service)
    };
    let all: Vec<_> = cluster.services.iter().map(one).collect();
    if all.is_empty() { "nowhere".to_owned() } else { all.join(" ") }
}
