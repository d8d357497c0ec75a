//! Reconciling the maps with their intended content, with retries of failed writes.

use std::collections::BTreeSet;
use std::io;

use crate::image::{MapImage, RouteMap, covering};
use crate::maps::write::Maps;
use crate::plan::{MapWrite, plan};

/// Changes that one attempt left undone.
#[derive(Debug, Default)]
pub struct Undone {
    /// Number of failed changes.
    pub failed: usize,
    /// The first failure.
    pub first: Option<(MapWrite, io::Error)>,
}

/// Writes the differences between `now`, the maps' content, and `wanted`. `now` is updated by exactly the changes that
/// succeeded, so the next call retries the others.
///
/// If a name cannot be written, its covering wildcard is removed from the maps until both can be written; otherwise the
/// kernel would match the wildcard for the name.
pub fn reconcile(maps: &mut impl Maps, now: &mut MapImage, wanted: &MapImage) -> Undone {
    let changes = plan(now, wanted);
    make_all(maps, now, changes)
}

/// Makes planned changes, as [`reconcile`] does. A change that depends on a failed one fails with it: no entry ever
/// refers to a missing entry, and no referenced entry is removed.
pub fn make_all(maps: &mut impl Maps, now: &mut MapImage, changes: Vec<MapWrite>) -> Undone {
    let mut undone = Undone::default();
    let mut withheld = BTreeSet::new();
    let mut needed = Needed::default();
    for change in changes {
        let waits = match &change {
            MapWrite::PutHost((_, router, host), _) => withheld.contains(&(*router, host.clone())),
            MapWrite::PutSlots(_, slots) => slots.iter().any(|slot| !now.endpoints.contains_key(&slot.endpoint)),
            MapWrite::PutPool(_, pool) => !now.slots.contains_key(&pool.id),
            // Without an earlier failure, the order of the plan guarantees it.
            MapWrite::RemoveSlots(pool, _) => undone.failed > 0 && needed.pools(now).contains(pool),
            MapWrite::RemoveEndpoint(id) => undone.failed > 0 && needed.endpoints(now).contains(id),
            _ => false,
        };
        if waits {
            undone.failed += 1;
            continue;
        }
        let Err(error) = maps.make(&change) else {
            change.apply_to(now);
            continue;
        };
        if let MapWrite::PutHost((_, router, host), _) = &change
            && let Some(wildcard) = covering(host)
        {
            withhold(maps, now, *router, &wildcard, &mut undone);
            withheld.insert((*router, wildcard));
        }
        undone.note(change, error);
    }
    undone
}

/// References that remain when slots and endpoints are removed; computed on first use. Later changes of a plan add no
/// references.
#[derive(Default)]
struct Needed {
    pools: Option<BTreeSet<u32>>,
    endpoints: Option<BTreeSet<u32>>,
}

impl Needed {
    fn pools(&mut self, now: &MapImage) -> &BTreeSet<u32> {
        self.pools.get_or_insert_with(|| now.pools.values().map(|pool| pool.id).collect())
    }

    fn endpoints(&mut self, now: &MapImage) -> &BTreeSet<u32> {
        let slots = || now.slots.values().flat_map(|slots| slots.iter().map(|slot| slot.endpoint));
        self.endpoints.get_or_insert_with(|| slots().collect())
    }
}

fn withhold(maps: &mut impl Maps, now: &mut MapImage, router: u32, wildcard: &str, undone: &mut Undone) {
    for map in RouteMap::ALL.into_iter().rev() {
        let key = (map, router, wildcard.to_owned());
        if !now.hosts.contains_key(&key) {
            continue;
        }
        let change = MapWrite::RemoveHost(key);
        match maps.make(&change) {
            Ok(()) => change.apply_to(now),
            Err(error) => undone.note(change, error),
        }
    }
}

impl Undone {
    fn note(&mut self, change: MapWrite, error: io::Error) {
        self.failed += 1;
        self.first.get_or_insert((change, error));
    }
}
