//! Versions and cipher suites that TLS clients are offered (OpenShift: `tlsSecurityProfile`).

use std::sync::Arc;

/// Oldest TLS version of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// `VersionTLS10`.
    Tls10,
    /// `VersionTLS11`.
    Tls11,
    /// `VersionTLS12`.
    Tls12,
    /// `VersionTLS13`.
    Tls13,
}

/// `tlsSecurityProfile.type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfileKind {
    /// Clients of twenty years ago.
    Old,
    /// The default.
    Intermediate,
    /// TLS 1.3 alone.
    Modern,
    /// As written out.
    Custom,
}

/// What TLS clients are offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsProfile {
    /// Where it comes from.
    pub kind: ProfileKind,
    /// Oldest version.
    pub min_version: TlsVersion,
    /// Cipher suites by OpenSSL's names, preferred first.
    pub ciphers: Vec<Arc<str>>,
}

impl TlsProfile {
    /// The profile of this name; of Custom, what Intermediate has.
    pub fn named(kind: ProfileKind) -> Self {
        let (min_version, count) = match kind {
            ProfileKind::Old => (TlsVersion::Tls10, CIPHERS.len()),
            ProfileKind::Modern => (TlsVersion::Tls13, MODERN),
            ProfileKind::Intermediate | ProfileKind::Custom => (TlsVersion::Tls12, INTERMEDIATE),
        };
        TlsProfile { kind, min_version, ciphers: CIPHERS.iter().take(count).map(|name| (*name).into()).collect() }
    }
}

impl Default for TlsProfile {
    fn default() -> Self {
        Self::named(ProfileKind::Intermediate)
    }
}

/// The suites of the profile Old in its order; those of the other profiles stand first (openshift/api,
/// `config/v1/types_tlssecurityprofile.go`).
pub const CIPHERS: [&str; 29] = [
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-RSA-AES128-GCM-SHA256",
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-RSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-CHACHA20-POLY1305",
    "ECDHE-RSA-CHACHA20-POLY1305",
    "DHE-RSA-AES128-GCM-SHA256",
    "DHE-RSA-AES256-GCM-SHA384",
    "DHE-RSA-CHACHA20-POLY1305",
    "ECDHE-ECDSA-AES128-SHA256",
    "ECDHE-RSA-AES128-SHA256",
    "ECDHE-ECDSA-AES128-SHA",
    "ECDHE-RSA-AES128-SHA",
    "ECDHE-ECDSA-AES256-SHA384",
    "ECDHE-RSA-AES256-SHA384",
    "ECDHE-ECDSA-AES256-SHA",
    "ECDHE-RSA-AES256-SHA",
    "DHE-RSA-AES128-SHA256",
    "DHE-RSA-AES256-SHA256",
    "AES128-GCM-SHA256",
    "AES256-GCM-SHA384",
    "AES128-SHA256",
    "AES256-SHA256",
    "AES128-SHA",
    "AES256-SHA",
    "DES-CBC3-SHA",
];

const MODERN: usize = 3;

const INTERMEDIATE: usize = 11;
