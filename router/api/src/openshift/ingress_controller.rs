//! IngressControllers (`operator.openshift.io/v1`). Each is one router.

pub mod http;
pub mod logging;
pub mod publishing;
pub mod security;
pub mod tuning;
pub mod unique_id;

use std::sync::Arc;

use router_model::dns_names;
use router_model::field::{FieldPath, Findings};
use router_model::object::{Manifest, Meta};
use router_model::selector::LabelSelector;
use router_table::path_form::PathSettings;
use router_table::policy::gate::GatePolicy;
use router_table::policy::tls_profile::TlsProfile;
use serde_json::Value;

use crate::fields::{Fields, NO_EFFECT};
use crate::gate::gate_policy;
use crate::meta::Annotations;
use crate::openshift::ingress_controller::http::HttpPolicy;
use crate::openshift::ingress_controller::logging::AccessLogSettings;
use crate::openshift::ingress_controller::publishing::Publishing;
use crate::openshift::ingress_controller::security::ClientTls;
use crate::openshift::ingress_controller::tuning::Tuning;
use crate::path_settings::path_settings;
use crate::selector;

/// The data plane's part of an IngressController.
#[derive(Clone, Debug)]
pub struct IngressController {
    /// Metadata; the name is the router's name.
    pub meta: Meta,
    /// `spec.domain`; `None`: the cluster's ingress domain.
    pub domain: Option<String>,
    /// `spec.defaultCertificate.name`: a Secret in the controller's namespace, or in `openshift-ingress`.
    pub default_certificate: Option<Arc<str>>,
    /// `spec.namespaceSelector`.
    pub namespace_selector: LabelSelector,
    /// `spec.routeSelector`.
    pub route_selector: LabelSelector,
    /// `spec.routeAdmission.namespaceOwnership`.
    pub namespace_ownership: NamespaceOwnership,
    /// `spec.routeAdmission.wildcardPolicy`.
    pub wildcard_admission: WildcardAdmission,
    /// `spec.endpointPublishingStrategy`.
    pub publishing: Publishing,
    /// `spec.tlsSecurityProfile`.
    pub tls_profile: TlsProfile,
    /// `spec.clientTLS`; `None`: clients need no certificate.
    pub client_tls: Option<ClientTls>,
    /// `spec.httpHeaders` and other HTTP settings.
    pub http: HttpPolicy,
    /// `spec.tuningOptions`.
    pub tuning: Tuning,
    /// `spec.logging.access`.
    pub logging: AccessLogSettings,
    /// Path normalisation, from annotations.
    pub paths: PathSettings,
    /// The XDP gate, from annotations.
    pub gate: Option<Arc<GatePolicy>>,
    /// Fields with unsupported values, in order; each has a warning.
    pub without_effect: Vec<FieldPath>,
    /// The whole object.
    pub manifest: Manifest,
}

/// `spec.routeAdmission.namespaceOwnership`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NamespaceOwnership {
    /// A host belongs to the namespace of its oldest route.
    #[default]
    Strict,
    /// Namespaces may share a host, by path.
    InterNamespaceAllowed,
}

impl NamespaceOwnership {
    /// The API's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            NamespaceOwnership::Strict => "Strict",
            NamespaceOwnership::InterNamespaceAllowed => "InterNamespaceAllowed",
        }
    }
}

/// `spec.routeAdmission.wildcardPolicy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WildcardAdmission {
    /// Routes with `wildcardPolicy: Subdomain` are rejected.
    #[default]
    WildcardsDisallowed,
    /// They are admitted.
    WildcardsAllowed,
}

impl WildcardAdmission {
    /// The API's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            WildcardAdmission::WildcardsDisallowed => "WildcardsDisallowed",
            WildcardAdmission::WildcardsAllowed => "WildcardsAllowed",
        }
    }
}

/// The API's default of `hostNetwork.statsPort`.
const DEFAULT_STATS_PORT: u16 = 1936;
/// The field with the ports.
const PUBLISHING: &str = "endpointPublishingStrategy";
/// Fields about the deployment of OpenShift's router.
const DEPLOYMENT: &[&str] = &["replicas", "nodePlacement", "haproxyVersion"];
/// Overrides of OpenShift's own router.
const OVERRIDES: &str = "unsupportedConfigOverrides";
/// Always `true` in Sluice: HTTP/2 is offered on every terminated host (docs/openshift.md#http2).
const ENABLE_HTTP2: &str = "ingress.operator.openshift.io/default-enable-http2";
/// Limit of connections after a reload. Sluice does not reload, so it has no effect.
const HARD_STOP_AFTER: &str = "ingress.operator.openshift.io/hard-stop-after";

/// Reads an IngressController. Its manifest is filled in by the caller.
pub(crate) fn parse(
    meta: Meta,
    annotations: &Annotations,
    mut object: Fields<'_>,
    findings: &mut Findings,
) -> Option<IngressController> {
    let mut spec = object.mapping("spec", findings);
    let domain = spec.text("domain", findings);
    if let Some(domain) = domain {
        let faults: Vec<_> =
            dns_names::subdomain_fault(domain).map_or_else(|| dns_names::label_faults(domain), |f| vec![f]);
        for fault in faults {
            findings.error(spec.path("domain"), format!("Invalid value: {domain:?}: {fault}"));
        }
    }
    let mut certificate = spec.mapping("defaultCertificate", findings);
    let default_certificate = certificate.text("name", findings).map(Arc::from);
    certificate.finish(findings);
    let namespace_selector = selector::parse(spec.mapping("namespaceSelector", findings), findings);
    let route_selector = selector::parse(spec.mapping("routeSelector", findings), findings);
    let (namespace_ownership, wildcard_admission) = admission(spec.mapping("routeAdmission", findings), findings);
    let publishing = publishing::parse(spec.mapping(PUBLISHING, findings), findings);
    let tls_profile = security::profile(&mut spec, findings);
    let client_tls = security::client_tls(&mut spec, findings);
    let http = http::parse(&mut spec, findings);
    let tuning = tuning::parse(spec.mapping("tuningOptions", findings), findings);
    let logging = logging::parse(spec.mapping("logging", findings), findings);
    let paths = path_settings(annotations, findings).unwrap_or_default();
    let gate = gate_policy(annotations, findings).map(Arc::new);
    spec.ignore(DEPLOYMENT);
    let has_overrides = spec.value(OVERRIDES).and_then(Value::as_object).is_some_and(|members| !members.is_empty());
    let mut controller = IngressController {
        meta,
        domain: domain.map(str::to_owned),
        default_certificate,
        namespace_selector,
        route_selector,
        namespace_ownership: namespace_ownership?,
        wildcard_admission: wildcard_admission?,
        publishing: publishing?,
        tls_profile: tls_profile?,
        client_tls,
        http,
        tuning,
        logging,
        paths,
        gate,
        without_effect: Vec::new(),
        manifest: Manifest::none(),
    };
    controller.without_effect = without_effect(&controller, annotations, &spec);
    if has_overrides {
        controller.without_effect.push(spec.path(OVERRIDES));
    }
    // Paths found while reading a value already have a warning with the reason.
    let told = [&controller.http.without_effect, &controller.logging.format_without_effect];
    for path in controller.without_effect.iter().filter(|path| !told.iter().any(|told| told.contains(path))) {
        findings.warn(path.clone(), NO_EFFECT);
    }
    spec.finish(findings);
    object.finish(findings);
    Some(controller)
}

/// Fields with non-default values that the data plane does not support.
fn without_effect(controller: &IngressController, annotations: &Annotations, spec: &Fields<'_>) -> Vec<FieldPath> {
    let http = &controller.http;
    let tuning = controller.tuning.without_effect();
    let mut paths: Vec<FieldPath> = tuning.map(|name| spec.path("tuningOptions").key(name)).collect();
    // No statistics are served on this port. The API's default was not requested.
    let stats = controller.publishing.stats_port.filter(|port| *port != DEFAULT_STATS_PORT);
    let stats = stats.map(|_| spec.path(PUBLISHING).key("hostNetwork").key("statsPort"));
    paths.extend(stats);
    paths.extend_from_slice(&http.without_effect);
    paths.extend_from_slice(&controller.logging.without_effect);
    paths.extend_from_slice(&controller.logging.format_without_effect);
    let disables_http2 = annotations.get(ENABLE_HTTP2).is_some_and(|text| text != "true");
    let unused = [(ENABLE_HTTP2, disables_http2), (HARD_STOP_AFTER, annotations.contains_key(HARD_STOP_AFTER))];
    let unused = unused.into_iter().filter(|(_, is_set)| *is_set);
    paths.extend(unused.map(|(name, _)| FieldPath::of(&["metadata", "annotations", name])));
    paths
}

fn admission(
    mut fields: Fields<'_>,
    findings: &mut Findings,
) -> (Option<NamespaceOwnership>, Option<WildcardAdmission>) {
    let ownership = match fields.text("namespaceOwnership", findings) {
        None | Some("Strict") => Some(NamespaceOwnership::Strict),
        Some("InterNamespaceAllowed") => Some(NamespaceOwnership::InterNamespaceAllowed),
        Some(other) => {
            let message = format!("Unsupported value: {other:?}; write Strict or InterNamespaceAllowed");
            findings.error(fields.path("namespaceOwnership"), message);
            None
        }
    };
    let wildcards = match fields.text("wildcardPolicy", findings) {
        None | Some("WildcardsDisallowed") => Some(WildcardAdmission::WildcardsDisallowed),
        Some("WildcardsAllowed") => Some(WildcardAdmission::WildcardsAllowed),
        Some(other) => {
            let message = format!("Unsupported value: {other:?}; write WildcardsAllowed or WildcardsDisallowed");
            findings.error(fields.path("wildcardPolicy"), message);
            None
        }
    };
    fields.finish(findings);
    (ownership, wildcards)
}

#[cfg(test)]
mod tests;
