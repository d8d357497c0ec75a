//! All objects, parsed, by kind and key. Cheap to clone: a clone shares every object, and every kind that is not
//! changed afterwards.

use std::sync::Arc;

use crate::object::{Kind, Manifest, ObjectKey, TextMap};
use crate::parse::{ConfigMap, EndpointSlice, IngressController, Namespace, Object, Route, Secret, Service};
use crate::persistent::{Changed, Same, Sorted};

/// The parsed objects.
#[derive(Clone, Debug, Default)]
pub struct Resources {
    /// Routes.
    pub routes: Objects<Route>,
    /// IngressControllers.
    pub ingress_controllers: Objects<IngressController>,
    /// Services.
    pub services: Objects<Service>,
    /// EndpointSlices.
    pub endpoint_slices: Objects<EndpointSlice>,
    /// Secrets.
    pub secrets: Objects<Secret>,
    /// Namespaces; a namespace without an object is one without labels.
    pub namespaces: Objects<Namespace>,
    /// ConfigMaps.
    pub config_maps: Objects<ConfigMap>,
}

/// Objects of one kind by key.
#[derive(Debug)]
pub struct Objects<T>(Sorted<ObjectKey, Slot<T>>);

impl<T> Clone for Objects<T> {
    fn clone(&self) -> Self {
        Objects(self.0.clone())
    }
}

impl<T> Default for Objects<T> {
    fn default() -> Self {
        Objects(Sorted::default())
    }
}

/// What is known under one key: the version that is in force, and what is wrong with a newer one.
#[derive(Debug)]
pub struct Slot<T> {
    /// The last good version.
    pub good: Option<Arc<T>>,
    /// Present when the newest version was refused.
    pub refused: Option<Arc<Refused>>,
}

impl<T> Clone for Slot<T> {
    fn clone(&self) -> Self {
        Slot { good: self.good.clone(), refused: self.refused.clone() }
    }
}

impl<T> Same for Slot<T> {
    fn same(&self, other: &Self) -> bool {
        self.good.same(&other.good) && self.refused.same(&other.refused)
    }
}

/// A version of an object that was refused.
#[derive(Clone, Debug)]
pub struct Refused {
    /// `<file>:<line>: <field>: <what is wrong>`, without secrets.
    pub problem: String,
    /// The object as it was written.
    pub manifest: Manifest,
}

impl Refused {
    /// `spec.host` as it was written; empty when there is none.
    pub fn host(&self) -> String {
        let manifest = self.manifest.value();
        manifest.pointer("/spec/host").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
    }
}

impl<T> Objects<T> {
    /// Objects in force, by key.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.0.values().filter_map(|slot| slot.good.as_ref())
    }

    /// Every key with what is known of it.
    pub fn slots(&self) -> impl Iterator<Item = (&ObjectKey, &Slot<T>)> {
        self.0.entries()
    }

    /// The object in force under this key.
    pub fn get(&self, key: &ObjectKey) -> Option<&Arc<T>> {
        self.0.get(key).and_then(|slot| slot.good.as_ref())
    }

    /// What is known under this key.
    pub fn slot(&self, key: &ObjectKey) -> Option<&Slot<T>> {
        self.0.get(key)
    }

    /// Keys at which these objects differ from an older version of them, in order. Costs what differs.
    pub fn changes_since<'o>(&'o self, older: &'o Self) -> impl Iterator<Item = Changed<'o, ObjectKey, Slot<T>>> {
        self.0.changes_since(&older.0)
    }

    /// How many keys are known.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts a slot in the place of whatever the key had.
    pub fn insert(&mut self, key: ObjectKey, slot: Slot<T>) {
        self.0.insert(key, slot);
    }

    /// Forgets a key.
    pub fn remove(&mut self, key: &ObjectKey) {
        self.0.remove(key);
    }
}

impl<T> FromIterator<(ObjectKey, Slot<T>)> for Objects<T> {
    fn from_iter<I: IntoIterator<Item = (ObjectKey, Slot<T>)>>(items: I) -> Self {
        Objects(items.into_iter().collect())
    }
}

impl Resources {
    /// Takes a good version of an object.
    pub fn insert(&mut self, object: &Object) {
        self.set(object.key().clone(), object.kind(), Some(object), None);
    }

    /// Sets what is known under a key: the version in force and the refused newer one. With neither, the key is
    /// forgotten. A `good` of another kind than `kind` counts as none.
    pub fn set(&mut self, key: ObjectKey, kind: Kind, good: Option<&Object>, refused: Option<Arc<Refused>>) {
        macro_rules! place {
            ($field:ident, $variant:ident) => {{
                let good = match good {
                    Some(Object::$variant(object)) => Some(object.clone()),
                    _ => None,
                };
                if good.is_none() && refused.is_none() {
                    self.$field.remove(&key);
                } else {
                    self.$field.insert(key, Slot { good, refused });
                }
            }};
        }
        match kind {
            Kind::Route => place!(routes, Route),
            Kind::IngressController => place!(ingress_controllers, IngressController),
            Kind::Service => place!(services, Service),
            Kind::EndpointSlice => place!(endpoint_slices, EndpointSlice),
            Kind::Secret => place!(secrets, Secret),
            Kind::Namespace => place!(namespaces, Namespace),
            Kind::ConfigMap => place!(config_maps, ConfigMap),
        }
    }

    /// The object in force under a key.
    pub fn object(&self, kind: Kind, key: &ObjectKey) -> Option<Object> {
        match kind {
            Kind::Route => self.routes.get(key).cloned().map(Object::Route),
            Kind::IngressController => self.ingress_controllers.get(key).cloned().map(Object::IngressController),
            Kind::Service => self.services.get(key).cloned().map(Object::Service),
            Kind::EndpointSlice => self.endpoint_slices.get(key).cloned().map(Object::EndpointSlice),
            Kind::Secret => self.secrets.get(key).cloned().map(Object::Secret),
            Kind::Namespace => self.namespaces.get(key).cloned().map(Object::Namespace),
            Kind::ConfigMap => self.config_maps.get(key).cloned().map(Object::ConfigMap),
        }
    }

    /// The manifest of the object in force, or of the refused one when none is: what status is written into.
    pub fn manifest(&self, kind: Kind, key: &ObjectKey) -> Option<&Manifest> {
        match kind {
            Kind::Route => manifest(&self.routes, key, |route| &route.manifest),
            Kind::IngressController => manifest(&self.ingress_controllers, key, |controller| &controller.manifest),
            _ => None,
        }
    }

    /// Labels of a namespace, with the one that the API server sets on each: its name.
    pub fn namespace_labels(&self, namespace: &str) -> TextMap {
        let object = self.namespaces.get(&ObjectKey::new("", namespace));
        let labels = object.map(|object| object.meta.labels.clone()).unwrap_or_default();
        labels.with("kubernetes.io/metadata.name", namespace)
    }
}

fn manifest<'r, T>(
    objects: &'r Objects<T>,
    key: &ObjectKey,
    of: impl Fn(&'r T) -> &'r Manifest,
) -> Option<&'r Manifest> {
    let slot = objects.slot(key)?;
    match (&slot.good, &slot.refused) {
        (Some(good), _) => Some(of(good)),
        (None, Some(refused)) => Some(&refused.manifest),
        (None, None) => None,
    }
}
