//! The certificate of a Route, read after its claims (docs/openshift.md#claims-before-certificates).

use std::sync::Arc;

use router_api::kubernetes::secret::Secret;
use router_api::openshift::route::Route;
use router_api::openshift::route::traffic::{CertificateSource, Traffic};
use router_api::resources::Objects;
use router_model::certificate::Certificate;
use router_model::field::FieldError;
use router_model::object::ObjectKey;

use crate::status::rejection::{RejectReason, Rejection, reject};

const SECRET_FIELD: &str = "spec.tls.externalCertificate.name";

/// The Route's own certificate, if it defines one.
pub fn certificate(route: &Route, secrets: &Objects<Secret>) -> Result<Option<Certificate>, Rejection> {
    let Traffic::Http { tls: Some(tls), .. } = &route.traffic else { return Ok(None) };
    match &tls.material {
        Err(errors) => Err(reject(RejectReason::ExtendedValidationFailed, aggregate(errors))),
        Ok(material) => match &material.certificate {
            CertificateSource::Controller => Ok(None),
            CertificateSource::Inline(pair) => Ok(Some(pair.clone())),
            CertificateSource::Secret(name) => from_secret(route, name, secrets).map(Some),
        },
    }
}

/// The Secret that a Route's certificate is read from, if any.
pub fn secret_of(route: &Route) -> Option<ObjectKey> {
    let Traffic::Http { tls: Some(tls), .. } = &route.traffic else { return None };
    match &tls.material.as_ref().ok()?.certificate {
        CertificateSource::Secret(name) => Some(secret_key(route, name)),
        CertificateSource::Controller | CertificateSource::Inline(_) => None,
    }
}

fn secret_key(route: &Route, name: &Arc<str>) -> ObjectKey {
    ObjectKey { namespace: route.meta.key.namespace.clone(), name: name.clone() }
}

fn from_secret(route: &Route, name: &Arc<str>, secrets: &Objects<Secret>) -> Result<Certificate, Rejection> {
    let key = secret_key(route, name);
    let Some(versions) = secrets.versions_of(&key) else {
        let message = format!("{SECRET_FIELD}: Not found: there is no Secret {key}");
        return Err(reject(RejectReason::ExternalCertificateGetFailed, message));
    };
    match versions.accepted.as_ref().map(|secret| (&secret.kind, &secret.pair)) {
        Some((_, Some(pair))) => Ok(pair.clone()),
        Some((kind, None)) => {
            let message = format!("{SECRET_FIELD}: Invalid value: Secret {key} has type {kind}, not kubernetes.io/tls");
            Err(reject(RejectReason::ExternalCertificateValidationFailed, message))
        }
        None => {
            let message = format!("{SECRET_FIELD}: Invalid value: Secret {key} holds no certificate that can be used");
            Err(reject(RejectReason::ExternalCertificateValidationFailed, message))
        }
    }
}

/// Joins errors as Kubernetes does: a single one as it is, several in brackets.
fn aggregate(errors: &[FieldError]) -> String {
    match errors {
        [only] => only.to_string(),
        _ => format!("[{}]", errors.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    }
}
