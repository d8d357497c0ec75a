//! Routes: `route.openshift.io/v1` (openshift.md a.1 – a.9).

mod backends;
mod stored;
mod tls;

use crate::certificate::MaterialCache;
use crate::field::{FieldError, FieldPath, Findings};
use crate::model::PathMatch;
use crate::object::{Manifest, Meta};

use super::Defaults;
use super::fields::Fields;
use super::names;

pub use backends::{Backend, TargetPort};
pub(super) use stored::stored;
pub use tls::{CertificateSource, HeldTls, Material};

/// A Route as the API server would store it, with types for what the API writes as texts.
#[derive(Clone, Debug)]
pub struct Route {
    /// Metadata.
    pub meta: Meta,
    /// `spec.host`, given or generated; empty when the route has a subdomain instead.
    pub host: String,
    /// Whether the host was generated here (openshift.md a.2).
    pub host_generated: bool,
    /// `spec.subdomain`; ignored when there is a host.
    pub subdomain: String,
    /// `spec.wildcardPolicy`.
    pub wildcard_policy: WildcardPolicy,
    /// What it carries.
    pub traffic: Traffic,
    /// `to` and `alternateBackends`, each service once.
    pub backends: Vec<Backend>,
    /// `spec.port.targetPort`; `None`: every port of the endpoints.
    pub target_port: Option<TargetPort>,
    /// The whole object.
    pub manifest: Manifest,
}

impl Route {
    /// Why its TLS material cannot be used; empty when it can, or when there is none.
    pub fn material_errors(&self) -> &[FieldError] {
        match &self.traffic {
            Traffic::Http { tls: Some(HeldTls { material: Err(errors), .. }), .. } => errors,
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
    /// As the API writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            WildcardPolicy::None => "None",
            WildcardPolicy::Subdomain => "Subdomain",
        }
    }
}

/// What a route carries, with what only that kind can have.
#[derive(Clone, Debug)]
pub enum Traffic {
    /// Requests: without TLS, edge, re-encrypt.
    Http {
        /// `spec.path`.
        path: PathMatch,
        /// `spec.tls`; `None`: clear text only.
        tls: Option<HeldTls>,
    },
    /// TLS streams, untouched.
    Passthrough {
        /// `insecureEdgeTerminationPolicy: Redirect`.
        redirect: bool,
    },
}

impl Traffic {
    /// `spec.path`; empty for passthrough.
    pub fn path(&self) -> &str {
        match self {
            Traffic::Http { path, .. } => path.as_str(),
            Traffic::Passthrough { .. } => "",
        }
    }

    /// Whether the route has `spec.tls`.
    pub fn has_tls(&self) -> bool {
        !matches!(self, Traffic::Http { tls: None, .. })
    }

    /// Whether it is a passthrough route.
    pub fn is_passthrough(&self) -> bool {
        matches!(self, Traffic::Passthrough { .. })
    }
}

const ALLOW_BAD_LABELS: &str = "route.openshift.io/allow-non-dns-compliant-host";

/// Reads a Route. Its manifest is filled in afterwards, by [`stored`].
pub(super) fn parse(
    meta: Meta,
    mut object: Fields<'_>,
    defaults: &Defaults,
    materials: &mut MaterialCache,
    findings: &mut Findings,
) -> Option<Route> {
    let mut spec = object.mapping("spec", findings);
    let wildcard_policy = wildcard_policy(&mut spec, findings);
    let mut host = host(&mut spec, &meta, findings);
    let subdomain = subdomain(&mut spec, findings);
    if !host.is_empty() && !subdomain.is_empty() {
        findings.warn(spec.path("subdomain"), "is ignored, because spec.host is set; remove one of the two");
    }
    if wildcard_policy == Some(WildcardPolicy::Subdomain) && host.is_empty() {
        let message = "Required value: wildcardPolicy Subdomain needs a host, such as www.example.test";
        findings.error(spec.path("host"), message);
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
    spec.unsupported(&["httpHeaders"], findings);
    spec.finish(findings);
    object.finish(findings);
    Some(Route {
        meta,
        host,
        host_generated,
        subdomain,
        wildcard_policy: wildcard_policy?,
        traffic: traffic?,
        backends,
        target_port,
        manifest: Manifest::new(serde_json::Value::Null),
    })
}

/// The host of a route that names neither host nor subdomain (openshift.md a.2).
pub fn generated_host(name: &str, namespace: &str, cluster_domain: &str) -> String {
    format!("{}-{namespace}.{cluster_domain}", name.replace('.', "-"))
}

fn check_generated(host: &str, path: FieldPath, findings: &mut Findings) {
    let fault = names::subdomain_fault(host).or_else(|| names::label_faults(host).into_iter().next());
    if let Some(fault) = fault {
        let message = format!("the generated host {host:?} is no host: {fault}; write spec.host or spec.subdomain");
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

fn host(spec: &mut Fields<'_>, meta: &Meta, findings: &mut Findings) -> String {
    let Some(host) = spec.text("host", findings) else { return String::new() };
    let mut faults: Vec<String> = names::subdomain_fault(host).into_iter().collect();
    if meta.annotations.get(ALLOW_BAD_LABELS).map(String::as_str) != Some("true") && faults.is_empty() {
        faults = names::label_faults(host);
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
    let mut faults = names::label_faults(subdomain);
    if subdomain.len() > names::MAX_SUBDOMAIN {
        faults.push(format!("has {} bytes; use at most {}", subdomain.len(), names::MAX_SUBDOMAIN));
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
