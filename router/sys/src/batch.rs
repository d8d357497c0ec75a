//! Batched iteration over large hash maps: `BPF_MAP_LOOKUP_BATCH`, which aya lacks.

use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use aya::maps::{Map, MapData, MapError};

use crate::abi::{Plain, Raw};

/// `BPF_MAP_LOOKUP_BATCH` of `enum bpf_cmd` (linux/bpf.h).
const LOOKUP_BATCH: libc::c_long = 24;
/// `BPF_MAP_LOOKUP_AND_DELETE_ELEM`.
const LOOKUP_AND_DELETE: libc::c_long = 21;
/// Entries per call; raised if a bucket has more.
const ENTRIES: usize = 4096;

/// The `batch` part of `union bpf_attr` (linux/bpf.h).
#[repr(C)]
struct BatchAttributes {
    in_batch: u64,
    out_batch: u64,
    keys: u64,
    values: u64,
    count: u32,
    map_fd: u32,
    elem_flags: u64,
    flags: u64,
}

/// The part of `union bpf_attr` for operations on one entry.
#[repr(C)]
struct One {
    map_fd: u32,
    pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// An iteration over a hash map that is modified meanwhile: entries that exist throughout are seen once, entries that
/// are added or deleted may be missed.
#[derive(Debug)]
pub struct MapWalk<K, V> {
    map: OwnedFd,
    /// Position of the next call; `None`: at the start.
    position: Option<u32>,
    keys: Vec<Raw<K>>,
    values: Vec<Raw<V>>,
    of: PhantomData<(K, V)>,
}

impl<K: Plain, V: Plain> MapWalk<K, V> {
    /// An iteration over this map, which must be a hash map with these key and value types.
    ///
    /// # Errors
    /// The map is of another type or has other sizes, or its descriptor cannot be duplicated.
    pub fn new(map: &Map) -> Result<Self, MapError> {
        let Map::HashMap(data) = map else {
            return Err(MapError::InvalidName { name: "a walk wants a hash map".to_owned() });
        };
        Self::over(data)
    }

    fn over(data: &MapData) -> Result<Self, MapError> {
        let info = data.info()?;
        for (size, expected) in [(info.key_size(), size_of::<K>()), (info.value_size(), size_of::<V>())] {
            if size as usize != expected {
                return Err(MapError::InvalidValueSize { size: size as usize, expected });
            }
        }
        let map = data.fd().as_fd().try_clone_to_owned().map_err(MapError::IoError)?;
        Ok(MapWalk { map, position: None, keys: Vec::new(), values: Vec::new(), of: PhantomData })
    }

    /// Reads the next entries. Returns whether that was the end; the next call begins at the start again.
    ///
    /// # Errors
    /// The system call failed.
    pub fn step(&mut self, mut take: impl FnMut(&K, &V)) -> io::Result<bool> {
        let room = self.keys.capacity().max(ENTRIES);
        self.keys.clear();
        self.values.clear();
        self.keys.reserve_exact(room);
        self.values.reserve_exact(room);
        let mut next = 0_u32;
        let position = self.position.unwrap_or_default();
        let mut attributes = BatchAttributes {
            in_batch: self.position.map_or(0, |_| (&raw const position) as u64),
            out_batch: (&raw mut next) as u64,
            keys: self.keys.as_mut_ptr() as u64,
            values: self.values.as_mut_ptr() as u64,
            count: room as u32,
            map_fd: self.map.as_raw_fd() as u32,
            elem_flags: 0,
            flags: 0,
        };
        // SAFETY: the kernel writes at most `count` keys and values, of the map's sizes (checked when the walk was
        // made), into buffers with that capacity, and one u32 (a bucket, for hash maps) to `out_batch`. All of them
        // live until the call returns.
        let result = unsafe {
            libc::syscall(
                libc::SYS_bpf,
                LOOKUP_BATCH,
                &raw mut attributes,
                size_of::<BatchAttributes>() as libc::c_uint,
            )
        };
        let mut round = false;
        if result < 0 {
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                // The end; the entries found before it are still delivered.
                Some(libc::ENOENT) => round = true,
                Some(libc::ENOSPC) => {
                    // A bucket has more entries than the buffers.
                    self.keys.reserve_exact(room * 2);
                    return Ok(false);
                }
                _ => {
                    self.position = None;
                    return Err(error);
                }
            }
        }
        let found = (attributes.count as usize).min(room);
        // SAFETY: the kernel has filled this many, and any bytes are a valid value of either type (`Plain`).
        unsafe {
            self.keys.set_len(found);
            self.values.set_len(found);
        }
        self.position = (!round).then_some(next);
        for (Raw(key), Raw(value)) in self.keys.iter().zip(&self.values) {
            take(key, value);
        }
        Ok(round)
    }

    /// Deletes an entry and returns its last value; `None` if the system call failed, as without such an entry.
    pub fn take(&self, key: &K) -> Option<V> {
        let key = Raw(*key);
        let mut value = MaybeUninit::<V>::uninit();
        let attributes = One {
            map_fd: self.map.as_raw_fd() as u32,
            pad: 0,
            key: (&raw const key) as u64,
            value: value.as_mut_ptr() as u64,
            flags: 0,
        };
        // SAFETY: the kernel reads one key and writes at most one value, of the map's sizes (checked when the walk was
        // made).
        let result = unsafe {
            libc::syscall(libc::SYS_bpf, LOOKUP_AND_DELETE, &raw const attributes, size_of::<One>() as libc::c_uint)
        };
        // SAFETY: after success the kernel has written the whole value, and any bytes are a valid one (`Plain`).
        (result == 0).then(|| unsafe { value.assume_init() })
    }

    /// Whether the walk has begun and not ended.
    pub fn is_under_way(&self) -> bool {
        self.position.is_some()
    }

    /// Goes back to the start.
    pub fn restart(&mut self) {
        self.position = None;
    }

    /// Reads all entries, from the start.
    ///
    /// # Errors
    /// The system call failed.
    pub fn all(&mut self, mut take: impl FnMut(&K, &V)) -> io::Result<()> {
        self.restart();
        while !self.step(&mut take)? {}
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use aya::maps::HashMap;
    use aya_obj::generated::bpf_map_type::BPF_MAP_TYPE_HASH;
    use router_common::maps::{AliasSlot, ScopedNet, SlotKey};

    use super::*;

    /// A map of its own, which no program uses. Needs root.
    fn map(entries: u32) -> Map {
        let (key, value) = (size_of::<SlotKey>() as u32, size_of::<AliasSlot>() as u32);
        let definition = aya_obj::Map::new_from_params(BPF_MAP_TYPE_HASH as u32, key, value, 2 * entries, 0);
        let mut map = Map::HashMap(MapData::create(definition, "walked", None).expect("a map (are you root?)"));
        let mut slots = HashMap::<_, Raw<SlotKey>, Raw<AliasSlot>>::try_from(&mut map).unwrap();
        for slot in 0..entries {
            let value = AliasSlot { endpoint: slot + 1, threshold: slot, alias: 0 };
            slots.insert(Raw(SlotKey { pool: 7, index: slot }), Raw(value), 0).unwrap();
        }
        map
    }

    #[test]
    fn a_walk_sees_each_entry_once_in_as_many_calls_as_it_takes() {
        let entries = 2 * ENTRIES as u32;
        let map = map(entries);
        let mut walk = MapWalk::<SlotKey, AliasSlot>::new(&map).unwrap();
        let mut steps = 0;
        for _ in 0..2 {
            let mut seen = BTreeMap::new();
            let mut take = |key: &SlotKey, value: &AliasSlot| {
                seen.insert((key.pool, key.index), value.endpoint);
            };
            steps = 1;
            while !walk.step(&mut take).unwrap() {
                assert!(walk.is_under_way() && steps < 100);
                steps += 1;
            }
            assert!(!walk.is_under_way());
            assert_eq!(seen, (0..entries).map(|slot| ((7, slot), slot + 1)).collect());
        }
        assert!(steps > 1, "all in one call");

        let mut seen = 0;
        walk.step(|_, _| seen += 1).unwrap();
        assert!(walk.is_under_way() && (1..entries).contains(&seen));
        walk.restart();
        assert!(!walk.is_under_way());
        walk.step(|_, _| {}).unwrap();
        seen = 0;
        walk.all(|_, _| seen += 1).unwrap();
        assert_eq!(seen, entries, "from the start, wherever it was");
    }

    #[test]
    fn an_entry_is_taken_once() {
        let map = map(3);
        let mut walk = MapWalk::<SlotKey, AliasSlot>::new(&map).unwrap();
        let key = SlotKey { pool: 7, index: 1 };
        assert_eq!(walk.take(&key).map(|slot| (slot.endpoint, slot.threshold)), Some((2, 1)));
        assert!(walk.take(&key).is_none());
        let mut seen = 0;
        walk.all(|_, _| seen += 1).unwrap();
        assert_eq!(seen, 2);
    }

    #[test]
    fn a_walk_needs_a_hash_map_of_its_keys_and_values() {
        let map = map(1);
        assert!(MapWalk::<SlotKey, SlotKey>::new(&map).is_err());
        assert!(MapWalk::<ScopedNet, AliasSlot>::new(&map).is_err());
        let Map::HashMap(data) = map else { panic!() };
        assert!(MapWalk::<SlotKey, AliasSlot>::new(&Map::Array(data)).is_err());
    }
}
