//! Age of an object, independent of the object's lifetime.

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

    /// When the object was created.
    pub fn created(&self) -> Created {
        self.created
    }

    /// True if it was created before the other: by time alone; an object without a time is the youngest.
    pub fn was_there_before(&self, other: &Self) -> bool {
        self.created < other.created
    }
}
