//! Parsed objects of Contour: IngressRoute (`contour.heptio.com/v1beta1`), HTTPProxy (`projectcontour.io/v1`) and
//! TLSCertificateDelegation. A [`ContourProxy`] with a virtual host is a root; others are delegated to.

use std::sync::Arc;
use std::time::Duration;

use router_model::field::FieldPath;
use router_model::kind::Kind;
use router_model::names::Hostname;
use router_model::object::{Manifest, Meta, ObjectKey, ObjectRef};
use router_table::cors::Cors;
use router_table::header_modifier::HeaderModifier;
use router_table::matchers::RequestMatcher;
use router_table::policy::{Balance, HashOf};
use router_table::rule::{HealthCheck, Retry};

use crate::redirect::Redirect;

/// An IngressRoute or HTTPProxy.
#[derive(Clone, Debug)]
pub struct ContourProxy {
    /// [`Kind::IngressRoute`] or [`Kind::HttpProxy`].
    pub kind: Kind,
    /// Metadata.
    pub meta: Meta,
    /// The manifest as written.
    pub manifest: Manifest,
    /// The ingress class, if it is another controller's: the object is not served, and its status is not written.
    pub foreign_class: Option<Box<ForeignClass>>,
    /// `spec.virtualhost`.
    pub virtual_host: Option<VirtualHostSpec>,
    /// `spec.subdomains` (IngressRoute).
    pub subdomains: Vec<Subdomain>,
    /// `spec.routes`, in order. Of an HTTPProxy its `includes` come before its `routes`.
    pub routes: Vec<RouteSpec>,
    /// `spec.tcpproxy`.
    pub tcp: Option<TcpProxy>,
    /// Violations outside of `routes`: the object is invalid, and nothing of it is served.
    pub faults: Vec<Violation>,
}

impl ContourProxy {
    /// Whether another controller serves it.
    pub fn is_foreign(&self) -> bool {
        self.foreign_class.is_some()
    }

    /// The object.
    pub fn object(&self) -> ObjectRef {
        ObjectRef { kind: self.kind, key: self.meta.key.clone() }
    }
}

/// An ingress class of another controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignClass {
    /// Its name.
    pub name: Box<str>,
    /// The annotation or field that names it.
    pub path: FieldPath,
}

/// An invalid or unsupported part of an IngressRoute or HTTPProxy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// `type` of an HTTPProxy's sub-condition, e.g. `IncludeError`.
    pub kind: &'static str,
    /// Its `reason`, e.g. `IncludeNotFound`.
    pub reason: &'static str,
    /// Its `message`; `status.description` of an IngressRoute.
    pub message: String,
}

impl Violation {
    /// A violation.
    pub fn new(kind: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Violation { kind, reason, message: message.into() }
    }
}

/// `spec.virtualhost`.
#[derive(Clone, Debug, Default)]
pub struct VirtualHostSpec {
    /// `fqdn` as written; may be empty, or begin with a dot.
    pub fqdn: Arc<str>,
    /// `tls`.
    pub tls: Option<TlsSpec>,
    /// `corsPolicy` (HTTPProxy).
    pub cors: Option<Arc<Cors>>,
}

/// `virtualhost.tls`.
#[derive(Clone, Debug, Default)]
pub struct TlsSpec {
    /// `secretName`: a name, or `namespace/name`; empty when absent.
    pub secret: Arc<str>,
    /// `minimumProtocolVersion` as written; empty when absent.
    pub minimum: Arc<str>,
    /// `passthrough`.
    pub passthrough: bool,
}

/// `spec.subdomains[]`.
#[derive(Clone, Debug)]
pub struct Subdomain {
    /// `subdomain` as written.
    pub name: Arc<str>,
    /// `delegate`; the namespace is filled in.
    pub delegate: ObjectKey,
}

/// `spec.routes[]`, or `spec.includes[]` of an HTTPProxy.
#[derive(Clone, Debug, Default)]
pub struct RouteSpec {
    /// IngressRoute: `match` as written, for messages; HTTPProxy: its conditions in words, empty when there are none.
    pub label: Arc<str>,
    /// The conditions, ANDed. IngressRoute: an absolute prefix; HTTPProxy: appended to the parent's.
    pub matcher: RequestMatcher,
    /// `services`.
    pub services: Vec<ServiceSpec>,
    /// `delegate` or the included object; the namespace is filled in.
    pub delegate: Option<ObjectKey>,
    /// `enableWebsockets`.
    pub websockets: bool,
    /// `permitInsecure`.
    pub permit_insecure: bool,
    /// `prefixRewrite`, or HTTPProxy's `pathRewritePolicy.replacePrefix`: the matched prefix (`None`: any), and its
    /// replacement.
    pub rewrites: Vec<(Option<Arc<str>>, Arc<str>)>,
    /// `timeoutPolicy.request` / `.response`; `Some(None)`: `infinity`.
    pub timeout: Option<Option<Duration>>,
    /// `timeoutPolicy.idle`.
    pub idle: Option<Option<Duration>>,
    /// `timeoutPolicy.idleConnection`.
    pub idle_connection: Option<Option<Duration>>,
    /// `retryPolicy`.
    pub retry: Option<Retry>,
    /// `retryPolicy.perTryTimeout`.
    pub per_try: Option<Duration>,
    /// `requestHeadersPolicy`, without `Host`.
    pub request_headers: HeaderModifier,
    /// `responseHeadersPolicy`.
    pub response_headers: HeaderModifier,
    /// `Host` of `requestHeadersPolicy`.
    pub rewrite_host: Option<Hostname>,
    /// `requestRedirectPolicy`.
    pub redirect: Option<Redirect>,
    /// `directResponsePolicy.statusCode`.
    pub answer: Option<u16>,
    /// Its violations.
    pub faults: Vec<Violation>,
    /// Warnings about ignored fields.
    pub warnings: Vec<Violation>,
}

/// `services[]`.
#[derive(Clone, Debug, Default)]
pub struct ServiceSpec {
    /// `name`.
    pub name: Arc<str>,
    /// `port` as written.
    pub port: i64,
    /// `weight`.
    pub weight: u32,
    /// `validation`: name of the Secret with the CA, and the subject names.
    pub validation: Option<(Arc<str>, Vec<Arc<str>>)>,
    /// `strategy`, or the route's `loadBalancerPolicy`.
    pub strategy: Strategy,
    /// HTTPProxy's `protocol`: `h2c`, `h2`, `tls`; empty when absent.
    pub protocol: Arc<str>,
    /// `healthCheck`, or the `healthCheckPolicy` of the route.
    pub health_check: Option<Arc<HealthCheck>>,
    /// `mirror`: it gets copies of requests.
    pub mirror: bool,
    /// `requestHeadersPolicy`.
    pub request_headers: HeaderModifier,
    /// `responseHeadersPolicy`.
    pub response_headers: HeaderModifier,
}

/// Load balancing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strategy {
    /// The algorithm; Contour's default is round robin.
    pub balance: Balance,
    /// The hashed parts of [`Balance::Hash`]; else empty.
    pub hash: Box<[HashOf]>,
}

impl Default for Strategy {
    fn default() -> Self {
        Strategy { balance: Balance::RoundRobin, hash: Box::default() }
    }
}

/// `spec.tcpproxy`.
#[derive(Clone, Debug, Default)]
pub struct TcpProxy {
    /// `services`.
    pub services: Vec<ServiceSpec>,
    /// `delegate` / `include`; the namespace is filled in.
    pub delegate: Option<ObjectKey>,
    /// Its violations.
    pub faults: Vec<Violation>,
    /// Warnings about ignored fields.
    pub warnings: Vec<Violation>,
}

/// `TLSCertificateDelegation`, of either group.
#[derive(Clone, Debug)]
pub struct TlsCertificateDelegation {
    /// Metadata.
    pub meta: Meta,
    /// The manifest as written.
    pub manifest: Manifest,
    /// Whether it is of `projectcontour.io/v1`, which has a status.
    pub has_status: bool,
    /// `spec.delegations`: name of a Secret in its namespace, and the namespaces that may use it (`*`: all).
    pub delegations: Vec<(Arc<str>, Vec<Arc<str>>)>,
}
