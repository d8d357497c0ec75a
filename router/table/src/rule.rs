//! Rules of Gateway API and Contour objects, ready to serve: what a request must be like, and what is done with it.
//! Everything is final: references are resolved, defaults filled in, what parents say is folded in.

pub mod backend_tls;

use std::ops::RangeInclusive;
use std::sync::Arc;
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

/// What a host serves by rules, beside or instead of Routes. A host with a site is closed: what no rule of it matches is
/// answered 404, and no wider host is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRules {
    /// Who has the host: the oldest object that claims it.
    pub owner: ObjectRef,
    /// The listener for TLS, e.g. `Gateway shop/public#tls`, or else the one for clear text; requests that come over TLS
    /// for a host of another listener than their SNI's are answered 421.
    pub listener: Arc<str>,
    /// The listener for clear text; `None`: there is none.
    pub cleartext_listener: Option<Arc<str>>,
    /// Rules for clear text, in order: the first that matches serves. `None`: the host is not served in clear text, and
    /// requests are answered 404.
    pub cleartext: Option<Arc<[Arc<Rule>]>>,
    /// The same for TLS that is terminated here.
    pub tls: Option<HostRulesTls>,
}

impl HostRules {
    /// That of a domain that the operator has denied. It is the router's own and serves nothing.
    pub fn denied(router: &RouterName) -> Self {
        let owner = ObjectRef { kind: Kind::IngressController, key: ObjectKey::new("", &router.0) };
        HostRules { owner, listener: "--denied-domains".into(), cleartext_listener: None, cleartext: None, tls: None }
    }

    /// Whether it stands for a domain that the operator has denied. Nothing else is a router's own.
    pub fn is_denied(&self) -> bool {
        self.owner.kind == Kind::IngressController
    }
}

/// How a site terminates TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRulesTls {
    /// The object that names the certificates.
    pub shown_by: ObjectRef,
    /// The first that suits a client is shown.
    pub certificates: Vec<Certificate>,
    /// The lowest version; never below that of the router's profile. `None`: as the router says.
    pub minimum: Option<TlsVersion>,
    /// What requests are matched against, in order.
    pub rules: Arc<[Arc<Rule>]>,
    /// Where the bytes go as they are, once TLS is taken off; then there are no rules.
    pub tcp: Option<Arc<ResolvedRoute>>,
}

/// One alternative of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// All of it must match.
    pub matcher: RequestMatcher,
    /// How requests' paths are compared, and how they are sent on, redirected and copied.
    pub path_form: PathForm,
    /// What a prefix replacement replaces: the prefix that the rule with that filter matched.
    pub prefix: Arc<str>,
    /// What is done.
    pub route: Arc<ResolvedRoute>,
    /// Where it comes from, for `explain`: `Gateway shop/public#web ▸ HTTPRoute shop/store/teams ▸ HTTPRoute red/cart/0`.
    pub origin: Arc<str>,
}

/// What a rule does with its requests, beside what a [`ResolvedRoute`] has for all kinds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RulePolicy {
    /// Where requests go.
    pub action: Action,
    /// Work on requests' headers, in order.
    pub request_headers: Vec<HeaderModifier>,
    /// Work on responses' headers, in order.
    pub response_headers: Vec<HeaderModifier>,
    /// `URLRewrite`: value of `Host`.
    pub rewrite_host: Option<Hostname>,
    /// `URLRewrite`: the path.
    pub rewrite_path: Option<PathChange>,
    /// Where copies of requests go; their answers are dropped.
    pub mirrors: Vec<Mirror>,
    /// Answers to browsers' cross-origin requests (Fetch, 3.2).
    pub cors: Option<Arc<Cors>>,
    /// For the whole of a request, from its head's arrival to the response's end; 504 before the response has begun.
    pub request_timeout: Option<Duration>,
    /// For one try at an endpoint, to the response's end; 504.
    pub backend_timeout: Option<Duration>,
    /// How long neither side may send anything while there is a request, or a tunnel. The route's own time-outs have it for
    /// the endpoint and for tunnels already.
    pub idle_timeout: Option<Duration>,
    /// How long a connection to an endpoint is kept that no request uses; `None`: the default (30 s).
    pub keep_connections: Option<Duration>,
    /// When requests are sent again that an endpoint may have seen.
    pub retry: Option<Retry>,
}

/// When requests are sent again that an endpoint may have seen: those alone that do no harm twice, whose method is
/// idempotent (RFC 9110 §9.2.2) and that have no content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// How many times, after the first.
    pub count: u32,
    /// Responses with these statuses are not told to the client while there are tries left.
    pub statuses: Vec<RangeInclusive<u16>>,
    /// Whether a connection that ends without a response counts, and an endpoint that is silent for too long.
    pub unanswered: bool,
    /// Whether endpoints are tried anew when no connection could be made to any.
    pub unreachable: bool,
    /// Longest wait before the first one; twice as long before each further one. How long it really is, is left to
    /// chance.
    pub backoff: Duration,
}

/// Where requests of a rule go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// To the cluster of the route.
    #[default]
    Forward,
    /// Elsewhere.
    Redirect(RedirectTo),
    /// Nowhere, as a reference cannot be resolved: answered with this status.
    Answer(u16),
    /// Nowhere, as the rule says: answered with this status.
    Direct(u16),
}

/// `RequestRedirect`, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedirectTo {
    /// `http` or `https`; `None`: the request's.
    pub scheme: Option<Arc<str>>,
    /// `None`: the request's.
    pub hostname: Option<Hostname>,
    /// `None`: that of the scheme where one is given, else the listener's; a scheme's own port is not written.
    pub port: Option<RedirectPort>,
    /// `None`: the request's.
    pub path: Option<PathChange>,
    /// 301, 302, 303, 307 or 308.
    pub status: u16,
}

/// The port that a redirect leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedirectPort {
    /// This one.
    Number(u16),
    /// The router's for HTTPS if the request names the router's for clear text, else 443.
    RouterHttps,
}

/// What becomes of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathChange {
    /// This path.
    Full(Arc<str>),
    /// This stands in the place of [`Rule::prefix`].
    Prefix(Arc<str>),
}

/// Where copies of requests go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirror {
    /// The endpoints.
    pub cluster: Cluster,
    /// Of how many requests: numerator and denominator.
    pub share: (u32, u32),
}

/// What one backend has of its own, beside its endpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackendPolicy {
    /// Namespace of the Service, where that is not the route's.
    pub namespace: Option<Arc<str>>,
    /// The backend cannot be used: its share of the requests is answered with this status; connections are reset.
    pub failure: Option<u16>,
    /// Work on requests' headers, after that of the rule.
    pub request_headers: Vec<HeaderModifier>,
    /// Work on responses' headers, before that of the rule.
    pub response_headers: Vec<HeaderModifier>,
    /// TLS with its endpoints.
    pub tls: Option<BackendTls>,
    /// How its endpoints are chosen between, if not as the rule says.
    pub balance: Option<Balance>,
    /// How its endpoints are asked for their health, if not as those of Routes.
    pub health_check: Option<Arc<HealthCheck>>,
}

/// How endpoints are asked whether they are well. Those that are not get nothing while there are others.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HealthCheck {
    /// The request; `None`: a connection will do.
    pub request: Option<HealthRequest>,
    /// Time from one to the next.
    pub interval: Duration,
    /// What an answer may take.
    pub timeout: Duration,
    /// Failures in a row that make an endpoint ill; a 503 does at once.
    pub unhealthy: u32,
    /// Successes in a row that make it well again.
    pub healthy: u32,
}

/// A `GET` that asks an endpoint for its health.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HealthRequest {
    /// Value of `Host`.
    pub host: Arc<str>,
    /// The target.
    pub path: Arc<str>,
    /// Statuses that are good: first and last of each range.
    pub expected: Vec<(u16, u16)>,
}
