//! The part of a TLS profile that the TLS library supports. rustls has TLS 1.2 and 1.3, forward secrecy and
//! authenticated encryption; anything else in a profile is reported instead of replaced.

use std::sync::Arc;

use rustls::crypto::aws_lc_rs::cipher_suite as suite;
use rustls::version::{TLS12, TLS13};
use rustls::{SupportedCipherSuite, SupportedProtocolVersion};

use crate::policy::tls_profile::{TlsProfile, TlsVersion};

/// Versions and cipher suites offered to clients.
#[derive(Clone, Debug)]
pub struct TlsOffer {
    /// In the profile's order, which is the router's preference; those of TLS 1.3 first if the profile names none.
    pub suites: Vec<SupportedCipherSuite>,
    /// Newest first.
    pub versions: Vec<&'static SupportedProtocolVersion>,
    /// Parts of the profile that are not offered: cipher suites by OpenSSL's names, then versions in the profile's
    /// spelling.
    pub missing: Vec<Arc<str>>,
}

/// No cipher suite of the profile is supported: TLS is rejected, because any other choice would not be the profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no cipher suite of the TLS profile is available; name at least one of {}",
    AVAILABLE.map(|(name, _)| name).join(", ")
)]
pub struct NothingToOffer;

/// OpenSSL's names of rustls' cipher suites (RFC 8446 B.4, RFC 5289, RFC 7905).
const AVAILABLE: [(&str, SupportedCipherSuite); 9] = [
    ("TLS_AES_128_GCM_SHA256", suite::TLS13_AES_128_GCM_SHA256),
    ("TLS_AES_256_GCM_SHA384", suite::TLS13_AES_256_GCM_SHA384),
    ("TLS_CHACHA20_POLY1305_SHA256", suite::TLS13_CHACHA20_POLY1305_SHA256),
    ("ECDHE-ECDSA-AES128-GCM-SHA256", suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-RSA-AES128-GCM-SHA256", suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-ECDSA-AES256-GCM-SHA384", suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-RSA-AES256-GCM-SHA384", suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-ECDSA-CHACHA20-POLY1305", suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    ("ECDHE-RSA-CHACHA20-POLY1305", suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
];

impl TlsOffer {
    /// The supported part of a profile. As in OpenShift, whose HAProxy has two lists, all suites of TLS 1.3 are offered
    /// if the profile names none of them: a profile of TLS 1.2 suites does not exclude TLS 1.3.
    ///
    /// # Errors
    /// None of the profile's cipher suites is supported.
    pub fn of(profile: &TlsProfile) -> Result<TlsOffer, NothingToOffer> {
        let find = |wanted: &str| AVAILABLE.iter().find(|(name, _)| *name == wanted).map(|(_, suite)| *suite);
        let named: Vec<SupportedCipherSuite> = profile.ciphers.iter().filter_map(|name| find(name)).collect();
        if named.is_empty() {
            return Err(NothingToOffer);
        }
        let is_new = |suite: &SupportedCipherSuite| suite.tls13().is_some();
        let mut suites = Vec::new();
        if !named.iter().any(is_new) {
            suites.extend(AVAILABLE.map(|(_, suite)| suite).into_iter().filter(is_new));
        }
        suites.extend(named.into_iter().filter(|suite| is_new(suite) || profile.min_version <= TlsVersion::Tls12));
        let mut versions = vec![&TLS13];
        if !suites.iter().all(is_new) {
            versions.push(&TLS12);
        }
        let mut missing: Vec<Arc<str>> =
            profile.ciphers.iter().filter(|name| find(name).is_none()).map(Arc::clone).collect();
        for (version, name) in [(TlsVersion::Tls10, "VersionTLS10"), (TlsVersion::Tls11, "VersionTLS11")] {
            if profile.min_version <= version {
                missing.push(name.into());
            }
        }
        Ok(TlsOffer { suites, versions, missing })
    }
}

#[cfg(test)]
mod tests;
