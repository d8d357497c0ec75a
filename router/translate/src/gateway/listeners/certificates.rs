//! Resolves the certificates of listeners, and finds listeners whose certificates or hostnames overlap.

use std::collections::HashMap;
use std::sync::Arc;

use router_api::gateway_api::types::{Gateway, Listener};
use router_api::resources::Resources;
use router_model::certificate::Certificate;
use router_model::certificate::subject::Leaf;
use router_model::kind::Kind;
use router_model::object::ObjectKey;
use router_table::host_pattern::HostPattern;
use rustls::sign::CertifiedKey;

use crate::gateway::conditions::ReferenceErrors;
use crate::gateway::grants::{Grants, Referrer};
use crate::gateway::listeners::placed_listener::{GatewayProtocol, PlacedListener};
use crate::status::condition::Condition;

/// The certificates of all valid `certificateRefs`, in order; invalid ones are added to `errors`.
pub fn resolve(
    gateway: &Gateway,
    listener: &Listener,
    resources: &Resources,
    grants: &Grants,
    errors: &mut ReferenceErrors,
) -> Vec<Certificate> {
    let references = listener.tls.as_ref().map_or(&[][..], |tls| &tls.certificates);
    if references.is_empty() {
        errors.add("InvalidCertificateRef", "tls.certificateRefs is empty; name a Secret of type kubernetes.io/tls");
    }
    let mut certificates = Vec::new();
    for reference in references {
        if !reference.group.is_empty() || *reference.kind != *Kind::Secret.name() {
            let message = format!("certificateRefs: kind {} is not done; name a Secret", reference.kind);
            errors.add("InvalidCertificateRef", message);
            continue;
        }
        let namespace = reference.namespace.as_ref().unwrap_or(&gateway.meta.key.namespace);
        let key = ObjectKey { namespace: namespace.clone(), name: reference.name.clone() };
        // Without a grant, the message must not reveal whether the Secret exists.
        if !grants.allows(&Referrer::new(Kind::Gateway, &gateway.meta.key), Kind::Secret, &key) {
            let message =
                format!("certificateRefs: no ReferenceGrant in {namespace} lets this Gateway use Secret {key}");
            errors.add("RefNotPermitted", message);
            continue;
        }
        match resources.secrets.get(&key).map(|secret| &secret.pair) {
            Some(Some(pair)) => certificates.push(pair.clone()),
            Some(None) => {
                let message = format!("certificateRefs: Secret {key} has not type kubernetes.io/tls");
                errors.add("InvalidCertificateRef", message);
            }
            None => {
                let message = format!("certificateRefs: there is no Secret {key}, or its content is invalid");
                errors.add("InvalidCertificateRef", message);
            }
        }
    }
    certificates
}

/// Sets `OverlappingTLSConfig` on listeners of one Gateway and port between which clients may reuse connections: a
/// client may reuse one for every name that the certificate covers (RFC 9113, 9.1.1); such a request gets 421.
pub fn note_overlaps(placed: &mut [PlacedListener]) {
    let is_https = |placed: &PlacedListener| placed.protocol == Some(GatewayProtocol::Https) && placed.router.is_some();
    let https: Vec<(usize, &PlacedListener)> =
        placed.iter().enumerate().filter(|(_, placed)| is_https(placed)).collect();
    let names: Vec<Option<String>> = https.iter().map(|(_, placed)| name_of(&placed.listener.hostname)).collect();
    // Listeners often share a certificate. For each: the names that it covers.
    let mut covered: HashMap<*const CertifiedKey, Vec<bool>> = HashMap::new();
    for pair in https.iter().flat_map(|(_, placed)| &placed.certificates) {
        covered.entry(Arc::as_ptr(pair)).or_insert_with(|| {
            let leaf = Leaf::of(pair);
            names.iter().map(|name| name.as_ref().is_some_and(|name| leaf.covers(name))).collect()
        });
    }
    let covers = |placed: &PlacedListener, other: usize| {
        let mut names = placed.certificates.iter().filter_map(|pair| covered.get(&Arc::as_ptr(pair)));
        names.any(|names| names.get(other) == Some(&true))
    };
    let mut found = Vec::new();
    for (nth, (i, one)) in https.iter().enumerate() {
        let mut names: Vec<&str> = Vec::new();
        let mut reason = "OverlappingCertificates";
        let others = https.iter().enumerate().filter(|(other, _)| *other != nth);
        for (other_nth, (_, other)) in others.filter(|(_, (_, other))| other.listener.port == one.listener.port) {
            let hostnames = one.listener.hostname.intersect(&other.listener.hostname).is_some();
            if hostnames || covers(one, other_nth) || covers(other, nth) {
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
            found.push((*i, Condition::new("OverlappingTLSConfig", true, reason, message)));
        }
    }
    for (i, condition) in found {
        if let Some(placed) = placed.get_mut(i) {
            placed.overlapping = Some(condition);
        }
    }
}

/// A name that the pattern matches; `None` for `Any`.
fn name_of(hostname: &HostPattern) -> Option<String> {
    match hostname {
        HostPattern::Any => None,
        HostPattern::Exact(name) => Some(name.to_string()),
        HostPattern::Suffix(domain) => Some(format!("sluice-overlap.{domain}")),
    }
}
