//! Objects of all kinds that are read.

use std::sync::Arc;

use router_model::field::FieldError;
use router_model::kind::Kind;
use router_model::object::{Meta, ObjectKey, Uid};

use crate::contour::types::{TlsCertificateDelegation, Vertex};
use crate::gateway_api::types::{BackendTlsPolicy, Gateway, GatewayClass, GatewayRoute, ReferenceGrant, RouteSlot};
use crate::kubernetes::config_map::ConfigMap;
use crate::kubernetes::endpoints::{EndpointSlice, Service};
use crate::kubernetes::secret::{Namespace, Secret};
use crate::openshift::ingress_controller::IngressController;
use crate::openshift::route::Route;

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
