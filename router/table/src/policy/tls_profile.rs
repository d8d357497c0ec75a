//! TLS versions and cipher suites offered to clients (OpenShift: `tlsSecurityProfile`).

use std::sync::Arc;

/// Minimum TLS version.
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
    /// `Old`: for clients of twenty years ago.
    Old,
    /// `Intermediate`, the default.
    Intermediate,
    /// `Modern`: TLS 1.3 only.
    Modern,
    /// `Custom`: versions and suites of the object.
    Custom,
}

/// Versions and cipher suites offered to clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsProfile {
    /// Type of the profile.
    pub kind: ProfileKind,
    /// Minimum version.
    pub min_version: TlsVersion,
    /// Cipher suites by OpenSSL's names, in order of preference.
    pub ciphers: Vec<Arc<str>>,
}

impl TlsProfile {
    /// The profile of this type; for Custom, Intermediate's values.
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

/// The suites of the profile Old in its order; those of the other profiles come first (openshift/api,
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
