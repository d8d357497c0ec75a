//! The objects of one kind, with their rejected versions.

use std::fmt;
use std::sync::{Arc, LazyLock};

use router_model::object::{Manifest, ObjectKey, TextMap};
use router_model::persistent::{Difference, Entry, Identity, Keyed, Ordered};
use serde_json::Value;

use crate::openshift::route::WildcardPolicy;

/// An object that has its key.
pub trait KeyedObject: Keyed<Key = ObjectKey> {}

impl<T: Keyed<Key = ObjectKey>> KeyedObject for T {}

/// Objects of one kind by key.
pub struct Objects<T: KeyedObject>(Ordered<ObjectEntry<T>>);

/// The versions of an object, with its key where no object in force has it: the keys of 100,000 objects take 3 MiB.
struct ObjectEntry<T> {
    versions: Versions<T>,
    key: Option<Box<ObjectKey>>,
}

impl<T: KeyedObject> ObjectEntry<T> {
    fn new(key: ObjectKey, versions: Versions<T>) -> Self {
        debug_assert!(versions.accepted.as_ref().is_none_or(|object| *object.key() == key), "an object is at its key");
        ObjectEntry { key: versions.accepted.is_none().then(|| Box::new(key)), versions }
    }
}

impl<T> Clone for ObjectEntry<T> {
    fn clone(&self) -> Self {
        ObjectEntry { versions: self.versions.clone(), key: self.key.clone() }
    }
}

static NO_KEY: LazyLock<ObjectKey> = LazyLock::new(|| ObjectKey::new("", ""));

impl<T: KeyedObject> Entry for ObjectEntry<T> {
    type Key = ObjectKey;
    type Value = Versions<T>;

    fn key(&self) -> &ObjectKey {
        // One of the two has it.
        let of_object = self.versions.accepted.as_deref().map(Keyed::key);
        of_object.or(self.key.as_deref()).unwrap_or(&NO_KEY)
    }

    fn value(&self) -> &Versions<T> {
        &self.versions
    }
}

impl<T: KeyedObject + fmt::Debug> fmt::Debug for Objects<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: KeyedObject> Clone for Objects<T> {
    fn clone(&self) -> Self {
        Objects(self.0.clone())
    }
}

impl<T: KeyedObject> Default for Objects<T> {
    fn default() -> Self {
        Objects(Ordered::default())
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

impl<T: KeyedObject> Objects<T> {
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
        self.0.put(ObjectEntry::new(key, versions));
    }

    /// Sets the versions of a key; removes the key if there are none.
    pub(super) fn set(&mut self, key: ObjectKey, versions: Versions<T>) {
        if versions.accepted.is_none() && versions.rejected.is_none() {
            self.remove(&key);
        } else {
            self.insert(key, versions);
        }
    }

    pub(super) fn manifest<'r>(&'r self, key: &ObjectKey, of: impl Fn(&'r T) -> &'r Manifest) -> Option<&'r Manifest> {
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

impl<T: KeyedObject> FromIterator<(ObjectKey, Versions<T>)> for Objects<T> {
    fn from_iter<I: IntoIterator<Item = (ObjectKey, Versions<T>)>>(items: I) -> Self {
        Objects(items.into_iter().map(|(key, versions)| ObjectEntry::new(key, versions)).collect())
    }
}
