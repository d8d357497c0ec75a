//! Multimap from a key to objects.

use std::collections::BTreeMap;
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

    /// The objects of a key, in order.
    pub fn get(&self, key: &K) -> &[ObjectRef] {
        self.0.get(key).map_or(&[][..], Vec::as_slice)
    }

    /// Keys in this range with their objects.
    pub fn range(&self, range: impl RangeBounds<K>) -> impl Iterator<Item = (&K, &[ObjectRef])> {
        self.0.range::<K, _>(range).map(|(key, objects)| (key, objects.as_slice()))
    }
}
