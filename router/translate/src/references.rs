//! The Services, Secrets and ConfigMaps that objects reference, whether or not they may use them. A source that does
//! not hold every object of a cluster holds these.

use std::collections::BTreeSet;

use router_api::contour::types::ContourProxy;
use router_api::object::Object;
use router_api::openshift::ingress_controller::IngressController;
use router_api::openshift::route::Route;
use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};

use crate::contour;
use crate::gateway;
use crate::openshift;

/// The Services, Secrets and ConfigMaps that an object references.
pub fn references(object: &Object) -> BTreeSet<ObjectRef> {
    match object {
        Object::Route(route) => of_route(route),
        Object::IngressController(controller) => of_controller(controller),
        Object::Gateway(gateway) => gateway::references::secrets_of(gateway).map(secret).collect(),
        Object::HttpRoute(route) | Object::GrpcRoute(route) | Object::TlsRoute(route) => {
            gateway::references::services_of(route).map(service).collect()
        }
        Object::BackendTlsPolicy(policy) => {
            let maps = gateway::backend_tls::config_maps(policy).map(|key| ObjectRef { kind: Kind::ConfigMap, key });
            gateway::backend_tls::services(policy).map(service).chain(maps).collect()
        }
        Object::IngressRoute(proxy) | Object::HttpProxy(proxy) => of_proxy(proxy),
        Object::TlsCertificateDelegation(delegation) => contour::references::of_delegation(delegation),
        Object::Service(_)
        | Object::EndpointSlice(_)
        | Object::Secret(_)
        | Object::Namespace(_)
        | Object::ConfigMap(_)
        | Object::CustomResourceDefinition(_)
        | Object::GatewayClass(_)
        | Object::ReferenceGrant(_)
        | Object::RouteSlot(_) => BTreeSet::new(),
    }
}

/// The Secrets that an object references for their `ca.crt`. Unlike those of certificates, they may have any type.
pub fn ca_secrets(object: &Object) -> BTreeSet<ObjectKey> {
    match object {
        Object::IngressRoute(proxy) | Object::HttpProxy(proxy) => contour::references::ca_secrets(proxy).collect(),
        _ => BTreeSet::new(),
    }
}

fn of_route(route: &Route) -> BTreeSet<ObjectRef> {
    let own = &route.meta.key.namespace;
    let services =
        route.backends.iter().map(|backend| ObjectKey { namespace: own.clone(), name: backend.service.clone() });
    let secret = openshift::claims::material::secret_of(route).map(secret);
    services.map(service).chain(secret).collect()
}

fn of_controller(controller: &IngressController) -> BTreeSet<ObjectRef> {
    let maps = openshift::controllers::config_maps_of(controller);
    let maps = maps.map(|key| ObjectRef { kind: Kind::ConfigMap, key });
    openshift::controllers::secrets_of(controller).map(secret).chain(maps).collect()
}

fn of_proxy(proxy: &ContourProxy) -> BTreeSet<ObjectRef> {
    let named = contour::references::of_proxy(proxy).into_iter();
    named.filter(|object| matches!(object.kind, Kind::Service | Kind::Secret)).collect()
}

fn service(key: ObjectKey) -> ObjectRef {
    ObjectRef { kind: Kind::Service, key }
}

fn secret(key: ObjectKey) -> ObjectRef {
    ObjectRef { kind: Kind::Secret, key }
}
