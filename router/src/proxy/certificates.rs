//! Certificates towards clients: which one a name gets.

use std::fmt;
use std::sync::{Arc, LazyLock};

use router_core::lookup::SniMatch;
use router_core::model::Hostname;
use router_core::table::RouterTable;
use rustls::crypto::CryptoProvider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// No self-signed certificate could be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot make a self-signed certificate for {domain:?}: {cause}")]
pub struct SelfSignedError {
    domain: String,
    cause: String,
}

/// The one choice of a crypto provider.
pub fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: LazyLock<Arc<CryptoProvider>> =
        LazyLock::new(|| Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
    Arc::clone(&PROVIDER)
}

/// The certificate of last resort for a router with this `status.domain`: self-signed, for the domain and `*.<domain>`.
///
/// # Errors
/// When the domain cannot stand in a certificate, or the system has no randomness.
pub fn self_signed(domain: &str) -> Result<Arc<CertifiedKey>, SelfSignedError> {
    let failed = |cause: &dyn fmt::Display| SelfSignedError { domain: domain.to_owned(), cause: cause.to_string() };
    let names = if domain.is_empty() { Vec::new() } else { vec![format!("*.{domain}"), domain.to_owned()] };
    let made = rcgen::generate_simple_self_signed(names).map_err(|error| failed(&error))?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let key = provider().key_provider.load_private_key(key).map_err(|error| failed(&error))?;
    Ok(Arc::new(CertifiedKey::new(vec![made.cert.der().clone()], key)))
}

/// The certificate for a name: its virtual host's, else the router's default, else the self-signed one.
pub fn certificate_for<'t>(
    router: &'t RouterTable,
    last_resort: &'t Arc<CertifiedKey>,
    name: Option<&Hostname>,
) -> &'t Arc<CertifiedKey> {
    let own = match router.match_sni(name) {
        SniMatch::Terminate(host) => host.certificate.as_ref(),
        SniMatch::Passthrough(_) | SniMatch::Default => None,
    };
    own.or(router.default_certificate.as_ref()).unwrap_or(last_resort)
}

/// Whether two names are served with one certificate, so that a client may use one connection for both.
pub fn same_certificate(a: &Arc<CertifiedKey>, b: &Arc<CertifiedKey>) -> bool {
    Arc::ptr_eq(a, b) || a.cert == b.cert
}

/// The certificates of one table.
pub struct CertificateChooser {
    /// The table.
    pub router: Arc<RouterTable>,
    /// For names that it has none for.
    pub last_resort: Arc<CertifiedKey>,
}

impl fmt::Debug for CertificateChooser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CertificateChooser({})", self.router.name)
    }
}

impl ResolvesServerCert for CertificateChooser {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().and_then(|name| Hostname::parse(name).ok());
        Some(Arc::clone(certificate_for(&self.router, &self.last_resort, name.as_ref())))
    }
}
