//! Persistent collections: `clone` is O(1), versions share unchanged nodes, and the difference of two versions costs
//! only what differs.
//!
//! Every collection that grows with the number of objects uses them, so the cost of one change does not depend on their
//! number, from the objects through the table to the kernel maps. The ordered map is a B+ tree whose nodes have no
//! spare capacity: spare capacity would take half as much memory again.

mod changes;
mod entry;
mod hashed_map;
mod identity;
mod node;

use std::borrow::Borrow;
use std::fmt;
use std::ops::Index;
use std::sync::Arc;

pub use changes::Difference;
pub use entry::{Entry, Keyed};
pub use hashed_map::HashedMap;
pub use identity::Identity;
pub use node::Entries;
use node::Node;

/// A persistent ordered map; see the module.
pub struct Ordered<E: Entry> {
    root: Node<E>,
    len: usize,
}

/// A map from keys to values.
pub type OrderedMap<K, V> = Ordered<(K, V)>;

/// A map of values that contain their keys.
pub type KeyedMap<T> = Ordered<Arc<T>>;

impl<K: Ord + Clone, V: Clone> OrderedMap<K, V> {
    /// Inserts a value, or replaces the key's value.
    pub fn insert(&mut self, key: K, value: V) {
        self.put((key, value));
    }
}

impl<T: Keyed> KeyedMap<T> {
    /// Inserts a value, or replaces the one with its key.
    pub fn insert(&mut self, value: Arc<T>) {
        self.put(value);
    }
}

impl<E: Entry> Ordered<E> {
    /// The value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&E::Value>
    where
        E::Key: Borrow<Q>,
    {
        self.root.get(key)
    }

    /// Keys and values, in order.
    pub fn entries(&self) -> Entries<'_, E> {
        Entries::from(&self.root, |_| false)
    }

    /// Keys and values in order, from the first key for which `is_before` is false; it must be false for all greater
    /// keys.
    pub fn entries_from(&self, is_before: impl Fn(&E::Key) -> bool) -> Entries<'_, E> {
        Entries::from(&self.root, is_before)
    }

    /// Values, in order of key.
    pub fn values(&self) -> impl Iterator<Item = &E::Value> {
        self.entries().map(|(_, value)| value)
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Inserts an entry, or replaces the one with its key.
    pub fn put(&mut self, entry: E) {
        if self.root.insert_into_root(entry) {
            self.len += 1;
        }
    }

    /// Removes a key, and returns its value.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<E::Value>
    where
        E::Key: Borrow<Q>,
    {
        // A key that is absent must not cause copies of nodes.
        let value = self.get(key)?.clone();
        self.root.remove_from_root(key);
        self.len -= 1;
        Some(value)
    }

    /// Differences from an older version, in order of key. The cost is proportional to the difference.
    pub fn changes_since<'m>(&'m self, older: &'m Self) -> impl Iterator<Item = Difference<'m, E::Key, E::Value>>
    where
        E::Value: Identity,
    {
        changes::between(&older.root, &self.root)
    }
}

impl<E: Entry> Clone for Ordered<E> {
    fn clone(&self) -> Self {
        Ordered { root: self.root.clone(), len: self.len }
    }
}

impl<E: Entry> Default for Ordered<E> {
    fn default() -> Self {
        Ordered { root: Node::Leaf(Arc::default()), len: 0 }
    }
}

impl<E: Entry<Key: fmt::Debug, Value: fmt::Debug>> fmt::Debug for Ordered<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.entries()).finish()
    }
}

impl<E: Entry<Value: PartialEq + Identity>> PartialEq for Ordered<E> {
    fn eq(&self, other: &Self) -> bool {
        self.changes_since(other).all(|changed| match (changed.old, changed.new) {
            (Some(old), Some(new)) => old == new,
            _ => false,
        })
    }
}

impl<E: Entry<Value: Eq + Identity>> Eq for Ordered<E> {}

impl<E: Entry> Extend<E> for Ordered<E> {
    /// Inserts all; the last of equal keys wins. An empty map is built bottom-up, with full nodes.
    fn extend<I: IntoIterator<Item = E>>(&mut self, entries: I) {
        if !self.is_empty() {
            entries.into_iter().for_each(|entry| self.put(entry));
            return;
        }
        let entries = last_of_each(entries.into_iter().collect(), E::key);
        self.len = entries.len();
        self.root = Node::build(entries);
    }
}

/// These entries in order of key; the last of equal keys counts.
pub fn last_of_each<K: Ord, T>(mut entries: Vec<T>, key: impl Fn(&T) -> &K) -> Vec<T> {
    entries.sort_by(|one, other| key(one).cmp(key(other)));
    entries.dedup_by(|later, kept| {
        let is_same = key(later) == key(kept);
        if is_same {
            std::mem::swap(later, kept);
        }
        is_same
    });
    entries
}

impl<E: Entry> FromIterator<E> for Ordered<E> {
    fn from_iter<I: IntoIterator<Item = E>>(entries: I) -> Self {
        let mut sorted = Ordered::default();
        sorted.extend(entries);
        sorted
    }
}

impl<E: Entry, Q: Ord + ?Sized> Index<&Q> for Ordered<E>
where
    E::Key: Borrow<Q>,
{
    type Output = E::Value;

    /// The value of a key.
    ///
    /// # Panics
    /// The key is absent.
    #[expect(clippy::panic, reason = "as the standard maps do")]
    fn index(&self, key: &Q) -> &E::Value {
        match self.get(key) {
            Some(value) => value,
            None => panic!("no such key"),
        }
    }
}

#[cfg(test)]
mod tests;
