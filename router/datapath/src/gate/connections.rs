//! Counted connections: those that ended without a callback are found by a sweep, and released.

use std::collections::HashSet;
use std::io;
use std::time::Duration;

use aya::maps::{Map, MapError};
use router_common::gate::connection::{ENDED, FLOW, SOCKET};
use router_common::maps::{FlowKey, GateConnection, GateRelease};
use router_sys::batch::MapWalk;

use crate::clock::monotonic_ns;
use crate::netlink::sockets;

/// Age from which on a connection is looked for: it has come to a socket, to flow entries, or to nothing.
const SETTLED: Duration = Duration::from_secs(3);
/// Every n-th sweep compares all connections with the sockets, the others those that would end without a callback.
const ALL_SWEEPS: u32 = 30;

/// Sweeps `gate_conns`.
pub struct ConnectionSweep {
    walk: MapWalk<FlowKey, GateConnection>,
    sweeps: u32,
    count: usize,
}

impl ConnectionSweep {
    /// Of this map.
    ///
    /// # Errors
    /// If the map has another layout.
    pub fn new(map: &Map) -> Result<Self, MapError> {
        Ok(ConnectionSweep { walk: MapWalk::new(map)?, sweeps: 0, count: 0 })
    }

    /// Counts what an earlier agent left; the next sweep looks for all sockets.
    ///
    /// # Errors
    /// The system call's.
    pub fn adopt(&mut self) -> io::Result<()> {
        (self.sweeps, self.count) = (0, 0);
        self.walk.all(|_, _| self.count += 1)
    }

    /// Connections that were counted at the last sweep, less those that it released.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Releases connections that are neither carried nor have a socket. `carries`: whether the kernel program carries one;
    /// `release`: releases one if it is still as it was found.
    ///
    /// # Errors
    /// The system call's; the next sweep goes on.
    pub fn sweep(
        &mut self,
        has_callbacks: bool,
        carries: impl Fn(&FlowKey) -> bool,
        release: impl FnMut(&GateRelease) -> io::Result<bool>,
    ) -> io::Result<()> {
        let looks_at_all = !has_callbacks || self.sweeps.is_multiple_of(ALL_SWEEPS);
        self.sweeps = self.sweeps.wrapping_add(1);
        let now = monotonic_ns();
        let (mut found, mut count) = (Vec::new(), 0);
        self.walk.all(|key, connection| {
            count += 1;
            let is_settled = u128::from(now.saturating_sub(connection.at_ns)) > SETTLED.as_nanos();
            if is_settled && is_suspect(connection, looks_at_all) {
                let GateConnection { state, at_ns, .. } = *connection;
                found.push(GateRelease { key: *key, pad: 0, state, at_ns });
            }
        })?;
        self.count = count;
        found.retain(|release| !carries(&release.key));
        if found.is_empty() {
            return Ok(());
        }
        // A connection goes from a socket to flow entries, never back: of one that has gone meanwhile, the entries are found.
        let mut sockets = HashSet::new();
        sockets::each(sockets::OPEN, |key| {
            sockets.insert(key);
        })?;
        found.retain(|release| !sockets.contains(&release.key) && !carries(&release.key));
        let released = found.iter().map(release).collect::<io::Result<Vec<bool>>>()?;
        self.count -= released.iter().filter(|is_released| **is_released).count();
        Ok(())
    }
}

/// Whether the connection may have ended without a callback.
fn is_suspect(connection: &GateConnection, looks_at_all: bool) -> bool {
    connection.state & ENDED == 0 && (looks_at_all || connection.state & SOCKET == 0 || connection.state & FLOW != 0)
}
