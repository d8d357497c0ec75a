//! Certificates generated for a test.

mod v1;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SigningKey as _};
use rustls::ServerConfig;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tempfile::TempDir;

/// A certificate authority; its certificate is also in a file.
pub struct Ca {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

/// A certificate and its key, in PEM.
pub struct Leaf {
    /// The certificate alone.
    pub certificate: String,
    /// PKCS#8.
    pub key: String,
}

impl Ca {
    /// A new authority.
    ///
    /// # Errors
    /// When it cannot be made or written.
    pub fn new() -> Result<Ca> {
        Ca::named("test CA")
    }

    /// A new authority with this name.
    ///
    /// # Errors
    /// When it cannot be made or written.
    pub fn named(name: &str) -> Result<Ca> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let ca = Ca { issuer: CertifiedIssuer::self_signed(params, KeyPair::generate()?)?, folder: TempDir::new()? };
        fs::write(ca.file(), ca.pem())?;
        Ok(ca)
    }

    /// Its certificate.
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// Path of its certificate.
    pub fn file(&self) -> PathBuf {
        self.folder.path().join("ca.crt")
    }

    /// A certificate for a server of this name, with a unique key and serial number.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn leaf(&self, name: &str) -> Result<Leaf> {
        let mut params = CertificateParams::new(vec![name.to_owned()])?;
        params.distinguished_name.push(DnType::CommonName, name);
        self.sign(params)
    }

    /// A certificate with these contents, with a unique key and serial number.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn sign(&self, params: CertificateParams) -> Result<Leaf> {
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Leaf { certificate, key: key.serialize_pem() })
    }

    /// The same as a certificate of X.509 version 1, which has no extensions.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn sign_v1(&self, params: CertificateParams) -> Result<Leaf> {
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        let der = v1::certificate(certificate.der(), |signed| Ok(self.issuer.key().sign(signed)?))?;
        // PEM with a single line of any length is valid, too.
        let certificate =
            format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", BASE64_STANDARD.encode(der));
        Ok(Leaf { certificate, key: key.serialize_pem() })
    }
}

impl Leaf {
    /// The manifest of a Secret with the certificate, as one document of a file.
    pub fn secret(&self, namespace: &str, name: &str) -> String {
        let indented = |pem: &str| pem.lines().map(|line| format!("    {line}\n")).collect::<String>();
        format!(
            "---
apiVersion: v1
kind: Secret
metadata: {{name: {name}, namespace: {namespace}}}
type: kubernetes.io/tls
stringData:
  tls.crt: |
{}  tls.key: |
{}",
            indented(&self.certificate),
            indented(&self.key)
        )
    }

    /// Settings of a TLS server in this process that shows the certificate, whatever name a client asks for.
    ///
    /// # Errors
    /// When the certificate or the key is invalid.
    pub fn server(&self, alpn: &[&str]) -> Result<Arc<ServerConfig>> {
        let chain = CertificateDer::pem_slice_iter(self.certificate.as_bytes()).collect::<Result<Vec<_>, _>>()?;
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes())?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        // The key is not checked against the certificate: rustls does not parse certificates of version 1.
        let shown = CertifiedKey::new(chain, provider.key_provider.load_private_key(key)?);
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(shown)));
        config.alpn_protocols = alpn.iter().map(|&name| name.into()).collect();
        Ok(Arc::new(config))
    }

    /// Writes `NAME.crt` and `NAME.key` into a folder.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write(&self, folder: &Path, name: &str) -> Result<[PathBuf; 2]> {
        let files = ["crt", "key"].map(|ending| folder.join(name).with_extension(ending));
        fs::write(&files[0], &self.certificate)?;
        fs::write(&files[1], &self.key)?;
        Ok(files)
    }
}
