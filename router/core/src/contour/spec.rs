//! Contour's objects as they were read: IngressRoute (`contour.heptio.com/v1beta1`), HTTPProxy (`projectcontour.io/v1`) and
//! TLSCertificateDelegation, in one model: a [`Vertex`] is a root when it has a virtual host, else it is delegated to.

use std::sync::Arc;
use std::time::Duration;

use crate::gateway::spec::{HeaderModifier, RequestMatcher};
use crate::object::{Kind, Manifest, Meta, ObjectKey};

/// An IngressRoute or HTTPProxy.
#[derive(Clone, Debug)]
pub struct Vertex {
    /// [`Kind::IngressRoute`] or [`Kind::HttpProxy`].
    pub kind: Kind,
    /// Metadata.
    pub meta: Meta,
    /// As it was written.
    pub manifest: Manifest,
    /// `spec.virtualhost`.
    pub virtual_host: Option<VirtualHostSpec>,
    /// `spec.subdomains` (IngressRoute).
    pub subdomains: Vec<Subdomain>,
    /// `spec.routes`, in order. Of an HTTPProxy its `includes` come before its `routes`.
    pub routes: Vec<RouteSpec>,
    /// `spec.tcpproxy`.
    pub tcp: Option<TcpProxy>,
    /// Fields that are not done: the object is invalid, with these words.
    pub unsupported: Vec<String>,
}

/// `spec.virtualhost`.
#[derive(Clone, Debug, Default)]
pub struct VirtualHostSpec {
    /// `fqdn` as written; may be empty, or begin with a dot.
    pub fqdn: Arc<str>,
    /// `tls`.
    pub tls: Option<TlsSpec>,
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
    /// IngressRoute: `match` as written, for messages; HTTPProxy: its conditions in words.
    pub label: Arc<str>,
    /// The conditions, ANDed. IngressRoute: a prefix of bytes' segments, absolute; HTTPProxy: what is appended to the
    /// parent's.
    pub matcher: RequestMatcher,
    /// `services`.
    pub services: Vec<ServiceSpec>,
    /// `delegate` or the included object; the namespace is filled in.
    pub delegate: Option<ObjectKey>,
    /// `enableWebsockets`.
    pub websockets: bool,
    /// `permitInsecure`.
    pub permit_insecure: bool,
    /// `prefixRewrite`, or HTTPProxy's `pathRewritePolicy.replacePrefix` without a condition of its own.
    pub prefix_rewrite: Option<Arc<str>>,
    /// `timeoutPolicy.request` / `.response`; `Some(None)`: `infinity`.
    pub timeout: Option<Option<Duration>>,
    /// `requestHeadersPolicy`, `responseHeadersPolicy`.
    pub request_headers: HeaderModifier,
    /// The latter.
    pub response_headers: HeaderModifier,
    /// What is no good in it, as the object's description says.
    pub unsupported: Vec<String>,
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
    /// `validation`: name of the Secret with the CA, and the subject name.
    pub validation: Option<(Arc<str>, Arc<str>)>,
    /// `strategy`; empty when absent.
    pub strategy: Arc<str>,
    /// HTTPProxy's `protocol`: `h2c`, `h2`, `tls`; empty when absent.
    pub protocol: Arc<str>,
}

/// `spec.tcpproxy`.
#[derive(Clone, Debug, Default)]
pub struct TcpProxy {
    /// `services`.
    pub services: Vec<ServiceSpec>,
    /// `delegate` / `include`; the namespace is filled in.
    pub delegate: Option<ObjectKey>,
}

/// `TLSCertificateDelegation`, of either group.
#[derive(Clone, Debug)]
pub struct TlsCertificateDelegation {
    /// Metadata.
    pub meta: Meta,
    /// As it was written.
    pub manifest: Manifest,
    /// `spec.delegations`: name of a Secret beside it, and the namespaces that may use it (`*`: all).
    pub delegations: Vec<(Arc<str>, Vec<Arc<str>>)>,
}
