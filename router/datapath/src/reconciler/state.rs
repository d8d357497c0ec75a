//! State of the reconciler: the maps' content, the intended content, and the writes between them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use router_common::maps::Config;
use router_listener::ListenerState;
use router_table::table::RoutingTable;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::egress_routes::{KernelPaths, PathCache};
use crate::flow_log::Reporter;
use crate::host::state::HostState;
use crate::host::{HostReport, HostWatch, Question, WatchReply, WatchRequest};
use crate::image::MapImage;
use crate::interfaces::Interfaces;
use crate::kernel::KernelPrograms;
use crate::lower::{RouteIds, forget_gone, lower, lower_changes};
use crate::maps::write::Maps;
use crate::maps::{KernelMaps, make_all, reconcile};
use crate::netlink::queries::Netlink;
use crate::obstacles::AgentAlone;
use crate::plan::{MapWrite, plan};
use crate::pools::Pools;
use crate::ports::PortRange;
use crate::reconciler::inputs::DataPathInputs;
use crate::reconciler::programmed::Programmed;
use crate::redirect_peer::Peers;
use crate::taken_flows::TakenFlows;

const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MOST: Duration = Duration::from_secs(5);
/// What an image was lowered from.
struct Lowered {
    table: Arc<RoutingTable>,
    listeners: Arc<Vec<ListenerState>>,
    local: Vec<IpAddr>,
}

pub(super) struct ReconcilerState {
    maps: KernelMaps,
    /// Content of the maps.
    now: MapImage,
    /// Intended content.
    wanted: Arc<Mutex<MapImage>>,
    lowered: Option<Lowered>,
    /// The last round completed all writes, so `now` equals the `wanted` of that round.
    clean: bool,
    ids: RouteIds,
    pools: Pools<PathCache<KernelPaths>>,
    ports: PortRange,
    peers: Peers,
    taken: TakenFlows,
    /// The thread that inspects the host.
    watch: HostWatch,
    /// The first inspection has completed.
    looked: bool,
    /// Why all connections to a listener are relayed, for the listeners asked about.
    intercepted: HashMap<SocketAddr, Option<AgentAlone>>,
    interfaces: Interfaces,
    local: Vec<IpAddr>,
    /// The listeners have reported their addresses.
    listening: bool,
    retry: Duration,
    /// Reports connections to the access log and the counters.
    pub reporter: Rc<RefCell<Reporter>>,
}

impl ReconcilerState {
    pub fn new(
        maps: KernelMaps,
        ports: PortRange,
        peers: Peers,
        taken: TakenFlows,
        watch: HostWatch,
        inputs: &DataPathInputs,
    ) -> io::Result<Self> {
        let wanted = Arc::new(Mutex::new(MapImage::default()));
        let paths = PathCache::new(KernelPaths::new(Netlink::open()?));
        Ok(ReconcilerState {
            maps,
            now: MapImage::default(),
            lowered: None,
            clean: false,
            ids: RouteIds::default(),
            pools: Pools::new(paths),
            ports,
            peers,
            taken,
            watch,
            looked: false,
            intercepted: HashMap::new(),
            interfaces: Interfaces::default(),
            local: Vec::new(),
            listening: false,
            retry: RETRY_FIRST,
            reporter: Rc::new(RefCell::new(Reporter::new(inputs.access.clone(), Arc::clone(&wanted)))),
            wanted,
        })
    }

    /// Claims the maps for this process, and reads their content. New ids are above `highest` (of routes, of
    /// endpoints).
    pub fn claim(&mut self, (route, endpoint): (u32, u32), dial: bool) -> io::Result<()> {
        let revision = self.maps.revision()?;
        self.maps.set_revision(revision)?;
        self.configure(dial)?;
        self.now = self.maps.read()?;
        self.ids.adopt(&self.now.routes, route.max(self.now.highest_route()));
        self.pools.adopt(&self.now, endpoint);
        (self.lowered, self.clean) = (None, false);
        if !self.now.routes.is_empty() {
            let (routes, pools) = (self.now.routes.len(), self.now.pools.len());
            tracing::info!(target: "datapath", routes, pools, "adopted the maps of an earlier agent");
        }
        Ok(())
    }

    /// Writes the settings of the programs. The secret is kept: sequence numbers and timestamps towards endpoints must
    /// continue.
    pub fn configure(&mut self, dial: bool) -> io::Result<()> {
        let old = self.maps.config()?;
        let secret = if old.secret == [0; 2] { random_secret()? } else { old.secret };
        let (first_port, ports) = (self.ports.low, self.ports.count());
        self.maps.set_config(Config { secret, dial: dial.into(), first_port, ports })
    }

    /// The process that has claimed the maps, if another one has. `None` also if reading fails: it is read again.
    pub fn other_writer(&self) -> Option<u32> {
        self.maps.writer().ok().filter(|pid| *pid != std::process::id())
    }

    /// Delay before failed writes are retried; `None` if there are none.
    pub fn retry(&mut self, has_failed: bool) -> Option<Duration> {
        self.retry = if has_failed { (self.retry * 2).min(RETRY_MOST) } else { RETRY_FIRST };
        has_failed.then_some(self.retry)
    }

    /// True if the inputs are complete. They are not before the listeners have reported their addresses: until then the
    /// content of an earlier agent stays.
    pub fn may_write(&mut self, table: &RoutingTable, listeners: &[ListenerState]) -> bool {
        self.listening |= !listeners.is_empty() || table.routers.is_empty();
        self.listening
    }

    /// Attaches to new interfaces, reads addresses, and orders a look-up of the routes to endpoints. `false` if nothing
    /// changed yet.
    pub fn look(&mut self, kernel: &mut KernelPrograms) -> bool {
        let paths = &mut self.pools.paths;
        match paths.source.netlink().interfaces() {
            Ok(found) if found != self.interfaces => {
                self.local = found.addresses.iter().copied().collect();
                for news in kernel.follow(&found) {
                    tracing::info!(target: "datapath", "{news}");
                }
                let attached = kernel.attached();
                let index = attached.iter().filter_map(|name| found.attachable.get(name));
                let mtu = index.filter_map(|index| Some((*index, *found.mtu.get(index)?)));
                paths.source.attached = mtu.collect();
                paths.source.names = found.attachable.iter().map(|(name, index)| (*index, name.clone())).collect();
                self.interfaces = found;
                // Listeners on every address have an entry for each.
                self.lowered = None;
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "cannot list the interfaces"),
        }
        self.look_at_host(true);
        // Nothing is steered before the host has been inspected.
        if !self.looked
            && let Some(WatchReply::Looked(answer)) = self.watch.wait()
        {
            self.follow_host(answer);
        }
        if self.pools.paths.is_stale() {
            self.lowered = None;
        }
        self.lowered.is_none()
    }

    /// Orders an inspection of the host; if `ways`, also a look-up of the routes to endpoints if the host is unchanged.
    pub fn look_at_host(&self, ways: bool) {
        let paths = &self.pools.paths;
        let wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let listeners = wanted.listeners.keys().chain(wanted.unsteered.keys());
        self.watch.order(WatchRequest::Look(Question {
            ways: ways || !self.looked,
            local: self.interfaces.addresses.clone(),
            attached: paths.source.attached.clone(),
            names: paths.source.names.clone(),
            endpoints: paths.known(),
            listeners: listeners.map(|(address, port)| SocketAddr::new(*address, *port)).collect(),
        }));
    }

    /// Orders a search for connections that the host's rules stop.
    pub fn look_at_carried(&self) {
        self.watch.order(WatchRequest::Carried);
    }

    /// Waits for the next result of an inspection.
    pub async fn reply(&self) -> WatchReply {
        self.watch.reply().await
    }

    /// Applies the result of an inspection. True if the host treats packets differently than before.
    pub fn follow_host(&mut self, answer: HostReport) -> bool {
        let HostReport { host, ways, mut taken } = answer;
        self.looked = true;
        let changed = !Arc::ptr_eq(&host, &self.pools.paths.source.host);
        self.pools.paths.source.follow(Arc::clone(&host));
        let wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        for (address, port) in wanted.listeners.keys().chain(wanted.unsteered.keys()) {
            let listener = SocketAddr::new(*address, *port);
            let why = taken.entry(listener).or_insert_with(|| host.takes(listener));
            if self.intercepted.get(&listener) != Some(why) {
                self.lowered = None;
            }
        }
        drop(wanted);
        self.intercepted = taken;
        if self.pools.paths.renew(ways, changed) {
            self.lowered = None;
        }
        changed
    }

    /// Reads which ports other connections of this host use.
    pub fn look_at_taken(&mut self) {
        self.taken.settle_clashes();
        self.taken.look(&self.pools, self.ports);
    }

    /// True if there is something to write.
    pub fn has_changed(&self) -> bool {
        self.lowered.is_none()
    }

    /// Updates the interfaces that permit `bpf_redirect_peer`. `false` if nothing changed.
    pub fn look_at_peers(&mut self, kernel: &KernelPrograms) -> bool {
        self.peers.renew(kernel, &self.interfaces, self.pools.paths.source.netlink())
    }

    /// The host's rules as they were last read.
    pub fn host(&self) -> Arc<HostState> {
        Arc::clone(&self.pools.paths.source.host)
    }

    /// Interfaces and addresses as they were last read.
    pub fn interfaces(&self) -> &Interfaces {
        &self.interfaces
    }

    /// Interfaces without the programs, and why.
    pub fn left_alone(&self, kernel: &KernelPrograms) -> Vec<(String, String)> {
        let left = self.interfaces.left_alone.iter().map(|(name, why)| (name.clone(), why.text().to_owned()));
        left.chain(kernel.failed().map(|(name, why)| (name.to_owned(), why.to_owned()))).collect()
    }

    /// Names of the interfaces that permit `bpf_redirect_peer`.
    pub fn peers(&self) -> Vec<String> {
        self.peers.names().to_vec()
    }

    /// Writes the differences between the maps and the intended content.
    pub fn write(&mut self, table: &Arc<RoutingTable>, listeners: &Arc<Vec<ListenerState>>) -> Programmed {
        let shared = Arc::clone(&self.wanted);
        let mut wanted = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = self.lower(&mut wanted, table, listeners);
        let mut undone = match changes {
            Some(changes) if self.clean => make_all(&mut self.maps, &mut self.now, changes),
            _ => reconcile(&mut self.maps, &mut self.now, &wanted),
        };
        if undone.failed == 0
            && let Err(error) = self.maps.set_revision(table.revision)
        {
            undone.failed = 1;
            tracing::warn!(%error, "cannot write the revision");
        }
        let error = undone.first.map(|(change, error)| format!("{change:?}: {error}"));
        if let Some(error) = &error {
            tracing::warn!(failed = undone.failed, first = error, "map writes failed and are retried");
        }
        self.clean = undone.failed == 0;
        Programmed {
            revision: table.revision,
            entries: wanted.len(),
            listeners: wanted.listeners.len(),
            endpoints: wanted.endpoints.len(),
            left_out: wanted.left_out,
            failed: undone.failed,
            error,
            relayed: self.reporter.borrow().relayed(),
            wanted: Arc::clone(&self.wanted),
            ..Programmed::default()
        }
    }

    /// Updates `wanted`; returns the changes if only routes changed.
    fn lower(
        &mut self,
        wanted: &mut MapImage,
        table: &Arc<RoutingTable>,
        listeners: &Arc<Vec<ListenerState>>,
    ) -> Option<Vec<MapWrite>> {
        let from = Lowered { table: Arc::clone(table), listeners: Arc::clone(listeners), local: self.local.clone() };
        if let Some(old) = self.lowered.replace(from)
            && *old.listeners == **listeners
            && old.local == self.local
            && wanted.left_out == 0
            && let Some((gone, come)) = lower_changes(&old.table, table, &mut self.ids, &mut self.pools)
            && wanted.has_room_for(&come)
        {
            let changes = plan(&gone, &come);
            let removed = changes.iter().filter_map(|change| match change {
                MapWrite::RemoveRoute(id) => Some((*id, wanted.routes.get(id)?)),
                _ => None,
            });
            self.reporter.borrow_mut().follow(table, removed);
            changes.iter().for_each(|change| change.apply_to(wanted));
            wanted.relayed = Arc::clone(self.pools.relayed());
            forget_gone(&old.table, table, &mut self.ids);
            return Some(changes);
        }
        self.ids.assign(table);
        self.pools.paths.begin_round();
        let mut image = lower(table, listeners, &self.local, &self.ids, &mut self.pools);
        self.pools.paths.end_round();
        image.relayed = Arc::clone(self.pools.relayed());
        let (host, taken) = (&self.pools.paths.source.host, &mut self.intercepted);
        image.leave_to_agent(|listener| taken.entry(listener).or_insert_with(|| host.takes(listener)).clone());
        // Also the routes that the maps held before this agent's first table.
        let before = if wanted.routes.is_empty() { &self.now } else { &*wanted };
        let removed = before.routes.iter().filter(|(id, _)| !image.routes.contains_key(id));
        self.reporter.borrow_mut().follow(table, removed.map(|(id, label)| (*id, label)));
        *wanted = image;
        None
    }
}

fn random_secret() -> io::Result<[u64; 2]> {
    let mut bytes = [0; 16];
    // Up to 256 bytes are returned completely (random(7)).
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    let number = u128::from_ne_bytes(bytes);
    // Zero means no secret.
    Ok([(number >> 64) as u64, number as u64 | 1])
}
