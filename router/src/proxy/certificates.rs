//! TLS towards clients: which certificate a name gets, and the rustls configuration of a router.

use std::fmt;
use std::sync::Arc;

use router_core::lookup::SniMatch;
use router_core::model::Hostname;
use router_core::table::RouterTable;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::server::{ClientHello, NoServerSessionStorage, ProducesTickets, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// Why a router cannot speak TLS.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// No self-signed certificate could be made.
    #[error("cannot make a self-signed certificate for {domain:?}: {cause}")]
    SelfSigned {
        /// The router's domain.
        domain: String,
        /// What failed.
        cause: String,
    },
    /// rustls refuses the configuration.
    #[error("cannot set up TLS: {0}")]
    Setup(#[from] rustls::Error),
}

/// The one choice of a crypto provider.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// What a router keeps over all its tables: the certificate of last resort, and the key of its session tickets, so
/// that a table change does not cost clients their sessions.
#[derive(Clone)]
pub struct TlsIdentity {
    /// Self-signed, for the router's domain.
    pub self_signed: Arc<CertifiedKey>,
    tickets: Arc<dyn ProducesTickets>,
}

impl fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsIdentity")
    }
}

impl TlsIdentity {
    /// An identity for a router with this `status.domain`: a self-signed certificate for the domain and `*.<domain>`.
    ///
    /// # Errors
    /// When the domain cannot stand in a certificate, or the system has no randomness.
    pub fn generate(domain: &str) -> Result<Self, CertificateError> {
        let failed = |cause: &dyn fmt::Display| CertificateError::SelfSigned {
            domain: domain.to_owned(),
            cause: cause.to_string(),
        };
        let names = if domain.is_empty() { Vec::new() } else { vec![format!("*.{domain}"), domain.to_owned()] };
        let made = rcgen::generate_simple_self_signed(names).map_err(|error| failed(&error))?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let key = provider().key_provider.load_private_key(key)?;
        let self_signed = Arc::new(CertifiedKey::new(vec![made.cert.der().clone()], key));
        Ok(TlsIdentity { self_signed, tickets: rustls::crypto::aws_lc_rs::Ticketer::new()? })
    }

    /// The configuration that serves a router's table: TLS 1.2 and 1.3, `h2` and `http/1.1`.
    ///
    /// # Errors
    /// When rustls refuses it.
    pub fn server_config(&self, router: &Arc<RouterTable>) -> Result<ServerConfig, CertificateError> {
        let chooser = CertificateChooser { router: Arc::clone(router), last_resort: Arc::clone(&self.self_signed) };
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(chooser));
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        config.ticketer = Arc::clone(&self.tickets);
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(config)
    }
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

struct CertificateChooser {
    router: Arc<RouterTable>,
    last_resort: Arc<CertifiedKey>,
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
