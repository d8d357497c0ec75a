//! What one watch covers.

use std::fmt;
use std::sync::Arc;

use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};

/// The objects of one watch.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope {
    /// Their kind.
    pub kind: Kind,
    /// Their namespace; `None`: every namespace.
    pub namespace: Option<Arc<str>>,
    /// Their name; `None`: every name.
    pub name: Option<Arc<str>>,
}

impl Scope {
    /// Every object of a kind, in these namespaces; in all of them if there are none.
    pub fn all(kind: Kind, namespaces: &[Arc<str>]) -> Vec<Scope> {
        let scope = |namespace: Option<&Arc<str>>| Scope { kind, namespace: namespace.cloned(), name: None };
        if kind.is_namespaced() && !namespaces.is_empty() {
            namespaces.iter().map(|namespace| scope(Some(namespace))).collect()
        } else {
            vec![scope(None)]
        }
    }

    /// One object.
    pub fn of(object: &ObjectRef) -> Scope {
        let ObjectRef { kind, key } = object;
        Scope { kind: *kind, namespace: Some(key.namespace.clone()), name: Some(key.name.clone()) }
    }

    /// True if the scope covers this object of its kind.
    pub fn contains(&self, key: &ObjectKey) -> bool {
        let is = |wanted: &Option<Arc<str>>, text: &Arc<str>| wanted.as_ref().is_none_or(|wanted| wanted == text);
        is(&self.namespace, &key.namespace) && is(&self.name, &key.name)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.namespace, &self.name) {
            (Some(namespace), Some(name)) => write!(f, "{} {namespace}/{name}", self.kind),
            (Some(namespace), None) => write!(f, "{} of namespace {namespace}", self.kind),
            (None, _) => write!(f, "{}", self.kind),
        }
    }
}
