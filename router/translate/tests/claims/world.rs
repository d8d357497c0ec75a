//! The objects of a story, and an engine's results for them.

use std::sync::Arc;

use router_api::defaults::Defaults;
use router_api::object::Object;
use router_api::parse::{ParseOutcome, parse};
use router_api::resources::{RejectedManifest, Resources};
use router_model::certificate::MaterialCache;
use router_model::kind::Kind;
use router_model::object::{Manifest, ObjectKey, Origin};
use router_translate::domain_lists::DomainLists;
use router_translate::endpoints::addresses::EndpointAddresses;
use router_translate::engine::Engine;
use router_translate::settings::Settings;
use rustls::RootCertStore;
use serde_json::Value;

use crate::cast;
use crate::certificates::Certificates;
use crate::story::Story;

/// The router of a story that defines none.
const ROUTER: &str = "apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec: {domain: apps.test}
";
/// The class of a story's Gateways, unless the story defines it.
const CLASS: &str = "apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: sluice}
spec: {controllerName: sluice.dev/gateway-controller}
";

/// A story, ready to run.
pub struct World {
    pub settings: Settings,
    pub service_ca: Option<Arc<RootCertStore>>,
    pub certificates: Certificates,
    /// The initial manifests.
    pub manifests: Vec<Value>,
    /// Manifests that `$ apply NAME` adds.
    pub later: Vec<(String, Vec<Value>)>,
}

impl World {
    pub fn new(story: &Story) -> Self {
        let mut certificates = Certificates::default();
        let members = cast::members(story.of_kind("backends").flat_map(|(_, lines)| lines));
        let (mut now, mut later) = (String::new(), Vec::new());
        for (argument, lines) in story.of_kind("manifests") {
            let text = certificates.fill(&lines.join("\n"), |what| cast::place(&members, what));
            match argument.strip_prefix("later ") {
                Some(name) => later.push((name.to_owned(), documents(&text))),
                None => now += &format!("\n---\n{text}"),
            }
        }
        now += &format!("\n{}", cast::services(&members));
        let has = |kind: &str| now.lines().any(|line| line.trim() == format!("kind: {kind}"));
        let wants_router = story.setting("router").unwrap_or(match story.name.split('/').next() {
            Some("gateway-api") => "none",
            _ => "default",
        });
        let mut more = String::new();
        if wants_router == "default" && !has("IngressController") {
            more += &format!("\n---\n{ROUTER}");
        }
        if has("Gateway") && !has("GatewayClass") {
            more += &format!("\n---\n{CLASS}");
        }
        let (settings, service_ca) = settings(story, &mut certificates);
        World { settings, service_ca, certificates, manifests: documents(&(now + &more)), later }
    }

    pub fn engine(&self) -> Engine {
        Engine::new(self.settings.clone())
    }

    pub fn defaults(&self) -> Defaults {
        Defaults { cluster_domain: self.settings.cluster_domain.clone() }
    }

    /// All objects, and the messages about single ones.
    pub fn resources(&self, cache: &mut MaterialCache) -> (Resources, Vec<String>) {
        let (mut resources, mut said) = (Resources::default(), Vec::new());
        for read in self.manifests.iter().filter_map(|value| self.read(value, cache)) {
            said.extend(read.put_into(&mut resources));
        }
        (resources, said)
    }

    /// Parses a manifest; `None` for an unknown kind.
    pub fn read(&self, value: &Value, cache: &mut MaterialCache) -> Option<Read> {
        let parsed = parse(value.clone(), Origin::default(), &self.defaults(), cache);
        let warnings = parsed.warnings.iter().map(ToString::to_string).collect();
        let read = match parsed.outcome {
            ParseOutcome::Good(object) => {
                let key = object.key().clone();
                let errors = object.material_errors().iter().map(ToString::to_string).collect();
                Read { kind: object.kind(), key, good: Some(object), refused: None, errors, warnings }
            }
            ParseOutcome::Refused { kind, key, errors, manifest } => {
                let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
                Read { kind, key, good: None, refused: Some(refused(errors[0].clone(), manifest)), errors, warnings }
            }
            ParseOutcome::UnknownKind { .. } | ParseOutcome::Unidentified(_) => return None,
        };
        Some(read)
    }
}

/// A parsed manifest.
pub struct Read {
    pub kind: Kind,
    pub key: ObjectKey,
    pub good: Option<Object>,
    refused: Option<Arc<RejectedManifest>>,
    pub errors: Vec<String>,
    warnings: Vec<String>,
}

impl Read {
    /// Inserts it in place of its last version; a rejected one leaves the last accepted version in force. Returns the
    /// messages about it.
    pub fn put_into(&self, resources: &mut Resources) -> Vec<String> {
        let last = resources.object(self.kind, &self.key);
        let good = self.good.clone().or(last);
        resources.set(self.key.clone(), self.kind, good.as_ref(), self.refused.clone());
        let said = |severity: &str, text: &String| format!("{severity}: {} {}: {text}", self.kind, self.key);
        let errors = self.errors.iter().map(|text| said("error", text));
        errors.chain(self.warnings.iter().map(|text| said("warning", text))).collect()
    }

    /// Removes it.
    pub fn remove_from(&self, resources: &mut Resources) {
        resources.set(self.key.clone(), self.kind, None, None);
    }
}

fn refused(problem: String, manifest: Manifest) -> Arc<RejectedManifest> {
    Arc::new(RejectedManifest { problem, manifest })
}

fn documents(text: &str) -> Vec<Value> {
    let all = serde_saphyr::from_multiple::<Value>(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let items = |value: Value| match value["items"].as_array() {
        Some(items) if value["kind"] == "List" => items.clone(),
        _ => vec![value],
    };
    all.into_iter().filter(|value| !value.is_null()).flat_map(items).collect()
}

/// Settings from the flags of `sluice run` that concern manifests.
fn settings(story: &Story, certificates: &mut Certificates) -> (Settings, Option<Arc<RootCertStore>>) {
    let mut settings = Settings { addresses: vec!["10.0.0.1".parse().unwrap()], ..Settings::default() };
    let mut service_ca = None;
    for (flag, value) in story.flags() {
        let list = || value.unwrap().split(',').map(str::to_owned).collect::<Vec<_>>();
        match flag {
            "denied-domains" => settings.domains = DomainLists { denied: list(), ..settings.domains },
            "allowed-domains" => settings.domains = DomainLists { allowed: list(), ..settings.domains },
            "ingressroute-root-namespaces" => settings.root_namespaces = list(),
            "allow-undelegated-subdomains" => settings.allow_undelegated_subdomains = true,
            "cluster-domain" => settings.cluster_domain = value.unwrap().to_owned(),
            "endpoint-addresses" => settings.endpoint_addresses = EndpointAddresses::Any,
            "service-ca" => {
                let name = value.and_then(|value| value.strip_prefix("{{ca ")?.strip_suffix("}}")).unwrap();
                service_ca = Some(certificates.roots(name));
            }
            "drain" => {}
            other => panic!("--{other} is not known here"),
        }
    }
    (settings, service_ca)
}
