//! A router's TLS policy for clients, as a rustls configuration without certificates.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use router_table::policy::tls_profile::{TlsProfile, TlsVersion};
use router_table::policy::{ClientAuth, RouterPolicy};
use router_table::rule::HostRulesTls;
use router_table::tls_offer::{NothingToOffer, TlsOffer};
use rustls::crypto::CryptoProvider;
use rustls::server::{ResolvesServerCert, VerifierBuilderError};
use rustls::version::TLS13;
use rustls::{ServerConfig, SupportedProtocolVersion};

use super::client_auth;
use super::sessions::Sessions;
use crate::certificates::provider;

/// Why a router cannot use TLS. It then rejects TLS connections, because weaker settings would violate its policy.
#[derive(Debug, thiserror::Error)]
pub enum TermsError {
    /// Nothing of the TLS profile is available.
    #[error(transparent)]
    Profile(#[from] NothingToOffer),
    /// `clientTLS` has no usable CA.
    #[error("clientTLS has no usable CA for client certificates: {0}")]
    ClientCa(#[from] VerifierBuilderError),
    /// rustls rejects the configuration.
    #[error("cannot set up TLS: {0}")]
    Setup(#[from] rustls::Error),
}

/// The TLS configuration of a router, kept across tables until its policy changes. It owns sessions and ticket keys, so
/// no session is resumed under another policy, with another router, or after a restart of the agent.
#[derive(Clone)]
pub struct RouterTls {
    profile: TlsProfile,
    /// Client certificate policy; the same `Arc` as long as it does not change.
    pub client_auth: Option<Arc<ClientAuth>>,
    /// Counters of its handshakes.
    pub handshakes: Arc<Handshakes>,
    config: ServerConfig,
    /// For hosts that require TLS 1.3. Sessions are separate, because this is stricter.
    newest: ServerConfig,
}

/// The configurations of a router with the certificates of a table.
#[derive(Clone, Debug)]
pub struct Configs {
    http: [Arc<ServerConfig>; 2],
    tcp: [Arc<ServerConfig>; 2],
}

impl Configs {
    /// The configuration for the TLS settings of a host, if any. The host's minimum version can only restrict the
    /// router's profile. HTTP negotiates its version by ALPN; opaque content does not.
    pub fn of(&self, host_rules: Option<&HostRulesTls>) -> &Arc<ServerConfig> {
        let [all, newest] = match host_rules {
            Some(HostRulesTls { tcp: Some(_), .. }) => &self.tcp,
            _ => &self.http,
        };
        let is_new =
            host_rules.and_then(|host_rules| host_rules.minimum).is_some_and(|minimum| minimum >= TlsVersion::Tls13);
        if is_new { newest } else { all }
    }
}

/// Counters of handshakes with clients.
#[derive(Debug, Default)]
pub struct Handshakes {
    /// Completed full handshakes.
    pub full: AtomicU64,
    /// Completed resumptions.
    pub resumed: AtomicU64,
    /// Failed handshakes: rejected by either side, interrupted, or timed out.
    pub failed: AtomicU64,
}

impl Handshakes {
    /// Counts a completed handshake.
    pub fn complete(&self, resumed: bool) {
        let counter = if resumed { &self.resumed } else { &self.full };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a failed handshake.
    pub fn fail(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }
}

impl RouterTls {
    /// The configuration for a policy.
    ///
    /// # Errors
    /// When TLS cannot be configured.
    pub fn of(policy: &RouterPolicy) -> Result<Self, TermsError> {
        let offer = TlsOffer::of(&policy.tls)?;
        let config = config(policy, &offer, &offer.versions)?;
        let newest = self::config(policy, &offer, &[&TLS13])?;
        let client_auth = policy.client_tls.clone();
        Ok(RouterTls { profile: policy.tls.clone(), client_auth, handshakes: Arc::default(), config, newest })
    }

    /// The same configuration with earlier counters.
    pub fn counted_in(self, handshakes: Arc<Handshakes>) -> Self {
        RouterTls { handshakes, ..self }
    }

    /// Whether the configuration is that of a policy.
    pub fn are_those_of(&self, policy: &RouterPolicy) -> bool {
        self.profile == policy.tls && client_auth::same(self.client_auth.as_ref(), policy.client_tls.as_ref())
    }

    /// The configurations with a table's certificates. Clones a few reference counts, whatever the size of the table.
    pub fn configs(&self, certificates: Arc<dyn ResolvesServerCert>) -> Configs {
        let with = |config: &ServerConfig, alpn: &[Vec<u8>]| {
            let mut config = config.clone();
            config.cert_resolver = Arc::clone(&certificates);
            config.alpn_protocols = alpn.to_vec();
            Arc::new(config)
        };
        let both = |alpn: &[Vec<u8>]| [with(&self.config, alpn), with(&self.newest, alpn)];
        Configs { http: both(&self.config.alpn_protocols), tcp: both(&[]) }
    }
}

fn config(
    policy: &RouterPolicy,
    offer: &TlsOffer,
    versions: &[&'static SupportedProtocolVersion],
) -> Result<ServerConfig, TermsError> {
    let suites = offer.suites.iter().filter(|suite| versions.contains(&suite.version())).copied().collect();
    let provider = Arc::new(CryptoProvider { cipher_suites: suites, ..CryptoProvider::clone(&provider()) });
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(versions)?;
    let builder = match &policy.client_tls {
        None => builder.with_no_client_auth(),
        Some(auth) => builder.with_client_cert_verifier(client_auth::verifier(auth, &provider)?),
    };
    let mut config = builder.with_cert_resolver(Arc::new(NoCertificate));
    // As HAProxy without `prefer-client-ciphers`, which OpenShift uses: the order of the profile decides.
    config.ignore_client_order = true;
    // Other protocols are rejected with no_application_protocol (RFC 7301 §3.2).
    config.alpn_protocols = ["h2", "http/1.1", "http/1.0"].map(|name| name.as_bytes().to_vec()).into();
    config.ticketer = rustls::crypto::aws_lc_rs::Ticketer::new()?;
    config.session_storage = Arc::new(Sessions::default());
    // Early data could be replayed (RFC 8446 §8). Disabled is also rustls's default.
    config.max_early_data_size = 0;
    Ok(config)
}

impl fmt::Debug for RouterTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terms").field("profile", &self.profile).field("client_auth", &self.client_auth).finish()
    }
}

/// Placeholder for a table's certificates.
#[derive(Debug)]
struct NoCertificate;

impl ResolvesServerCert for NoCertificate {
    fn resolve(&self, _: rustls::server::ClientHello<'_>) -> Option<Arc<rustls::sign::CertifiedKey>> {
        None
    }
}
