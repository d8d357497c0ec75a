//! The common parts of objects: kind, key, metadata, origin and manifest.

mod age;
mod compact;
mod interner;
mod uid;

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

pub use age::{Age, Created, Seniority};
pub use compact::{CompactJson, TextMap};
pub use interner::Interner;
use serde_json::Value;
pub use uid::Uid;

use crate::kind::Kind;

/// Namespace (empty for cluster-wide kinds) and name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectKey {
    /// `metadata.namespace`.
    pub namespace: Arc<str>,
    /// `metadata.name`.
    pub name: Arc<str>,
}

impl Ord for ObjectKey {
    /// By namespace, then by name.
    fn cmp(&self, other: &Self) -> Ordering {
        compare((&self.namespace, &self.name), (&other.namespace, &other.name))
    }
}

impl PartialOrd for ObjectKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Compares namespaces, then names. Namespace texts are interned, so most comparisons end at the pointer.
pub(crate) fn compare(one: (&Arc<str>, &Arc<str>), other: (&Arc<str>, &Arc<str>)) -> Ordering {
    let namespaces = if Arc::ptr_eq(one.0, other.0) { Ordering::Equal } else { one.0.cmp(other.0) };
    namespaces.then_with(|| one.1.cmp(other.1))
}

impl ObjectKey {
    /// A key from its parts.
    pub fn new(namespace: &str, name: &str) -> Self {
        ObjectKey { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() { f.write_str(&self.name) } else { write!(f, "{}/{}", self.namespace, self.name) }
    }
}

/// Kind and key of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectRef {
    /// Its kind.
    pub kind: Kind,
    /// Its key.
    pub key: ObjectKey,
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.key)
    }
}

/// Source position of an object, for messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin {
    /// File, relative to the folder of manifests; empty for objects of an API server.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// `metadata`, without `annotations`: each kind keeps the values that it uses.
#[derive(Clone, Debug)]
pub struct Meta {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `labels`.
    pub labels: TextMap,
    /// `creationTimestamp`.
    pub created: Created,
    /// `uid`; empty when absent.
    pub uid: Uid,
    /// `generation`; 0 when absent.
    pub generation: i64,
    /// Source position.
    pub origin: Origin,
}

impl Meta {
    /// Shares texts with other objects.
    pub fn share(&mut self, texts: &mut Interner) {
        texts.share(&mut self.key.namespace);
        self.labels.share(texts);
    }

    /// Sort key of age, oldest first: `creationTimestamp`, then `uid` (docs/openshift.md#age), then namespace and name,
    /// so that the order is total. Objects without a `creationTimestamp` come last, by namespace and name.
    pub fn age(&self) -> Age<'_> {
        let uid = self.created.0.map(|_| &self.uid);
        Age { created: self.created, uid, namespace: &self.key.namespace, name: &self.key.name }
    }

    /// Why the object precedes another one, given that it does.
    pub fn seniority(&self, other: &Meta) -> Seniority {
        self.created.seniority(other.created)
    }
}

/// An object as the API server would store it, with defaults. Stored as JSON text, of which objects share what they
/// have in common; it is parsed only for output. `Debug` prints none of it, because it may contain keys.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Manifest(CompactJson);

/// Replaces key material in output.
pub const REDACTED: &str = "(redacted)";

impl Manifest {
    /// No object: for one that is not complete yet.
    pub fn none() -> Self {
        Manifest::default()
    }

    /// Keeps a whole object.
    pub fn new(value: &Value) -> Self {
        Manifest(CompactJson::new(value))
    }

    /// The object, with its key material. Not for output; see [`Manifest::redacted`].
    pub fn value(&self) -> Value {
        self.0.value()
    }

    /// `status` of the manifest.
    pub fn status(&self) -> Option<Value> {
        // Most objects have none.
        self.0.may_have("status").then(|| self.value())?.get_mut("status").map(Value::take)
    }

    /// The object without secrets: `data` of a Secret and every text with a private key are replaced.
    pub fn redacted(&self) -> Value {
        let mut value = self.value();
        redact(&mut value);
        if value.get("kind").and_then(Value::as_str) == Some("Secret") {
            for member in ["data", "stringData"] {
                if let Some(Value::Object(map)) = value.get_mut(member) {
                    map.values_mut().for_each(|text| *text = REDACTED.into());
                }
            }
        }
        value
    }
}

impl fmt::Debug for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Manifest(..)")
    }
}

// `spec.tls.key` is always redacted: a key with a typing error in its PEM header is still a key. So is the annotation
// in which `kubectl apply` keeps a copy of the object.
fn redact(value: &mut Value) {
    match value {
        Value::String(text) if text.contains("PRIVATE KEY") => *text = REDACTED.into(),
        Value::Array(items) => items.iter_mut().for_each(redact),
        Value::Object(map) => map.values_mut().for_each(redact),
        _ => {}
    }
    if let Some(key) = value.pointer_mut("/spec/tls/key").filter(|key| !key.is_null()) {
        *key = REDACTED.into();
    }
    if let Some(Value::Object(annotations)) = value.pointer_mut("/metadata/annotations")
        && let Some(applied) = annotations.get_mut("kubectl.kubernetes.io/last-applied-configuration")
    {
        *applied = REDACTED.into();
    }
}
