//! Certificates generated for the tests.

use std::sync::{Arc, OnceLock};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair, SignatureAlgorithm,
};
use rustls::crypto::CryptoProvider;
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};

pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// A certificate authority.
pub struct Ca(CertifiedIssuer<'static, KeyPair>);

impl Ca {
    pub fn new(name: &str) -> Ca {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        Ca(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// A leaf for these names.
    pub fn leaf(&self, names: &[&str]) -> Arc<CertifiedKey> {
        self.sign(params(names))
    }

    /// A leaf for these names and its key, as PEM.
    pub fn leaf_pem(&self, names: &[&str]) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        (params(names).signed_by(&key, &self.0).unwrap().pem(), key.serialize_pem())
    }

    /// A leaf that expired in 2001.
    pub fn expired_leaf(&self, names: &[&str]) -> Arc<CertifiedKey> {
        let mut params = params(names);
        params.not_before = rcgen::date_time_ymd(2000, 1, 1);
        params.not_after = rcgen::date_time_ymd(2001, 1, 1);
        self.sign(params)
    }

    /// A leaf with this subject, for clients.
    pub fn client(&self, subject: &[(DnType, &str)]) -> Arc<CertifiedKey> {
        let mut params = params(&[]);
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in subject {
            params.distinguished_name.push(kind.clone(), *value);
        }
        self.sign(params)
    }

    /// A leaf with a key of this kind.
    pub fn leaf_signing(&self, algorithm: &'static SignatureAlgorithm, names: &[&str]) -> Arc<CertifiedKey> {
        self.sign_for(params(names), KeyPair::generate_for(algorithm).unwrap())
    }

    /// A leaf with this URI among its names, and no other.
    pub fn leaf_with_uri(&self, uri: &str) -> Arc<CertifiedKey> {
        let mut params = params(&[]);
        params.subject_alt_names.push(rcgen::SanType::URI(uri.try_into().unwrap()));
        self.sign(params)
    }

    fn sign(&self, params: CertificateParams) -> Arc<CertifiedKey> {
        self.sign_for(params, KeyPair::generate().unwrap())
    }

    fn sign_for(&self, params: CertificateParams, key: KeyPair) -> Arc<CertifiedKey> {
        let cert = params.signed_by(&key, &self.0).unwrap();
        pair(cert.der().clone(), &key)
    }

    /// Its own certificate.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    pub fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        Arc::new(roots)
    }
}

/// A self-signed certificate, and a store that trusts only it.
pub fn self_signed(names: &[&str], expired: bool) -> (Arc<CertifiedKey>, Arc<RootCertStore>) {
    let mut params = params(names);
    if expired {
        params.not_before = rcgen::date_time_ymd(2000, 1, 1);
        params.not_after = rcgen::date_time_ymd(2001, 1, 1);
    }
    let key = KeyPair::generate().unwrap();
    let cert = params.self_signed(&key).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).unwrap();
    (pair(cert.der().clone(), &key), Arc::new(roots))
}

/// A TLS Secret `test/NAME` for these names, signed by the tests' authority.
pub fn secret(name: &str, names: &[&str]) -> Value {
    let key = KeyPair::generate().unwrap();
    let cert = params(names).signed_by(&key, &ca().0).unwrap();
    let data = json!({ "tls.crt": cert.pem(), "tls.key": key.serialize_pem() });
    let metadata = json!({ "namespace": "test", "name": name });
    json!({ "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": metadata, "stringData": data })
}

/// A Secret `test/NAME` with the certificate of the tests' authority, as `validation.caSecret` names it.
pub fn ca_secret(name: &str) -> Value {
    let metadata = json!({ "namespace": "test", "name": name });
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": { "ca.crt": ca().0.pem() } })
}

fn pair(cert: CertificateDer<'static>, key: &KeyPair) -> Arc<CertifiedKey> {
    let der = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let key = provider().key_provider.load_private_key(der).unwrap();
    Arc::new(CertifiedKey::new(vec![cert], key))
}

fn params(names: &[&str]) -> CertificateParams {
    CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap()
}

/// The authority that the tests' clients trust.
pub fn ca() -> &'static Ca {
    static CA: OnceLock<Ca> = OnceLock::new();
    CA.get_or_init(|| Ca::new("test clients trust this"))
}

/// A backend's TLS with one certificate.
pub fn server_config(key: Arc<CertifiedKey>) -> Arc<ServerConfig> {
    server_config_for(key, &["http/1.1"])
}

/// A backend's TLS that selects the first of these ALPN protocols that the client offers.
pub fn server_config_for(key: Arc<CertifiedKey>, alpn: &[&str]) -> Arc<ServerConfig> {
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(key)));
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    Arc::new(config)
}
