//! ConfigMaps: what IngressControllers name in them, a CA for clients' certificates and error pages, and the CA that a
//! BackendTLSPolicy names.

use std::sync::Arc;

use router_model::certificate::{self, MaterialCache, TrustRoots};
use router_model::field::Findings;
use router_model::object::Meta;
use router_table::policy::error_page::ErrorPage;

use crate::fields::Fields;

/// Key of the CA that `clientTLS.clientCA` names.
pub const CLIENT_CA: &str = "ca-bundle.pem";
/// Key of the CA that a BackendTLSPolicy names.
pub const CA_CERTIFICATE: &str = "ca.crt";
/// Key of the page for 503 that `httpErrorCodePages` names.
pub const UNAVAILABLE_PAGE: &str = "error-page-503.http";
/// Key of the page for 404.
pub const NOT_FOUND_PAGE: &str = "error-page-404.http";

/// A ConfigMap; what else it holds is not kept.
#[derive(Clone, Debug)]
pub struct ConfigMap {
    /// Metadata. Annotations are dropped: `kubectl apply` keeps a copy of the data in one.
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

/// Who may have signed clients' certificates.
#[derive(Clone, Debug)]
pub struct ClientCa {
    /// The certificates.
    pub roots: TrustRoots,
    /// Whether one of them names a list of revoked certificates (RFC 5280, section 4.2.1.13).
    pub names_revocation_lists: bool,
}

/// Reads a ConfigMap. Content that cannot be used is warned of; whoever names it is told too.
pub(crate) fn config_map(
    mut meta: Meta,
    mut object: Fields<'_>,
    materials: &mut MaterialCache,
    findings: &mut Findings,
) -> ConfigMap {
    meta.annotations.clear();
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
