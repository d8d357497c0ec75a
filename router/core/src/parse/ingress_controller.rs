//! IngressControllers: `operator.openshift.io/v1`. Each is a router.

use std::sync::Arc;

use serde_json::Value;

use super::fields::Fields;
use super::names;
use crate::field::{FieldPath, Findings};
use crate::object::{Manifest, Meta};
use crate::selector::{LabelSelector, Operator, Requirement};

/// An IngressController, as far as a data plane is concerned.
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
    /// `spec.endpointPublishingStrategy.hostNetwork.httpPort`.
    pub http_port: Option<u16>,
    /// `spec.endpointPublishingStrategy.hostNetwork.httpsPort`.
    pub https_port: Option<u16>,
    /// `spec.endpointPublishingStrategy.hostNetwork.statsPort`.
    pub stats_port: Option<u16>,
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
    /// As the API writes it.
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
    /// Routes with `wildcardPolicy: Subdomain` are refused.
    #[default]
    WildcardsDisallowed,
    /// They are admitted.
    WildcardsAllowed,
}

impl WildcardAdmission {
    /// As the API writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            WildcardAdmission::WildcardsDisallowed => "WildcardsDisallowed",
            WildcardAdmission::WildcardsAllowed => "WildcardsAllowed",
        }
    }
}

/// Fields that say how and where OpenShift runs its router.
const DEPLOYMENT: &[&str] = &["replicas", "nodePlacement", "haproxyVersion", "unsupportedConfigOverrides"];
/// Fields of the data plane that nothing reads yet.
const UNSUPPORTED: &[&str] = &[
    "tlsSecurityProfile",
    "clientTLS",
    "logging",
    "httpHeaders",
    "httpEmptyRequestsPolicy",
    "httpErrorCodePages",
    "httpCompression",
    "tuningOptions",
    "idleConnectionTerminationPolicy",
    "closedClientConnectionPolicy",
];

/// Reads an IngressController. Its manifest is filled in by the caller.
pub(super) fn parse(meta: Meta, mut object: Fields<'_>, findings: &mut Findings) -> Option<IngressController> {
    let mut spec = object.mapping("spec", findings);
    let domain = spec.text("domain", findings);
    if let Some(domain) = domain {
        let faults: Vec<_> = names::subdomain_fault(domain).map_or_else(|| names::label_faults(domain), |f| vec![f]);
        for fault in faults {
            findings.error(spec.path("domain"), format!("Invalid value: {domain:?}: {fault}"));
        }
    }
    let mut certificate = spec.mapping("defaultCertificate", findings);
    let default_certificate = certificate.text("name", findings).map(Arc::from);
    certificate.finish(findings);
    let namespace_selector = selector(spec.mapping("namespaceSelector", findings), findings);
    let route_selector = selector(spec.mapping("routeSelector", findings), findings);
    let (namespace_ownership, wildcard_admission) = admission(spec.mapping("routeAdmission", findings), findings);
    let [http_port, https_port, stats_port] = ports(spec.mapping("endpointPublishingStrategy", findings), findings);
    spec.ignore(DEPLOYMENT);
    spec.unsupported(UNSUPPORTED, findings);
    spec.finish(findings);
    object.finish(findings);
    Some(IngressController {
        meta,
        domain: domain.map(str::to_owned),
        default_certificate,
        namespace_selector,
        route_selector,
        namespace_ownership: namespace_ownership?,
        wildcard_admission: wildcard_admission?,
        http_port,
        https_port,
        stats_port,
        manifest: Manifest::new(Value::Null),
    })
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

fn ports(mut strategy: Fields<'_>, findings: &mut Findings) -> [Option<u16>; 3] {
    const TYPES: [&str; 4] = ["HostNetwork", "LoadBalancerService", "NodePortService", "Private"];
    if let Some(kind) = strategy.text("type", findings).filter(|kind| !TYPES.contains(kind)) {
        let message = format!("Unsupported value: {kind:?}; write one of {}", TYPES.join(", "));
        findings.error(strategy.path("type"), message);
    }
    let mut network = strategy.mapping("hostNetwork", findings);
    let mut port = |name| network.number(name, 1, 65535, findings).and_then(|number| u16::try_from(number).ok());
    let ports = [port("httpPort"), port("httpsPort"), port("statsPort")];
    for (i, name) in ["httpPort", "httpsPort", "statsPort"].iter().enumerate() {
        if ports[i].is_some() && ports[..i].contains(&ports[i]) {
            findings.error(network.path(name), "Invalid value: the port is used twice; write three different ports");
        }
    }
    if network.is_present() {
        network.unsupported(&["protocol"], findings);
    }
    network.finish(findings);
    strategy.ignore(&["loadBalancer", "nodePort", "private"]);
    strategy.finish(findings);
    ports
}

/// Reads a `metav1.LabelSelector`.
fn selector(mut fields: Fields<'_>, findings: &mut Findings) -> LabelSelector {
    let mut requirements: Vec<Requirement> = fields
        .text_map("matchLabels", findings)
        .into_iter()
        .map(|(key, value)| Requirement { key, operator: Operator::In(vec![value]) })
        .collect();
    for (path, item) in fields.list("matchExpressions", findings) {
        requirements.extend(requirement(item, path, findings));
    }
    fields.finish(findings);
    LabelSelector::new(requirements)
}

fn requirement(item: &Value, path: FieldPath, findings: &mut Findings) -> Option<Requirement> {
    let mut fields = Fields::of(Some(item), path, findings);
    let key = fields.text("key", findings);
    if key.is_none() {
        findings.error(fields.path("key"), "Required value: write the name of a label");
    }
    let operator = fields.text("operator", findings);
    let values: Vec<String> = fields.texts("values", findings).into_iter().map(|(_, text)| text.to_owned()).collect();
    let values_path = fields.path("values");
    let operator_path = fields.path("operator");
    fields.finish(findings);
    match operator {
        Some("In" | "NotIn") if values.is_empty() => {
            findings.error(values_path, "Required value: In and NotIn need at least one value");
        }
        Some("Exists" | "DoesNotExist") if !values.is_empty() => {
            findings.error(values_path, "Forbidden: Exists and DoesNotExist take no values; remove them");
        }
        _ => {}
    }
    let operator = match operator {
        Some("In") => Operator::In(values),
        Some("NotIn") => Operator::NotIn(values),
        Some("Exists") => Operator::Exists,
        Some("DoesNotExist") => Operator::DoesNotExist,
        other => {
            let given = other.map_or("Required value".to_owned(), |other| format!("Unsupported value: {other:?}"));
            findings.error(operator_path, format!("{given}; write In, NotIn, Exists or DoesNotExist"));
            return None;
        }
    };
    Some(Requirement { key: key?.to_owned(), operator })
}
