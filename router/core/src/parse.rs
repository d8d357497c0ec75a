//! Objects from their manifests: API-server defaulting, validation with field paths, and types that cannot be wrong.
//!
//! An object is read once; what comes out is shared behind an `Arc` for as long as the manifest stays the same.

mod config_map;
pub(crate) mod contour;
mod endpoints;
pub(crate) mod fields;
mod gateway_api;
mod headers;
mod ingress_controller;
mod meta;
pub mod names;
mod path_settings;
mod route;
mod secret;
mod unread;
mod update;

use std::sync::Arc;

use serde_json::Value;

use crate::contour::spec::{TlsCertificateDelegation, Vertex};
use crate::gateway::spec::{BackendTlsPolicy, Gateway, GatewayClass, GatewayRoute, ReferenceGrant, RouteSlot};

pub use config_map::{CA_CERTIFICATE, CLIENT_CA, ClientCa, ConfigMap, ErrorPage, NOT_FOUND_PAGE, UNAVAILABLE_PAGE};
pub use endpoints::{AppProtocol, EndpointSlice, Service, ServicePort, SliceEndpoint, SlicePort, Speaks};
pub use headers::{
    Converter, Direction, Expression, Fetch, HeaderAction, HeaderActions, HeaderChange, HeaderValue, Segment,
};
pub use ingress_controller::{
    AccessLog, ClientTls, CookieCapture, ForwardedHeaders, HeaderCapture, HttpPolicy, IngressController, LogField,
    LogFormat, LogPart, MaxConnections, NamespaceOwnership, ProfileKind, Publishing, PublishingKind, Syslog,
    TlsProfile, TlsVersion, Tuning, UniqueId, UniqueIdField, UniqueIdPart, WildcardAdmission,
};
pub use meta::DEFAULT_NAMESPACE;
pub use route::annotations::{self, RewriteTarget, TrafficOptions};
pub use route::{
    Backend, CertificateSource, HeldTls, Material, Route, TargetPort, Traffic, WildcardPolicy, generated_host,
};
pub use secret::{Namespace, Secret, TlsPair};
pub use unread::instead_of;
pub use update::{COMPARED, check_update, parse_update, reread_good, reread_refused};

use crate::certificate::MaterialCache;
use crate::field::{FieldError, FieldPath, Findings};
use crate::object::{Kind, Manifest, Meta, ObjectKey, Origin, Uid};
use fields::Fields;

/// What parsing needs to know beside the object.
#[derive(Clone, Debug)]
pub struct Defaults {
    /// Suffix of generated hosts: `ingresses.config` `spec.appsDomain` or `spec.domain`
    /// (docs/openshift.md#generated-host).
    pub cluster_domain: String,
}

impl Default for Defaults {
    fn default() -> Self {
        Defaults { cluster_domain: "apps.localhost".to_owned() }
    }
}

/// A parsed object of any kind.
#[derive(Clone, Debug)]
pub enum Object {
    /// A Route.
    Route(Arc<Route>),
    /// An IngressController.
    IngressController(Arc<IngressController>),
    /// A Service.
    Service(Arc<Service>),
    /// An EndpointSlice.
    EndpointSlice(Arc<EndpointSlice>),
    /// A Secret.
    Secret(Arc<Secret>),
    /// A Namespace.
    Namespace(Arc<Namespace>),
    /// A ConfigMap.
    ConfigMap(Arc<ConfigMap>),
    /// A CustomResourceDefinition.
    CustomResourceDefinition(Arc<CustomResourceDefinition>),
    /// A GatewayClass.
    GatewayClass(Arc<GatewayClass>),
    /// A Gateway.
    Gateway(Arc<Gateway>),
    /// An HTTPRoute, GRPCRoute or TLSRoute.
    GatewayRoute(Arc<GatewayRoute>),
    /// A ReferenceGrant.
    ReferenceGrant(Arc<ReferenceGrant>),
    /// A BackendTLSPolicy.
    BackendTlsPolicy(Arc<BackendTlsPolicy>),
    /// A RouteSlot.
    RouteSlot(Arc<RouteSlot>),
    /// An IngressRoute or HTTPProxy.
    Vertex(Arc<Vertex>),
    /// A TLSCertificateDelegation.
    TlsCertificateDelegation(Arc<TlsCertificateDelegation>),
}

/// A CustomResourceDefinition, as far as it matters.
#[derive(Clone, Debug)]
pub struct CustomResourceDefinition {
    /// Metadata.
    pub meta: Meta,
    /// It is that of HTTPRoute, and rules of its stored version may have `allowedRoutes`
    /// (docs/delegation.md#carrier-b).
    pub has_inclusions: bool,
}

impl Object {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Object::Route(_) => Kind::Route,
            Object::IngressController(_) => Kind::IngressController,
            Object::Service(_) => Kind::Service,
            Object::EndpointSlice(_) => Kind::EndpointSlice,
            Object::Secret(_) => Kind::Secret,
            Object::Namespace(_) => Kind::Namespace,
            Object::ConfigMap(_) => Kind::ConfigMap,
            Object::CustomResourceDefinition(_) => Kind::CustomResourceDefinition,
            Object::GatewayClass(_) => Kind::GatewayClass,
            Object::Gateway(_) => Kind::Gateway,
            Object::GatewayRoute(route) => route.kind,
            Object::ReferenceGrant(_) => Kind::ReferenceGrant,
            Object::BackendTlsPolicy(_) => Kind::BackendTlsPolicy,
            Object::RouteSlot(_) => Kind::RouteSlot,
            Object::Vertex(vertex) => vertex.kind,
            Object::TlsCertificateDelegation(_) => Kind::TlsCertificateDelegation,
        }
    }

    /// Its metadata.
    pub fn meta(&self) -> &Meta {
        match self {
            Object::Route(object) => &object.meta,
            Object::IngressController(object) => &object.meta,
            Object::Service(object) => &object.meta,
            Object::EndpointSlice(object) => &object.meta,
            Object::Secret(object) => &object.meta,
            Object::Namespace(object) => &object.meta,
            Object::ConfigMap(object) => &object.meta,
            Object::CustomResourceDefinition(object) => &object.meta,
            Object::GatewayClass(object) => &object.meta,
            Object::Gateway(object) => &object.meta,
            Object::GatewayRoute(object) => &object.meta,
            Object::ReferenceGrant(object) => &object.meta,
            Object::BackendTlsPolicy(object) => &object.meta,
            Object::RouteSlot(object) => &object.meta,
            Object::Vertex(object) => &object.meta,
            Object::TlsCertificateDelegation(object) => &object.meta,
        }
    }

    /// Its key.
    pub fn key(&self) -> &ObjectKey {
        &self.meta().key
    }

    /// Its `metadata.uid`; empty when absent.
    pub fn uid(&self) -> &Uid {
        &self.meta().uid
    }

    /// What makes the object unservable although the API server would store it: TLS material that is no good.
    pub fn material_errors(&self) -> &[FieldError] {
        match self {
            Object::Route(route) => route.material_errors(),
            _ => &[],
        }
    }
}

/// What came of one manifest.
#[derive(Debug)]
pub struct Parsed {
    /// What it is.
    pub outcome: Outcome,
    /// Oddities that stop nothing.
    pub warnings: Vec<FieldError>,
}

/// See [`Parsed`].
#[derive(Debug)]
pub enum Outcome {
    /// A good object.
    Good(Object),
    /// An object of a known kind and with a name that breaks the API's rules.
    Refused {
        /// Its kind.
        kind: Kind,
        /// Its key.
        key: ObjectKey,
        /// All that is wrong, in order of fields.
        errors: Vec<FieldError>,
        /// The object as it was written.
        manifest: Manifest,
    },
    /// A kind that is not read.
    UnknownKind {
        /// `apiVersion`.
        api_version: String,
        /// `kind`.
        kind: String,
    },
    /// No object at all: no `apiVersion`, `kind` or name.
    Unidentified(Vec<FieldError>),
}

/// Reads one object.
pub fn parse(value: Value, origin: Origin, defaults: &Defaults, materials: &mut MaterialCache) -> Parsed {
    parse_after(value, None, origin, defaults, materials)
}

/// Reads one object; `old` is the stored version that it is to replace.
fn parse_after(
    value: Value,
    old: Option<&Object>,
    origin: Origin,
    defaults: &Defaults,
    materials: &mut MaterialCache,
) -> Parsed {
    let mut findings = Findings::default();
    let outcome = parse_object(value, old, origin, defaults, materials, &mut findings);
    Parsed { outcome, warnings: findings.warnings }
}

fn parse_object(
    mut value: Value,
    old: Option<&Object>,
    origin: Origin,
    defaults: &Defaults,
    materials: &mut MaterialCache,
    findings: &mut Findings,
) -> Outcome {
    let mut fields = Fields::of(Some(&value), FieldPath::root(), findings);
    let api_version = fields.text("apiVersion", findings).unwrap_or_default().to_owned();
    let kind_name = fields.text("kind", findings).unwrap_or_default().to_owned();
    for (name, text) in [("apiVersion", &api_version), ("kind", &kind_name)] {
        if text.is_empty() && fields.is_present() {
            let message = "Required value: write what the object is, for example `apiVersion: route.openshift.io/v1` \
                           and `kind: Route`";
            findings.error(fields.path(name), message);
        }
    }
    if !findings.errors.is_empty() {
        return Outcome::Unidentified(std::mem::take(&mut findings.errors));
    }
    let Some(kind) = Kind::of(&api_version, &kind_name) else {
        return Outcome::UnknownKind { api_version, kind: kind_name };
    };
    let Some(meta) = meta::parse(&mut fields, kind, origin, findings) else {
        return Outcome::Unidentified(std::mem::take(&mut findings.errors));
    };
    fields.ignore(&["status"]);
    let key = meta.key.clone();
    let object = match kind {
        Kind::Route => {
            route::parse(meta, fields, old_route(old, &key), defaults, materials, findings).map(|mut route| {
                set_namespace(&mut value, &key);
                route.manifest = route::stored(value.clone(), &route);
                route.share(&mut materials.texts);
                Object::Route(Arc::new(route))
            })
        }
        Kind::IngressController => ingress_controller::parse(meta, fields, findings).map(|mut controller| {
            set_namespace(&mut value, &key);
            controller.manifest = Manifest::new(&value);
            Object::IngressController(Arc::new(controller))
        }),
        Kind::Service => {
            Some(Object::Service(Arc::new(endpoints::service(meta, fields, &mut materials.texts, findings))))
        }
        Kind::EndpointSlice => {
            endpoints::slice(meta, fields, findings).map(|slice| Object::EndpointSlice(Arc::new(slice)))
        }
        Kind::Secret => Some(Object::Secret(Arc::new(secret::secret(meta, fields, materials, findings)))),
        Kind::Namespace => Some(Object::Namespace(Arc::new(secret::namespace(meta, fields, findings)))),
        Kind::ConfigMap => Some(Object::ConfigMap(Arc::new(config_map::config_map(meta, fields, materials, findings)))),
        Kind::CustomResourceDefinition
        | Kind::GatewayClass
        | Kind::Gateway
        | Kind::HttpRoute
        | Kind::GrpcRoute
        | Kind::TlsRoute
        | Kind::ReferenceGrant
        | Kind::BackendTlsPolicy
        | Kind::RouteSlot => gateway_api::parse(kind, meta, &value, &mut materials.texts, findings),
        Kind::IngressRoute | Kind::HttpProxy | Kind::TlsCertificateDelegation => {
            contour::parse(kind, meta, &value, &mut materials.texts, findings)
        }
    };
    if let (Some(old), Some(new)) = (old, &object) {
        findings.errors.extend(check_update(old, new, defaults).errors);
    }
    match object {
        Some(object) if findings.errors.is_empty() => Outcome::Good(object),
        _ => {
            set_namespace(&mut value, &key);
            let errors = std::mem::take(&mut findings.errors);
            Outcome::Refused { kind, key, errors, manifest: Manifest::new(&value) }
        }
    }
}

fn old_route<'o>(old: Option<&'o Object>, key: &ObjectKey) -> Option<&'o Route> {
    match old {
        Some(Object::Route(route)) if route.meta.key == *key => Some(route),
        _ => None,
    }
}

/// Fills in the namespace that an object without one has.
fn set_namespace(value: &mut Value, key: &ObjectKey) {
    if key.namespace.is_empty() {
        return;
    }
    if let Some(Value::Object(metadata)) = value.get_mut("metadata") {
        metadata.insert("namespace".to_owned(), Value::String(key.namespace.to_string()));
    }
}

#[cfg(test)]
mod tests;
