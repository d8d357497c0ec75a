//! Certificates that are trusted for being listed themselves. OpenSSL accepts a leaf that stands in the CA file; webpki
//! wants an authority above each leaf, so a self-signed certificate that was pasted as its own CA would be refused.

use rustls::{CertificateError, RootCertStore};
use rustls_pki_types::{CertificateDer, UnixTime};
use x509_parser::prelude::{FromDer, X509Certificate};

/// Whether the leaf is one of the anchors: of the same subject and the same key, which the handshake proves that the
/// peer has.
///
/// # Errors
/// When it is, and is not valid at `now`.
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
