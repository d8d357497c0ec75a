//! Multimap from a key to objects.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeBounds;

use router_model::object::ObjectRef;

/// Multimap from a key to objects, in order. Most keys have one object.
#[derive(Debug)]
pub struct ObjectsBy<K>(BTreeMap<K, Vec<ObjectRef>>);

impl<K> Default for ObjectsBy<K> {
    fn default() -> Self {
        ObjectsBy(BTreeMap::new())
    }
}

impl<K: Ord> ObjectsBy<K> {
    /// Adds an object under a key, once.
    pub fn insert(&mut self, key: K, object: &ObjectRef) {
        let objects = self.0.entry(key).or_insert_with(|| Vec::with_capacity(1));
        if let Err(at) = objects.binary_search(object) {
            objects.insert(at, object.clone());
        }
    }

    /// Removes an object from a key.
    pub fn remove(&mut self, key: &K, object: &ObjectRef) {
        let Some(objects) = self.0.get_mut(key) else { return };
        if let Ok(at) = objects.binary_search(object) {
            objects.remove(at);
        }
        if objects.is_empty() {
            self.0.remove(key);
        }
    }

    /// Removes spare capacity: nodes that grew by insertions in order are half empty.
    pub fn compact(&mut self) {
        self.0 = std::mem::take(&mut self.0).into_iter().collect();
    }

    /// True if there are no objects.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Replaces the keys of an object.
    pub fn replace(&mut self, object: &ObjectRef, old: &BTreeSet<K>, new: &BTreeSet<K>)
    where
        K: Clone,
    {
        old.difference(new).for_each(|key| self.remove(key, object));
        new.difference(old).for_each(|key| self.insert(key.clone(), object));
    }

    /// The objects of a key, in order.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> &[ObjectRef]
    where
        K: Borrow<Q>,
    {
        self.0.get(key).map_or(&[][..], Vec::as_slice)
    }

    /// The key of the map that is equal to this one.
    pub fn key<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&K>
    where
        K: Borrow<Q>,
    {
        self.0.get_key_value(key).map(|(key, _)| key)
    }

    /// Keys in this range with their objects.
    pub fn range<Q: Ord + ?Sized>(&self, range: impl RangeBounds<Q>) -> impl Iterator<Item = (&K, &[ObjectRef])>
    where
        K: Borrow<Q>,
    {
        self.0.range::<Q, _>(range).map(|(key, objects)| (key, objects.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use router_model::kind::Kind;
    use router_model::object::ObjectKey;

    use super::*;

    #[test]
    fn a_key_has_its_objects_in_order_until_the_last_is_removed() {
        let object = |name: &str| ObjectRef { kind: Kind::HttpProxy, key: ObjectKey::new("a", name) };
        let mut map = ObjectsBy::<String>::default();
        for name in ["y", "x", "y"] {
            map.insert("k".to_owned(), &object(name));
        }
        assert_eq!((map.get("k"), map.get("l")), (&[object("x"), object("y")][..], &[][..]));
        let keys = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<BTreeSet<_>>();
        map.replace(&object("x"), &keys(&["k", "m"]), &keys(&["l", "m"]));
        let all: Vec<_> = map.range::<str>(..).map(|(key, objects)| (key.as_str(), objects.len())).collect();
        assert_eq!(all, [("k", 1), ("l", 1)]);
        map.remove(&"k".to_owned(), &object("y"));
        assert_eq!((map.key("k"), map.key("l").map(String::as_str)), (None, Some("l")));
    }
}
