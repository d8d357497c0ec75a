//! `spec.tls` (docs/openshift.md#tls): the fields that each termination allows, and the TLS material.

use router_model::certificate::{MaterialCache, MaterialError, PemText};
use router_model::field::{FieldError, FieldPath, Findings};
use router_model::names::PathMatch;
use router_table::table::{InsecurePolicy, Reencrypt};

use crate::fields::Fields;
use crate::openshift::route::traffic::{CertificateSource, RouteTls, TlsMaterial, Traffic};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Termination {
    Edge,
    Reencrypt,
    Passthrough,
}

struct TlsTexts<'v> {
    certificate: Option<&'v str>,
    key: Option<&'v str>,
    ca: Option<&'v str>,
    destination_ca: Option<&'v str>,
    external: Option<&'v str>,
}

/// Reads `spec.tls`, which determines the kind of traffic. `None` after an error that leaves it undetermined.
pub fn parse(
    spec: &mut Fields<'_>,
    path: PathMatch,
    materials: &mut MaterialCache,
    findings: &mut Findings,
) -> Option<Traffic> {
    let mut tls = spec.mapping("tls", findings);
    if !tls.is_present() {
        return Some(Traffic::Http { path, tls: None });
    }
    let texts = texts(&mut tls, findings);
    let termination = termination(&mut tls, &texts, findings);
    let insecure = insecure(&mut tls, termination, findings);
    let termination = termination?;
    check_fields(&tls, termination, &texts, findings);
    if termination == Termination::Passthrough && !path.as_str().is_empty() {
        let message = "Forbidden: passthrough routes see no requests and have no path; remove it, or use edge";
        findings.error(spec.path("path"), message);
    }
    let traffic = match termination {
        Termination::Passthrough => Traffic::Passthrough { redirect: insecure? == InsecurePolicy::Redirect },
        Termination::Edge | Termination::Reencrypt => {
            let material = material(&tls, &texts, termination, materials, findings);
            Traffic::Http { path, tls: Some(RouteTls::new(insecure?, material)) }
        }
    };
    tls.finish(findings);
    Some(traffic)
}

fn texts<'v>(tls: &mut Fields<'v>, findings: &mut Findings) -> TlsTexts<'v> {
    let mut external = tls.mapping("externalCertificate", findings);
    let name = external.text("name", findings);
    if external.is_present() && name.is_none() {
        let message = "Required value: write the name of a Secret of type kubernetes.io/tls in this namespace";
        findings.error(external.path("name"), message);
    }
    external.finish(findings);
    TlsTexts {
        certificate: tls.text("certificate", findings),
        key: tls.text("key", findings),
        ca: tls.text("caCertificate", findings),
        destination_ca: tls.text("destinationCACertificate", findings),
        external: name,
    }
}

fn termination(tls: &mut Fields<'_>, texts: &TlsTexts<'_>, findings: &mut Findings) -> Option<Termination> {
    match tls.text("termination", findings) {
        // The API server's default. With a destination CA it has no default, and rejects the route.
        None if texts.destination_ca.is_none() => Some(Termination::Edge),
        None => {
            let message = "Required value: write reencrypt, because destinationCACertificate is set";
            findings.error(tls.path("termination"), message);
            None
        }
        Some("edge" | "Edge") => Some(Termination::Edge),
        Some("reencrypt" | "Reencrypt") => Some(Termination::Reencrypt),
        Some("passthrough" | "Passthrough") => Some(Termination::Passthrough),
        Some(other) => {
            let message = format!("Unsupported value: {other:?}; write edge, reencrypt or passthrough");
            findings.error(tls.path("termination"), message);
            None
        }
    }
}

fn insecure(tls: &mut Fields<'_>, termination: Option<Termination>, findings: &mut Findings) -> Option<InsecurePolicy> {
    let passthrough = termination == Some(Termination::Passthrough);
    let text = tls.text("insecureEdgeTerminationPolicy", findings);
    let message = match text {
        None | Some("None") => return Some(InsecurePolicy::None),
        Some("Redirect") => return Some(InsecurePolicy::Redirect),
        Some("Allow") if !passthrough => return Some(InsecurePolicy::Allow),
        Some("Allow") => {
            "Invalid value: \"Allow\": the backend of a passthrough route speaks TLS only; write None or Redirect"
                .to_owned()
        }
        Some(other) if passthrough => format!("Unsupported value: {other:?}; write None or Redirect"),
        Some(other) => format!("Unsupported value: {other:?}; write None, Allow or Redirect"),
    };
    findings.error(tls.path("insecureEdgeTerminationPolicy"), message);
    None
}

fn check_fields(tls: &Fields<'_>, termination: Termination, texts: &TlsTexts<'_>, findings: &mut Findings) {
    let mut forbid = |name: &str, why: &str| findings.error(tls.path(name), format!("Forbidden: {why}"));
    if termination == Termination::Passthrough {
        let why = "a passthrough route has no certificates, its backend has; remove it, or write termination: edge";
        let given = [
            ("certificate", texts.certificate.is_some()),
            ("key", texts.key.is_some()),
            ("caCertificate", texts.ca.is_some()),
            ("destinationCACertificate", texts.destination_ca.is_some()),
            ("externalCertificate", texts.external.is_some()),
        ];
        given.into_iter().filter(|(_, given)| *given).for_each(|(name, _)| forbid(name, why));
        return;
    }
    if termination == Termination::Edge && texts.destination_ca.is_some() {
        forbid("destinationCACertificate", "only for reencrypt; remove it, or write termination: reencrypt");
    }
    if texts.external.is_some() && (texts.certificate.is_some() || texts.key.is_some()) {
        forbid("externalCertificate", "certificate and key are given as well; keep one of the two");
    }
}

fn material(
    tls: &Fields<'_>,
    texts: &TlsTexts<'_>,
    termination: Termination,
    materials: &mut MaterialCache,
    findings: &mut Findings,
) -> Result<TlsMaterial, Vec<FieldError>> {
    let mut errors = Vec::new();
    let mut note = |path: FieldPath, message: &str| {
        errors.push(FieldError::new(path, format!("Invalid value: {}: {message}", router_model::object::REDACTED)));
    };
    let certificate = match (texts.external, texts.certificate, texts.key) {
        (Some(name), ..) => Some(CertificateSource::Secret(name.into())),
        (None, Some(certificate), key) => match materials.pair(certificate, key, texts.ca) {
            Ok(pair) => Some(CertificateSource::Inline(pair)),
            Err(MaterialError { part, message }) => {
                note(tls.path(field_of(part)), &message);
                None
            }
        },
        // OpenShift's router accepts a key or CA without a certificate, and serves the default certificate.
        (None, None, key) => {
            let unused = [("key", key), ("caCertificate", texts.ca)];
            for (name, _) in unused.iter().filter(|(_, text)| text.is_some()) {
                findings.warn(tls.path(name), "is not used without a certificate; write certificate, or remove it");
            }
            if let Some(Err(error)) = texts.ca.map(|ca| materials.roots(ca)) {
                note(tls.path("caCertificate"), &error.message);
            }
            Some(CertificateSource::Controller)
        }
    };
    let reencrypt = (termination == Termination::Reencrypt).then(|| Reencrypt {
        destination_ca: texts.destination_ca.and_then(|pem| match materials.roots(pem) {
            Ok(roots) => Some(roots),
            Err(error) => {
                note(tls.path("destinationCACertificate"), &error.message);
                None
            }
        }),
    });
    match certificate {
        Some(certificate) if errors.is_empty() => Ok(TlsMaterial { certificate, reencrypt }),
        _ => Err(errors),
    }
}

fn field_of(part: PemText) -> &'static str {
    match part {
        PemText::Certificate => "certificate",
        PemText::Key => "key",
        PemText::CaCertificate => "caCertificate",
    }
}
