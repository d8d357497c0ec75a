//! Persistent collections: `clone` is O(1), versions share unchanged nodes, and the difference of two versions costs
//! only what differs.
//!
//! Every collection that grows with the number of objects uses them, so the cost of one change does not depend on their
//! number, from the objects through the table to the kernel maps. The ordered map is a B+ tree whose nodes have no
//! spare capacity: spare capacity would take half as much memory again.

mod changes;
mod hashed_map;
mod identity;
mod node;

use std::borrow::Borrow;
use std::fmt;
use std::ops::Index;
use std::sync::Arc;

pub use changes::Difference;
pub use hashed_map::HashedMap;
pub use identity::Identity;
pub use node::Entries;
use node::Node;

/// A persistent ordered map; see the module. Keys and values should be cheap to clone.
pub struct OrderedMap<K, V> {
    root: Node<K, V>,
    len: usize,
}

impl<K: Ord + Clone, V: Clone> OrderedMap<K, V> {
    /// The value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.root.get(key)
    }

    /// Keys and values, in order.
    pub fn entries(&self) -> Entries<'_, K, V> {
        Entries::from(&self.root, |_| false)
    }

    /// Keys and values in order, from the first key for which `is_before` is false; it must be false for all greater
    /// keys.
    pub fn entries_from(&self, is_before: impl Fn(&K) -> bool) -> Entries<'_, K, V> {
        Entries::from(&self.root, is_before)
    }

    /// Values, in order of key.
    pub fn values(&self) -> impl Iterator<Item = &V> {
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

    /// Inserts a value, or replaces the key's value.
    pub fn insert(&mut self, key: K, value: V) {
        if self.root.insert_into_root(key, value) {
            self.len += 1;
        }
    }

    /// Removes a key, and returns its value.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        // A key that is absent must not cause copies of nodes.
        let value = self.get(key)?.clone();
        self.root.remove_from_root(key);
        self.len -= 1;
        Some(value)
    }

    /// Differences from an older version, in order of key. The cost is proportional to the difference.
    pub fn changes_since<'m>(&'m self, older: &'m Self) -> impl Iterator<Item = Difference<'m, K, V>>
    where
        V: Identity,
    {
        changes::between(&older.root, &self.root)
    }
}

impl<K, V> Clone for OrderedMap<K, V> {
    fn clone(&self) -> Self {
        OrderedMap { root: self.root.clone(), len: self.len }
    }
}

impl<K, V> Default for OrderedMap<K, V> {
    fn default() -> Self {
        OrderedMap { root: Node::Leaf(Arc::default()), len: 0 }
    }
}

impl<K: Ord + Clone + fmt::Debug, V: Clone + fmt::Debug> fmt::Debug for OrderedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.entries()).finish()
    }
}

impl<K: Ord + Clone, V: Clone + PartialEq + Identity> PartialEq for OrderedMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.changes_since(other).all(|changed| match (changed.old, changed.new) {
            (Some(old), Some(new)) => old == new,
            _ => false,
        })
    }
}

impl<K: Ord + Clone, V: Clone + Eq + Identity> Eq for OrderedMap<K, V> {}

impl<K: Ord + Clone, V: Clone> Extend<(K, V)> for OrderedMap<K, V> {
    /// Inserts all; the last of equal keys wins. An empty map is built bottom-up, with full nodes.
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        if !self.is_empty() {
            entries.into_iter().for_each(|(key, value)| self.insert(key, value));
            return;
        }
        let entries = last_of_each(entries.into_iter().collect());
        self.len = entries.len();
        self.root = Node::build(entries);
    }
}

/// These entries in order of key; the last of equal keys counts.
pub fn last_of_each<K: Ord, V>(mut entries: Vec<(K, V)>) -> Vec<(K, V)> {
    entries.sort_by(|one, other| one.0.cmp(&other.0));
    entries.dedup_by(|later, kept| {
        let is_same = later.0 == kept.0;
        if is_same {
            std::mem::swap(later, kept);
        }
        is_same
    });
    entries
}

impl<K: Ord + Clone, V: Clone> FromIterator<(K, V)> for OrderedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut sorted = OrderedMap::default();
        sorted.extend(entries);
        sorted
    }
}

impl<K: Ord + Clone, V: Clone, Q: Ord + ?Sized> Index<&Q> for OrderedMap<K, V>
where
    K: Borrow<Q>,
{
    type Output = V;

    /// The value of a key.
    ///
    /// # Panics
    /// The key is absent.
    #[expect(clippy::panic, reason = "as the standard maps do")]
    fn index(&self, key: &Q) -> &V {
        match self.get(key) {
            Some(value) => value,
            None => panic!("no such key"),
        }
    }
}

#[cfg(test)]
mod tests;
