//! Selects a server certificate for a name: one of its virtual host ([`SniMatch::certificate`]), the first suitable one
//! of several, else the router's default, else a self-signed one.

use std::fmt;
use std::sync::{Arc, LazyLock};

use router_model::certificate::Certificate;
use router_model::certificate::subject::names;
use router_model::names::Hostname;
use router_table::lookup::SniMatch;
use router_table::table::RouterTable;
use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};

/// A self-signed certificate could not be generated.
#[derive(Debug, thiserror::Error)]
#[error("cannot make a self-signed certificate for {domain:?}: {cause}")]
pub struct SelfSignedError {
    domain: String,
    cause: String,
}

/// The crypto provider.
pub fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: LazyLock<Arc<CryptoProvider>> =
        LazyLock::new(|| Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
    Arc::clone(&PROVIDER)
}

/// The certificate of last resort of a router with this `status.domain`: self-signed, for the domain and `*.<domain>`.
///
/// # Errors
/// When the domain is not valid in a certificate, or the system supplies no randomness.
pub fn self_signed(domain: &str) -> Result<Arc<CertifiedKey>, SelfSignedError> {
    let failed = |cause: &dyn fmt::Display| SelfSignedError { domain: domain.to_owned(), cause: cause.to_string() };
    let names = if domain.is_empty() { Vec::new() } else { vec![format!("*.{domain}"), domain.to_owned()] };
    let made = rcgen::generate_simple_self_signed(names).map_err(|error| failed(&error))?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let key = provider().key_provider.load_private_key(key).map_err(|error| failed(&error))?;
    Ok(Arc::new(CertifiedKey::new(vec![made.cert.der().clone()], key)))
}

/// The first certificate with the client's name, preferring an exact match over a wildcard, and a key type that the
/// client supports. Otherwise one that meets either condition, preferring the key type, because without it the
/// handshake fails.
fn suitable<'c>(certificates: &'c [Certificate], client: &ClientHello<'_>) -> Option<&'c Certificate> {
    let [_, _, ..] = certificates else { return certificates.first() };
    let name = client.server_name().and_then(|name| ServerName::try_from(name).ok());
    let can_verify = |certified: &CertifiedKey| certified.key.choose_scheme(client.signature_schemes()).is_some();
    let has_name = |certified: &CertifiedKey| {
        let parsed = certified.end_entity_cert().ok().and_then(|der| ParsedCertificate::try_from(der).ok());
        parsed.zip(name.as_ref()).is_some_and(|(parsed, name)| verify_server_name(&parsed, name).is_ok())
    };
    let names_it = |certified: &CertifiedKey| client.server_name().is_some_and(|name| names(certified, name));
    let fitness = |certified: &CertifiedKey| (can_verify(certified), has_name(certified), names_it(certified));
    // `max_by_key` returns the last of equal elements.
    certificates.iter().rev().max_by_key(|certified| fitness(certified))
}

/// Selects among the certificates of a table.
pub struct CertificateChooser {
    /// The table.
    pub router: Arc<RouterTable>,
    /// For names without a certificate.
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
        let found = self.router.match_sni(name.as_ref());
        let several = match &found {
            SniMatch::Terminate(host) => host.rules.as_ref().and_then(|host_rules| host_rules.tls.as_ref()),
            SniMatch::Passthrough(_) | SniMatch::Default => None,
        };
        let suitable = several.and_then(|tls| suitable(&tls.certificates, &hello));
        let own = suitable.or(found.certificate(&self.router));
        Some(Arc::clone(own.map_or(&self.last_resort, |own| own)))
    }
}
