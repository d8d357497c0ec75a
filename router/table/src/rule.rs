//! Rules of Gateway API and Contour objects: conditions on requests, and actions. All values are final: references are
//! resolved, defaults filled in, and parents' settings merged.

pub mod backend_tls;

use std::ops::RangeInclusive;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

pub use backend_tls::{BackendTls, NotAServerName, PeerName};
use router_model::certificate::Certificate;
use router_model::kind::Kind;
use router_model::names::{Hostname, RouterName};
use router_model::object::{ObjectKey, ObjectRef};

use crate::cors::Cors;
use crate::header_modifier::HeaderModifier;
use crate::matchers::RequestMatcher;
use crate::path_form::PathForm;
use crate::policy::Balance;
use crate::policy::tls_profile::TlsVersion;
use crate::table::{Cluster, ResolvedRoute};

/// A host's rules, beside or instead of Routes. A host with rules is closed: a request that matches none of them is
/// answered 404, and no wider host is tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRules {
    /// The oldest object that claims the host.
    pub owner: ObjectRef,
    /// The listener for TLS, e.g. `Gateway shop/public#tls`, or else the one for clear text. Requests over TLS for a
    /// host of another listener than that of their SNI are answered 421.
    pub listener: Arc<str>,
    /// The listener for clear text, if there is one.
    pub cleartext_listener: Option<Arc<str>>,
    /// Rules for clear text, in order: the first match applies. `None`: the host is not served in clear text, and
    /// requests are answered 404.
    pub cleartext: Option<Arc<[Arc<Rule>]>>,
    /// Rules for TLS that is terminated here.
    pub tls: Option<HostRulesTls>,
}

impl HostRules {
    /// The entry for a domain that the operator has denied. It belongs to the router itself and serves nothing.
    pub fn denied(router: &RouterName) -> Self {
        let owner = ObjectRef { kind: Kind::IngressController, key: ObjectKey::new("", &router.0) };
        HostRules { owner, listener: "--denied-domains".into(), cleartext_listener: None, cleartext: None, tls: None }
    }

    /// Whether it is the entry of a denied domain. Only those belong to a router itself.
    pub fn is_denied(&self) -> bool {
        self.owner.kind == Kind::IngressController
    }
}

/// TLS termination of a host with rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRulesTls {
    /// The object that refers to the certificates.
    pub shown_by: ObjectRef,
    /// Certificates; the first that a client supports is presented.
    pub certificates: Vec<Certificate>,
    /// The minimum version, never below that of the router's profile. `None`: the router's.
    pub minimum: Option<TlsVersion>,
    /// Rules for requests, in order.
    pub rules: Arc<[Arc<Rule>]>,
    /// Route of the decrypted byte stream, without parsing HTTP; then there are no rules.
    pub tcp: Option<Arc<ResolvedRoute>>,
}

/// One alternative of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The conditions; all must match.
    pub matcher: RequestMatcher,
    /// The form in which requests' paths are compared, forwarded, redirected and mirrored.
    pub path_form: PathForm,
    /// The prefix that a prefix replacement replaces: the one matched by the rule that has the filter.
    pub prefix: Arc<str>,
    /// The route that serves matching requests.
    pub route: Arc<ResolvedRoute>,
    /// Origin, for `explain`: `Gateway shop/public#web ▸ HTTPRoute shop/store/teams ▸ HTTPRoute red/cart/0`.
    pub origin: Arc<str>,
}

/// Settings of a rule, in addition to those that a [`ResolvedRoute`] has for all kinds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RulePolicy {
    /// The action on requests.
    pub action: Action,
    /// Request header changes, in order.
    pub request_headers: Vec<HeaderModifier>,
    /// Response header changes, in order.
    pub response_headers: Vec<HeaderModifier>,
    /// `URLRewrite`: value of `Host`.
    pub rewrite_host: Option<Hostname>,
    /// `URLRewrite`: the path.
    pub rewrite_path: Option<PathChange>,
    /// Clusters that get copies of requests; their responses are discarded.
    pub mirrors: Vec<Mirror>,
    /// Responses to cross-origin requests (CORS protocol; Fetch, 3.2).
    pub cors: Option<Arc<Cors>>,
    /// Limit for a whole request, from its head to the end of the response; 504 if the response has not begun.
    pub request_timeout: Option<Duration>,
    /// Limit for one attempt at an endpoint, to the end of the response; 504.
    pub backend_timeout: Option<Duration>,
    /// Idle timeout of a request or a tunnel, in both directions. The route's own timeouts already include it for the
    /// endpoint and for tunnels.
    pub idle_timeout: Option<Duration>,
    /// Time for which an unused connection to an endpoint is kept; `None`: the default (30 s).
    pub keep_connections: Option<Duration>,
    /// Retries of requests that an endpoint may have received.
    pub retry: Option<Retry>,
}

impl RulePolicy {
    /// This policy behind an `Arc`, which all that equal the default share.
    pub fn shared(self) -> Arc<Self> {
        static DEFAULT: LazyLock<Arc<RulePolicy>> = LazyLock::new(Arc::default);
        if self == **DEFAULT { Arc::clone(&DEFAULT) } else { Arc::new(self) }
    }
}

/// Retries of requests that an endpoint may have received: only requests with an idempotent method (RFC 9110 §9.2.2)
/// and without content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Most retries.
    pub count: u32,
    /// Responses with these statuses are retried while retries are left.
    pub statuses: Vec<RangeInclusive<u16>>,
    /// Whether a connection that ends without a response is retried, and an endpoint that does not answer in time.
    pub unanswered: bool,
    /// Whether all endpoints are tried again if none could be connected to.
    pub unreachable: bool,
    /// Upper limit of the wait before the first retry; doubled before each further one. The wait itself is random.
    pub backoff: Duration,
}

/// Action of a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// Forward to the cluster of the route.
    #[default]
    Forward,
    /// Redirect.
    Redirect(RedirectTo),
    /// Respond with this status, because a reference cannot be resolved.
    Answer(u16),
    /// Respond with this status, as the rule specifies.
    Direct(u16),
}

/// `RequestRedirect`, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedirectTo {
    /// `http` or `https`; `None`: the request's.
    pub scheme: Option<Arc<str>>,
    /// `None`: the request's.
    pub hostname: Option<Hostname>,
    /// `None`: the scheme's default if the scheme is set, else the listener's. A scheme's default port is omitted.
    pub port: Option<RedirectPort>,
    /// `None`: the request's.
    pub path: Option<PathChange>,
    /// 301, 302, 303, 307 or 308.
    pub status: u16,
}

/// The port of a redirect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedirectPort {
    /// This one.
    Number(u16),
    /// The router's port for HTTPS if the request's authority has its port for clear text, else 443.
    RouterHttps,
}

/// Replacement of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathChange {
    /// Replaces the whole path.
    Full(Arc<str>),
    /// Replaces [`Rule::prefix`].
    Prefix(Arc<str>),
}

/// A mirror.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirror {
    /// The cluster that gets the copies.
    pub cluster: Cluster,
    /// Share of requests that are copied: numerator and denominator.
    pub share: (u32, u32),
}

/// Settings of one backend, beside its endpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackendPolicy {
    /// Namespace of the Service, if it is not the route's.
    pub namespace: Option<Arc<str>>,
    /// Set if the backend cannot be used: its share of the requests is answered with this status; connections are
    /// reset.
    pub failure: Option<u16>,
    /// Request header changes, after those of the rule.
    pub request_headers: Vec<HeaderModifier>,
    /// Response header changes, before those of the rule.
    pub response_headers: Vec<HeaderModifier>,
    /// TLS to its endpoints.
    pub tls: Option<BackendTls>,
    /// Balancing among its endpoints, if it differs from the rule's.
    pub balance: Option<Balance>,
    /// Health check of its endpoints, if it differs from that of Routes.
    pub health_check: Option<Arc<HealthCheck>>,
}

/// Active health check. Unhealthy endpoints get no requests while there are others.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HealthCheck {
    /// The request; `None`: a TCP connection suffices.
    pub request: Option<HealthRequest>,
    /// Interval between checks.
    pub interval: Duration,
    /// Timeout of a check.
    pub timeout: Duration,
    /// Consecutive failures after which an endpoint is unhealthy; a 503 makes it so at once.
    pub unhealthy: u32,
    /// Consecutive successes after which it is healthy again.
    pub healthy: u32,
}

/// The `GET` request of a health check.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HealthRequest {
    /// Value of `Host`.
    pub host: Arc<str>,
    /// Request target.
    pub path: Arc<str>,
    /// Expected statuses: first and last of each range.
    pub expected: Vec<(u16, u16)>,
}
