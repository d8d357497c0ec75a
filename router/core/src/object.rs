//! What all objects have: kind, key, metadata, where they were read, and the manifest itself.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::model::RouteId;

/// The kinds that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// `operator.openshift.io/v1`.
    IngressController,
    /// `route.openshift.io/v1`.
    Route,
    /// `v1`.
    Service,
    /// `discovery.k8s.io/v1`.
    EndpointSlice,
    /// `v1`.
    Secret,
    /// `v1`.
    Namespace,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 6] =
        [Kind::IngressController, Kind::Route, Kind::Service, Kind::EndpointSlice, Kind::Secret, Kind::Namespace];

    /// The kind of this `apiVersion` and `kind`, if it is read.
    pub fn of(api_version: &str, kind: &str) -> Option<Kind> {
        Self::ALL.into_iter().find(|known| known.name() == kind && known.api_version() == api_version)
    }

    /// `kind`.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::IngressController => "IngressController",
            Kind::Route => "Route",
            Kind::Service => "Service",
            Kind::EndpointSlice => "EndpointSlice",
            Kind::Secret => "Secret",
            Kind::Namespace => "Namespace",
        }
    }

    /// `apiVersion`.
    pub const fn api_version(self) -> &'static str {
        match self {
            Kind::IngressController => "operator.openshift.io/v1",
            Kind::Route => "route.openshift.io/v1",
            Kind::EndpointSlice => "discovery.k8s.io/v1",
            Kind::Service | Kind::Secret | Kind::Namespace => "v1",
        }
    }

    /// Whether objects of this kind live in a namespace.
    pub const fn is_namespaced(self) -> bool {
        !matches!(self, Kind::Namespace)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Namespace (empty for cluster-wide kinds) and name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// `metadata.namespace`.
    pub namespace: Arc<str>,
    /// `metadata.name`.
    pub name: Arc<str>,
}

impl ObjectKey {
    /// A key from its parts.
    pub fn new(namespace: &str, name: &str) -> Self {
        ObjectKey { namespace: namespace.into(), name: name.into() }
    }

    /// The same key as a Route's id.
    pub fn route_id(&self) -> RouteId {
        RouteId { namespace: self.namespace.clone(), name: self.name.clone() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() { f.write_str(&self.name) } else { write!(f, "{}/{}", self.namespace, self.name) }
    }
}

/// An object among all kinds.
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

/// Where an object was read, for messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin {
    /// File, relative to the folder of manifests; empty when the object comes from a server.
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

/// What `metadata` says.
#[derive(Clone, Debug)]
pub struct Meta {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `labels`.
    pub labels: BTreeMap<String, String>,
    /// `annotations`.
    pub annotations: BTreeMap<String, String>,
    /// `creationTimestamp`.
    pub created: Option<Timestamp>,
    /// `uid`; empty when absent.
    pub uid: Arc<str>,
    /// `resourceVersion`; empty when absent.
    pub resource_version: Arc<str>,
    /// Where it was read.
    pub origin: Origin,
}

impl Meta {
    /// Order of age, oldest first: `creationTimestamp`, then `uid` (openshift.md b.1), then namespace and name, so that
    /// the order is total. An object without a timestamp counts as older than all that have one, as the API's zero
    /// time does.
    pub fn age(&self) -> Age<'_> {
        Age { created: self.created, uid: &self.uid, namespace: &self.key.namespace, name: &self.key.name }
    }
}

/// See [`Meta::age`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Age<'m> {
    created: Option<Timestamp>,
    uid: &'m str,
    namespace: &'m str,
    name: &'m str,
}

/// An object as the API server would store it: defaults filled in. `Debug` shows nothing of it, as it may hold keys.
#[derive(Clone, PartialEq)]
pub struct Manifest(Value);

/// Stands where key material stood.
pub const REDACTED: &str = "(redacted)";

impl Manifest {
    /// Wraps a whole object.
    pub fn new(value: Value) -> Self {
        Manifest(value)
    }

    /// The object, with its key material. Not for output; see [`Manifest::redacted`].
    pub fn value(&self) -> &Value {
        &self.0
    }

    /// `status` as the manifest gives it.
    pub fn status(&self) -> Option<&Value> {
        self.0.get("status")
    }

    /// The object, with `data` of a Secret and every text that has a private key replaced.
    pub fn redacted(&self) -> Value {
        let mut value = self.0.clone();
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

// `spec.tls.key` is redacted whatever it holds: a key with a typing error in its header is a key all the same. The
// copy of the whole object that `kubectl apply` keeps in an annotation goes the same way.
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
