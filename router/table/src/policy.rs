//! What is done to the traffic of a router, and of one route, beside carrying it: timeouts, limits, balance, affinity,
//! work on headers. Values are final: defaults are filled in and limits applied, so that whoever serves decides nothing.

pub mod access_log;
pub mod error_page;
pub mod format;
pub mod forwarded;
pub mod header_actions;
pub mod header_value;
pub mod log_format;
pub mod rewrite;
pub mod tls_profile;
pub mod unique_id;

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use rustls::RootCertStore;

use crate::path_form::PathForm;
use crate::policy::access_log::{CookieCapture, HeaderCapture, Syslog};
use crate::policy::error_page::ErrorPage;
use crate::policy::header_actions::HeaderActions;
use crate::policy::log_format::LogFormat;
use crate::policy::rewrite::RewriteTarget;
use crate::policy::tls_profile::TlsProfile;
use crate::policy::unique_id::UniqueId;

/// What a router does to the traffic of all its routes.
#[derive(Clone, Debug, Default)]
pub struct RouterPolicy {
    /// `tuningOptions`, the times.
    pub timeouts: Timeouts,
    /// `tuningOptions`, the sizes and numbers.
    pub limits: Limits,
    /// `tlsSecurityProfile`.
    pub tls: TlsProfile,
    /// `clientTLS`; `None`: clients are not asked for a certificate.
    pub client_tls: Option<Arc<ClientAuth>>,
    /// `httpHeaders.actions`. On requests they come before a route's, on responses after it
    /// (docs/openshift.md#header-actions).
    pub actions: Option<Arc<HeaderActions>>,
    /// `httpHeaders.uniqueId`.
    pub unique_id: Option<UniqueId>,
    /// `httpHeaders.headerNameCaseAdjustments`: names as HTTP/1 peers get them, on all responses, and on requests of
    /// routes with [`RoutePolicy::adjust_case`].
    pub case_adjustments: Arc<[Arc<str>]>,
    /// `httpErrorCodePages`.
    pub pages: ErrorPages,
    /// `httpCompression.mimeTypes`: responses of these types are compressed.
    pub compress: Arc<[Arc<str>]>,
    /// `httpEmptyRequestsPolicy: Ignore`: connections without a request are closed without an answer and a log line.
    pub ignore_empty_requests: bool,
    /// `idleConnectionTerminationPolicy: Deferred`: when the router drains, an idle connection has one more request.
    pub defer_idle_termination: bool,
    /// `closedClientConnectionPolicy: Abort`: a request ends when its client ends its side of the connection; else it is
    /// answered.
    pub abort_closed_clients: bool,
    /// `logging.access`.
    pub log: AccessLogPolicy,
    /// How Routes compare requests' paths, and get them; of objects of other kinds each rule says so.
    pub path_form: PathForm,
    /// `endpointPublishingStrategy.….protocol: PROXY`: clients' connections begin with a PROXY protocol header.
    pub accept_proxy: bool,
}

/// Timeouts of a router, with OpenShift's defaults (`tuningOptions`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For a complete ClientHello (`tlsInspectDelay`, 5 s).
    pub hello: Duration,
    /// For the TLS handshake after it, 10 s.
    pub handshake: Duration,
    /// For a complete request head, 10 s.
    pub head: Duration,
    /// Between requests (`httpKeepAliveTimeout`, 300 s).
    pub keep_alive: Duration,
    /// For a client to take what is sent, or to send a part of a body (`clientTimeout`, 30 s).
    pub client: Duration,
    /// For a client to close after the router has (`clientFinTimeout`, 1 s).
    pub client_fin: Duration,
    /// For an endpoint to connect, and for TLS with it (`connectTimeout`, 5 s each).
    pub connect: Duration,
    /// For an endpoint to answer, and between parts of its answer (`serverTimeout`, 30 s).
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

/// Sizes and numbers of a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes of a request's head (32,768; `headerBufferBytes` less `headerBufferMaxRewriteBytes` where one of them
    /// is written).
    pub head: u32,
    /// Most connections of clients at the same time (`maxConnections`, 50,000); `None`: as many as descriptors allow.
    pub connections: Option<NonZeroU32>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { head: 32_768, connections: NonZeroU32::new(50_000) }
    }
}

/// Who may connect with which certificate: `clientTLS`.
#[derive(Debug)]
pub struct ClientAuth {
    /// `clientCertificatePolicy: Required`; else a client may do without a certificate.
    pub required: bool,
    /// `clientCA`: one of these must have signed. Empty when the CA is missing or no good: TLS must then be refused.
    pub roots: Arc<RootCertStore>,
    /// `allowedSubjectPatterns`: the subject's distinguished name must match one, unless there are none.
    pub subjects: Vec<regex::Regex>,
}

/// Pages in the place of the router's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorPages {
    /// For 503: a host without route, or a route without endpoint.
    pub unavailable: Option<Arc<ErrorPage>>,
    /// For 404.
    pub not_found: Option<Arc<ErrorPage>>,
}

impl ErrorPages {
    /// The page in the place of the router's own for a status.
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
    /// `logEmptyRequests: Ignore`: connections without a request have no line.
    pub ignore_empty: bool,
    /// `destination.syslog`: where lines go instead of the agent's own log.
    pub syslog: Option<Syslog>,
    /// `httpLogFormat`: how lines of requests are written.
    pub format: Option<LogFormat>,
}

/// What one route asks for. Most routes share the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoutePolicy {
    /// `haproxy.router.openshift.io/balance`.
    pub balance: Option<Balance>,
    /// What of a request [`Balance::Hash`] goes by, in order; else empty.
    pub hash: Box<[HashOf]>,
    /// Stickiness by cookie, for HTTP routes.
    pub affinity: Affinity,
    /// `haproxy.router.openshift.io/timeout`, at most 2^31 − 1 ms; `None`: as the router says.
    pub server_timeout: Option<Duration>,
    /// `haproxy.router.openshift.io/rewrite-target`: stands in the place of the route's path.
    pub rewrite_target: Option<RewriteTarget>,
    /// `haproxy.router.openshift.io/hsts_header`: value of `Strict-Transport-Security` on TLS.
    pub hsts: Option<Box<str>>,
    /// `haproxy.router.openshift.io/rate-limit-connections` and the annotations that go with it.
    pub source_limits: SourceLimits,
    /// `haproxy.router.openshift.io/pod-concurrent-connections`: most connections or requests to one endpoint.
    pub endpoint_connections: Option<NonZeroU32>,
    /// `spec.httpHeaders.actions`.
    pub actions: Option<Arc<HeaderActions>>,
    /// `haproxy.router.openshift.io/h1-adjust-case`.
    pub adjust_case: bool,
    /// `router.openshift.io/haproxy.health.check.interval`; `None`: as the router says.
    pub health_check: Option<Duration>,
}

/// Different policies, the last one first.
struct LastPolicies(VecDeque<Arc<RoutePolicy>>);

impl LastPolicies {
    /// How many are remembered.
    const MOST: usize = 16;

    fn share(&mut self, policy: RoutePolicy) -> Arc<RoutePolicy> {
        let known = self.0.iter().position(|known| **known == policy).and_then(|at| self.0.remove(at));
        let policy = known.unwrap_or_else(|| Arc::new(policy));
        self.0.push_front(Arc::clone(&policy));
        self.0.truncate(Self::MOST);
        policy
    }
}

impl RoutePolicy {
    /// The default, of which there is one.
    pub fn shared_default() -> Arc<Self> {
        static DEFAULT: LazyLock<Arc<RoutePolicy>> = LazyLock::new(Arc::default);
        Arc::clone(&DEFAULT)
    }

    /// This policy behind an `Arc`: the one that all share, when it is the default, or that of one of the last routes,
    /// when it says the same. Annotations are mostly the same for many routes, and what requests for all of them read
    /// stays in the processor's cache.
    pub fn shared(self) -> Arc<Self> {
        static LAST: Mutex<LastPolicies> = Mutex::new(LastPolicies(VecDeque::new()));
        let default = Self::shared_default();
        if self == *default {
            return default;
        }
        LAST.lock().unwrap_or_else(PoisonError::into_inner).share(self)
    }

    /// Whether something is asked for that takes reading every request of a route that carries requests.
    pub fn reads_requests(&self) -> bool {
        !self.affinity.disabled
            || self.server_timeout.is_some()
            || self.rewrite_target.is_some()
            || self.source_limits.requests.is_some()
            || self.actions.is_some()
            || self.adjust_case
    }

    /// Whether connections must be carried by the proxy, because the kernel, which chooses an endpoint by chance and
    /// weight, could not keep what is asked for: limits on connections, or another choice. Checks of endpoints are no such
    /// thing: the kernel goes on to the next endpoint by itself.
    pub fn needs_relay(&self) -> bool {
        let by_chance = matches!(self.balance, None | Some(Balance::RoundRobin | Balance::Random));
        let is_limited = self.source_limits.concurrent.is_some() || self.source_limits.connections.is_some();
        !by_chance || is_limited || self.endpoint_connections.is_some()
    }
}

/// How an endpoint is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// In turn, by weight.
    RoundRobin,
    /// The one with the fewest connections for its weight.
    LeastConnections,
    /// By chance, by weight.
    Random,
    /// The same for the same client address, as long as endpoints and weights stay.
    Source,
    /// The same for the same hash of [`RoutePolicy::hash`], as long as endpoints and weights stay; by chance and weight
    /// where a request has nothing of that.
    Hash,
}

/// A part of a request that is hashed (Contour, `requestHashPolicies`; Envoy, `RouteAction.HashPolicy`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashOf {
    /// Which.
    pub part: HashedPart,
    /// Where it is there, those that follow do not count.
    pub terminal: bool,
}

/// What can be hashed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HashedPart {
    /// The client's address.
    Source,
    /// The values of this field, whose name is in lower case.
    Header(Box<str>),
    /// The first parameter of this name in the query; names are compared without regard to case.
    Query(Box<str>),
    /// The value of this cookie, which a client without one is given.
    Cookie(Box<str>),
}

/// Whether a client stays with its endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Affinity {
    /// `haproxy.router.openshift.io/disable_cookies` is true. All other routes that carry requests have affinity.
    pub disabled: bool,
    /// `router.openshift.io/cookie_name`; `None`: a name that is made from the route's.
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

/// Limits for each client address; `None` where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceLimits {
    /// `….concurrent-tcp`: most connections at the same time.
    pub concurrent: Option<NonZeroU32>,
    /// `….rate-tcp`: most connections in 3 s.
    pub connections: Option<NonZeroU32>,
    /// `….rate-http`: most requests in 10 s.
    pub requests: Option<NonZeroU32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_that_ask_for_the_same_share_their_policy() {
        let with_timeout =
            |seconds| RoutePolicy { server_timeout: Some(Duration::from_secs(seconds)), ..RoutePolicy::default() };
        let mut last = LastPolicies(VecDeque::new());
        let first = last.share(with_timeout(1));
        assert!((2..LastPolicies::MOST as u64 + 1).all(|seconds| *last.share(with_timeout(seconds)) != *first));
        assert!(Arc::ptr_eq(&first, &last.share(with_timeout(1))));
        // One more than are remembered, and the oldest is made anew.
        (2..LastPolicies::MOST as u64 + 2).for_each(|seconds| drop(last.share(with_timeout(seconds))));
        let anew = last.share(with_timeout(1));
        assert!(!Arc::ptr_eq(&first, &anew) && *first == *anew);
        assert_eq!(last.0.len(), LastPolicies::MOST);
        assert!(Arc::ptr_eq(&RoutePolicy::default().shared(), &RoutePolicy::shared_default()));
    }
}
