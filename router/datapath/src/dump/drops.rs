//! The gate's record of rejected packets, as it grows. Reads the pins only: no agent is needed.

use aya::maps::{Map, MapData, MapError, PerCpuArray};
use router_common::gate::sampler::WINDOW_NS;
use router_common::maps::{GateDrop, names};
use router_sys::abi::Raw;

use super::common::DumpError;
use crate::clock;
use crate::pin_folder::PinFolder;

/// Longest time between a packet's look at the clock and its record.
const LATE_NS: u64 = 1_000_000;

/// The record.
pub struct DropRecord {
    map: PerCpuArray<MapData, Raw<GateDrop>>,
    /// The newest window that was read, by processor.
    newest: Vec<u64>,
}

impl DropRecord {
    /// The record of an agent's gate.
    ///
    /// # Errors
    /// See [`DumpError`].
    pub fn open(folder: &PinFolder) -> Result<Self, DumpError> {
        Ok(DropRecord::of(folder.open(names::GATE_DROPS)?)?)
    }

    /// The record in this map.
    ///
    /// # Errors
    /// If the map has another layout.
    pub fn of(map: Map) -> Result<Self, MapError> {
        Ok(DropRecord { map: PerCpuArray::try_from(map)?, newest: Vec::new() })
    }

    /// The records of windows that have ended since the last call, oldest first; those of two seconds ago may be gone.
    ///
    /// # Errors
    /// The system call's.
    pub fn read(&mut self) -> Result<Vec<GateDrop>, MapError> {
        let now = clock::monotonic_ns();
        let (mut new, mut newest) = (Vec::new(), self.newest.clone());
        for place in 0..self.map.len() {
            let entries = self.map.get(&place, 0)?;
            self.newest.resize(entries.len(), 0);
            newest.resize(entries.len(), 0);
            for ((Raw(entry), read), newest) in entries.iter().zip(&self.newest).zip(&mut newest) {
                if entry.window > *read && entry.begin_ns + WINDOW_NS + LATE_NS < now {
                    new.push(*entry);
                    *newest = entry.window.max(*newest);
                }
            }
        }
        self.newest = newest;
        new.sort_by_key(|entry| entry.begin_ns);
        Ok(new)
    }
}
