//! ConfigMaps: client CAs and error pages of IngressControllers, and CAs of BackendTLSPolicies.

use std::sync::Arc;

use router_model::certificate::{self, MaterialCache, TrustRoots};
use router_model::field::Findings;
use router_model::object::Meta;
use router_table::policy::error_page::ErrorPage;

use crate::fields::Fields;

/// Key of the CA of `clientTLS.clientCA`.
pub const CLIENT_CA: &str = "ca-bundle.pem";
/// Key of the CA of a BackendTLSPolicy.
pub const CA_CERTIFICATE: &str = "ca.crt";
/// Key of the 503 page of `httpErrorCodePages`.
pub const UNAVAILABLE_PAGE: &str = "error-page-503.http";
/// Key of the 404 page of `httpErrorCodePages`.
pub const NOT_FOUND_PAGE: &str = "error-page-404.http";

/// A ConfigMap; other keys are dropped.
#[derive(Clone, Debug)]
pub struct ConfigMap {
    /// Metadata.
    pub meta: Meta,
    /// [`CLIENT_CA`], or why it cannot be used.
    pub client_ca: Option<Result<ClientCa, String>>,
    /// [`CA_CERTIFICATE`], or why it cannot be used.
    pub ca: Option<Result<TrustRoots, String>>,
    /// [`UNAVAILABLE_PAGE`], or why it cannot be used.
    pub unavailable: Option<Result<Arc<ErrorPage>, String>>,
    /// [`NOT_FOUND_PAGE`], or why it cannot be used.
    pub not_found: Option<Result<Arc<ErrorPage>, String>>,
}

/// CAs of clients' certificates.
#[derive(Clone, Debug)]
pub struct ClientCa {
    /// The certificates.
    pub roots: TrustRoots,
    /// Whether one of them has CRL distribution points (RFC 5280, section 4.2.1.13).
    pub names_revocation_lists: bool,
}

/// Reads a ConfigMap. Invalid content is a warning here, and is reported again by the objects that refer to it.
pub(crate) fn config_map(
    meta: Meta,
    mut object: Fields<'_>,
    materials: &mut MaterialCache,
    findings: &mut Findings,
) -> ConfigMap {
    object.ignore(&["immutable", "binaryData"]);
    let data_path = object.path("data");
    let data = object.text_map("data", findings);
    object.finish(findings);
    let client_ca = data.get(CLIENT_CA).map(|pem| read_ca(pem, materials));
    let ca = data.get(CA_CERTIFICATE).map(|pem| materials.roots(pem).map_err(|error| error.message));
    let page = |key: &str| data.get(key).map(|text| ErrorPage::parse(text).map(Arc::new));
    let (unavailable, not_found) = (page(UNAVAILABLE_PAGE), page(NOT_FOUND_PAGE));
    let mut warn = |key: &str, fault: Option<&String>| {
        if let Some(fault) = fault {
            findings.warn(data_path.key(key), fault.clone());
        }
    };
    fn fault<T>(content: Option<&Result<T, String>>) -> Option<&String> {
        content.and_then(|content| content.as_ref().err())
    }
    warn(CLIENT_CA, fault(client_ca.as_ref()));
    warn(CA_CERTIFICATE, fault(ca.as_ref()));
    warn(UNAVAILABLE_PAGE, fault(unavailable.as_ref()));
    warn(NOT_FOUND_PAGE, fault(not_found.as_ref()));
    ConfigMap { meta, client_ca, ca, unavailable, not_found }
}

fn read_ca(pem: &str, materials: &mut MaterialCache) -> Result<ClientCa, String> {
    let roots = materials.roots(pem).map_err(|error| error.message)?;
    Ok(ClientCa { roots, names_revocation_lists: certificate::names_revocation_lists(pem) })
}

#[cfg(test)]
mod tests;
