//! Age of an object, independent of the object's lifetime.

use router_model::object::{Created, Meta};

/// [`Meta::age`] as an owned value: creation, uid, then namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OwnedAge {
    created: Created,
    object: (String, String, String),
}

impl OwnedAge {
    /// The age of an object.
    pub fn of(meta: &Meta) -> Self {
        let uid = meta.created.0.map(|_| meta.uid.to_string()).unwrap_or_default();
        let object = (uid, meta.key.namespace.to_string(), meta.key.name.to_string());
        OwnedAge { created: meta.created, object }
    }

    /// When the object was created.
    pub fn created(&self) -> Created {
        self.created
    }

    /// True if it was created before the other: by time alone; an object without a time is the youngest.
    pub fn was_there_before(&self, other: &Self) -> bool {
        self.created < other.created
    }
}
