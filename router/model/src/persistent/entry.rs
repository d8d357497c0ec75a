//! What a map consists of.

use std::sync::Arc;

/// An entry of an ordered map. Keys and values should be cheap to clone.
pub trait Entry: Clone {
    /// What entries are ordered by.
    type Key: Ord + Clone;
    /// What is looked up.
    type Value: Clone;

    /// The key.
    fn key(&self) -> &Self::Key;

    /// The value.
    fn value(&self) -> &Self::Value;
}

impl<K: Ord + Clone, V: Clone> Entry for (K, V) {
    type Key = K;
    type Value = V;

    fn key(&self) -> &K {
        &self.0
    }

    fn value(&self) -> &V {
        &self.1
    }
}

/// A value that contains its key: the map needs no memory for another one.
pub trait Keyed {
    /// What values are ordered by.
    type Key: Ord + Clone;

    /// The key, which does not change.
    fn key(&self) -> &Self::Key;
}

impl<T: Keyed> Entry for Arc<T> {
    type Key = T::Key;
    type Value = Arc<T>;

    fn key(&self) -> &T::Key {
        T::key(self)
    }

    fn value(&self) -> &Arc<T> {
        self
    }
}
