//! Contour's objects: IngressRoute (`contour.heptio.com/v1beta1`), HTTPProxy (`projectcontour.io/v1`) and
//! TLSCertificateDelegation (docs/delegation.md#subdomains). An object that violates its
//! CustomResourceDefinition is rejected. An object that Contour finds invalid, or that uses an unsupported field, is
//! accepted and reported as invalid in its status.

mod balance;
pub mod common;
mod conditions;
mod cors;
mod http_proxy;
mod ingress_route;
mod policies;
mod resilience;
mod services;
pub mod types;

use std::sync::Arc;

use router_model::field::{FieldPath, Findings};
use router_model::kind::Kind;
use router_model::object::{Manifest, Meta};
use serde_json::Value;

use super::fields::Fields;
use crate::contour::common::refuse;
use crate::contour::types::{ContourProxy, ForeignClass, TlsCertificateDelegation, TlsSpec, VirtualHostSpec};
use crate::meta::{Annotations, set_namespace};
use crate::object::Object;

/// Annotations that name an ingress class. Contour's default class is this controller's.
const CLASS_ANNOTATIONS: [&str; 3] =
    ["projectcontour.io/ingress.class", "contour.heptio.com/ingress.class", "kubernetes.io/ingress.class"];
const OUR_CLASS: &str = "contour";

/// Reads an object of one of these kinds; `None` for other kinds.
pub(crate) fn parse(
    kind: Kind,
    meta: Meta,
    annotations: &Annotations,
    written: &Value,
    findings: &mut Findings,
) -> Option<Object> {
    let mut stored = written.clone();
    set_namespace(&mut stored, &meta.key);
    let manifest = Manifest::new(&stored);
    let mut object = Fields::of(Some(&stored), FieldPath::root(), findings);
    object.ignore(&["kind", "metadata", "status"]);
    let version = object.text("apiVersion", findings).unwrap_or_default();
    let mut spec = object.mapping("spec", findings);
    if object.value("spec").is_none() {
        findings.error(object.path("spec"), format!("Required value: write what the {kind} is to do"));
    }
    let parsed = match kind {
        Kind::IngressRoute | Kind::HttpProxy => {
            let mut vertex = vertex(kind, meta, annotations, manifest, &mut spec, findings);
            Some(if kind == Kind::IngressRoute {
                ingress_route::fill(&mut vertex, &mut spec, findings);
                Object::IngressRoute(Arc::new(vertex))
            } else {
                http_proxy::fill(&mut vertex, &mut spec, findings);
                Object::HttpProxy(Arc::new(vertex))
            })
        }
        Kind::TlsCertificateDelegation => {
            let delegations = delegations(&mut spec, findings);
            let has_status = version == kind.api_version();
            let delegation = TlsCertificateDelegation { meta, manifest, has_status, delegations };
            Some(Object::TlsCertificateDelegation(Arc::new(delegation)))
        }
        _ => None,
    };
    spec.finish(findings);
    object.finish(findings);
    parsed
}

/// Whether a rejected IngressRoute or HTTPProxy names the class of another controller.
pub fn is_foreign(manifest: &Value) -> bool {
    let annotation = |name: &&str| manifest.get("metadata")?.get("annotations")?.get(name)?.as_str();
    let field = || manifest.pointer("/spec/ingressClassName")?.as_str();
    CLASS_ANNOTATIONS.iter().find_map(annotation).or_else(field).is_some_and(names_another)
}

fn names_another(class: &str) -> bool {
    class != OUR_CLASS && !class.is_empty()
}

/// The fields that both kinds share: the class and the virtual host.
fn vertex(
    kind: Kind,
    meta: Meta,
    annotations: &Annotations,
    manifest: Manifest,
    spec: &mut Fields<'_>,
    findings: &mut Findings,
) -> ContourProxy {
    let annotated = CLASS_ANNOTATIONS.iter().find_map(|name| {
        let class = annotations.get(*name)?;
        Some((class.as_str(), FieldPath::of(&["metadata", "annotations", *name])))
    });
    let named = if kind == Kind::HttpProxy { spec.text("ingressClassName", findings) } else { None };
    let class = annotated.or_else(|| Some((named?, spec.path("ingressClassName"))));
    let foreign_class = class
        .filter(|(class, _)| names_another(class))
        .map(|(class, path)| Box::new(ForeignClass { name: class.into(), path }));
    let mut vertex = ContourProxy {
        kind,
        meta,
        manifest,
        foreign_class,
        virtual_host: None,
        subdomains: Vec::new(),
        routes: Vec::new(),
        tcp: None,
        faults: Vec::new(),
    };
    let mut host = spec.mapping("virtualhost", findings);
    if host.is_present() {
        let fqdn = host.text("fqdn", findings).unwrap_or_default();
        let mut tls = host.mapping("tls", findings);
        let read = tls.is_present().then(|| TlsSpec {
            secret: tls.text("secretName", findings).unwrap_or_default().into(),
            minimum: tls.text("minimumProtocolVersion", findings).unwrap_or_default().into(),
            passthrough: tls.truth("passthrough", findings).unwrap_or_default(),
        });
        let mut cors = None;
        if kind == Kind::HttpProxy {
            let names = ["maximumProtocolVersion", "clientValidation", "enableFallbackCertificate"];
            refuse(&mut tls, &names, &mut vertex.faults);
            cors = cors::policy(&mut host, &mut vertex.faults, findings);
            let names = ["authorization", "rateLimitPolicy", "jwtProviders", "ipAllowPolicy", "ipDenyPolicy"];
            refuse(&mut host, &names, &mut vertex.faults);
        }
        tls.finish(findings);
        vertex.virtual_host = Some(VirtualHostSpec { fqdn: fqdn.into(), tls: read, cors });
    }
    host.finish(findings);
    vertex
}

/// Reads `spec.delegations`.
fn delegations(spec: &mut Fields<'_>, findings: &mut Findings) -> Vec<(Arc<str>, Vec<Arc<str>>)> {
    let mut delegations = Vec::new();
    for (path, item) in spec.list("delegations", findings) {
        let mut fields = Fields::of(Some(item), path, findings);
        let secret = fields.required("secretName", "the name of a Secret of this namespace", findings);
        let targets = fields.texts("targetNamespaces", findings);
        fields.finish(findings);
        delegations
            .extend(secret.map(|secret| (secret.into(), targets.iter().map(|(_, text)| (*text).into()).collect())));
    }
    delegations
}
