//! A persistent hash map in which a look-up has one cache miss, on the line that holds both hash and value. The tree of
//! [`OrderedMap`](super::OrderedMap) has one on each of its lower levels.
//!
//! Chunks are tables with linear probing (Knuth, TAOCP 3, 6.4, algorithms L and R). The first bits of a hash select the
//! chunk, the last bits the slot. A change copies one chunk and the list of chunks.

use std::sync::Arc;

/// Mean number of entries per chunk at which the number of chunks doubles.
const LARGE: usize = 384;
/// Slots of the smallest table.
const SMALLEST: usize = 4;

/// See the module. Hashes must be uniformly distributed and not under an attacker's control. Values should be cheap to
/// clone.
pub struct HashedMap<V> {
    /// 2^`bits` chunks.
    chunks: Arc<[Chunk<V>]>,
    bits: u32,
    len: usize,
}

/// Aligned so that no slot of half a cache line crosses lines: the reference counts of the `Arc` precede the slots.
#[derive(Clone)]
#[repr(align(32))]
struct HashSlot<V>(Option<(u64, V)>);

/// A table of 2^n slots, at least a quarter of them free; or of no slots.
struct Chunk<V> {
    slots: Arc<[HashSlot<V>]>,
    used: usize,
}

impl<V> Clone for HashedMap<V> {
    fn clone(&self) -> Self {
        HashedMap { chunks: Arc::clone(&self.chunks), bits: self.bits, len: self.len }
    }
}

impl<V> Clone for Chunk<V> {
    fn clone(&self) -> Self {
        Chunk { slots: Arc::clone(&self.slots), used: self.used }
    }
}

impl<V> Default for Chunk<V> {
    fn default() -> Self {
        Chunk { slots: Arc::new([]), used: 0 }
    }
}

impl<V> Default for HashedMap<V> {
    fn default() -> Self {
        HashedMap { chunks: Arc::new([Chunk::default()]), bits: 0, len: 0 }
    }
}

impl<V: Clone> HashedMap<V> {
    /// The value of a hash.
    pub fn get(&self, hash: u64) -> Option<&V> {
        self.chunks.get(self.chunk_of(hash))?.get(hash)
    }

    /// How many hashes there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Inserts a value, or replaces the hash's value.
    pub fn insert(&mut self, hash: u64, value: V) {
        if self.len >= LARGE << self.bits {
            self.rebuild(self.bits + 1);
        }
        let place = self.chunk_of(hash);
        if let Some(chunk) = Arc::make_mut(&mut self.chunks).get_mut(place) {
            self.len += usize::from(chunk.insert(hash, value));
        }
    }

    /// Removes a hash.
    pub fn remove(&mut self, hash: u64) {
        // A hash that is absent must not cause copies.
        if self.get(hash).is_none() {
            return;
        }
        let place = self.chunk_of(hash);
        if let Some(chunk) = Arc::make_mut(&mut self.chunks).get_mut(place) {
            chunk.remove(hash);
            self.len -= 1;
        }
        if self.bits > 0 && self.len < (LARGE << self.bits) / 8 {
            self.rebuild(self.bits - 1);
        }
    }

    fn chunk_of(&self, hash: u64) -> usize {
        // Two shifts: with `bits` of 0 a single one would overflow.
        (hash >> 1 >> (63 - self.bits)) as usize
    }

    fn rebuild(&mut self, bits: u32) {
        let chunks: Vec<Chunk<V>> = (0..1_usize << bits).map(|_| Chunk::default()).collect();
        let old = std::mem::replace(self, HashedMap { chunks: chunks.into(), bits, len: 0 });
        let entries = old.chunks.iter().flat_map(Chunk::entries);
        entries.for_each(|(hash, value)| self.insert(*hash, value.clone()));
    }
}

impl<V: Clone> Extend<(u64, V)> for HashedMap<V> {
    fn extend<I: IntoIterator<Item = (u64, V)>>(&mut self, entries: I) {
        let entries = entries.into_iter();
        let wanted = (self.len + entries.size_hint().0).div_ceil(LARGE).next_power_of_two().ilog2();
        if wanted > self.bits {
            self.rebuild(wanted);
        }
        entries.for_each(|(hash, value)| self.insert(hash, value));
    }
}

impl<V: Clone> Chunk<V> {
    fn get(&self, hash: u64) -> Option<&V> {
        match self.slots.get(position(&self.slots, hash)?)? {
            HashSlot(Some((_, value))) => Some(value),
            HashSlot(None) => None,
        }
    }

    fn entries(&self) -> impl Iterator<Item = &(u64, V)> {
        self.slots.iter().filter_map(|slot| slot.0.as_ref())
    }

    /// Whether the hash is a new one.
    fn insert(&mut self, hash: u64, value: V) -> bool {
        if (self.used + 1) * 4 > self.slots.len() * 3 {
            self.resize((2 * self.slots.len()).max(SMALLEST));
        }
        let is_new = put(Arc::make_mut(&mut self.slots), hash, value);
        self.used += usize::from(is_new);
        is_new
    }

    fn remove(&mut self, hash: u64) {
        let Some(mut free) = position(&self.slots, hash) else { return };
        let slots = Arc::make_mut(&mut self.slots);
        let mask = slots.len() - 1;
        self.used -= usize::from(slots.get_mut(free).and_then(|slot| slot.0.take()).is_some());
        // Moves back an entry that was displaced by the removed one.
        let mut at = free;
        loop {
            at = (at + 1) & mask;
            let Some(HashSlot(Some((next, _)))) = slots.get(at) else { break };
            let wanted = *next as usize & mask;
            let may_move = at.wrapping_sub(wanted) & mask >= at.wrapping_sub(free) & mask;
            if may_move {
                slots.swap(free, at);
                free = at;
            }
        }
        if self.used * 8 < self.slots.len() && self.slots.len() > SMALLEST {
            self.resize(self.slots.len() / 2);
        }
    }

    fn resize(&mut self, size: usize) {
        let mut slots: Vec<HashSlot<V>> = vec![HashSlot(None); size];
        for (hash, value) in self.entries() {
            put(&mut slots, *hash, value.clone());
        }
        self.slots = slots.into();
    }
}

/// The slot of a hash, or the free slot for it.
fn position<V>(slots: &[HashSlot<V>], hash: u64) -> Option<usize> {
    let mask = slots.len().checked_sub(1)?;
    let mut places = (0..=mask).map(|step| (hash as usize).wrapping_add(step) & mask);
    let is_it = |slot: &HashSlot<V>| slot.0.as_ref().is_none_or(|(known, _)| *known == hash);
    places.find(|place| slots.get(*place).is_some_and(is_it))
}

/// Whether the hash is a new one.
fn put<V>(slots: &mut [HashSlot<V>], hash: u64, value: V) -> bool {
    let slot = position(slots, hash).and_then(|place| slots.get_mut(place));
    slot.is_some_and(|slot| slot.0.replace((hash, value)).is_none())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn check(hashed: &HashedMap<u32>, model: &HashMap<u64, u32>) {
        assert_eq!(hashed.len(), model.len());
        assert!(model.iter().all(|(hash, value)| hashed.get(*hash) == Some(value)));
        let there = hashed.chunks.iter().flat_map(Chunk::entries);
        assert_eq!(there.count(), model.len());
        for chunk in hashed.chunks.iter() {
            assert_eq!(chunk.used, chunk.entries().count());
            assert!(chunk.slots.is_empty() || chunk.used * 4 <= chunk.slots.len() * 3);
        }
    }

    proptest! {
        /// Few hashes with adjacent slots, so that they collide, also around the end of the table.
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((any::<bool>(), 0..40_u64, 0..3_u64), 0..300)) {
            let (mut hashed, mut model) = (HashedMap::default(), HashMap::new());
            let mut versions = Vec::new();
            for (number, (insert, low, high)) in steps.into_iter().enumerate() {
                let hash = high << 62 | low.wrapping_sub(20);
                if insert {
                    hashed.insert(hash, number as u32);
                    model.insert(hash, number as u32);
                } else {
                    hashed.remove(hash);
                    model.remove(&hash);
                }
                check(&hashed, &model);
                prop_assert_eq!(hashed.get(hash), model.get(&hash));
                if number % 50 == 0 {
                    versions.push((hashed.clone(), model.clone()));
                }
            }
            versions.iter().for_each(|(hashed, model)| check(hashed, model));
        }
    }

    #[test]
    fn many_come_and_go() {
        let hash = |number: u64| {
            number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
        };
        let mut model: HashMap<u64, u32> = (0..20_000).map(|number| (hash(number), number as u32)).collect();
        let mut built = HashedMap::default();
        built.extend(model.iter().map(|(hash, value)| (*hash, *value)));
        let mut grown = HashedMap::default();
        model.iter().for_each(|(hash, value)| grown.insert(*hash, *value));
        check(&built, &model);
        check(&grown, &model);
        assert_eq!(built.bits, grown.bits);
        for number in 0..19_990 {
            built.remove(hash(number));
            model.remove(&hash(number));
        }
        check(&built, &model);
        assert!(built.bits < grown.bits && grown.len() == 20_000, "versions are apart, and small ones become small");
    }
}
