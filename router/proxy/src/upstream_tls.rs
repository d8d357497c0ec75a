//! TLS towards endpoints: trust anchors and server names. For re-encrypt routes (docs/openshift.md#tls), and for
//! backends with a `BackendTLSPolicy` (Gateway API, `BackendTLSPolicyValidation`).

mod error;
mod peer_names;

use std::sync::{Arc, OnceLock, Weak};

use dashmap::DashMap;
use router_table::live_state::Trust;
use router_table::rule::{BackendPolicy, BackendTls, PeerName};
use router_table::table::Reencrypt;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::certificates::provider;
use super::tls::anchors::is_listed;

pub use error::TrustError;

/// TLS client configurations with the same trust anchors.
#[derive(Clone, Debug)]
pub struct UpstreamTrust {
    /// Offers HTTP/2 and HTTP/1.1.
    pub config: Arc<ClientConfig>,
    /// Offers HTTP/1.1 alone.
    pub config_http1: Arc<ClientConfig>,
    /// Offers no protocol (no ALPN), for opaque bytes.
    pub config_bytes: Arc<ClientConfig>,
}

/// Address of a trust store, and accepted names of the peer.
type VerifierKey = (usize, Arc<[PeerName]>);

/// Client configurations by trust anchors, created on first use.
#[derive(Debug)]
pub struct UpstreamTls {
    service_ca: Option<Arc<RootCertStore>>,
    system: OnceLock<Arc<RootCertStore>>,
    by_store: DashMap<usize, StoreConfig>,
    by_policy: DashMap<VerifierKey, PolicyConfig>,
}

#[derive(Debug)]
struct StoreConfig {
    trust: UpstreamTrust,
    // Keeps the store alive, so that its address, which is the key, is not reused.
    store: Arc<RootCertStore>,
}

#[derive(Debug)]
struct PolicyConfig {
    made: StoreConfig,
    /// The policy that used the configuration last.
    policy: Weak<BackendPolicy>,
}

impl UpstreamTls {
    /// `service_ca`: CA bundle for routes without one of their own. `system`: roots for policies that request the
    /// system's; `None`: the system's roots are read once, on first use.
    pub fn new(service_ca: Option<Arc<RootCertStore>>, system: Option<Arc<RootCertStore>>) -> Self {
        let system = system.map(OnceLock::from).unwrap_or_default();
        UpstreamTls { service_ca, system, by_store: DashMap::new(), by_policy: DashMap::new() }
    }

    /// Trust anchors for endpoints.
    pub fn given(&self) -> Trust<'_> {
        Trust { service_ca: self.service_ca.as_ref(), system: Some(self.system()) }
    }

    fn system(&self) -> &Arc<RootCertStore> {
        self.system.get_or_init(system_roots)
    }

    /// TLS configuration for the endpoints of a re-encrypt route.
    ///
    /// # Errors
    /// When the route has no usable CA; such a route is not served.
    pub fn trust(&self, reencrypt: &Reencrypt) -> Result<UpstreamTrust, TrustError> {
        let (store, any_name) = reencrypt.anchors(self.service_ca.as_ref()).ok_or(TrustError::NoCa)?;
        // A store is either a route's own or the service CA, so its address determines `any_name`, too.
        let key = address(store);
        let made = self.by_store.entry(key).or_try_insert_with(|| {
            let webpki = WebPkiServerVerifier::builder_with_provider(Arc::clone(store), provider()).build()?;
            let verifier: Arc<dyn ServerCertVerifier> =
                if any_name { Arc::new(AnyName { webpki, roots: Arc::clone(store) }) } else { webpki };
            Ok::<_, TrustError>(StoreConfig { trust: UpstreamTrust::with(verifier)?, store: Arc::clone(store) })
        })?;
        Ok(made.trust.clone())
    }

    /// TLS configuration for the endpoints of a backend with a policy.
    ///
    /// # Errors
    /// When the policy has no usable CA.
    pub fn trust_policy(&self, policy: &Arc<BackendPolicy>, tls: &BackendTls) -> Result<UpstreamTrust, TrustError> {
        let system = || self.system();
        let none = if tls.roots().is_some() { TrustError::NoCa } else { TrustError::NoSystemRoots };
        let store = tls.anchors(tls.roots().is_none().then(system)).ok_or(none)?;
        let key = (address(store), Arc::clone(tls.names()));
        let mut named = self.by_policy.entry(key).or_try_insert_with(|| {
            let trust = UpstreamTrust::with(Arc::new(peer_names::NamedPeer::new(store, tls)?))?;
            let made = StoreConfig { trust, store: Arc::clone(store) };
            Ok::<_, TrustError>(PolicyConfig { made, policy: Weak::new() })
        })?;
        // An earlier policy may be dropped before this one.
        named.policy = Arc::downgrade(policy);
        Ok(named.made.trust.clone())
    }

    /// Removes the configurations of stores and policies that no table refers to.
    pub fn retain(&self) {
        self.by_store.retain(|_, made| Arc::strong_count(&made.store) > 1);
        self.by_policy.retain(|_, named| named.policy.strong_count() > 0);
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

/// The system's CA certificates (`SSL_CERT_FILE`, `SSL_CERT_DIR`, else the distribution's).
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

/// `<service>.<namespace>.svc`: the name in the service CA's certificates, and the SNI in every case.
///
/// # Errors
/// When the parts do not form a DNS name.
pub fn service_name(service: &str, namespace: &str) -> Result<ServerName<'static>, TrustError> {
    let name = format!("{service}.{namespace}.svc");
    ServerName::try_from(name.clone()).map_err(|_| TrustError::Name(name))
}

fn address(store: &Arc<RootCertStore>) -> usize {
    Arc::as_ptr(store).addr()
}

/// Verifies everything but the name. webpki verifies the name last, after chain, validity and key usage, so a name
/// error means that the rest is valid. A certificate that is itself the route's destination CA is accepted while valid:
/// many pods have a self-signed certificate, and OpenSSL accepts it, too.
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
