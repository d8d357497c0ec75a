//! Routes: `route.openshift.io/v1` (docs/openshift.md#stored-routes).

pub mod annotations;
pub mod backends;
pub(crate) mod stored;
pub mod tls;
pub mod traffic;

use std::sync::Arc;

use annotations::RouteAnnotations;
use annotations::allowlist::AllowList;
use router_model::certificate::MaterialCache;
use router_model::dns_names;
use router_model::field::{FieldError, FieldPath, Findings};
use router_model::names::PathMatch;
use router_model::object::{Interner, Manifest, Meta};
use router_model::one_or_many::OneOrMany;
use router_table::policy::header_actions::HeaderActions;

use crate::defaults::Defaults;
use crate::fields::Fields;
use crate::meta::Annotations;
use crate::openshift::header_actions;
use crate::openshift::route::backends::{Backend, TargetPort};
use crate::openshift::route::traffic::Traffic;

/// A Route as the API server would store it, with parsed values.
#[derive(Clone, Debug)]
pub struct Route {
    /// Metadata.
    pub meta: Meta,
    /// `spec.host`, written or generated; empty if the route has a subdomain instead.
    pub host: Arc<str>,
    /// Whether the host was generated here (docs/openshift.md#generated-host).
    pub host_generated: bool,
    /// `openshift.io/host.generated` is `true`: the API server generated the host.
    pub host_generated_earlier: bool,
    /// `spec.wildcardPolicy`.
    pub wildcard_policy: WildcardPolicy,
    /// `spec.path` and `spec.tls`.
    pub traffic: Traffic,
    /// `spec.to` and `spec.alternateBackends`, each service once.
    pub backends: OneOrMany<Backend>,
    /// Settings that few routes have; `None` if it has none of them.
    pub(crate) rare: Option<Box<RareSettings>>,
    /// The whole object.
    pub manifest: Manifest,
}

const _: () = assert!(size_of::<Route>() <= 240, "with its counts, a size class of the allocator");

/// Settings that few routes have, apart from the others so that 100,000 routes without them take no memory for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct RareSettings {
    subdomain: Box<str>,
    target_port: Option<TargetPort>,
    header_actions: Option<Arc<HeaderActions>>,
    annotations: Option<RouteAnnotations>,
}

impl Route {
    /// Shares texts with other routes.
    pub(crate) fn share(&mut self, texts: &mut Interner) {
        self.backends.iter_mut().for_each(|backend| texts.share(&mut backend.service));
        if let Some(port) = self.rare.as_mut().and_then(|rare| rare.target_port.as_mut()) {
            texts.share(&mut port.0);
        }
        if let Traffic::Http { path, .. } = &mut self.traffic {
            path.share(texts);
        }
    }

    /// `spec.subdomain`, empty if it has none; ignored when there is a host.
    pub fn subdomain(&self) -> &str {
        self.rare.as_ref().map_or("", |rare| &rare.subdomain)
    }

    /// `spec.port.targetPort`; `None`: every port of the endpoints.
    pub fn target_port(&self) -> Option<&TargetPort> {
        self.rare.as_ref()?.target_port.as_ref()
    }

    /// `spec.httpHeaders.actions`; `None` when there are none.
    pub fn header_actions(&self) -> Option<&Arc<HeaderActions>> {
        self.rare.as_ref()?.header_actions.as_ref()
    }

    /// Annotations that configure the traffic; `None` if they change nothing.
    pub fn annotations(&self) -> Option<&RouteAnnotations> {
        self.rare.as_ref()?.annotations.as_ref()
    }

    /// The clients that may connect; `None`: all.
    pub fn allow_list(&self) -> Option<&AllowList> {
        self.annotations()?.allow.as_ref()
    }

    /// Errors of its TLS material.
    pub fn material_errors(&self) -> &[FieldError] {
        match &self.traffic {
            Traffic::Http { tls: Some(tls), .. } => tls.material.as_ref().err().map_or(&[], Vec::as_slice),
            _ => &[],
        }
    }
}

/// `spec.wildcardPolicy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WildcardPolicy {
    /// The host alone.
    None,
    /// Every name of one label under the host's parent domain.
    Subdomain,
}

impl WildcardPolicy {
    /// The API's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            WildcardPolicy::None => "None",
            WildcardPolicy::Subdomain => "Subdomain",
        }
    }
}

/// Annotation of routes whose host was generated.
pub(crate) const HOST_GENERATED: &str = "openshift.io/host.generated";
const ALLOW_BAD_LABELS: &str = "route.openshift.io/allow-non-dns-compliant-host";

/// Reads a Route; `old` is the stored version that it replaces. The caller sets the manifest.
pub(crate) fn parse(
    meta: Meta,
    annotations: &Annotations,
    mut object: Fields<'_>,
    old: Option<&Route>,
    defaults: &Defaults,
    materials: &mut MaterialCache,
    findings: &mut Findings,
) -> Option<Route> {
    let mut spec = object.mapping("spec", findings);
    let wildcard_policy = wildcard_policy(&mut spec, findings);
    let mut host = host(&mut spec, annotations, old, findings);
    let subdomain = subdomain(&mut spec, findings);
    if !host.is_empty() && !subdomain.is_empty() {
        findings.warn(spec.path("subdomain"), "is ignored, because spec.host is set; remove one of the two");
    }
    if wildcard_policy == Some(WildcardPolicy::Subdomain) && host.is_empty() {
        let message = "Required value: wildcardPolicy Subdomain needs a host, such as www.example.test";
        findings.error(spec.path("host"), message);
    }
    if wildcard_policy == Some(WildcardPolicy::Subdomain) && !host.is_empty() && !host.contains('.') {
        let message = format!("has no effect on a host of one label; write www.{host} to serve *.{host}");
        findings.warn(spec.path("wildcardPolicy"), message);
    }
    let host_generated = host.is_empty() && subdomain.is_empty() && wildcard_policy == Some(WildcardPolicy::None);
    if host_generated {
        host = generated_host(&meta.key.name, &meta.key.namespace, &defaults.cluster_domain);
        check_generated(&host, spec.path("host"), findings);
    }
    let path = path(&mut spec, findings);
    let backends = backends::parse(&mut spec, findings);
    let target_port = backends::target_port(&mut spec, findings);
    let traffic = tls::parse(&mut spec, path, materials, findings);
    let header_actions = header_actions(&mut spec, traffic.as_ref(), findings);
    let parsed = traffic.as_ref().and_then(|traffic| RouteAnnotations::parse(annotations, traffic, findings));
    let has_rare = !subdomain.is_empty() || target_port.is_some() || header_actions.is_some() || parsed.is_some();
    let rare = RareSettings { subdomain: subdomain.into(), target_port, header_actions, annotations: parsed };
    spec.finish(findings);
    object.finish(findings);
    Some(Route {
        meta,
        host: host.into(),
        host_generated,
        host_generated_earlier: annotations.get(HOST_GENERATED).is_some_and(|text| text == "true"),
        wildcard_policy: wildcard_policy?,
        traffic: traffic?,
        backends: backends.into(),
        rare: has_rare.then(|| Box::new(rare)),
        manifest: Manifest::none(),
    })
}

/// Reads `spec.httpHeaders`.
fn header_actions(
    spec: &mut Fields<'_>,
    traffic: Option<&Traffic>,
    findings: &mut Findings,
) -> Option<Arc<HeaderActions>> {
    let mut fields = spec.mapping("httpHeaders", findings);
    let actions = header_actions::actions(&mut fields, findings);
    fields.finish(findings);
    if actions.is_empty() {
        return None;
    }
    if traffic.is_some_and(Traffic::is_passthrough) {
        let message = "Forbidden: passthrough routes see no requests and change no headers; remove it, or use edge";
        findings.error(spec.path("httpHeaders"), message);
    }
    Some(Arc::new(actions))
}

/// Suffix of generated hosts in a cluster without a domain.
const NO_CLUSTER_DOMAIN: &str = "router.default.svc.cluster.local";

/// The host of a route with neither host nor subdomain (docs/openshift.md#generated-host).
pub fn generated_host(name: &str, namespace: &str, cluster_domain: &str) -> String {
    let cluster_domain = if cluster_domain.is_empty() { NO_CLUSTER_DOMAIN } else { cluster_domain };
    format!("{}-{namespace}.{cluster_domain}", name.replace('.', "-"))
}

fn check_generated(host: &str, path: FieldPath, findings: &mut Findings) {
    let fault = dns_names::subdomain_fault(host).or_else(|| dns_names::label_faults(host).into_iter().next());
    if let Some(fault) = fault {
        let message =
            format!("the generated host {host:?} is not a valid host: {fault}; write spec.host or spec.subdomain");
        findings.error(path, message);
    }
}

fn wildcard_policy(spec: &mut Fields<'_>, findings: &mut Findings) -> Option<WildcardPolicy> {
    match spec.text("wildcardPolicy", findings) {
        None | Some("None") => Some(WildcardPolicy::None),
        Some("Subdomain") => Some(WildcardPolicy::Subdomain),
        Some(other) => {
            let message = format!("Unsupported value: {other:?}; write None or Subdomain");
            findings.error(spec.path("wildcardPolicy"), message);
            None
        }
    }
}

fn host(spec: &mut Fields<'_>, annotations: &Annotations, old: Option<&Route>, findings: &mut Findings) -> String {
    let Some(host) = spec.text("host", findings) else { return String::new() };
    let mut faults: Vec<String> = dns_names::subdomain_fault(host).into_iter().collect();
    let annotated = annotations.get(ALLOW_BAD_LABELS).is_some_and(|text| text == "true");
    let was_bad = old.is_some_and(|old| *old.host == *host || !dns_names::label_faults(&old.host).is_empty());
    if !annotated && !was_bad && faults.is_empty() {
        faults = dns_names::label_faults(host);
    }
    for fault in faults {
        let hint = if host.starts_with("*.") {
            "; for a wildcard write any first label, such as www, and wildcardPolicy: Subdomain"
        } else {
            ""
        };
        findings.error(spec.path("host"), format!("Invalid value: {host:?}: {fault}{hint}"));
    }
    host.to_owned()
}

fn subdomain(spec: &mut Fields<'_>, findings: &mut Findings) -> String {
    let Some(subdomain) = spec.text("subdomain", findings) else { return String::new() };
    let mut faults = dns_names::label_faults(subdomain);
    if subdomain.len() > dns_names::MAX_SUBDOMAIN {
        faults.push(format!("has {} bytes; use at most {}", subdomain.len(), dns_names::MAX_SUBDOMAIN));
    }
    for fault in faults {
        findings.error(spec.path("subdomain"), format!("Invalid value: {subdomain:?}: {fault}"));
    }
    subdomain.to_owned()
}

fn path(spec: &mut Fields<'_>, findings: &mut Findings) -> PathMatch {
    let Some(text) = spec.text("path", findings) else { return PathMatch::any() };
    if let Some(path) = PathMatch::parse(text) {
        return path;
    }
    let advice = if text.starts_with('/') {
        "remove '#' and spaces; a path is compared as it stands in the request".to_owned()
    } else {
        format!("write \"/{text}\"")
    };
    findings.error(spec.path("path"), format!("Invalid value: {text:?}; {advice}"));
    PathMatch::any()
}
