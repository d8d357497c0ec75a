//! Differences between the objects of two applies.

use std::collections::BTreeSet;
use std::sync::Arc;

use router_api::contour::types::ContourProxy;
use router_api::resources::{Objects, Resources};
use router_model::kind::Kind;
use router_model::object::ObjectRef;

/// A change of an IngressRoute or HTTPProxy; an object of another ingress class counts as missing.
#[derive(Debug)]
pub struct ProxyChange<'c> {
    /// The object.
    pub object: ObjectRef,
    /// The previous version.
    pub old: Option<&'c Arc<ContourProxy>>,
    /// The present version.
    pub new: Option<&'c Arc<ContourProxy>>,
}

/// Changes of IngressRoutes and HTTPProxies.
pub fn proxies<'c>(new: &'c Resources, old: &'c Resources) -> Vec<ProxyChange<'c>> {
    let ours = |version: Option<&'c Arc<ContourProxy>>| version.filter(|proxy| !proxy.is_foreign());
    let of = |kind: Kind, new: &'c Objects<ContourProxy>, old: &'c Objects<ContourProxy>| {
        new.in_force_since(old).map(move |changed| ProxyChange {
            object: ObjectRef { kind, key: changed.key.clone() },
            old: ours(changed.old),
            new: ours(changed.new),
        })
    };
    let routes = of(Kind::IngressRoute, &new.ingress_routes, &old.ingress_routes);
    let changes = routes.chain(of(Kind::HttpProxy, &new.http_proxies, &old.http_proxies));
    changes.filter(|change| change.old.is_some() || change.new.is_some()).collect()
}

/// The Services and Secrets that differ.
pub fn services_and_secrets(new: &Resources, old: &Resources) -> BTreeSet<ObjectRef> {
    let services = new.services.in_force_since(&old.services).map(|changed| (Kind::Service, changed.key));
    let secrets = new.secrets.in_force_since(&old.secrets).map(|changed| (Kind::Secret, changed.key));
    services.chain(secrets).map(|(kind, key)| ObjectRef { kind, key: key.clone() }).collect()
}
