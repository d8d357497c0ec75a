//! Addresses and ports of connections that the host forwards and masquerades, which leave from its own addresses. The
//! programs dial from other ports.
//!
//! Connection tracking has these connections, and not those of the programs. It is read every few seconds; a newer
//! connection is detected by the dial, from the endpoint's answer.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use aya::maps::{HashMap, Map, MapData, MapError};
use router_common::maps::{FlowKey, MAX_TAKEN};
use router_sys::abi::Raw;

use super::egress_routes::Paths;
use super::maps::into_io;
use super::pools::Pools;
use super::ports::PortRange;
use crate::conntrack::Conntrack;

/// Pause between two readings…
const REST: Duration = Duration::from_secs(5);
/// …and at least this multiple of the last one's duration.
const SHARE: u32 = 50;

/// A reading in progress, in a thread of its own: with many connections the kernel takes long.
type PendingScan = JoinHandle<(io::Result<HashSet<FlowKey>>, Duration)>;

/// The maps `taken` and `clashes`.
pub struct TakenFlows {
    map: HashMap<MapData, Raw<FlowKey>, u32>,
    clashes: HashMap<MapData, Raw<FlowKey>, u32>,
    /// Content of `taken`.
    held: HashSet<FlowKey>,
    conntrack: Option<Conntrack>,
    look: Option<PendingScan>,
    idle_until: Instant,
    /// The failure of a reading was logged.
    failure_logged: bool,
}

impl TakenFlows {
    /// Uses the maps of a loaded object, which may contain entries of an earlier agent.
    ///
    /// # Errors
    /// If a map does not have this build's layout, or cannot be read.
    pub fn new(taken: Map, clashes: Map) -> Result<Self, MapError> {
        let map: HashMap<_, Raw<FlowKey>, u32> = HashMap::try_from(taken)?;
        let held = map.keys().map(|key| key.map(|Raw(key)| key)).collect::<Result<_, _>>()?;
        let clashes = HashMap::try_from(clashes)?;
        Ok(TakenFlows {
            map,
            clashes,
            held,
            conntrack: None,
            look: None,
            idle_until: Instant::now(),
            failure_logged: false,
        })
    }

    /// Writes the result of a reading to the map, and starts the next one if it is due.
    pub fn look(&mut self, pools: &Pools<impl Paths>, ports: PortRange) {
        if self.look.as_ref().is_some_and(|look| !look.is_finished()) {
            return;
        }
        let written = match self.look.take().map(JoinHandle::join) {
            // A panic was printed by its thread.
            None | Some(Err(_)) => Ok(()),
            Some(Ok((found, took))) => {
                self.idle_until = Instant::now() + REST.max(took * SHARE);
                let written = found.and_then(|found| self.write(found));
                tracing::debug!(target: "timing", taken = self.held.len(), ?took, "ports of other connections read");
                written
            }
        };
        let begun = written.and_then(|()| self.begin(pools, ports));
        if let Err(error) = begun
            && !std::mem::replace(&mut self.failure_logged, true)
        {
            tracing::warn!(%error, "cannot read the ports of the host's translated connections");
        }
    }

    /// Starts a reading, unless no connection is tracked.
    fn begin(&mut self, pools: &Pools<impl Paths>, ports: PortRange) -> io::Result<()> {
        if Instant::now() < self.idle_until {
            return Ok(());
        }
        if Conntrack::count() == 0 {
            return self.write(HashSet::new());
        }
        let (sources, endpoints) = (pools.sources(), pools.addresses());
        let look = move || {
            let begin = Instant::now();
            (find(sources, &endpoints, ports), begin.elapsed())
        };
        self.look = Some(thread::Builder::new().name("taken".to_owned()).spawn(look)?);
        Ok(())
    }

    /// Resolves collisions: makes connection tracking choose another port than that of a carried connection.
    pub fn settle_clashes(&mut self) {
        let clashes: Vec<FlowKey> = self.clashes.keys().filter_map(Result::ok).map(|Raw(key)| key).collect();
        for clash in clashes {
            // Deleted whatever the result: the next packet reports it again.
            let _ = self.clashes.remove(&Raw(clash));
            if Conntrack::count() > 0
                && let Err(error) = self.conntrack().and_then(|conntrack| conntrack.keep_from_others(&clash))
            {
                tracing::debug!(target: "datapath", %error, "cannot keep a port from connection tracking");
            }
        }
    }

    fn conntrack(&mut self) -> io::Result<&mut Conntrack> {
        if self.conntrack.is_none() {
            self.conntrack = Some(Conntrack::open()?);
        }
        self.conntrack.as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    fn write(&mut self, found: HashSet<FlowKey>) -> io::Result<()> {
        let gone: Vec<FlowKey> = self.held.difference(&found).copied().collect();
        for key in gone {
            match self.map.remove(&Raw(key)) {
                Err(MapError::KeyNotFound) | Ok(()) => self.held.remove(&key),
                Err(error) => return Err(into_io(error)),
            };
        }
        for key in found {
            if !self.held.contains(&key) {
                self.map.insert(Raw(key), 1, 0).map_err(into_io)?;
                self.held.insert(key);
            }
        }
        Ok(())
    }
}

/// Keys of packets from endpoints to this host's dial ports, of all tracked connections.
fn find(sources: BTreeSet<IpAddr>, endpoints: &HashSet<SocketAddr>, ports: PortRange) -> io::Result<HashSet<FlowKey>> {
    let (mut conntrack, mut found) = (Conntrack::open()?, HashSet::new());
    for source in sources {
        conntrack.answered_to(source, |key| {
            let endpoint = SocketAddr::new(Ipv6Addr::from(key.source).to_canonical(), key.source_port);
            if ports.has(key.destination_port) && found.len() < MAX_TAKEN && endpoints.contains(&endpoint) {
                found.insert(key);
            }
        })?;
    }
    Ok(found)
}
