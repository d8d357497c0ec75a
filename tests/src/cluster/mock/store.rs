//! Objects by kind, with a history of bounded length for watches.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use serde_json::Value;

use super::kind::Kind;
use super::object::{Key, Object};
use super::selector::Selector;
use super::status::Failure;

/// All objects. Versions count the changes of all kinds.
pub struct Store {
    collections: BTreeMap<(String, String), Collection>,
    version: u64,
    /// Number of changes that each kind remembers.
    history: usize,
}

/// The objects of a kind.
struct Collection {
    kind: Arc<Kind>,
    objects: BTreeMap<Key, Arc<Object>>,
    history: VecDeque<Change>,
    /// Changes up to this version are not in the history.
    forgotten: u64,
}

/// A change of an object.
#[derive(Clone, Debug)]
pub struct Change {
    /// The version before; none of a new object.
    pub before: Option<Arc<Object>>,
    /// The version that the change made; of a deleted object its last state.
    pub after: Arc<Object>,
    /// Whether the object is gone.
    pub is_deletion: bool,
}

impl Store {
    /// The built-in kinds without objects. Each kind remembers `history` changes, at least one.
    pub fn new(history: usize) -> Store {
        // As in a cluster that has run for a while: low versions are expired.
        let mut store = Store { collections: BTreeMap::new(), version: 1000, history: history.max(1) };
        Kind::built_in().for_each(|kind| store.install(kind));
        store
    }

    /// Version of the last change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// All kinds, in the order of their groups.
    pub fn kinds(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.collections.values().map(|collection| &collection.kind)
    }

    /// The kind of a collection that has this version.
    pub fn kind(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Kind>> {
        let kind = &self.collections.get(&(group.to_owned(), plural.to_owned()))?.kind;
        kind.versions.iter().any(|served| served == version).then_some(kind)
    }

    /// The kind of an object.
    pub fn kind_of(&self, object: &Value) -> Option<&Arc<Kind>> {
        let (api_version, name) = (object["apiVersion"].as_str()?, object["kind"].as_str()?);
        let served = |kind: &Kind| kind.versions.iter().any(|version| kind.api_version(version) == api_version);
        self.kinds().find(|kind| kind.name == name && served(kind))
    }

    /// Serves a kind; one that is served already keeps its objects.
    pub fn install(&mut self, kind: Kind) {
        let place = (kind.group.clone(), kind.plural.clone());
        let kind = Arc::new(kind);
        let new = Collection {
            kind: Arc::clone(&kind),
            objects: BTreeMap::new(),
            history: VecDeque::new(),
            forgotten: self.version,
        };
        self.collections.entry(place).or_insert(new).kind = kind;
    }

    /// Serves a kind no longer; its objects are gone.
    pub fn uninstall(&mut self, kind: &Kind) {
        self.collections.remove(&place(kind));
    }

    /// An object.
    pub fn get(&self, kind: &Kind, key: &Key) -> Option<&Arc<Object>> {
        self.collections.get(&place(kind))?.objects.get(key)
    }

    /// Selected objects in the order of their keys, of one namespace or of all.
    pub fn objects(&self, kind: &Kind, namespace: Option<&str>, selector: &Selector) -> Vec<Arc<Object>> {
        let Some(Collection { objects, .. }) = self.collections.get(&place(kind)) else { return Vec::new() };
        let first = match (namespace, selector.name()) {
            (Some(namespace), Some(name)) => {
                let found = objects.get(&(namespace.to_owned(), name.to_owned()));
                return found.filter(|object| selector.selects(object)).cloned().into_iter().collect();
            }
            (namespace, _) => (namespace.unwrap_or_default().to_owned(), String::new()),
        };
        let found = objects.range((Bound::Included(first), Bound::Unbounded)).map(|(_, object)| object);
        let found = found.take_while(|object| namespace.is_none_or(|namespace| namespace == object.key.0));
        found.filter(|object| selector.selects(object)).cloned().collect()
    }

    /// Creates or replaces an object of an installed kind.
    pub fn put(&mut self, kind: &Kind, key: Key, value: Value) -> Arc<Object> {
        self.version += 1;
        let after = Arc::new(Object::new(key.clone(), self.version, value));
        if let Some(collection) = self.collections.get_mut(&place(kind)) {
            let before = collection.objects.insert(key, Arc::clone(&after));
            collection.remember(Change { before, after: Arc::clone(&after), is_deletion: false }, self.history);
        }
        after
    }

    /// Removes an object; returns its last state with the version of its deletion.
    pub fn remove(&mut self, kind: &Kind, key: &Key) -> Option<Arc<Object>> {
        let collection = self.collections.get_mut(&place(kind))?;
        let before = collection.objects.remove(key)?;
        self.version += 1;
        let after = Arc::new(Object::new(key.clone(), self.version, before.value()));
        let change = Change { before: Some(before), after: Arc::clone(&after), is_deletion: true };
        collection.remember(change, self.history);
        Some(after)
    }

    /// Changes of a kind after a version, the oldest first, at most `limit`; none if the kind is not served any longer.
    ///
    /// # Errors
    /// When the history does not reach so far back.
    pub fn changes(&self, kind: &Kind, after: u64, limit: usize) -> Result<Option<Vec<Change>>, Failure> {
        let Some(collection) = self.collections.get(&place(kind)) else { return Ok(None) };
        if after < collection.forgotten {
            return Err(Failure::expired(after, collection.forgotten));
        }
        let from = collection.history.partition_point(|change| change.after.version <= after);
        Ok(Some(collection.history.range(from..).take(limit).cloned().collect()))
    }

    /// Forgets the history of a kind, or of all: older versions than the present one are expired.
    pub fn compact(&mut self, plural: Option<&str>) {
        for collection in self.collections.values_mut() {
            if plural.is_none_or(|plural| plural == collection.kind.plural) {
                collection.history.clear();
                collection.forgotten = self.version;
            }
        }
    }
}

impl Collection {
    fn remember(&mut self, change: Change, limit: usize) {
        if self.history.len() >= limit
            && let Some(oldest) = self.history.pop_front()
        {
            self.forgotten = oldest.after.version;
        }
        self.history.push_back(change);
    }
}

impl Change {
    /// What a watch with this selector is sent of it: the type of the event and the object.
    pub fn seen(&self, namespace: Option<&str>, selector: &Selector) -> Option<(&'static str, Arc<Object>)> {
        if namespace.is_some_and(|namespace| namespace != self.after.key.0) {
            return None;
        }
        let before = self.before.as_ref().filter(|before| selector.selects(before));
        let is_selected = !self.is_deletion && selector.selects(&self.after);
        match before {
            Some(_) if is_selected => Some(("MODIFIED", Arc::clone(&self.after))),
            None if is_selected => Some(("ADDED", Arc::clone(&self.after))),
            Some(_) if self.is_deletion => Some(("DELETED", Arc::clone(&self.after))),
            // It has left the selection: what was selected, at the version of the change.
            Some(before) => {
                let last = Object::new(before.key.clone(), self.after.version, before.value());
                Some(("DELETED", Arc::new(last)))
            }
            None => None,
        }
    }
}

fn place(kind: &Kind) -> (String, String) {
    (kind.group.clone(), kind.plural.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secrets(history: usize) -> (Store, Arc<Kind>) {
        let store = Store::new(history);
        let kind = store.kind("", "v1", "secrets").map(Arc::clone).unwrap_or_else(|| unreachable!("it is built in"));
        (store, kind)
    }

    fn key(namespace: &str, name: &str) -> Key {
        (namespace.to_owned(), name.to_owned())
    }

    fn labelled(label: &str) -> Value {
        json!({"metadata": {"labels": {"l": label}}})
    }

    fn names(objects: &[Arc<Object>]) -> Vec<&str> {
        objects.iter().map(|object| object.key.1.as_str()).collect()
    }

    #[test]
    fn objects_are_listed_by_namespace_and_selector() -> Result<(), Failure> {
        let (mut store, kind) = secrets(10);
        for (namespace, name) in [("b", "two"), ("a", "one"), ("b", "one"), ("c", "one")] {
            store.put(&kind, key(namespace, name), labelled(namespace));
        }
        let all = Selector::default();
        assert_eq!(names(&store.objects(&kind, None, &all)), ["one", "one", "two", "one"]);
        assert_eq!(names(&store.objects(&kind, Some("b"), &all)), ["one", "two"]);
        let named = Selector::parse("metadata.name=two", "")?;
        assert_eq!(names(&store.objects(&kind, Some("b"), &named)), ["two"]);
        assert_eq!(names(&store.objects(&kind, None, &named)), ["two"]);
        assert!(store.objects(&kind, Some("b"), &Selector::parse("metadata.name=two", "l=c")?).is_empty());
        Ok(())
    }

    #[test]
    fn the_history_is_bounded_and_older_versions_are_expired() -> Result<(), Failure> {
        let (mut store, kind) = secrets(3);
        let begin = store.version();
        for number in 0..5 {
            store.put(&kind, key("", &number.to_string()), json!({"metadata": {}}));
        }
        assert_eq!(store.changes(&kind, begin + 1, 9).map_err(|failure| failure.reason).err(), Some("Expired".into()));
        let versions = |changes: Option<Vec<Change>>| -> Vec<u64> {
            changes.into_iter().flatten().map(|change| change.after.version - begin).collect()
        };
        assert_eq!(versions(store.changes(&kind, begin + 2, 9)?), [3, 4, 5]);
        assert_eq!(versions(store.changes(&kind, begin + 2, 2)?), [3, 4]);
        assert_eq!(versions(store.changes(&kind, begin + 5, 9)?), [0; 0]);
        store.compact(Some("secrets"));
        assert!(store.changes(&kind, begin + 4, 9).is_err());
        assert_eq!(versions(store.changes(&kind, begin + 5, 9)?), [0; 0]);
        store.uninstall(&kind);
        assert!(store.changes(&kind, begin, 9)?.is_none());
        Ok(())
    }

    #[test]
    fn a_selection_is_entered_and_left() -> Result<(), Failure> {
        let (mut store, kind) = secrets(10);
        let begin = store.version();
        for label in ["x", "y", "y", "x"] {
            store.put(&kind, key("a", "one"), labelled(label));
        }
        store.remove(&kind, &key("a", "one"));
        let selector = Selector::parse("", "l=y")?;
        let changes = store.changes(&kind, begin, 9)?.unwrap_or_default();
        let seen: Vec<_> = changes.iter().filter_map(|change| change.seen(None, &selector)).collect();
        let seen: Vec<_> =
            seen.iter().map(|(what, object)| (*what, object.version - begin, &*object.labels["l"])).collect();
        assert_eq!(seen, [("ADDED", 2, "y"), ("MODIFIED", 3, "y"), ("DELETED", 4, "y")]);
        let all = Selector::default();
        let seen: Vec<_> =
            changes.iter().filter_map(|change| change.seen(Some("a"), &all)).map(|seen| seen.0).collect();
        assert_eq!(seen, ["ADDED", "MODIFIED", "MODIFIED", "MODIFIED", "DELETED"]);
        assert!(changes.iter().all(|change| change.seen(Some("b"), &all).is_none()));
        Ok(())
    }
}
