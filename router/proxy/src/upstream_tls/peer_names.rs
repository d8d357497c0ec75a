//! Verifies that a peer has one of several names (Gateway API, `BackendTLSPolicy.spec.validation`).

use std::sync::Arc;

use router_table::rule::{BackendTls, PeerName};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::error::TrustError;
use crate::certificates::provider;
use crate::tls::anchors::is_listed;

/// Verifies chain, validity and key usage, and that the certificate contains one of the names, independently of the
/// SNI. A name with `*.` matches names with one or more labels in its place, and the same wildcard; a URI matches
/// exactly.
#[derive(Debug)]
pub struct NamedPeer {
    /// For checks that do not involve names.
    webpki: Arc<WebPkiServerVerifier>,
    roots: Arc<RootCertStore>,
    hosts: Vec<ServerName<'static>>,
    /// Names that are looked up in the certificate's list.
    listed: Vec<PeerName>,
}

impl NamedPeer {
    /// For peers with a chain to these roots and a name of the policy.
    ///
    /// # Errors
    /// When the roots are not usable.
    pub fn new(roots: &Arc<RootCertStore>, tls: &BackendTls) -> Result<Self, TrustError> {
        let webpki = WebPkiServerVerifier::builder_with_provider(Arc::clone(roots), provider()).build()?;
        let (mut hosts, mut listed) = (Vec::new(), Vec::new());
        for name in tls.names().iter() {
            match name {
                PeerName::Host(name) => hosts.push(ServerName::DnsName(name.clone())),
                PeerName::Below(_) | PeerName::Uri(_) => listed.push(name.clone()),
            }
        }
        Ok(NamedPeer { webpki, roots: Arc::clone(roots), hosts, listed })
    }

    fn has_name(&self, leaf: &CertificateDer<'_>, parsed: &ParsedCertificate<'_>) -> bool {
        let is_host = self.hosts.iter().any(|name| verify_server_name(parsed, name).is_ok());
        is_host || (!self.listed.is_empty() && self.is_listed(leaf))
    }

    fn is_listed(&self, leaf: &CertificateDer<'_>) -> bool {
        let Ok((_, certificate)) = X509Certificate::from_der(leaf) else { return false };
        let Ok(Some(names)) = certificate.subject_alternative_name() else { return false };
        let mut names = names.value.general_names.iter();
        names.any(|name| {
            self.listed.iter().any(|wanted| match (name, wanted) {
                (GeneralName::DNSName(name), PeerName::Below(domain)) => is_below(name, domain.as_str()),
                (GeneralName::URI(uri), PeerName::Uri(wanted)) => **uri == **wanted,
                _ => false,
            })
        })
    }
}

/// Whether a name has one or more labels before a domain.
fn is_below(name: &str, domain: &str) -> bool {
    let (name, domain) = (name.as_bytes(), domain.as_bytes());
    let Some((labels, end)) = name.len().checked_sub(domain.len()).and_then(|at| name.split_at_checked(at)) else {
        return false;
    };
    end.eq_ignore_ascii_case(domain) && labels.len() > 1 && labels.ends_with(b".")
}

impl ServerCertVerifier for NamedPeer {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let parsed = ParsedCertificate::try_from(end_entity)?;
        if !is_listed(&self.roots, end_entity, now)? {
            let algorithms = provider().signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots, intermediates, now, algorithms)?;
        }
        if self.has_name(end_entity, &parsed) {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(CertificateError::NotValidForName.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.webpki.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.webpki.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.webpki.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_covers_what_is_below_it() {
        let cases = [
            ("a.apps.test", true),
            ("a.b.APPS.test", true),
            ("*.apps.test", true),
            ("apps.test", false),
            (".apps.test", false),
            ("xapps.test", false),
            ("a.apps.test.evil", false),
            ("", false),
        ];
        for (name, expected) in cases {
            assert_eq!(is_below(name, "apps.test"), expected, "{name}");
        }
    }
}
