//! When a value of a later version is the one of an earlier version.

use std::sync::Arc;

/// Whether two values are one and the same. What is made anew is another value, even if it says the same.
pub trait Same {
    /// Whether `other` is this very value.
    fn same(&self, other: &Self) -> bool;
}

impl<T: ?Sized> Same for Arc<T> {
    fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(self, other)
    }
}

impl<T: Same> Same for Option<T> {
    fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Some(one), Some(other)) => one.same(other),
            (None, None) => true,
            _ => false,
        }
    }
}

/// For maps that are sets.
impl Same for () {
    fn same(&self, (): &Self) -> bool {
        true
    }
}
