//! Parsed Gateway API objects: every field that has an effect, in validated types. Unsupported values are listed in
//! `unsupported` of their parent, and rejected by condition; they are never ignored.

use std::sync::Arc;
use std::time::Duration;

use router_model::kind::Kind;
use router_model::names::Hostname;
use router_model::object::{Interner, Manifest, Meta, ObjectRef};
use router_model::selector::LabelSelector;
use router_table::cors::Cors;
use router_table::header_modifier::HeaderModifier;
use router_table::host_pattern::HostPattern;
use router_table::matchers::RequestMatcher;
use router_table::path_form::PathSettings;
use router_table::policy::gate::GatePolicy;
use router_table::rule::Retry;
use router_table::rule::backend_tls::SubjectName;

use crate::redirect::{PathModifier, Redirect};

/// `gateway.networking.k8s.io`.
pub const GROUP: &str = "gateway.networking.k8s.io";
/// Annotation of the API's definitions with their version, e.g. `v1.6.1`.
pub const BUNDLE_VERSION: &str = "gateway.networking.k8s.io/bundle-version";
/// The group of [`RouteSlot`].
pub const SLUICE_GROUP: &str = "gateway.sluice.dev";
/// `GatewayClass.spec.controllerName` of the classes that are Sluice's.
pub const CONTROLLER_NAME: &str = "sluice.dev/gateway-controller";

/// `GatewayClass`.
#[derive(Clone, Debug)]
pub struct GatewayClass {
    /// Metadata.
    pub meta: Meta,
    /// The manifest as written.
    pub manifest: Manifest,
    /// `spec.controllerName`.
    pub controller: Arc<str>,
    /// `spec.parametersRef` is there; no kind of parameters is known.
    pub has_parameters: bool,
}

/// `Gateway`.
#[derive(Clone, Debug)]
pub struct Gateway {
    /// Metadata.
    pub meta: Meta,
    /// The manifest as written.
    pub manifest: Manifest,
    /// `spec.gatewayClassName`.
    pub class: Arc<str>,
    /// `spec.listeners`.
    pub listeners: Vec<Listener>,
    /// `spec.addresses`: type and value as written.
    pub addresses: Vec<(Arc<str>, Arc<str>)>,
    /// `spec.infrastructure.parametersRef` is there; no kind of parameters is known.
    pub has_parameters: bool,
    /// Path normalisation on its listeners, from annotations; `None`: as on their routers.
    pub paths: Option<PathSettings>,
    /// What the XDP gate rejects on its listeners, from annotations; `None`: nothing.
    pub gate: Option<Arc<GatePolicy>>,
    /// Unsupported fields, each with what to write instead.
    pub unsupported: Vec<String>,
}

/// `Gateway.spec.listeners[]`.
#[derive(Clone, Debug)]
pub struct Listener {
    /// `name`.
    pub name: Arc<str>,
    /// `hostname`.
    pub hostname: HostPattern,
    /// `port`.
    pub port: u16,
    /// `protocol` as written: `HTTP`, `HTTPS`, `TLS`, or an unsupported one.
    pub protocol: Arc<str>,
    /// `tls`.
    pub tls: Option<ListenerTls>,
    /// `allowedRoutes`.
    pub allowed: AllowedRoutes,
    /// Unsupported fields.
    pub unsupported: Vec<String>,
}

/// `Listener.tls`.
#[derive(Clone, Debug, Default)]
pub struct ListenerTls {
    /// `mode: Passthrough`; else Terminate.
    pub passthrough: bool,
    /// `certificateRefs`.
    pub certificates: Vec<ObjectReference>,
}

/// `AllowedRoutes`: of a listener, a [`RouteSlot`] or (carrier B) a rule.
#[derive(Clone, Debug, Default)]
pub struct AllowedRoutes {
    /// `kinds`: group and kind; `None` if absent.
    pub kinds: Option<Vec<(Arc<str>, Arc<str>)>>,
    /// `namespaces`.
    pub from: FromNamespaces,
}

/// `RouteNamespaces.from`.
#[derive(Clone, Debug, Default)]
pub enum FromNamespaces {
    /// `Same`.
    #[default]
    Same,
    /// `All`.
    All,
    /// `None`.
    None,
    /// `Selector`, with `selector`.
    Selector(LabelSelector),
}

/// A reference to an object, with the defaults of its field.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectReference {
    /// `group`; empty for the core group.
    pub group: Arc<str>,
    /// `kind`.
    pub kind: Arc<str>,
    /// `namespace`; `None` if absent.
    pub namespace: Option<Arc<str>>,
    /// `name`.
    pub name: Arc<str>,
}

impl ObjectReference {
    /// Shares all texts but the name.
    fn share(&mut self, texts: &mut Interner) {
        texts.share(&mut self.group);
        texts.share(&mut self.kind);
        self.namespace.iter_mut().for_each(|namespace| texts.share(namespace));
    }
}

/// `parentRefs[]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ParentRef {
    /// Group (default Gateway API's), kind (default Gateway), namespace, name.
    pub object: ObjectReference,
    /// `sectionName`.
    pub section: Option<Arc<str>>,
    /// `port`.
    pub port: Option<u16>,
}

/// An HTTPRoute, GRPCRoute or TLSRoute. A GRPCRoute is converted to HTTP: a method match is a path, and so on.
#[derive(Clone, Debug)]
pub struct GatewayRoute {
    /// [`Kind::HttpRoute`], [`Kind::GrpcRoute`] or [`Kind::TlsRoute`].
    pub kind: Kind,
    /// Metadata.
    pub meta: Meta,
    /// The manifest as written.
    pub manifest: Manifest,
    /// `spec.parentRefs`, in order as written.
    pub parents: Vec<ParentRef>,
    /// `spec.hostnames`, in order; never [`HostPattern::Any`].
    pub hostnames: Vec<HostPattern>,
    /// `spec.rules`, with defaults.
    pub rules: Vec<RouteRule>,
}

impl GatewayRoute {
    /// Shares texts with other routes, and gives up spare capacity.
    pub(crate) fn share(&mut self, texts: &mut Interner) {
        for parent in &mut self.parents {
            parent.object.share(texts);
            texts.share(&mut parent.object.name);
        }
        for rule in &mut self.rules {
            rule.backends.iter_mut().for_each(|backend| backend.object.share(texts));
            rule.matches.shrink_to_fit();
            rule.backends.shrink_to_fit();
        }
        self.parents.shrink_to_fit();
        self.hostnames.shrink_to_fit();
        self.rules.shrink_to_fit();
    }

    /// Kind and key.
    pub fn object(&self) -> ObjectRef {
        ObjectRef { kind: self.kind, key: self.meta.key.clone() }
    }
}

/// `rules[]`.
#[derive(Clone, Debug, Default)]
pub struct RouteRule {
    /// `name`.
    pub name: Option<Arc<str>>,
    /// `matches`, at least one (the API's default is the prefix `/`); a TLSRoute has one that matches everything.
    pub matches: Vec<RequestMatcher>,
    /// `filters`, in order.
    pub filters: Vec<Filter>,
    /// `backendRefs`.
    pub backends: Vec<BackendRef>,
    /// `timeouts.request`; zero: none.
    pub request_timeout: Option<Duration>,
    /// `timeouts.backendRequest`; zero: none.
    pub backend_timeout: Option<Duration>,
    /// `retry`.
    pub retry: Option<Retry>,
    /// Carrier B: `allowedRoutes` of the overlay.
    pub allowed: Option<AllowedRoutes>,
    /// Unsupported fields and values: the rule is rejected with UnsupportedValue and these messages.
    pub unsupported: Vec<String>,
}

/// `backendRefs[]`.
#[derive(Clone, Debug)]
pub struct BackendRef {
    /// Group (default core), kind (default Service), namespace, name.
    pub object: ObjectReference,
    /// `port`.
    pub port: Option<u16>,
    /// `weight`, default 1, at most 1,000,000.
    pub weight: u32,
    /// `filters`, in order.
    pub filters: Vec<Filter>,
}

/// `HTTPRouteFilter`.
#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    /// `RequestHeaderModifier`.
    RequestHeaders(HeaderModifier),
    /// `ResponseHeaderModifier`.
    ResponseHeaders(HeaderModifier),
    /// `RequestRedirect`.
    Redirect(Redirect),
    /// `URLRewrite`.
    Rewrite(UrlRewrite),
    /// `RequestMirror`.
    Mirror(MirrorFilter),
    /// `CORS`.
    Cors(Cors),
    /// `ExtensionRef`: none is supported, so requests of the rule get 500.
    Extension(ObjectReference),
}

/// `HTTPURLRewriteFilter`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UrlRewrite {
    /// `hostname`: value of `Host`.
    pub hostname: Option<Hostname>,
    /// `path`.
    pub path: Option<PathModifier>,
}

/// `HTTPRequestMirrorFilter`.
#[derive(Clone, Debug, PartialEq)]
pub struct MirrorFilter {
    /// `backendRef`.
    pub object: ObjectReference,
    /// Its port.
    pub port: Option<u16>,
    /// `percent` or `fraction`: share of requests (numerator, denominator).
    pub share: (u32, u32),
}

/// `ReferenceGrant.spec.to[]`: group, kind, name (`None`: all objects of the kind).
pub type GrantedTo = (Arc<str>, Arc<str>, Option<Arc<str>>);

/// `ReferenceGrant`.
#[derive(Clone, Debug)]
pub struct ReferenceGrant {
    /// Metadata.
    pub meta: Meta,
    /// `spec.from`: group, kind, namespace.
    pub from: Vec<(Arc<str>, Arc<str>, Arc<str>)>,
    /// `spec.to`: group, kind, name.
    pub to: Vec<GrantedTo>,
}

/// `BackendTLSPolicy`.
#[derive(Clone, Debug)]
pub struct BackendTlsPolicy {
    /// Metadata.
    pub meta: Meta,
    /// The manifest as written.
    pub manifest: Manifest,
    /// `spec.targetRefs`: the object and `sectionName`, a port's name.
    pub targets: Vec<(ObjectReference, Option<Arc<str>>)>,
    /// `spec.validation.caCertificateRefs`.
    pub ca_certificates: Vec<ObjectReference>,
    /// `spec.validation.wellKnownCACertificates: System`.
    pub system_roots: bool,
    /// `spec.validation.hostname`: SNI, and the name in the certificate unless `names` is not empty.
    pub hostname: Hostname,
    /// `spec.validation.subjectAltNames`: one of these must be in the certificate.
    pub names: Vec<SubjectName>,
    /// Unsupported fields.
    pub unsupported: Vec<String>,
}

/// `RouteSlot`, Sluice's own kind: an attachment point of child routes, which a rule names as its only backend
/// (docs/delegation.md#carrier-a).
#[derive(Clone, Debug)]
pub struct RouteSlot {
    /// Metadata.
    pub meta: Meta,
    /// The manifest as written.
    pub manifest: Manifest,
    /// `spec.allowedRoutes`.
    pub allowed: AllowedRoutes,
}
