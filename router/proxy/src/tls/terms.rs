//! What a router's clients are asked to speak and to show, as a rustls configuration that lacks the certificates.

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

/// Why a router cannot speak TLS: then it refuses TLS, because other terms would not be those that were asked for.
#[derive(Debug, thiserror::Error)]
pub enum TermsError {
    /// Of the TLS profile nothing is available.
    #[error(transparent)]
    Profile(#[from] NothingToOffer),
    /// `clientTLS` names no CA that can be used.
    #[error("clientTLS has no CA that clients' certificates could be verified with: {0}")]
    ClientCa(#[from] VerifierBuilderError),
    /// rustls refuses the configuration.
    #[error("cannot set up TLS: {0}")]
    Setup(#[from] rustls::Error),
}

/// The terms of one router, kept over its tables until its policy changes. Sessions and the keys of tickets belong to
/// them: no session goes on under other terms than those that it was begun under, nor with another router, nor after
/// a restart of the agent.
#[derive(Clone)]
pub struct Terms {
    profile: TlsProfile,
    /// What is asked of clients' certificates; the same `Arc` as long as the same is asked.
    pub client_auth: Option<Arc<ClientAuth>>,
    /// How handshakes have ended under them.
    pub handshakes: Arc<Handshakes>,
    config: ServerConfig,
    /// For sites that ask for TLS 1.3 at least: stricter terms, so no session of the others goes on under them.
    newest: ServerConfig,
}

/// The configurations of one router with the certificates of one table.
#[derive(Clone, Debug)]
pub struct Configs {
    http: [Arc<ServerConfig>; 2],
    tcp: [Arc<ServerConfig>; 2],
}

impl Configs {
    /// The one for a name that a site has, or none. The lowest version that a site names is a floor: what the router's
    /// profile leaves out stays out. Whoever speaks HTTP agrees on its version; what else bytes are is not asked.
    pub fn of(&self, site: Option<&HostRulesTls>) -> &Arc<ServerConfig> {
        let [all, newest] = match site {
            Some(HostRulesTls { tcp: Some(_), .. }) => &self.tcp,
            _ => &self.http,
        };
        let is_new = site.and_then(|site| site.minimum).is_some_and(|minimum| minimum >= TlsVersion::Tls13);
        if is_new { newest } else { all }
    }
}

/// Handshakes with clients, by how they ended.
#[derive(Debug, Default)]
pub struct Handshakes {
    /// Complete, with all of it.
    pub full: AtomicU64,
    /// Complete, on an earlier session.
    pub resumed: AtomicU64,
    /// Not complete: refused by either side, cut off, or too slow.
    pub failed: AtomicU64,
}

impl Handshakes {
    /// Counts one that is complete.
    pub fn complete(&self, resumed: bool) {
        let counter = if resumed { &self.resumed } else { &self.full };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one that is not.
    pub fn fail(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }
}

impl Terms {
    /// The terms of a policy.
    ///
    /// # Errors
    /// When TLS cannot be spoken on them.
    pub fn of(policy: &RouterPolicy) -> Result<Self, TermsError> {
        let offer = TlsOffer::of(&policy.tls)?;
        let config = config(policy, &offer, &offer.versions)?;
        let newest = self::config(policy, &offer, &[&TLS13])?;
        let client_auth = policy.client_tls.clone();
        Ok(Terms { profile: policy.tls.clone(), client_auth, handshakes: Arc::default(), config, newest })
    }

    /// These, with the handshakes counted where earlier ones were.
    pub fn counted_in(self, handshakes: Arc<Handshakes>) -> Self {
        Terms { handshakes, ..self }
    }

    /// Whether a policy asks for these very terms.
    pub fn are_those_of(&self, policy: &RouterPolicy) -> bool {
        self.profile == policy.tls && client_auth::same(self.client_auth.as_ref(), policy.client_tls.as_ref())
    }

    /// The configurations with a table's certificates. Costs a few reference counts, whatever the table holds.
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
    // HAProxy without `prefer-client-ciphers`, as OpenShift runs it: the order of the profile decides.
    config.ignore_client_order = true;
    // What is asked for in another protocol is refused with no_application_protocol (RFC 7301 §3.2).
    config.alpn_protocols = ["h2", "http/1.1", "http/1.0"].map(|name| name.as_bytes().to_vec()).into();
    config.ticketer = rustls::crypto::aws_lc_rs::Ticketer::new()?;
    config.session_storage = Arc::new(Sessions::default());
    // A request could be sent twice by somebody else in it (RFC 8446 §8); it is rustls' default, and stays so.
    config.max_early_data_size = 0;
    Ok(config)
}

impl fmt::Debug for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terms").field("profile", &self.profile).field("client_auth", &self.client_auth).finish()
    }
}

/// Stands where a table's certificates will.
#[derive(Debug)]
struct NoCertificate;

impl ResolvesServerCert for NoCertificate {
    fn resolve(&self, _: rustls::server::ClientHello<'_>) -> Option<Arc<rustls::sign::CertifiedKey>> {
        None
    }
}
