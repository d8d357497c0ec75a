//! The kernel maps of a running router, accessed as bytes: independent of the agent's own view of them.

use std::mem::offset_of;

use anyhow::{Context, Result, bail};
use aya::maps::{HashMap, Map, MapData, MapError, PerCpuArray};
use router_common::maps::{FirstFlight, Flow, FlowKey, Handshake, HostKey, HostRoute, LaterHead, ShortFlight, names};
use router_common::verdict::DialCounter;
use serde_json::Value;

use crate::sluice::Sluice;
use crate::wait;

/// A [`FlowKey`] as bytes.
pub type Key = [u8; size_of::<FlowKey>()];

/// Errno of a full map (`E2BIG`).
const FULL: i32 = libc::E2BIG;

/// A map of connections.
pub struct Connections<const VALUE: usize>(HashMap<MapData, Key, [u8; VALUE]>);

/// `flows`.
pub type Flows = Connections<{ size_of::<Flow>() }>;
/// `hellos`.
pub type Hellos = Connections<{ size_of::<FirstFlight>() }>;
/// `short_hellos`.
pub type ShortHellos = Connections<{ size_of::<ShortFlight>() }>;
/// `later_heads`.
pub type LaterHeads = Connections<{ size_of::<LaterHead>() }>;
/// `handshakes`.
pub type Handshakes = Connections<{ size_of::<Handshake>() }>;

/// A map of hosts, such as `http_be`.
pub struct Hosts {
    map: HashMap<MapData, [u8; size_of::<HostKey>()], [u8; size_of::<HostRoute>()]>,
    /// Of the map's first entry.
    router: [u8; 4],
}

impl Hosts {
    /// Opens it.
    ///
    /// # Errors
    /// When the router has none, or it is empty.
    pub fn of(sluice: &Sluice, name: &str) -> Result<Hosts> {
        let map = HashMap::try_from(Map::HashMap(open(sluice, name)?))?;
        let first: [u8; size_of::<HostKey>()] = map.keys().next().context("the map is empty")??;
        Ok(Hosts { map, router: [first[0], first[1], first[2], first[3]] })
    }

    /// Whether the host has an entry, of the router of the first one.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn has(&self, host: &str) -> Result<bool> {
        let mut key = [0; size_of::<HostKey>()];
        key[..4].copy_from_slice(&self.router);
        key[offset_of!(HostKey, host)..][..host.len()].copy_from_slice(host.as_bytes());
        match self.map.get(&key, 0) {
            Ok(_) => Ok(true),
            Err(MapError::KeyNotFound) => Ok(false),
            Err(error) => bail!(error),
        }
    }
}

impl Flows {
    /// Opens it.
    ///
    /// # Errors
    /// When the router has none.
    pub fn of(sluice: &Sluice) -> Result<Flows> {
        Connections::open(sluice, names::FLOWS)
    }
}

impl Hellos {
    /// Opens it.
    ///
    /// # Errors
    /// When the router has none.
    pub fn of(sluice: &Sluice) -> Result<Hellos> {
        Connections::open(sluice, names::HELLOS)
    }
}

impl ShortHellos {
    /// Opens it.
    ///
    /// # Errors
    /// When the router has none.
    pub fn of(sluice: &Sluice) -> Result<ShortHellos> {
        Connections::open(sluice, names::SHORT_HELLOS)
    }
}

impl LaterHeads {
    /// Opens it.
    ///
    /// # Errors
    /// When the router has none.
    pub fn of(sluice: &Sluice) -> Result<LaterHeads> {
        Connections::open(sluice, names::LATER_HEADS)
    }
}

impl Handshakes {
    /// Opens it.
    ///
    /// # Errors
    /// When the router has none.
    pub fn of(sluice: &Sluice) -> Result<Handshakes> {
        let pin = open(sluice, names::HANDSHAKES)?;
        Ok(Connections(HashMap::try_from(Map::LruHashMap(pin))?))
    }
}

impl<const VALUE: usize> Connections<VALUE> {
    fn open(sluice: &Sluice, name: &str) -> Result<Self> {
        Ok(Connections(HashMap::try_from(Map::HashMap(open(sluice, name)?))?))
    }

    /// Number of entries.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn count(&self) -> Result<usize> {
        self.0.keys().try_fold(0, |count, key| key.map(|_| count + 1)).context("reading a map")
    }

    /// Deletes all entries.
    ///
    /// # Errors
    /// When the map cannot be written.
    pub fn clear(&mut self) -> Result<()> {
        let keys: Vec<Key> = self.0.keys().collect::<Result<_, _>>()?;
        keys.iter().try_for_each(|key| self.delete(key))
    }

    /// Fills the map with entries of nonexistent connections. Returns their keys.
    ///
    /// # Errors
    /// When the map cannot be written.
    pub fn fill(&mut self) -> Result<Vec<Key>> {
        let mut keys = Vec::new();
        for number in 0_u64.. {
            // An IPv6 address for documentation (RFC 3849) with a number.
            let mut key = [0; size_of::<FlowKey>()];
            key[..4].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
            key[8..16].copy_from_slice(&number.to_be_bytes());
            match self.0.insert(key, [0; VALUE], 0) {
                Ok(()) => keys.push(key),
                Err(MapError::SyscallError(error)) if error.io_error.raw_os_error() == Some(FULL) => break,
                Err(error) => bail!(error),
            }
        }
        Ok(keys)
    }

    /// Deletes the entry of a key, if there is one.
    ///
    /// # Errors
    /// When the map cannot be written.
    pub fn delete(&mut self, key: &Key) -> Result<()> {
        match self.0.remove(key) {
            Ok(()) | Err(MapError::KeyNotFound) => Ok(()),
            Err(MapError::SyscallError(error)) if error.io_error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
            Err(error) => bail!(error),
        }
    }
}

/// Waits until no state of any connection is left: no flow, no first flight, no later head.
///
/// # Errors
/// When some stays, with some of the flows.
pub fn nothing_is_left(sluice: &Sluice) -> Result<()> {
    let (flows, hellos, short) = (Flows::of(sluice)?, Hellos::of(sluice)?, ShortHellos::of(sluice)?);
    let heads = LaterHeads::of(sluice)?;
    let mut left = [0; 4];
    wait::wait_until("nothing is left of any connection", wait::PATIENCE * 2, || {
        let counts = [flows.count(), hellos.count(), short.count(), heads.count()];
        left = counts.map(|count| count.unwrap_or(usize::MAX));
        left == [0; 4]
    })
    .with_context(|| {
        let dump = sluice.dump(names::FLOWS).unwrap_or(Value::Null);
        let some: Vec<_> = dump.as_array().into_iter().flatten().take(5).collect();
        let [flows, long, short, heads] = left;
        format!("{flows} flows, {long} and {short} first flights and {heads} later heads stay, among them {some:?}")
    })
    .map(drop)
}

/// A counter of the programs, over all CPUs.
///
/// # Errors
/// When the router has none.
pub fn dial_counter(sluice: &Sluice, counter: DialCounter) -> Result<u64> {
    let map: PerCpuArray<_, u64> = PerCpuArray::try_from(Map::PerCpuArray(open(sluice, names::DIAL_STATS)?))?;
    Ok(map.get(&(counter as u32), 0)?.iter().sum())
}

fn open(sluice: &Sluice, name: &str) -> Result<MapData> {
    let pin = sluice.pin(name);
    MapData::from_pin(&pin).with_context(|| format!("opening {}", pin.display()))
}
