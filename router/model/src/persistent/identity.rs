//! Identity of values between versions.

use std::sync::Arc;

/// Identity of values. An equal value in a new allocation is a different value.
pub trait Identity {
    /// Whether both are the same value.
    fn same(&self, other: &Self) -> bool;
}

impl<T: ?Sized> Identity for Arc<T> {
    fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(self, other)
    }
}

impl<T: Identity> Identity for Option<T> {
    fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Some(one), Some(other)) => one.same(other),
            (None, None) => true,
            _ => false,
        }
    }
}

/// For maps that are sets.
impl Identity for () {
    fn same(&self, (): &Self) -> bool {
        true
    }
}
