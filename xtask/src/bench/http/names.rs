//! The hosts, and the certificate that is good for all of them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// How many hosts are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// One.
    One,
    /// [`MANY`].
    Many,
}

/// Hosts of a router with many.
pub const MANY: usize = 100_000;
/// Every one of so many has a certificate of its own; the others share the router's.
pub const WITH_CERTIFICATE: usize = 10;
/// How many of the many are asked for.
const ASKED: usize = 4096;
/// A prime, so that those asked for are neither neighbours nor in order.
const STRIDE: usize = 7919;

/// All hosts that are loaded.
pub fn all(hosts: Hosts) -> impl Iterator<Item = String> {
    let count = match hosts {
        Hosts::One => 1,
        Hosts::Many => MANY,
    };
    (0..count).map(host)
}

/// Those that are asked for where a client can change its host; of one host as many requests are made, so that the
/// client's own work is the same.
pub fn requested(hosts: Hosts) -> Vec<String> {
    match hosts {
        Hosts::One => vec![one(hosts); ASKED],
        Hosts::Many => (0..ASKED).map(|number| host(number * STRIDE % MANY)).collect(),
    }
}

/// The one where it cannot. It has a certificate of its own.
pub fn one(hosts: Hosts) -> String {
    match hosts {
        Hosts::One => host(0),
        Hosts::Many => host(MANY / 2),
    }
}

fn host(number: usize) -> String {
    format!("app-{number}.bench.test")
}

/// A self-signed certificate, ECDSA with P-256, and its key.
pub struct SelfSignedCertificate {
    /// PEM.
    pub certificate: String,
    /// PEM.
    pub key: String,
}

impl SelfSignedCertificate {
    /// For every host.
    pub fn generate() -> Result<SelfSignedCertificate> {
        let made = rcgen::generate_simple_self_signed(["*.bench.test".to_owned()]).context("making a certificate")?;
        Ok(SelfSignedCertificate { certificate: made.cert.pem(), key: made.signing_key.serialize_pem() })
    }

    /// Writes both into one file, and each into its own.
    pub fn write(&self, folder: &Path) -> Result<PathBuf> {
        let both = folder.join("both.pem");
        fs::write(folder.join("certificate.pem"), &self.certificate)?;
        fs::write(folder.join("key.pem"), &self.key)?;
        fs::write(&both, [self.certificate.as_str(), &self.key].concat())?;
        Ok(both)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn requested_hosts_are_loaded_and_different() {
        let loaded: HashSet<String> = all(Hosts::Many).collect();
        let names: HashSet<String> = requested(Hosts::Many).into_iter().collect();
        assert_eq!((loaded.len(), names.len()), (MANY, ASKED));
        assert!(names.is_subset(&loaded) && loaded.contains(&one(Hosts::Many)));
        assert_eq!(all(Hosts::One).collect::<Vec<_>>(), [one(Hosts::One)]);
    }
}
