//! Objects whose accepted version differs between two sets.

use std::sync::Arc;

use router_api::resources::{Objects, Versions};
use router_model::object::ObjectKey;
use router_model::persistent::{Difference, Identity};

/// Objects whose accepted version differs.
pub fn differing<'r, T>(
    new: &'r Objects<T>,
    old: &'r Objects<T>,
) -> impl Iterator<Item = Difference<'r, ObjectKey, Versions<T>>> {
    new.changes_since(old).filter(|changed| match (accepted(changed.old), accepted(changed.new)) {
        (Some(old), Some(new)) => !old.same(new),
        (old, new) => old.is_some() || new.is_some(),
    })
}

/// The accepted version.
pub fn accepted<T>(versions: Option<&Versions<T>>) -> Option<&Arc<T>> {
    versions.and_then(|versions| versions.accepted.as_ref())
}
