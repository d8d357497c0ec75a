//! Translation of manifests to statuses and virtual hosts.

mod batch;
mod bounds;
mod descriptions;
mod domains;
mod histories;
mod paths;
mod policies;
mod properties;
mod proxies;
mod resilience;
mod story;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use router_api::resources::Resources;
use router_api::testing::{authority, resources, service, slice};
use router_model::certificate::Certificate;
use router_model::kind::Kind;
use router_model::names::{HostMatch, Hostname, RouterName};
use router_model::object::{Created, ObjectKey, ObjectRef};
use router_table::lookup;
use router_table::rule::{Action, PathChange, Rule};
use router_table::table::{Endpoint, ResolvedRoute, VirtualHost, WeightedService};
use serde_json::{Value, json};

use super::incremental::Contour;
use crate::endpoints::EndpointIndex;
use crate::endpoints::addresses::EndpointAddresses;
use crate::settings::Settings;
use crate::status::host_conflict::HostOwner;
use crate::traffic_defaults::TrafficDefaults;
use crate::translator::testing::{Outcome, Run};
use crate::translator::{Inputs, LostHosts, RouterPorts};

fn object(api_version: &str, kind: &str, id: &str, spec: Value) -> Value {
    let (namespace, name) = id.split_once('/').expect("namespace/name");
    json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": { "namespace": namespace, "name": name },
        "spec": spec,
    })
}

fn ingress_route(id: &str, spec: Value) -> Value {
    object("contour.heptio.com/v1beta1", "IngressRoute", id, spec)
}

fn proxy(id: &str, spec: Value) -> Value {
    object("projectcontour.io/v1", "HTTPProxy", id, spec)
}

fn delegation(namespace: &str, secret: &str, targets: Value) -> Value {
    let id = format!("{namespace}/lend-{secret}");
    let spec = json!({ "delegations": [{ "secretName": secret, "targetNamespaces": targets }] });
    object("projectcontour.io/v1", "TLSCertificateDelegation", &id, spec)
}

/// An object that was created in this year.
fn of_year(year: u32, mut object: Value) -> Value {
    object["metadata"]["creationTimestamp"] = json!(format!("{year}-01-01T00:00:00Z"));
    object
}

/// A Secret with a certificate of these names.
fn secret(id: &str, names: &[&str]) -> Value {
    let (namespace, name) = id.split_once('/').expect("namespace/name");
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": { "namespace": namespace, "name": name },
        "stringData": { "tls.crt": made.cert.pem(), "tls.key": made.signing_key.serialize_pem() },
    })
}

/// A Service with port 80 and one endpoint.
fn backend(id: &str) -> [Value; 2] {
    [service(id, json!([{ "name": "http", "port": 80 }])), slice(id, &["10.0.0.1"], 8080)]
}

fn backends(ids: &[&str]) -> Vec<Value> {
    ids.iter().flat_map(|id| backend(id)).collect()
}

/// `services` of one service of this name.
fn to(service: &str) -> Value {
    json!([{ "name": service, "port": 80 }])
}

fn router_ports(name: &str) -> RouterPorts {
    RouterPorts {
        name: RouterName(name.into()),
        http: Some(80),
        https: Some(443),
        traffic: TrafficDefaults::default(),
        tls_fault: None,
        gate: None,
    }
}

/// A set of objects and their translation.
struct World {
    resources: Resources,
    endpoints: EndpointIndex,
    translated: Outcome,
}

impl World {
    fn new(objects: Vec<Value>) -> Self {
        Self::with(&Settings::default(), &LostHosts::new(), objects)
    }

    fn with(settings: &Settings, lost: &LostHosts, objects: Vec<Value>) -> Self {
        Self::of(settings, lost, resources(objects))
    }

    fn of(settings: &Settings, lost: &LostHosts, resources: Resources) -> Self {
        let endpoints = EndpointIndex::new(&resources, EndpointAddresses::Filtered);
        let mut run = Run::<Contour>::new(settings);
        run.apply(&resources, &["another", "default"].map(router_ports), |_| lost.clone());
        let translated = run.outcome;
        for (at, host) in &translated.hosts {
            assert_eq!((&*at.0.0, &at.1), ("default", &host.host));
        }
        World { resources, endpoints, translated }
    }

    /// The endpoints of a service.
    fn endpoints_of(&self, service: &WeightedService) -> Arc<[Endpoint]> {
        self.endpoints.find(service.key.as_ref().expect("a key"))
    }

    /// The `status` of an object.
    fn status_value(&self, kind: Kind, id: &str) -> Value {
        let (namespace, name) = id.split_once('/').expect("namespace/name");
        let object = ObjectRef { kind, key: ObjectKey::new(namespace, name) };
        self.translated.statuses.get(&object).unwrap_or_else(|| panic!("{object} has no status")).status()
    }

    /// `currentStatus: description`.
    fn status(&self, kind: Kind, id: &str) -> String {
        let status = self.status_value(kind, id);
        format!("{}: {}", text(&status["currentStatus"]), text(&status["description"]))
    }

    /// The `currentStatus: description` of an IngressRoute.
    fn ingress(&self, id: &str) -> String {
        self.status(Kind::IngressRoute, id)
    }

    /// `<path>: <currentStatus>: <description>` of each path to an IngressRoute.
    fn paths(&self, id: &str) -> Vec<String> {
        let parents = self.status_value(Kind::IngressRoute, id)["parents"].as_array().cloned().unwrap_or_default();
        let line = |parent: &Value| {
            format!("{}: {}: {}", text(&parent["path"]), text(&parent["currentStatus"]), text(&parent["description"]))
        };
        parents.iter().map(line).collect()
    }

    /// `type/reason: message` of the errors of an HTTPProxy's condition.
    fn errors(&self, id: &str) -> Vec<String> {
        let condition = &self.status_value(Kind::HttpProxy, id)["conditions"][0];
        assert_eq!(condition["type"], "Valid");
        let errors = condition["errors"].as_array().cloned().unwrap_or_default();
        assert_eq!(errors.is_empty(), condition["status"] == "True", "{condition}");
        let line =
            |error: &Value| format!("{}/{}: {}", text(&error["type"]), text(&error["reason"]), text(&error["message"]));
        errors.iter().map(line).collect()
    }

    /// Domains that delegate names.
    fn domains(&self) -> Vec<&str> {
        self.translated.domains.iter().map(|(_, domain)| domain.as_str()).collect()
    }

    fn host(&self, name: &str) -> Option<&VirtualHost> {
        let name = Hostname::parse(name).expect("a host");
        let hosts = self.translated.hosts.values();
        let mut covering: Vec<&VirtualHost> = hosts.filter(|host| host.host.covers(&name)).collect();
        covering.sort_by_key(|host| !matches!(host.host, HostMatch::Exact(_)));
        covering.first().copied()
    }

    /// The response to a GET: `namespace/service`, a status code, `tcp` or `passthrough` with the service, `-` if the
    /// host is not served.
    fn get(&self, url: &str) -> String {
        self.request(url, &[])
    }

    fn request(&self, url: &str, headers: &[(&str, &str)]) -> String {
        let (scheme, rest) = url.split_once("://").expect("a scheme");
        let (name, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
        let Some(host) = self.host(name) else { return "-".to_owned() };
        let host_rules = host.rules.as_ref().expect("host rules");
        let rules = match (scheme, &host.passthrough, &host_rules.tls) {
            ("https", Some(route), _) => return format!("passthrough {}", target(route)),
            ("https", None, None) => return "-".to_owned(),
            ("https", None, Some(tls)) => match &tls.tcp {
                Some(route) => return format!("tcp {}", target(route)),
                None => &tls.rules,
            },
            _ => match &host_rules.cleartext {
                Some(rules) => rules,
                None => return "404".to_owned(),
            },
        };
        let request = GetRequest { path, headers };
        rules.iter().find(|rule| rule.takes(&request)).map_or("404".to_owned(), |rule| answer(rule))
    }

    /// The Secret whose certificate a host presents.
    fn certificate(&self, name: &str) -> String {
        let Some(tls) = self.host(name).and_then(|host| host.rules.as_ref()?.tls.as_ref()) else {
            return "-".to_owned();
        };
        let [only] = &*tls.certificates else { panic!("{} certificates", tls.certificates.len()) };
        self.secret_of(only)
    }

    fn secret_of(&self, certificate: &Certificate) -> String {
        let has = |secret: &&Arc<router_api::kubernetes::secret::Secret>| {
            secret.pair.as_ref().is_some_and(|pair| Arc::ptr_eq(pair, certificate))
        };
        self.resources.secrets.iter().find(has).map(|secret| secret.meta.key.to_string()).expect("a Secret")
    }

    /// Every served host with the responses to representative requests, for comparison.
    fn everything(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for host in self.translated.hosts.values() {
            let host_rules = host.rules.as_ref().expect("host rules");
            let mut line = |what: &str, rules: &[Arc<Rule>]| {
                for rule in rules {
                    lines.push(format!("{} {what} {:?} {}", host.host, rule.matcher.path, answer(rule)));
                }
            };
            line("http", host_rules.cleartext.as_deref().unwrap_or_default());
            line("https", host_rules.tls.as_ref().map_or(&[], |tls| &tls.rules));
            if let Some(tls) = &host_rules.tls {
                let certificates: Vec<String> = tls.certificates.iter().map(|it| self.secret_of(it)).collect();
                lines.push(format!("{} certificates {certificates:?} {:?}", host.host, tls.minimum));
            }
            let connections = host.passthrough.iter().chain(host_rules.tls.as_ref().and_then(|tls| tls.tcp.as_ref()));
            lines.extend(connections.map(|route| format!("{} tcp {}", host.host, target(route))));
        }
        for (object, status) in &self.translated.statuses {
            lines.push(format!("{object} {}", status.status()));
        }
        lines
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn target(route: &ResolvedRoute) -> String {
    let services = &route.cluster.services;
    assert!(services.iter().all(|service| service.weight > 0 && service.key.is_some()));
    let names: Vec<String> = match &**services {
        [only] => vec![only.service.to_string()],
        many => many.iter().map(|service| format!("{}={}", service.service, service.weight)).collect(),
    };
    format!("{}/{}", route.id.namespace, names.join(","))
}

fn answer(rule: &Rule) -> String {
    let policy = rule.route.rule.as_ref().expect("a rule");
    let rewrite = match &policy.rewrite_path {
        Some(PathChange::Prefix(to)) => format!(" {}→{to}", rule.prefix),
        Some(PathChange::Full(to)) => format!(" →{to}"),
        None => String::new(),
    };
    match &policy.action {
        Action::Forward => format!("{}{rewrite}", target(&rule.route)),
        Action::Redirect(to) => {
            let scheme = to.scheme.as_deref().map_or(String::new(), |scheme| format!(" {scheme}"));
            let host = to.hostname.as_ref().map_or(String::new(), |host| format!(" {host}"));
            format!("{}{scheme}{host}", to.status)
        }
        Action::Answer(status) | Action::Direct(status) => status.to_string(),
    }
}

/// A `GET` with header fields.
struct GetRequest<'a> {
    path: &'a str,
    headers: &'a [(&'a str, &'a str)],
}

impl lookup::Request for GetRequest<'_> {
    fn method(&self) -> &str {
        "GET"
    }

    fn path(&self) -> &str {
        self.path
    }

    fn query(&self) -> Option<&str> {
        None
    }

    fn header(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        lookup::joined(name, self.headers.iter().filter(|(known, _)| *known == name).map(|(_, value)| value.as_bytes()))
    }
}
