//! Certificates and keys from PEM: parsed once per text, checked as OpenShift's router does, never printed.
//!
//! Checks (docs/openshift.md#certificates): the PEM parses, block types are known, the leaf comes first, the key
//! matches the leaf, `caCertificate` has signed the leaf, and no CA signature uses MD2, MD5 or SHA-1. Expiry and names
//! are not checked: an expired certificate is served, and clients reject it; see [`refusals`].

mod refusal;
pub mod subject;

use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Weak};

pub use refusal::{expiry, refusals};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, RootCertStore};
use x509_parser::prelude::{FromDer, ParsedExtension, X509Certificate};

use crate::object::Interner;

/// The invalid text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PemText {
    /// `certificate`, or `tls.crt`.
    Certificate,
    /// `key`, or `tls.key`.
    Key,
    /// `caCertificate`.
    CaCertificate,
}

/// Why TLS material is rejected. Contains none of the material.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct MaterialError {
    /// The invalid text.
    pub part: PemText,
    /// The fault, and what to write instead.
    pub message: String,
}

/// A certificate chain with its private key. Two are equal if their chains are: a public key has one private key.
#[derive(Clone)]
pub struct Certificate(Arc<CertifiedKey>);

/// The CA certificates that a peer's chain must end in. Two are equal if they hold the same ones in the same order.
#[derive(Clone, Debug)]
pub struct TrustRoots(Arc<RootCertStore>);

impl PartialEq for Certificate {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.cert == other.0.cert
    }
}

impl Eq for Certificate {}

impl PartialEq for TrustRoots {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.roots == other.0.roots
    }
}

impl Eq for TrustRoots {}

impl From<Arc<CertifiedKey>> for Certificate {
    fn from(pair: Arc<CertifiedKey>) -> Self {
        Certificate(pair)
    }
}

impl From<Arc<RootCertStore>> for TrustRoots {
    fn from(roots: Arc<RootCertStore>) -> Self {
        TrustRoots(roots)
    }
}

impl Deref for Certificate {
    type Target = Arc<CertifiedKey>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Deref for TrustRoots {
    type Target = Arc<RootCertStore>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// Without the key.
impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Certificate(..)")
    }
}

/// Parsed material by the digest of its text, for as long as somebody holds it: equal text is parsed once.
#[derive(Debug, Default)]
pub struct MaterialCache {
    pairs: HashMap<Vec<u8>, Weak<CertifiedKey>>,
    roots: HashMap<Vec<u8>, Weak<RootCertStore>>,
    /// Interned names and labels.
    pub texts: Interner,
}

impl MaterialCache {
    /// An empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// A certificate chain with its key. The key may be part of the certificate's text (`key: None`). The certificates
    /// of `ca` are appended to the chain.
    ///
    /// # Errors
    /// The first failing check of the module.
    pub fn pair(
        &mut self,
        certificate: &str,
        key: Option<&str>,
        ca: Option<&str>,
    ) -> Result<Certificate, MaterialError> {
        let id = digest(&[certificate, key.unwrap_or_default(), ca.unwrap_or_default()]);
        if let Some(known) = self.pairs.get(&id).and_then(Weak::upgrade) {
            return Ok(Certificate(known));
        }
        let pair = Arc::new(load_pair(certificate, key, ca)?);
        forget_unused(&mut self.pairs);
        self.pairs.insert(id, Arc::downgrade(&pair));
        Ok(Certificate(pair))
    }

    /// Trusted CA certificates.
    ///
    /// # Errors
    /// [`PemText::CaCertificate`]: the text has no certificate, or an invalid one.
    pub fn roots(&mut self, pem: &str) -> Result<TrustRoots, MaterialError> {
        let id = digest(&[pem]);
        if let Some(known) = self.roots.get(&id).and_then(Weak::upgrade) {
            return Ok(TrustRoots(known));
        }
        let roots = Arc::new(load_roots(pem)?);
        forget_unused(&mut self.roots);
        self.roots.insert(id, Arc::downgrade(&roots));
        Ok(TrustRoots(roots))
    }
}

fn load_pair(certificate: &str, key: Option<&str>, ca: Option<&str>) -> Result<CertifiedKey, MaterialError> {
    let mut chain = certificates(certificate, PemText::Certificate)?;
    let Some(leaf) = chain.first().cloned() else {
        return Err(fault(PemText::Certificate, "holds no certificate; paste the PEM text, leaf first"));
    };
    let (part, key_text) = key.map_or((PemText::Certificate, certificate), |key| (PemText::Key, key));
    check_blocks(key_text, part)?;
    let key = PrivateKeyDer::from_pem_slice(key_text.as_bytes()).map_err(|_| {
        fault(PemText::Key, "holds no private key that can be read; paste the PEM text of the leaf's key")
    })?;
    if let Some(ca) = ca {
        let signers = certificates(ca, PemText::CaCertificate)?;
        if signers.is_empty() {
            return Err(fault(PemText::CaCertificate, "holds no certificate; paste the PEM text, or remove the field"));
        }
        check_signed(&leaf, chain.get(1..).unwrap_or_default(), &signers)?;
        chain.extend(signers);
    }
    CertifiedKey::from_der(chain, key, provider()).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => {
            fault(PemText::Key, "does not belong to the certificate; the leaf must stand first, with its own key")
        }
        rustls::Error::InvalidCertificate(_) => {
            fault(PemText::Certificate, "the leaf is not a supported X.509 version 3 certificate")
        }
        _ => fault(PemText::Key, "is of a kind that cannot be used; use RSA (2048 bits or more), ECDSA or Ed25519"),
    })
}

fn load_roots(pem: &str) -> Result<RootCertStore, MaterialError> {
    let certificates = certificates(pem, PemText::CaCertificate)?;
    if certificates.is_empty() {
        return Err(fault(PemText::CaCertificate, "holds no certificate; paste the PEM text of the CA"));
    }
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots
            .add(certificate)
            .map_err(|_| fault(PemText::CaCertificate, "holds a certificate that cannot be a trust anchor"))?;
    }
    Ok(roots)
}

/// Whether a certificate of the text has CRL distribution points (RFC 5280, section 4.2.1.13).
pub fn names_revocation_lists(pem: &str) -> bool {
    let certificates = certificates(pem, PemText::CaCertificate).unwrap_or_default();
    let names = |certificate: &CertificateDer<'_>| {
        read(certificate, PemText::CaCertificate).is_ok_and(|parsed| {
            let is_list =
                |extension: &ParsedExtension<'_>| matches!(extension, ParsedExtension::CRLDistributionPoints(_));
            parsed.extensions().iter().any(|extension| is_list(extension.parsed_extension()))
        })
    };
    certificates.iter().any(names)
}

/// All certificates of a text, parsed.
fn certificates(pem: &str, part: PemText) -> Result<Vec<CertificateDer<'static>>, MaterialError> {
    check_blocks(pem, part)?;
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|_| fault(part, "is broken PEM; paste it whole, with its BEGIN and END lines"))?;
    for certificate in &certificates {
        check_signature_algorithm(&read(certificate, part)?, part)?;
    }
    Ok(certificates)
}

fn read<'c>(certificate: &'c CertificateDer<'_>, part: PemText) -> Result<X509Certificate<'c>, MaterialError> {
    match X509Certificate::from_der(certificate) {
        Ok((_, parsed)) => Ok(parsed),
        Err(_) => {
            Err(fault(part, "holds a certificate that cannot be read; the text between BEGIN and END is damaged"))
        }
    }
}

/// Accepted PEM block types of a certificate or key text; EC parameters are dropped.
const BLOCKS: [&str; 6] =
    ["CERTIFICATE", "PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "EC PARAMETERS", "TRUSTED CERTIFICATE"];

fn check_blocks(pem: &str, part: PemText) -> Result<(), MaterialError> {
    let mut blocks = pem.lines().filter_map(|line| line.trim().strip_prefix("-----BEGIN "));
    let known = |block: &str| BLOCKS.iter().any(|known| block.strip_suffix("-----") == Some(known));
    if blocks.any(|block| !known(block)) {
        return Err(fault(part, "holds a PEM block that is neither a certificate nor an unencrypted private key"));
    }
    Ok(())
}

fn check_signature_algorithm(certificate: &X509Certificate<'_>, part: PemText) -> Result<(), MaterialError> {
    const WEAK: [&str; 6] = [
        "1.2.840.113549.1.1.2", // MD2 with RSA
        "1.2.840.113549.1.1.4", // MD5 with RSA
        "1.2.840.113549.1.1.5", // SHA-1 with RSA
        "1.2.840.10040.4.3",    // SHA-1 with DSA
        "1.2.840.10045.4.1",    // SHA-1 with ECDSA
        "1.3.14.3.2.29",        // SHA-1 with RSA, as NIST's workshop named it
    ];
    let self_signed = certificate.issuer() == certificate.subject();
    let algorithm = certificate.signature_algorithm.algorithm.to_id_string();
    if !self_signed && WEAK.contains(&algorithm.as_str()) {
        return Err(fault(part, "is signed by its CA with MD2, MD5 or SHA-1; have it issued anew with SHA-256"));
    }
    Ok(())
}

/// Whether one of `signers` has signed the leaf, regardless of names, dates and key usage.
fn check_signed(
    leaf: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
    signers: &[CertificateDer<'static>],
) -> Result<(), MaterialError> {
    if signers.iter().any(|signer| signer.as_ref() == leaf.as_ref()) {
        return Ok(());
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(signers.iter().cloned());
    let unsigned = || fault(PemText::CaCertificate, "did not sign the certificate; paste the CA that did");
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::new(provider().clone()))
        .build()
        .map_err(|_| unsigned())?;
    // Dates are not checked here: use a time at which the whole chain is valid, if there is one.
    let begins = [leaf].into_iter().chain(intermediates).filter_map(|certificate| {
        read(certificate, PemText::Certificate).ok().map(|parsed| parsed.validity().not_before.timestamp())
    });
    let moment = begins.max().and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(0);
    let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(moment));
    let Ok(name) = ServerName::try_from("unchecked.invalid") else { return Ok(()) };
    match verifier.verify_server_cert(leaf, intermediates, &name, &[], now) {
        Err(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature)) => {
            Err(unsigned())
        }
        _ => Ok(()),
    }
}

fn provider() -> &'static CryptoProvider {
    static PROVIDER: std::sync::OnceLock<CryptoProvider> = std::sync::OnceLock::new();
    PROVIDER.get_or_init(aws_lc_rs::default_provider)
}

fn digest(texts: &[&str]) -> Vec<u8> {
    let mut id = Vec::new();
    let Some(suite) = aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256.tls13() else { return id };
    for text in texts {
        id.extend_from_slice(suite.common.hash_provider.hash(text.as_bytes()).as_ref());
    }
    id
}

/// Limits a cache of weak references to twice the number of live ones.
fn forget_unused<T>(cache: &mut HashMap<Vec<u8>, Weak<T>>) {
    if cache.len() == cache.capacity() {
        cache.retain(|_, entry| entry.strong_count() > 0);
    }
}

fn fault(part: PemText, message: &str) -> MaterialError {
    MaterialError { part, message: message.to_owned() }
}

#[cfg(test)]
mod tests;
