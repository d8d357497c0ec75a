//! Age of an object as an owned value, for claims that outlive the object.

use router_model::object::{Created, Meta, ObjectKey, Uid};

/// [`Meta::age`] as an owned value: creation, uid, then namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OwnedAge {
    created: Created,
    /// `None` if the object has no `creationTimestamp`.
    uid: Option<Uid>,
    key: ObjectKey,
}

impl OwnedAge {
    /// The age of an object.
    pub fn of(meta: &Meta) -> Self {
        let uid = meta.created.0.map(|_| meta.uid.clone());
        OwnedAge { created: meta.created, uid, key: meta.key.clone() }
    }

    /// The object's namespace and name.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// When the object was created.
    pub fn created(&self) -> Created {
        self.created
    }

    /// True if `creationTimestamp` is before the other's; an object without one is the youngest.
    pub fn was_created_before(&self, other: &Self) -> bool {
        self.created < other.created
    }
}
