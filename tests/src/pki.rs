//! Certificates generated for a test.

mod v1;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SigningKey as _};
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
