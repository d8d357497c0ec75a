//! Maps against the standard one.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn sorted(entries: &[(u32, &str)]) -> OrderedMap<u32, Arc<String>> {
    entries.iter().map(|(key, value)| (*key, Arc::new((*value).to_owned()))).collect()
}

#[test]
fn a_version_tells_what_it_changed() {
    let older = sorted(&[(1, "a"), (2, "b"), (3, "c")]);
    let mut newer = older.clone();
    newer.insert(2, Arc::new("B".to_owned()));
    newer.insert(4, Arc::new("d".to_owned()));
    newer.remove(&1);
    let changes: Vec<_> =
        newer.changes_since(&older).map(|c| (*c.key, c.old.map(|v| v.as_str()), c.new.map(|v| v.as_str()))).collect();
    assert_eq!(changes, [(1, Some("a"), None), (2, Some("b"), Some("B")), (4, None, Some("d"))]);
    assert_eq!(older.len(), 3, "the older version is as it was");
    assert_eq!(newer.clone().changes_since(&newer).count(), 0);
}

#[test]
fn versions_are_equal_when_they_say_the_same() {
    assert_eq!(sorted(&[(1, "a")]), sorted(&[(1, "a")]));
    assert_ne!(sorted(&[(1, "a")]), sorted(&[(1, "b")]));
    assert_ne!(sorted(&[(1, "a")]), sorted(&[(1, "a"), (2, "b")]));
    assert_eq!(sorted(&[(1, "b"), (1, "a")]), sorted(&[(1, "a")]), "the last one of equal keys counts");
}

/// A key that counts how often keys are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Counted(u32);

thread_local!(static COMPARED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) });

impl Ord for Counted {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        COMPARED.set(COMPARED.get() + 1);
        self.0.cmp(&other.0)
    }
}

impl PartialOrd for Counted {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

#[test]
fn what_versions_share_is_not_looked_at() {
    let older: OrderedMap<Counted, Arc<u32>> = (0..100_000).map(|i| (Counted(i * 2), Arc::new(i))).collect();
    for (key, what) in [(0, "first"), (77_000, "a value"), (77_001, "a key"), (199_999, "last")] {
        let mut newer = older.clone();
        newer.insert(Counted(key), Arc::new(0));
        COMPARED.set(0);
        assert_eq!(newer.changes_since(&older).map(|c| c.key.0).collect::<Vec<_>>(), [key]);
        assert_eq!(older.changes_since(&newer).map(|c| c.key.0).collect::<Vec<_>>(), [key]);
        assert!(COMPARED.get() < 2_000, "{what}: {} comparisons", COMPARED.get());
        newer.remove(&Counted(key));
        assert_eq!(newer.changes_since(&older).count(), usize::from(key % 2 == 0));
    }
}

proptest! {
    #[test]
    fn it_is_a_map_whatever_is_done(
        start in vec((0..600u32, any::<u8>()), 0..400),
        edits in vec((0..600u32, prop::option::weighted(0.4, any::<u8>())), 0..900),
        marks in vec(0..900usize, 0..3),
    ) {
        let shared = |(key, value): (u32, u8)| (key, Arc::new(value));
        let mut map: OrderedMap<u32, Arc<u8>> = start.iter().copied().map(shared).collect();
        let mut model: BTreeMap<u32, Arc<u8>> = start.iter().copied().map(shared).collect();
        let mut versions = vec![(map.clone(), model.clone())];
        for (i, (key, value)) in edits.into_iter().enumerate() {
            if marks.contains(&i) {
                versions.push((map.clone(), model.clone()));
            }
            match value {
                Some(value) => {
                    let value = Arc::new(value);
                    map.insert(key, Arc::clone(&value));
                    model.insert(key, value);
                }
                None => prop_assert_eq!(map.remove(&key), model.remove(&key)),
            }
            prop_assert_eq!(map.len(), model.len());
            prop_assert_eq!(map.get(&key), model.get(&key));
        }
        prop_assert!(map.entries().eq(model.iter()));
        prop_assert!(map.entries_from(|key| *key < 300).eq(model.range(300..)));
        versions.push((map, model));
        for (old, old_model) in &versions {
            for (new, new_model) in &versions {
                let mut expected: Vec<u32> = old_model.keys().chain(new_model.keys()).copied().collect();
                expected.sort_unstable();
                expected.dedup();
                // A value is equal to itself only where both versions kept it.
                expected.retain(|key| match (old.get(key), new.get(key)) {
                    (Some(old), Some(new)) => !Arc::ptr_eq(old, new),
                    _ => true,
                });
                let changes: Vec<_> = new.changes_since(old).collect();
                prop_assert_eq!(changes.iter().map(|c| *c.key).collect::<Vec<_>>(), expected);
                for changed in changes {
                    prop_assert_eq!(changed.old, old_model.get(changed.key));
                    prop_assert_eq!(changed.new, new_model.get(changed.key));
                }
            }
        }
    }
}
