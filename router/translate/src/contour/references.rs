//! References between objects of Contour, and from them to others.

use std::collections::BTreeSet;
use std::sync::Arc;

use router_api::contour::types::{ContourProxy, ServiceSpec, TlsCertificateDelegation};
use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};

use crate::objects_by::ObjectsBy;

/// The objects that name an object, by that object.
pub type References = ObjectsBy<ObjectRef>;

/// The proxies, Services and Secrets that a proxy names.
pub fn of_proxy(proxy: &ContourProxy) -> BTreeSet<ObjectRef> {
    let delegate = |key: &ObjectKey| ObjectRef { kind: proxy.kind, key: key.clone() };
    let own = &proxy.meta.key.namespace;
    let of_service = |service: &ServiceSpec| {
        let key = ObjectKey { namespace: Arc::clone(own), name: Arc::clone(&service.name) };
        let ca = service.validation.as_ref().map(|(written, _)| secret(written, own));
        [Some(ObjectRef { kind: Kind::Service, key }), ca]
    };
    let routes = proxy.routes.iter();
    let services = routes.clone().flat_map(|route| &route.services);
    let services = services.chain(proxy.tcp.iter().flat_map(|tcp| &tcp.services));
    let delegates = routes.filter_map(|route| route.delegate.as_ref());
    let delegates = delegates.chain(proxy.tcp.iter().filter_map(|tcp| tcp.delegate.as_ref()));
    let delegates = delegates.chain(proxy.subdomains.iter().map(|subdomain| &subdomain.delegate));
    let tls = proxy.virtual_host.as_ref().and_then(|host| host.tls.as_ref());
    let mut named: BTreeSet<ObjectRef> = delegates.map(delegate).collect();
    named.extend(services.flat_map(of_service).flatten());
    named.extend(tls.map(|tls| secret(&tls.secret, own)));
    named
}

/// The Secrets with the CAs of a proxy's services.
pub fn ca_secrets(proxy: &ContourProxy) -> impl Iterator<Item = ObjectKey> {
    let services = proxy.routes.iter().flat_map(|route| &route.services);
    let services = services.chain(proxy.tcp.iter().flat_map(|tcp| &tcp.services));
    let names = services.filter_map(|service| service.validation.as_ref());
    names.map(|(written, _)| secret(written, &proxy.meta.key.namespace).key)
}

/// The Secrets that a TLSCertificateDelegation names.
pub fn of_delegation(delegation: &TlsCertificateDelegation) -> BTreeSet<ObjectRef> {
    let own = &delegation.meta.key.namespace;
    delegation.delegations.iter().map(|(name, _)| of_kind_secret(Arc::clone(own), Arc::clone(name))).collect()
}

/// A Secret, written as a name or `namespace/name`.
fn secret(written: &Arc<str>, own: &Arc<str>) -> ObjectRef {
    match written.split_once('/') {
        Some((namespace, name)) => of_kind_secret(namespace.into(), name.into()),
        None => of_kind_secret(Arc::clone(own), Arc::clone(written)),
    }
}

fn of_kind_secret(namespace: Arc<str>, name: Arc<str>) -> ObjectRef {
    ObjectRef { kind: Kind::Secret, key: ObjectKey { namespace, name } }
}
