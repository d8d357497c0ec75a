//! A sorted map of shared values that is cloned in no time and tells how two of its versions differ without looking at
//! what they share.
//!
//! Everything that grows with the number of objects is kept in these, so that one change costs what it touches, from
//! the objects through the table to the kernel maps.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Index;
use std::sync::Arc;

use imbl::OrdMap;
use imbl::ordmap::DiffItem;

/// A value that equals only itself. What is made anew is another value, even if it says the same.
struct Same<V>(Arc<V>);

impl<V> Clone for Same<V> {
    fn clone(&self) -> Self {
        Same(Arc::clone(&self.0))
    }
}

impl<V> PartialEq for Same<V> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// See the module.
pub struct Sorted<K, V>(OrdMap<K, Same<V>>);

/// A key at which two versions differ.
#[derive(Debug)]
pub struct Changed<'m, K, V> {
    /// The key.
    pub key: &'m K,
    /// Its value in the older version.
    pub old: Option<&'m Arc<V>>,
    /// Its value in the newer version.
    pub new: Option<&'m Arc<V>>,
}

impl<K: Ord + Clone, V> Sorted<K, V> {
    /// The value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&Arc<V>>
    where
        K: Borrow<Q>,
    {
        self.0.get(key).map(|same| &same.0)
    }

    /// Keys and values, in order.
    pub fn entries(&self) -> impl Iterator<Item = (&K, &Arc<V>)> {
        self.0.iter().map(|(key, same)| (key, &same.0))
    }

    /// Values, in order of key.
    pub fn values(&self) -> impl Iterator<Item = &Arc<V>> {
        self.0.values().map(|same| &same.0)
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts a value in the place of whatever the key had.
    pub fn insert(&mut self, key: K, value: Arc<V>) {
        self.0.insert(key, Same(value));
    }

    /// Forgets a key.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<Arc<V>>
    where
        K: Borrow<Q>,
    {
        self.0.remove(key).map(|same| same.0)
    }

    /// Where this version differs from an older one, in order of key. Costs what differs.
    pub fn changes_since<'m>(&'m self, older: &'m Self) -> impl Iterator<Item = Changed<'m, K, V>> {
        older.0.diff(&self.0).map(|item| match item {
            DiffItem::Add(key, new) => Changed { key, old: None, new: Some(&new.0) },
            DiffItem::Update { old: (_, old), new: (key, new) } => {
                Changed { key, old: Some(&old.0), new: Some(&new.0) }
            }
            DiffItem::Remove(key, old) => Changed { key, old: Some(&old.0), new: None },
        })
    }
}

impl<K, V> Clone for Sorted<K, V> {
    fn clone(&self) -> Self {
        Sorted(self.0.clone())
    }
}

impl<K, V> Default for Sorted<K, V> {
    fn default() -> Self {
        Sorted(OrdMap::default())
    }
}

impl<K: Ord + Clone + fmt::Debug, V: fmt::Debug> fmt::Debug for Sorted<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.entries()).finish()
    }
}

impl<K: Ord + Clone, V: PartialEq> PartialEq for Sorted<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.changes_since(other).all(|changed| match (changed.old, changed.new) {
            (Some(old), Some(new)) => **old == **new,
            _ => false,
        })
    }
}

impl<K: Ord + Clone, V: Eq> Eq for Sorted<K, V> {}

impl<K: Ord + Clone, V> FromIterator<(K, Arc<V>)> for Sorted<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, Arc<V>)>>(entries: I) -> Self {
        Sorted(entries.into_iter().map(|(key, value)| (key, Same(value))).collect())
    }
}

impl<K: Ord + Clone, V, Q: Ord + ?Sized> Index<&Q> for Sorted<K, V>
where
    K: Borrow<Q>,
{
    type Output = Arc<V>;

    /// The value of a key that is known to be there.
    fn index(&self, key: &Q) -> &Arc<V> {
        &self.0[key].0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(entries: &[(u32, &str)]) -> Sorted<u32, String> {
        entries.iter().map(|(key, value)| (*key, Arc::new((*value).to_owned()))).collect()
    }

    #[test]
    fn a_version_tells_what_it_changed() {
        let older = sorted(&[(1, "a"), (2, "b"), (3, "c")]);
        let mut newer = older.clone();
        newer.insert(2, Arc::new("B".to_owned()));
        newer.insert(4, Arc::new("d".to_owned()));
        newer.remove(&1);
        let changes: Vec<_> = newer
            .changes_since(&older)
            .map(|c| (*c.key, c.old.map(|v| v.as_str()), c.new.map(|v| v.as_str())))
            .collect();
        assert_eq!(changes, [(1, Some("a"), None), (2, Some("b"), Some("B")), (4, None, Some("d"))]);
        assert_eq!(older.len(), 3, "the older version is as it was");
        assert_eq!(newer.clone().changes_since(&newer).count(), 0);
    }

    #[test]
    fn versions_are_equal_when_they_say_the_same() {
        assert_eq!(sorted(&[(1, "a")]), sorted(&[(1, "a")]));
        assert_ne!(sorted(&[(1, "a")]), sorted(&[(1, "b")]));
        assert_ne!(sorted(&[(1, "a")]), sorted(&[(1, "a"), (2, "b")]));
    }
}
