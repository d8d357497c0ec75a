//! Addresses and ports of connections that are not ours: those of whom the host forwards and translates for, which leave from
//! its own addresses. The programs dial from other ports.
//!
//! Connection tracking knows them all, and not those of the programs. It is asked every few seconds; what began since then is
//! found out by the dial itself, from its endpoint's answer.

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

/// Between two looks…
const REST: Duration = Duration::from_secs(5);
/// …and at least so many times as long as the last one took.
const SHARE: u32 = 50;

/// A look that is under way, in a thread of its own: the kernel takes its time over many connections.
type Look = JoinHandle<(io::Result<HashSet<FlowKey>>, Duration)>;

/// The maps that the programs ask and tell.
pub struct Taken {
    map: HashMap<MapData, Raw<FlowKey>, u32>,
    clashes: HashMap<MapData, Raw<FlowKey>, u32>,
    /// What the map holds.
    held: HashSet<FlowKey>,
    conntrack: Option<Conntrack>,
    look: Option<Look>,
    rest_until: Instant,
    /// That they cannot be asked for was told.
    told: bool,
}

impl Taken {
    /// With the maps of a loaded object, which may hold what an earlier agent wrote.
    ///
    /// # Errors
    /// When a map is not as this build expects it, or cannot be read.
    pub fn new(taken: Map, clashes: Map) -> Result<Self, MapError> {
        let map: HashMap<_, Raw<FlowKey>, u32> = HashMap::try_from(taken)?;
        let held = map.keys().map(|key| key.map(|Raw(key)| key)).collect::<Result<_, _>>()?;
        let clashes = HashMap::try_from(clashes)?;
        Ok(Taken { map, clashes, held, conntrack: None, look: None, rest_until: Instant::now(), told: false })
    }

    /// Writes down what a look has found, and begins the next one if it is time.
    pub fn look(&mut self, pools: &Pools<impl Paths>, ports: PortRange) {
        if self.look.as_ref().is_some_and(|look| !look.is_finished()) {
            return;
        }
        let written = match self.look.take().map(JoinHandle::join) {
            // A thread that panics has printed why.
            None | Some(Err(_)) => Ok(()),
            Some(Ok((found, took))) => {
                self.rest_until = Instant::now() + REST.max(took * SHARE);
                let written = found.and_then(|found| self.write(found));
                tracing::debug!(target: "timing", taken = self.held.len(), ?took, "ports of others looked at");
                written
            }
        };
        let begun = written.and_then(|()| self.begin(pools, ports));
        if let Err(error) = begun
            && !std::mem::replace(&mut self.told, true)
        {
            tracing::warn!(%error, "cannot ask which ports the host's translated connections have");
        }
    }

    /// Begins a look, unless there is nothing to look at.
    fn begin(&mut self, pools: &Pools<impl Paths>, ports: PortRange) -> io::Result<()> {
        if Instant::now() < self.rest_until {
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

    /// Keeps ports of connections that the kernel carries from those that the host translates for, where that was in vain.
    pub fn settle_clashes(&mut self) {
        let clashes: Vec<FlowKey> = self.clashes.keys().filter_map(Result::ok).map(|Raw(key)| key).collect();
        for clash in clashes {
            // Whatever becomes of it: it is told again with the next packet.
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

/// The packets that are answered to ports of ours by endpoints, of all connections that the host tracks.
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
