//! Certificates, keys and kubeconfigs of a cluster: one authority for its servers and its users.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Result;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::json;

use crate::pki::{Ca, Leaf};

/// The cluster's authority, and the folder of its files.
pub struct Credentials {
    ca: Ca,
    folder: PathBuf,
    server: SocketAddr,
}

impl Credentials {
    /// A new authority for the cluster of an API server. Files are written into `folder`.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new(folder: &Path, server: SocketAddr) -> Result<Credentials> {
        fs::create_dir_all(folder)?;
        Ok(Credentials { ca: Ca::named("cluster CA")?, folder: folder.to_owned(), server })
    }

    /// File of the authority's certificate.
    pub fn ca(&self) -> PathBuf {
        self.ca.file()
    }

    /// The authority's certificate in PEM.
    pub fn ca_pem(&self) -> String {
        self.ca.pem()
    }

    /// Certificate and key of a server; `names` are host names and addresses.
    ///
    /// # Errors
    /// When they cannot be made.
    pub fn server(&self, name: &str, names: &[&str]) -> Result<Leaf> {
        self.signed(name, None, names.iter().map(|&name| name.to_owned()).collect())
    }

    /// Certificate and key of a user, who is a member of a group.
    ///
    /// # Errors
    /// When they cannot be made.
    pub fn user(&self, name: &str, group: &str) -> Result<Leaf> {
        self.signed(name, Some(group), Vec::new())
    }

    /// Files of the public and the private key by which tokens of ServiceAccounts are verified and signed.
    ///
    /// # Errors
    /// When they cannot be made or written.
    pub fn token_keys(&self) -> Result<[PathBuf; 2]> {
        let key = KeyPair::generate()?;
        let files = ["tokens.pub", "tokens.key"].map(|name| self.folder.join(name));
        fs::write(&files[0], key.public_key_pem())?;
        fs::write(&files[1], key.serialize_pem())?;
        Ok(files)
    }

    /// Writes the kubeconfig of a user with a certificate.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn kubeconfig(&self, name: &str, user: &Leaf) -> Result<PathBuf> {
        let [certificate, key] = [&user.certificate, &user.key].map(|pem| BASE64_STANDARD.encode(pem));
        self.write(name, "default", &json!({"client-certificate-data": certificate, "client-key-data": key}))
    }

    /// Writes the kubeconfig of a user with a token, in a namespace.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn kubeconfig_of_token(&self, name: &str, namespace: &str, token: &str) -> Result<PathBuf> {
        self.write(name, namespace, &json!({"token": token}))
    }

    /// Writes the kubeconfig of a user whose credentials are in a file (client.authentication.k8s.io/v1, ExecCredential),
    /// which is read when the last ones have expired.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn kubeconfig_of_file(&self, name: &str, credentials: &Path) -> Result<PathBuf> {
        let exec = json!({
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "cat",
            "args": [credentials],
            "interactiveMode": "Never",
        });
        self.write(name, "default", &json!({"exec": exec}))
    }

    fn write(&self, name: &str, namespace: &str, user: &serde_json::Value) -> Result<PathBuf> {
        let cluster = json!({
            "server": format!("https://{}", self.server),
            "certificate-authority-data": BASE64_STANDARD.encode(self.ca.pem()),
        });
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "user", "user": user}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "user", "namespace": namespace}}],
            "current-context": "test",
        });
        let file = self.folder.join(name).with_extension("kubeconfig");
        // JSON is YAML.
        fs::write(&file, serde_json::to_vec_pretty(&config)?)?;
        Ok(file)
    }

    fn signed(&self, name: &str, group: Option<&str>, names: Vec<String>) -> Result<Leaf> {
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, name);
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        self.ca.sign(params)
    }
}
