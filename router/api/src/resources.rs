//! All parsed objects by kind and key. Cheap to clone: clones share objects and unchanged collections.

mod objects;

use std::sync::Arc;

pub use objects::{KeyedObject, Objects, RejectedManifest, Versions};
use router_model::for_kinds;
use router_model::kind::Kind;
use router_model::object::{Manifest, ObjectKey, ObjectRef, TextMap};
use router_model::persistent::Keyed;

use crate::contour::types::{ContourProxy, TlsCertificateDelegation};
use crate::gateway_api::types::{BackendTlsPolicy, Gateway, GatewayClass, GatewayRoute, ReferenceGrant, RouteSlot};
use crate::kubernetes::config_map::ConfigMap;
use crate::kubernetes::endpoints::{EndpointSlice, Service};
use crate::kubernetes::secret::{Namespace, Secret};
use crate::object::{CustomResourceDefinition, Object};
use crate::openshift::ingress_controller::IngressController;
use crate::openshift::route::Route;

macro_rules! define {
    ($($(#[$about:meta])* $kind:ident $name:literal $versions:tt
        $scope:ident, $type:ident in $collection:ident, $status:ident;)*) => {
        /// The parsed objects.
        #[derive(Clone, Debug, Default)]
        pub struct Resources {
            $(
                #[doc = concat!("Objects of kind ", $name, ".")]
                pub $collection: Objects<$type>,
            )*
        }

        impl Resources {
            /// Sets the versions of a key: the one in force, and the rejected newer one. With neither, the key is
            /// removed. An `accepted` of another kind than `kind` counts as none.
            pub fn set(
                &mut self,
                key: ObjectKey,
                kind: Kind,
                accepted: Option<&Object>,
                rejected: Option<Arc<RejectedManifest>>,
            ) {
                match kind {
                    $(Kind::$kind => {
                        let accepted = match accepted {
                            Some(Object::$kind(object)) => Some(object.clone()),
                            _ => None,
                        };
                        self.$collection.set(key, Versions { accepted, rejected });
                    })*
                }
            }

            /// Number of keys of all kinds.
            pub fn len(&self) -> usize {
                [$(self.$collection.len()),*].into_iter().sum()
            }

            /// The object in force under a key.
            pub fn object(&self, kind: Kind, key: &ObjectKey) -> Option<Object> {
                match kind {
                    $(Kind::$kind => self.$collection.get(key).cloned().map(Object::$kind),)*
                }
            }

            /// The manifest of the newest version, accepted or rejected: the object as a server stores it. An accepted object of
            /// a kind without written status has none.
            pub fn newest_manifest(&self, kind: Kind, key: &ObjectKey) -> Option<&Manifest> {
                let rejected = match kind {
                    $(Kind::$kind => self.$collection.versions_of(key)?.rejected.as_ref(),)*
                };
                rejected.map(|rejected| &rejected.manifest).or_else(|| self.manifest(kind, key))
            }

            /// The manifest that status is written into: of the object in force, else of the rejected one. `None` for
            /// kinds without written status.
            pub fn manifest(&self, kind: Kind, key: &ObjectKey) -> Option<&Manifest> {
                match kind {
                    $(Kind::$kind => define!(@$status self.$collection, key),)*
                }
            }
        }
    };
    (@none $objects:expr, $key:expr) => { None };
    (@$status:ident $objects:expr, $key:expr) => { $objects.manifest($key, |object| &object.manifest) };
}

for_kinds!(define);

macro_rules! keyed {
    ($($type:ident),*) => {
        $(impl Keyed for $type {
            type Key = ObjectKey;

            fn key(&self) -> &ObjectKey {
                &self.meta.key
            }
        })*
    };
}

keyed!(
    IngressController,
    Route,
    Service,
    EndpointSlice,
    Secret,
    Namespace,
    ConfigMap,
    CustomResourceDefinition,
    GatewayClass,
    Gateway,
    GatewayRoute,
    ReferenceGrant,
    BackendTlsPolicy,
    RouteSlot,
    ContourProxy,
    TlsCertificateDelegation
);

impl Resources {
    /// The HTTPRoute, GRPCRoute or TLSRoute in force under a key.
    pub fn gateway_route(&self, object: &ObjectRef) -> Option<&Arc<GatewayRoute>> {
        match object.kind {
            Kind::HttpRoute => self.http_routes.get(&object.key),
            Kind::GrpcRoute => self.grpc_routes.get(&object.key),
            Kind::TlsRoute => self.tls_routes.get(&object.key),
            _ => None,
        }
    }

    /// Sets a valid version of an object.
    pub fn insert(&mut self, object: &Object) {
        self.set(object.key().clone(), object.kind(), Some(object), None);
    }

    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Labels of a namespace, including the name label that the API server sets.
    pub fn namespace_labels(&self, namespace: &str) -> TextMap {
        let object = self.namespaces.get(&ObjectKey::new("", namespace));
        let labels = object.map(|object| object.meta.labels.clone()).unwrap_or_default();
        labels.with("kubernetes.io/metadata.name", namespace)
    }

    /// Namespaces whose labels differ from those in an older version.
    pub fn relabelled_since(&self, older: &Self) -> Vec<Arc<str>> {
        let changed = self.namespaces.in_force_since(&older.namespaces).map(|changed| &changed.key.name);
        changed.filter(|name| self.namespace_labels(name) != older.namespace_labels(name)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{good, refused, route};

    #[test]
    fn a_rejected_version_alone_changes_nothing_in_force() {
        let manifest = |host: &str| route("shop/r", 1, json!({ "host": host }));
        let key = ObjectKey::new("shop", "r");
        let with = |accepted: Option<&Object>, is_rejected: bool| {
            let rejected = is_rejected.then(|| refused(manifest("c.test"), "r.yaml:1: spec: bad"));
            let mut resources = Resources::default();
            resources.set(key.clone(), Kind::Route, accepted, rejected);
            resources.routes
        };
        let (a, b) = (good(manifest("a.test")), good(manifest("b.test")));
        let differences = |old: &Objects<Route>, new: &Objects<Route>| -> Vec<String> {
            let host = |route: Option<&Arc<Route>>| route.map_or("-".to_owned(), |route| route.host.to_string());
            new.in_force_since(old).map(|it| format!("{} {} {}", it.key, host(it.old), host(it.new))).collect()
        };
        let (none, only_rejected) = (Objects::default(), with(None, true));
        let (first, also_rejected, second) = (with(Some(&a), false), with(Some(&a), true), with(Some(&b), false));
        assert_eq!(differences(&none, &first), ["shop/r - a.test"]);
        assert_eq!(differences(&also_rejected, &second), ["shop/r a.test b.test"]);
        assert_eq!(differences(&first, &only_rejected), ["shop/r a.test -"]);
        for (old, new) in [(&first, &also_rejected), (&also_rejected, &first), (&none, &only_rejected)] {
            assert!(new.changes_since(old).next().is_some());
            assert_eq!(differences(old, new), [""; 0]);
        }
    }
}
