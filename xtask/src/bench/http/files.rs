//! Files that the load tools read.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// What wrk and everything else that uses OpenSSL by its configuration file speaks: as the other clients.
const OPENSSL: &str = "openssl_conf = init\n[init]\nssl_conf = ssl\n[ssl]\nsystem_default = client\n[client]
MinProtocol = TLSv1.3\nCiphersuites = TLS_AES_128_GCM_SHA256\nGroups = X25519\n";

/// Files that the tools read, of one way.
pub struct Files {
    /// wrk's script.
    pub script: PathBuf,
    /// OpenSSL's configuration.
    pub openssl: PathBuf,
    /// /etc/hosts with the router's name.
    pub etc_hosts: PathBuf,
    /// Names that are asked for where they may change, one a line.
    pub names: PathBuf,
    /// The one name where they may not.
    pub name: PathBuf,
    /// What h2load writes.
    pub log: PathBuf,
}

impl Files {
    /// Writes them.
    pub fn write(folder: &Path, address: std::net::Ipv4Addr, name: &str, names: &[String]) -> Result<Files> {
        let file = |file: &str, content: &str| -> Result<PathBuf> {
            let path = folder.join(file);
            fs::write(&path, content).with_context(|| format!("writing {}", path.display()))?;
            Ok(path)
        };
        Ok(Files {
            script: file("wrk.lua", include_str!("wrk.lua"))?,
            openssl: file("openssl.cnf", OPENSSL)?,
            etc_hosts: file("hosts", &format!("127.0.0.1 localhost\n{address} {name}\n"))?,
            names: file("names", &names.join("\n"))?,
            name: file("name", name)?,
            log: folder.join("h2load.log"),
        })
    }
}
