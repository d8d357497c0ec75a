//! Settings for the traffic of a router, and of one route: timeouts, limits, balancing, affinity, header changes.
//! Values are final: defaults are filled in and limits applied.

pub mod access_log;
pub mod error_page;
pub mod format;
pub mod forwarded;
pub mod gate;
pub mod header_actions;
pub mod header_value;
pub mod log_format;
pub mod rewrite;
pub mod tls_profile;
pub mod unique_id;

use std::num::NonZeroU32;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use regex::Regex;
use rustls::RootCertStore;

use crate::path_form::PathForm;
use crate::policy::access_log::{CookieCapture, HeaderCapture, Syslog};
use crate::policy::error_page::ErrorPage;
use crate::policy::gate::GatePolicy;
use crate::policy::header_actions::HeaderActions;
use crate::policy::log_format::LogFormat;
use crate::policy::rewrite::RewriteTarget;
use crate::policy::tls_profile::TlsProfile;
use crate::policy::unique_id::UniqueId;
use crate::recent::Recent;

/// Settings for the traffic of all routes of a router.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouterPolicy {
    /// `tuningOptions`: the times.
    pub timeouts: Timeouts,
    /// `tuningOptions`: the sizes and counts.
    pub limits: Limits,
    /// `tlsSecurityProfile`.
    pub tls: TlsProfile,
    /// `clientTLS`; `None`: no client certificate is requested.
    pub client_tls: Option<Arc<ClientAuth>>,
    /// `httpHeaders.actions`. On requests they apply before a route's, on responses after it
    /// (docs/openshift.md#header-actions).
    pub actions: Option<Arc<HeaderActions>>,
    /// `httpHeaders.uniqueId`.
    pub unique_id: Option<UniqueId>,
    /// `httpHeaders.headerNameCaseAdjustments`: the case of names sent to HTTP/1 peers, on all responses, and on
    /// requests of routes with [`RoutePolicy::adjust_case`].
    pub case_adjustments: Arc<[Arc<str>]>,
    /// `httpErrorCodePages`.
    pub pages: ErrorPages,
    /// `httpCompression.mimeTypes`: responses of these types are compressed.
    pub compress: Arc<[Arc<str>]>,
    /// `httpEmptyRequestsPolicy: Ignore`: connections without a request are closed without a response and a log line.
    pub ignore_empty_requests: bool,
    /// `idleConnectionTerminationPolicy: Deferred`: while the router drains, an idle connection may send one more
    /// request.
    pub defer_idle_termination: bool,
    /// `closedClientConnectionPolicy: Abort`: a request is aborted when its client closes its side of the connection;
    /// otherwise it is answered.
    pub abort_closed_clients: bool,
    /// `logging.access`.
    pub log: AccessLogPolicy,
    /// The path form for Routes; each rule of other kinds has its own.
    pub path_form: PathForm,
    /// `endpointPublishingStrategy.….protocol: PROXY`: clients' connections begin with a PROXY protocol header.
    pub accept_proxy: bool,
    /// Annotations `gate.sluice.dev/…`: what the XDP gate rejects; `None`: nothing.
    pub gate: Option<Arc<GatePolicy>>,
}

/// Timeouts of a router, with OpenShift's defaults (`tuningOptions`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until a complete ClientHello (`tlsInspectDelay`, 5 s).
    pub hello: Duration,
    /// For the TLS handshake after it (10 s).
    pub handshake: Duration,
    /// Until a complete request head (10 s).
    pub head: Duration,
    /// Between requests (`httpKeepAliveTimeout`, 300 s).
    pub keep_alive: Duration,
    /// For a client to receive data, or to send a part of a body (`clientTimeout`, 30 s).
    pub client: Duration,
    /// For a client to close after the router has (`clientFinTimeout`, 1 s).
    pub client_fin: Duration,
    /// For connecting to an endpoint, and for the TLS handshake with it (`connectTimeout`, 5 s each).
    pub connect: Duration,
    /// For an endpoint's response head, and between parts of its content (`serverTimeout`, 30 s).
    pub server: Duration,
    /// For a byte in either direction of a relayed connection or a tunnel (`tunnelTimeout`, 1 h).
    pub tunnel: Duration,
    /// Between health checks of an endpoint (`healthCheckInterval`, 5 s).
    pub health_check: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            hello: Duration::from_secs(5),
            handshake: Duration::from_secs(10),
            head: Duration::from_secs(10),
            keep_alive: Duration::from_secs(300),
            client: Duration::from_secs(30),
            client_fin: Duration::from_secs(1),
            connect: Duration::from_secs(5),
            server: Duration::from_secs(30),
            tunnel: Duration::from_secs(3600),
            health_check: Duration::from_secs(5),
        }
    }
}

/// Sizes and counts of a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes of a request head (32,768; `headerBufferBytes` minus `headerBufferMaxRewriteBytes` if either is set).
    pub head: u32,
    /// Most simultaneous client connections (`maxConnections`, 50,000); `None`: limited by file descriptors only.
    pub connections: Option<NonZeroU32>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { head: 32_768, connections: NonZeroU32::new(50_000) }
    }
}

/// Verification of client certificates: `clientTLS`.
#[derive(Debug)]
pub struct ClientAuth {
    /// `clientCertificatePolicy: Required`; otherwise a certificate is optional.
    pub required: bool,
    /// `clientCA`: the chain must end at one of these. Empty if the CA is missing or invalid: TLS must then be
    /// rejected.
    pub roots: Arc<RootCertStore>,
    /// `allowedSubjectPatterns`: the subject's distinguished name must match one of them, if there are any.
    pub subjects: Vec<Regex>,
}

impl PartialEq for ClientAuth {
    fn eq(&self, other: &Self) -> bool {
        let ClientAuth { required, roots, subjects } = self;
        *required == other.required
            && roots.roots == other.roots.roots
            && subjects.iter().map(Regex::as_str).eq(other.subjects.iter().map(Regex::as_str))
    }
}

impl Eq for ClientAuth {}

/// Pages that replace the router's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorPages {
    /// For 503: a host without route, or a route without endpoint.
    pub unavailable: Option<Arc<ErrorPage>>,
    /// For 404.
    pub not_found: Option<Arc<ErrorPage>>,
}

impl ErrorPages {
    /// The page that replaces the router's own for a status.
    pub fn of(&self, status: u16) -> Option<&ErrorPage> {
        match status {
            503 => self.unavailable.as_deref(),
            404 => self.not_found.as_deref(),
            _ => None,
        }
    }
}

/// `logging.access`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessLogPolicy {
    /// `httpCaptureHeaders.request`.
    pub request_headers: Arc<[HeaderCapture]>,
    /// `httpCaptureHeaders.response`.
    pub response_headers: Arc<[HeaderCapture]>,
    /// `httpCaptureCookies`.
    pub cookie: Option<CookieCapture>,
    /// `logEmptyRequests: Ignore`: connections without a request are not logged.
    pub ignore_empty: bool,
    /// `destination.syslog`: receives lines instead of the agent's own log.
    pub syslog: Option<Syslog>,
    /// `httpLogFormat`: the format of request lines.
    pub format: Option<LogFormat>,
}

/// Settings of one route. Most routes share the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoutePolicy {
    /// `haproxy.router.openshift.io/balance`.
    pub balance: Option<Balance>,
    /// The parts of a request that [`Balance::Hash`] hashes, in order; otherwise empty.
    pub hash: Box<[HashOf]>,
    /// Cookie affinity, for HTTP routes.
    pub affinity: Affinity,
    /// `haproxy.router.openshift.io/timeout`, at most 2³¹ − 1 ms; `None`: the router's.
    pub server_timeout: Option<Duration>,
    /// `haproxy.router.openshift.io/rewrite-target`: replaces the route's path.
    pub rewrite_target: Option<RewriteTarget>,
    /// `haproxy.router.openshift.io/hsts_header`: value of `Strict-Transport-Security` over TLS.
    pub hsts: Option<Box<str>>,
    /// `haproxy.router.openshift.io/rate-limit-connections` and its related annotations.
    pub source_limits: SourceLimits,
    /// `haproxy.router.openshift.io/pod-concurrent-connections`: most simultaneous connections or requests per
    /// endpoint.
    pub endpoint_connections: Option<NonZeroU32>,
    /// `spec.httpHeaders.actions`.
    pub actions: Option<Arc<HeaderActions>>,
    /// `haproxy.router.openshift.io/h1-adjust-case`.
    pub adjust_case: bool,
    /// `router.openshift.io/haproxy.health.check.interval`; `None`: the router's.
    pub health_check: Option<Duration>,
}

impl RoutePolicy {
    /// The shared default.
    pub fn shared_default() -> Arc<Self> {
        static DEFAULT: LazyLock<Arc<RoutePolicy>> = LazyLock::new(Arc::default);
        Arc::clone(&DEFAULT)
    }

    /// This policy behind an `Arc`: the shared default if it equals that, or an equal policy of a recent route. Many
    /// routes have the same annotations, and a shared policy stays in the processor's cache.
    pub fn shared(self) -> Arc<Self> {
        static RECENT: Recent<RoutePolicy> = Recent::new();
        let default = Self::shared_default();
        if self == *default { default } else { RECENT.share(self) }
    }

    /// Whether any setting requires reading every request of an HTTP route.
    pub fn reads_requests(&self) -> bool {
        !self.affinity.disabled
            || self.server_timeout.is_some()
            || self.rewrite_target.is_some()
            || self.source_limits.requests.is_some()
            || self.actions.is_some()
            || self.adjust_case
    }

    /// Whether connections must be carried by the proxy, because the kernel, which chooses endpoints randomly by
    /// weight, does not implement a setting: limits on connections, or another balancing. Health checks do not require
    /// it: the kernel continues with the next endpoint by itself.
    pub fn needs_relay(&self) -> bool {
        let by_chance = matches!(self.balance, None | Some(Balance::RoundRobin | Balance::Random));
        let is_limited = self.source_limits.concurrent.is_some() || self.source_limits.connections.is_some();
        !by_chance || is_limited || self.endpoint_connections.is_some()
    }
}

/// How an endpoint is selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// In turn, weighted.
    RoundRobin,
    /// The one with the fewest connections relative to its weight.
    LeastConnections,
    /// Randomly, weighted.
    Random,
    /// By a hash of the client address: stable as long as endpoints and weights do not change.
    Source,
    /// By the hash of [`RoutePolicy::hash`]: stable as long as endpoints and weights do not change. Randomly, weighted,
    /// if a request has none of the parts.
    Hash,
}

/// A part of a request that is hashed (Contour, `requestHashPolicies`; Envoy, `RouteAction.HashPolicy`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashOf {
    /// The part.
    pub part: HashedPart,
    /// If it is present, the parts after it are not hashed.
    pub terminal: bool,
}

/// Parts that can be hashed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HashedPart {
    /// The client's address.
    Source,
    /// The values of this header field; the name is in lower case.
    Header(Box<str>),
    /// The first query parameter with this name, compared without regard to case.
    Query(Box<str>),
    /// The value of this cookie; a client without it gets one.
    Cookie(Box<str>),
}

/// Affinity of a client to its endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Affinity {
    /// `haproxy.router.openshift.io/disable_cookies` is true. All other HTTP routes have affinity.
    pub disabled: bool,
    /// `router.openshift.io/cookie_name`; `None`: a name derived from the route's.
    pub cookie: Option<Box<str>>,
    /// `router.openshift.io/cookie-same-site`, for TLS routes whose insecure policy is not Allow.
    pub same_site: SameSite,
}

/// `SameSite` of a cookie (RFC 6265bis 4.1.2.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SameSite {
    /// `Lax`.
    Lax,
    /// `Strict`.
    Strict,
    /// `None`.
    #[default]
    None,
}

/// Limits per client address; `None`: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceLimits {
    /// `….concurrent-tcp`: most simultaneous connections.
    pub concurrent: Option<NonZeroU32>,
    /// `….rate-tcp`: most new connections in 3 s.
    pub connections: Option<NonZeroU32>,
    /// `….rate-http`: most requests in 10 s.
    pub requests: Option<NonZeroU32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_that_ask_for_the_same_share_their_policy() {
        let policy = || RoutePolicy { server_timeout: Some(Duration::from_secs(7)), ..RoutePolicy::default() };
        assert!(Arc::ptr_eq(&policy().shared(), &policy().shared()));
        assert!(Arc::ptr_eq(&RoutePolicy::default().shared(), &RoutePolicy::shared_default()));
    }
}
