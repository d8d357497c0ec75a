//! TLS towards endpoints: whom to trust, and by which name. Of re-encrypt routes (docs/openshift.md#tls), and of
//! backends that a `BackendTLSPolicy` is for (Gateway API, `BackendTLSPolicyValidation`).

mod error;
mod named;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use router_table::live::Trust;
use router_table::rule::{BackendPolicy, BackendTls, PeerName};
use router_table::table::Reencrypt;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::certificates::provider;
use super::tls::anchors::is_listed;

pub use error::TrustError;

/// A way to connect to endpoints.
#[derive(Clone, Debug)]
pub struct UpstreamTrust {
    /// For a handshake in which the endpoint chooses between HTTP/2 and HTTP/1.1.
    pub config: Arc<ClientConfig>,
    /// For one that offers HTTP/1.1 alone.
    pub config_http1: Arc<ClientConfig>,
    /// For bytes of any kind.
    pub config_bytes: Arc<ClientConfig>,
}

/// Address of a store, and names of the peer.
type Terms = (usize, Arc<[PeerName]>);

/// Client configurations by what they trust, made on first use.
#[derive(Debug)]
pub struct UpstreamTls {
    service_ca: Option<Arc<RootCertStore>>,
    system: OnceLock<Arc<RootCertStore>>,
    by_store: Mutex<HashMap<usize, Made>>,
    by_policy: Mutex<HashMap<Terms, Named>>,
}

#[derive(Debug)]
struct Made {
    trust: UpstreamTrust,
    // Keeps the address that is the key from being given to another store.
    store: Arc<RootCertStore>,
}

#[derive(Debug)]
struct Named {
    made: Made,
    /// Who has asked for it.
    policy: Weak<BackendPolicy>,
}

impl UpstreamTls {
    /// With the CA bundle for routes that name none, and the roots for policies that ask for the system's; without
    /// these, the system's are read when they are first needed, once.
    pub fn new(service_ca: Option<Arc<RootCertStore>>, system: Option<Arc<RootCertStore>>) -> Self {
        let system = system.map(OnceLock::from).unwrap_or_default();
        UpstreamTls { service_ca, system, by_store: Mutex::default(), by_policy: Mutex::default() }
    }

    /// What there is to verify endpoints with.
    pub fn given(&self) -> Trust<'_> {
        Trust { service_ca: self.service_ca.as_ref(), system: Some(self.system()) }
    }

    fn system(&self) -> &Arc<RootCertStore> {
        self.system.get_or_init(system_roots)
    }

    /// How to connect to the endpoints of a re-encrypt route.
    ///
    /// # Errors
    /// When there is nothing to verify them with: such a route is not served.
    pub fn trust(&self, reencrypt: &Reencrypt) -> Result<UpstreamTrust, TrustError> {
        let (store, any_name) = reencrypt.anchors(self.service_ca.as_ref()).ok_or(TrustError::NoCa)?;
        // A store is either a route's own or the service CA, never both, so its address decides `any_name` too.
        let key = address(store);
        let mut by_store = self.by_store.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = by_store.get(&key) {
            return Ok(made.trust.clone());
        }
        let webpki = WebPkiServerVerifier::builder_with_provider(Arc::clone(store), provider()).build()?;
        let verifier: Arc<dyn ServerCertVerifier> =
            if any_name { Arc::new(AnyName { webpki, roots: Arc::clone(store) }) } else { webpki };
        let trust = UpstreamTrust::with(verifier)?;
        by_store.insert(key, Made { trust: trust.clone(), store: Arc::clone(store) });
        Ok(trust)
    }

    /// How to connect to the endpoints of a backend with a policy.
    ///
    /// # Errors
    /// When there is nothing to verify them with.
    pub fn trust_policy(&self, policy: &Arc<BackendPolicy>, tls: &BackendTls) -> Result<UpstreamTrust, TrustError> {
        let system = || self.system();
        let none = if tls.roots().is_some() { TrustError::NoCa } else { TrustError::NoSystemRoots };
        let store = tls.anchors(tls.roots().is_none().then(system)).ok_or(none)?;
        let key = (address(store), Arc::clone(tls.names()));
        let mut by_policy = self.by_policy.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(named) = by_policy.get_mut(&key) {
            // Whoever asked first may go before the others do.
            named.policy = Arc::downgrade(policy);
            return Ok(named.made.trust.clone());
        }
        let trust = UpstreamTrust::with(Arc::new(named::NamedPeer::new(store, tls)?))?;
        let made = Made { trust: trust.clone(), store: Arc::clone(store) };
        by_policy.insert(key, Named { made, policy: Arc::downgrade(policy) });
        Ok(trust)
    }

    /// Forgets the configurations of stores and policies that nobody else holds any more: no table has them.
    pub fn retain(&self) {
        let mut by_store = self.by_store.lock().unwrap_or_else(PoisonError::into_inner);
        by_store.retain(|_, made| Arc::strong_count(&made.store) > 1);
        let mut by_policy = self.by_policy.lock().unwrap_or_else(PoisonError::into_inner);
        by_policy.retain(|_, named| named.policy.strong_count() > 0);
    }
}

impl UpstreamTrust {
    fn with(verifier: Arc<dyn ServerCertVerifier>) -> Result<Self, TrustError> {
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        let config_bytes = Arc::new(config.clone());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let config_http1 = Arc::new(config.clone());
        config.alpn_protocols.insert(0, b"h2".to_vec());
        Ok(UpstreamTrust { config: Arc::new(config), config_http1, config_bytes })
    }
}

/// The CA certificates that the system trusts (`SSL_CERT_FILE`, `SSL_CERT_DIR`, else the distribution's).
fn system_roots() -> Arc<RootCertStore> {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "some of the system's CA certificates cannot be read");
    }
    let mut store = RootCertStore::empty();
    let (_, ignored) = store.add_parsable_certificates(found.certs);
    tracing::info!(certificates = store.len(), ignored, "read the system's CA certificates");
    Arc::new(store)
}

/// `<service>.<namespace>.svc`: what the service CA's certificates are for, and the SNI in any case.
///
/// # Errors
/// When the parts make no DNS name.
pub fn service_name(service: &str, namespace: &str) -> Result<ServerName<'static>, TrustError> {
    let name = format!("{service}.{namespace}.svc");
    ServerName::try_from(name.clone()).map_err(|_| TrustError::Name(name))
}

fn address(store: &Arc<RootCertStore>) -> usize {
    Arc::as_ptr(store).addr()
}

/// Verifies everything but the name. webpki looks at the name last, after chain, times and key usage, so an error
/// about the name says that the rest was good. An endpoint whose own certificate is the route's destination CA is
/// good while that is valid: many pods have a self-signed certificate, and OpenSSL takes it there, too.
#[derive(Debug)]
struct AnyName {
    webpki: Arc<WebPkiServerVerifier>,
    roots: Arc<RootCertStore>,
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if is_listed(&self.roots, end_entity, now)? {
            return Ok(ServerCertVerified::assertion());
        }
        match self.webpki.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verdict => verdict,
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
