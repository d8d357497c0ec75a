//! Trusts certificates that are listed themselves. OpenSSL accepts a leaf certificate that is in the CA file; webpki
//! requires an issuer, so a self-signed certificate used as its own CA would be rejected.

use rustls::{CertificateError, RootCertStore};
use rustls_pki_types::{CertificateDer, UnixTime};
use x509_parser::prelude::{FromDer, X509Certificate};

/// Whether the leaf is one of the anchors: subject and public key are the same. The handshake proves possession of the
/// key.
///
/// # Errors
/// When it is, but is not valid at `now`.
pub fn is_listed(roots: &RootCertStore, leaf: &CertificateDer<'_>, now: UnixTime) -> Result<bool, CertificateError> {
    let mut alone = RootCertStore::empty();
    let added = alone.add(leaf.clone().into_owned());
    if added.is_err() || !alone.roots.iter().all(|anchor| roots.roots.contains(anchor)) {
        return Ok(false);
    }
    let (_, parsed) = X509Certificate::from_der(leaf).map_err(|_| CertificateError::BadEncoding)?;
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let validity = parsed.validity();
    if now < validity.not_before.timestamp() {
        Err(CertificateError::NotValidYet)
    } else if now > validity.not_after.timestamp() {
        Err(CertificateError::Expired)
    } else {
        Ok(true)
    }
}
