//! Certificates of listeners; listeners whose certificates or hostnames overlap.

use router_api::gateway_api::types::{Gateway, Listener};
use router_api::resources::Resources;
use router_model::certificate::Certificate;
use router_model::certificate::subject::covers;
use router_model::kind::Kind;
use router_model::object::ObjectKey;
use router_table::host_pattern::HostPattern;

use crate::gateway::conditions::Faults;
use crate::gateway::grants::{Grants, Referrer};
use crate::gateway::listeners::evaluated::{GatewayProtocol, Placed};
use crate::status::condition::Condition;

/// The certificates of all valid `certificateRefs`, in order; invalid ones are added to the faults.
pub fn resolve(
    gateway: &Gateway,
    listener: &Listener,
    resources: &Resources,
    grants: &Grants,
    faults: &mut Faults,
) -> Vec<Certificate> {
    let references = listener.tls.as_ref().map_or(&[][..], |tls| &tls.certificates);
    if references.is_empty() {
        faults.add("InvalidCertificateRef", "tls.certificateRefs is empty; name a Secret of type kubernetes.io/tls");
    }
    let mut certificates = Vec::new();
    for reference in references {
        if !reference.group.is_empty() || *reference.kind != *Kind::Secret.name() {
            let message = format!("certificateRefs: kind {} is not done; name a Secret", reference.kind);
            faults.add("InvalidCertificateRef", message);
            continue;
        }
        let namespace = reference.namespace.as_ref().unwrap_or(&gateway.meta.key.namespace);
        let key = ObjectKey { namespace: namespace.clone(), name: reference.name.clone() };
        // Without a grant, the message must not reveal whether the Secret exists.
        if !grants.allows(&Referrer::of(Kind::Gateway, &gateway.meta.key), Kind::Secret, &key) {
            let message =
                format!("certificateRefs: no ReferenceGrant in {namespace} lets this Gateway use Secret {key}");
            faults.add("RefNotPermitted", message);
            continue;
        }
        match resources.secrets.get(&key).map(|secret| &secret.pair) {
            Some(Some(pair)) => certificates.push(pair.clone()),
            Some(None) => {
                let message = format!("certificateRefs: Secret {key} has not type kubernetes.io/tls");
                faults.add("InvalidCertificateRef", message);
            }
            None => {
                let message = format!("certificateRefs: there is no Secret {key}, or its content is invalid");
                faults.add("InvalidCertificateRef", message);
            }
        }
    }
    certificates
}

/// Sets `OverlappingTLSConfig` on listeners of one Gateway and port that a browser may coalesce: it reuses a connection
/// for every name that the certificate covers (RFC 9113, 9.1.1), and gets 421.
pub fn note_overlaps(placed: &mut [Placed<'_>]) {
    let is_https = |placed: &Placed<'_>| placed.protocol == Some(GatewayProtocol::Https) && placed.router.is_some();
    let mut found = Vec::new();
    for (i, one) in placed.iter().enumerate().filter(|(_, one)| is_https(one)) {
        let others = placed.iter().filter(|other| !std::ptr::eq(*other, one) && is_https(other));
        let mut names: Vec<&str> = Vec::new();
        let mut reason = "OverlappingCertificates";
        for other in others.filter(|other| other.listener.port == one.listener.port) {
            let hostnames = one.listener.hostname.intersect(&other.listener.hostname).is_some();
            if hostnames || shows_for(one, &other.listener.hostname) || shows_for(other, &one.listener.hostname) {
                names.push(&other.listener.name);
                reason = if hostnames { "OverlappingHostnames" } else { reason };
            }
        }
        if !names.is_empty() {
            let message = format!(
                "clients may reuse connections between this listener and {}; requests that come by the wrong one are \
                 answered 421",
                names.join(", ")
            );
            found.push((i, Condition::new("OverlappingTLSConfig", true, reason, message)));
        }
    }
    for (i, condition) in found {
        if let Some(placed) = placed.get_mut(i) {
            placed.overlapping = Some(condition);
        }
    }
}

/// True if a listener has a certificate that covers a name of this pattern.
fn shows_for(placed: &Placed<'_>, hostname: &HostPattern) -> bool {
    let name = match hostname {
        HostPattern::Any => return false,
        HostPattern::Exact(name) => name.to_string(),
        HostPattern::Suffix(domain) => format!("sluice-overlap.{domain}"),
    };
    placed.certificates.iter().any(|pair| covers(pair, &name))
}
