//! All parsed objects by kind and key. Cheap to clone: clones share objects and unchanged collections.

use std::sync::Arc;

use router_model::for_kinds;
use router_model::kind::Kind;
use router_model::object::{Manifest, ObjectKey, ObjectRef, TextMap};
use router_model::persistent::{Difference, Identity, OrderedMap};
use serde_json::Value;

use crate::contour::types::{ContourProxy, TlsCertificateDelegation};
use crate::gateway_api::types::{BackendTlsPolicy, Gateway, GatewayClass, GatewayRoute, ReferenceGrant, RouteSlot};
use crate::kubernetes::config_map::ConfigMap;
use crate::kubernetes::endpoints::{EndpointSlice, Service};
use crate::kubernetes::secret::{Namespace, Secret};
use crate::object::{CustomResourceDefinition, Object};
use crate::openshift::ingress_controller::IngressController;
use crate::openshift::route::{Route, WildcardPolicy};

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

/// Objects of one kind by key.
#[derive(Debug)]
pub struct Objects<T>(OrderedMap<ObjectKey, Versions<T>>);

impl<T> Clone for Objects<T> {
    fn clone(&self) -> Self {
        Objects(self.0.clone())
    }
}

impl<T> Default for Objects<T> {
    fn default() -> Self {
        Objects(OrderedMap::default())
    }
}

/// The versions of one object: the one in force, and a rejected newer one.
#[derive(Debug)]
pub struct Versions<T> {
    /// The last valid version, which is in force.
    pub accepted: Option<Arc<T>>,
    /// The newest version, if it was rejected.
    pub rejected: Option<Arc<RejectedManifest>>,
}

impl<T> Clone for Versions<T> {
    fn clone(&self) -> Self {
        Versions { accepted: self.accepted.clone(), rejected: self.rejected.clone() }
    }
}

impl<T> Identity for Versions<T> {
    fn same(&self, other: &Self) -> bool {
        self.accepted.same(&other.accepted) && self.rejected.same(&other.rejected)
    }
}

/// A rejected version of an object.
#[derive(Clone, Debug)]
pub struct RejectedManifest {
    /// `<file>:<line>: <field>: <fault>`, without secrets.
    pub problem: String,
    /// The manifest as written.
    pub manifest: Manifest,
}

impl RejectedManifest {
    /// `spec.host` as written; empty if absent.
    pub fn host(&self) -> String {
        let manifest = self.manifest.value();
        manifest.pointer("/spec/host").and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    /// `metadata.labels`; `None` if they are not a mapping of strings.
    pub fn labels(&self) -> Option<TextMap> {
        let manifest = self.manifest.value();
        let Some(labels) = manifest.pointer("/metadata/labels").filter(|labels| !labels.is_null()) else {
            return Some(TextMap::default());
        };
        labels.as_object()?.iter().map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned()))).collect()
    }

    /// `spec.wildcardPolicy` of a Route; `None` if absent or invalid.
    pub fn wildcard_policy(&self) -> WildcardPolicy {
        let manifest = self.manifest.value();
        match manifest.pointer("/spec/wildcardPolicy").and_then(Value::as_str) {
            Some("Subdomain") => WildcardPolicy::Subdomain,
            _ => WildcardPolicy::None,
        }
    }
}

impl<T> Objects<T> {
    /// Objects in force, by key.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.0.values().filter_map(|versions| versions.accepted.as_ref())
    }

    /// Every key with its versions.
    pub fn versions(&self) -> impl Iterator<Item = (&ObjectKey, &Versions<T>)> {
        self.0.entries()
    }

    /// The object in force under this key.
    pub fn get(&self, key: &ObjectKey) -> Option<&Arc<T>> {
        self.0.get(key).and_then(|versions| versions.accepted.as_ref())
    }

    /// The versions of this key.
    pub fn versions_of(&self, key: &ObjectKey) -> Option<&Versions<T>> {
        self.0.get(key)
    }

    /// Objects in force in a namespace, by key.
    pub fn of_namespace<'o>(&'o self, namespace: &str) -> impl Iterator<Item = &'o Arc<T>> {
        let following = self.0.entries_from(move |key| *key.namespace < *namespace);
        let in_namespace = following.take_while(move |(key, _)| *key.namespace == *namespace);
        in_namespace.filter_map(|(_, versions)| versions.accepted.as_ref())
    }

    /// Differences from an older version, in order of key. The cost is proportional to the difference.
    pub fn changes_since<'o>(
        &'o self,
        older: &'o Self,
    ) -> impl Iterator<Item = Difference<'o, ObjectKey, Versions<T>>> {
        self.0.changes_since(&older.0)
    }

    /// The same for the versions in force: a change of a rejected version alone is no difference.
    pub fn in_force_since<'o>(&'o self, older: &'o Self) -> impl Iterator<Item = Difference<'o, ObjectKey, Arc<T>>> {
        let in_force = |versions: Option<&'o Versions<T>>| versions.and_then(|versions| versions.accepted.as_ref());
        let changes = self.changes_since(older).map(move |changed| Difference {
            key: changed.key,
            old: in_force(changed.old),
            new: in_force(changed.new),
        });
        changes.filter(|changed| changed.old.map(Arc::as_ptr) != changed.new.map(Arc::as_ptr))
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets the versions of a key.
    pub fn insert(&mut self, key: ObjectKey, versions: Versions<T>) {
        self.0.insert(key, versions);
    }

    /// Sets the versions of a key; removes the key if there are none.
    fn set(&mut self, key: ObjectKey, versions: Versions<T>) {
        if versions.accepted.is_none() && versions.rejected.is_none() {
            self.remove(&key);
        } else {
            self.insert(key, versions);
        }
    }

    fn manifest<'r>(&'r self, key: &ObjectKey, of: impl Fn(&'r T) -> &'r Manifest) -> Option<&'r Manifest> {
        let versions = self.versions_of(key)?;
        match (&versions.accepted, &versions.rejected) {
            (Some(accepted), _) => Some(of(accepted)),
            (None, Some(rejected)) => Some(&rejected.manifest),
            (None, None) => None,
        }
    }

    /// Removes a key.
    pub fn remove(&mut self, key: &ObjectKey) {
        self.0.remove(key);
    }
}

impl<T> FromIterator<(ObjectKey, Versions<T>)> for Objects<T> {
    fn from_iter<I: IntoIterator<Item = (ObjectKey, Versions<T>)>>(items: I) -> Self {
        Objects(items.into_iter().collect())
    }
}

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
