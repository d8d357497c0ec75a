//! Verifies client certificates: `clientTLS` of an IngressController.

use std::sync::Arc;

use router_table::policy::ClientAuth;
use rustls::crypto::CryptoProvider;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, UnixTime};

use super::anchors::is_listed;
use super::client_certificate::ClientCertificate;

/// The verifier: a certificate must be signed by one of the CAs, or be one of them. With `Optional` a client may have
/// none; both policies reject an invalid certificate, as HAProxy does.
///
/// # Errors
/// Without any usable CA; then the router's TLS is disabled as a whole, because no client could connect.
pub fn verifier(
    auth: &ClientAuth,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, VerifierBuilderError> {
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::clone(&auth.roots), Arc::clone(provider));
    let builder = if auth.required { builder } else { builder.allow_unauthenticated() };
    Ok(Arc::new(SignedOrListed { roots: Arc::clone(&auth.roots), webpki: builder.build()? }))
}

/// Whether requests of a client are served. OpenShift rejects those whose subject matches no pattern (403), including
/// those without a certificate.
pub fn admits(auth: &ClientAuth, certificate: Option<&ClientCertificate>) -> bool {
    let matches = |certificate: &ClientCertificate| auth.subjects.iter().any(|s| s.is_match(certificate.subject()));
    auth.subjects.is_empty() || certificate.is_some_and(matches)
}

/// Whether two policies have the same requirements, so that a connection made under one may continue under the other.
pub fn same(a: Option<&Arc<ClientAuth>>, b: Option<&Arc<ClientAuth>>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) if Arc::ptr_eq(a, b) => true,
        (Some(a), Some(b)) => {
            let patterns = |auth: &ClientAuth| -> Vec<String> {
                auth.subjects.iter().map(|pattern| pattern.as_str().to_owned()).collect()
            };
            a.required == b.required && a.roots.roots == b.roots.roots && patterns(a) == patterns(b)
        }
        _ => false,
    }
}

#[derive(Debug)]
struct SignedOrListed {
    roots: Arc<RootCertStore>,
    webpki: Arc<dyn ClientCertVerifier>,
}

impl ClientCertVerifier for SignedOrListed {
    fn offer_client_auth(&self) -> bool {
        self.webpki.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.webpki.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.webpki.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        if is_listed(&self.roots, end_entity, now)? {
            return Ok(ClientCertVerified::assertion());
        }
        self.webpki.verify_client_cert(end_entity, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        self.webpki.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        self.webpki.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.webpki.supported_verify_schemes()
    }
}
