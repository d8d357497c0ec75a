//! What the thread knows of the maps, and how it leads them to what is intended.

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
use crate::host::{Answer, Order, Question, Told, Watch};
use crate::image::MapImage;
use crate::interfaces::Interfaces;
use crate::kernel::Kernel;
use crate::lower::{RouteIds, forget_gone, lower, lower_changes};
use crate::maps::write::Maps;
use crate::maps::{KernelMaps, make_all, reconcile};
use crate::netlink::queries::Netlink;
use crate::obstacles::AgentAlone;
use crate::plan::{Change, plan};
use crate::pools::Pools;
use crate::ports::PortRange;
use crate::reconciler::inputs::Inputs;
use crate::reconciler::programmed::Programmed;
use crate::redirect_peer::Peers;
use crate::taken::Taken;

const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MOST: Duration = Duration::from_secs(5);
/// What an image was lowered from.
struct Lowered {
    table: Arc<RoutingTable>,
    listeners: Arc<Vec<ListenerState>>,
    local: Vec<IpAddr>,
}

pub(super) struct State {
    maps: KernelMaps,
    /// What the maps hold.
    now: MapImage,
    /// What they should hold.
    wanted: Arc<Mutex<MapImage>>,
    lowered: Option<Lowered>,
    /// The last round left nothing undone, so `now` is what `wanted` was.
    clean: bool,
    ids: RouteIds,
    pools: Pools<PathCache<KernelPaths>>,
    ports: PortRange,
    peers: Peers,
    taken: Taken,
    /// Who looks at the host.
    watch: Watch,
    /// The first look has been answered.
    looked: bool,
    /// Why the agent takes all connections to a listener, as far as it was asked.
    intercepted: HashMap<SocketAddr, Option<AgentAlone>>,
    interfaces: Interfaces,
    local: Vec<IpAddr>,
    /// The listeners have told once where they listen.
    listening: bool,
    retry: Duration,
    /// Who tells of connections.
    pub reporter: Rc<RefCell<Reporter>>,
}

impl State {
    pub fn new(
        maps: KernelMaps,
        ports: PortRange,
        peers: Peers,
        taken: Taken,
        watch: Watch,
        inputs: &Inputs,
    ) -> io::Result<Self> {
        let wanted = Arc::new(Mutex::new(MapImage::default()));
        let paths = PathCache::new(KernelPaths::new(Netlink::open()?));
        Ok(State {
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

    /// Makes the maps ours, and learns what they hold. Ids above `highest` (of routes, and of endpoints) are new.
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
            tracing::info!(target: "datapath", routes, pools, "going on with the maps of an earlier agent");
        }
        Ok(())
    }

    /// The settings of the programs. The secret stays: clocks that endpoints have seen must go on.
    pub fn configure(&mut self, dial: bool) -> io::Result<()> {
        let old = self.maps.config()?;
        let secret = if old.secret == [0; 2] { random_secret()? } else { old.secret };
        let (first_port, ports) = (self.ports.low, self.ports.count());
        self.maps.set_config(Config { secret, dial: dial.into(), first_port, ports })
    }

    /// The process that has taken the maps over. A failed look is none: the next one tells.
    pub fn other_writer(&self) -> Option<u32> {
        self.maps.writer().ok().filter(|pid| *pid != std::process::id())
    }

    /// How long to wait before what failed is tried again.
    pub fn retry(&self) -> Duration {
        self.retry
    }

    /// Whether the intention is complete. Before the listeners have told where they listen, it is not: what an earlier
    /// agent left goes on until then.
    pub fn may_write(&mut self, table: &RoutingTable, listeners: &[ListenerState]) -> bool {
        self.listening |= !listeners.is_empty() || table.routers.is_empty();
        self.listening
    }

    /// Attaches to interfaces that have come, learns addresses, and has the ways to endpoints looked at. `false` if nothing
    /// changed yet.
    pub fn look(&mut self, kernel: &mut Kernel) -> bool {
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
        // Nothing is steered before it is known what the host does.
        if !self.looked
            && let Some(Told::Looked(answer)) = self.watch.wait()
        {
            self.follow_host(answer);
        }
        if self.pools.paths.is_stale() {
            self.lowered = None;
        }
        self.lowered.is_none()
    }

    /// Has the host looked at; if `ways`, also how endpoints are reached when it is as it was.
    pub fn look_at_host(&self, ways: bool) {
        let paths = &self.pools.paths;
        let wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let listeners = wanted.listeners.keys().chain(wanted.unsteered.keys());
        self.watch.order(Order::Look(Question {
            ways: ways || !self.looked,
            local: self.interfaces.addresses.clone(),
            attached: paths.source.attached.clone(),
            names: paths.source.names.clone(),
            endpoints: paths.known(),
            listeners: listeners.map(|(address, port)| SocketAddr::new(*address, *port)).collect(),
        }));
    }

    /// Has looked for connections that the host would not let go on.
    pub fn look_at_carried(&self) {
        self.watch.order(Order::Carried);
    }

    /// What has come of looks.
    pub async fn told(&self) -> Told {
        self.watch.told().await
    }

    /// Takes what has come of a look. Whether the host does something else to packets than before.
    pub fn follow_host(&mut self, answer: Answer) -> bool {
        let Answer { host, ways, mut taken } = answer;
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

    /// Looks which ports others' connections have.
    pub fn look_at_taken(&mut self) {
        self.taken.settle_clashes();
        self.taken.look(&self.pools, self.ports);
    }

    /// Whether something is to be written.
    pub fn has_changed(&self) -> bool {
        self.lowered.is_none()
    }

    /// Looks which interfaces' other ends may be reached at once. `false` if nothing changed.
    pub fn look_at_peers(&mut self, kernel: &Kernel) -> bool {
        self.peers.renew(kernel, &self.interfaces, self.pools.paths.source.netlink())
    }

    /// Interfaces that the programs are not attached to, and why.
    pub fn left_alone(&self, kernel: &Kernel) -> Vec<(String, String)> {
        let left = self.interfaces.left_alone.iter().map(|(name, why)| (name.clone(), why.text().to_owned()));
        left.chain(kernel.failed().map(|(name, why)| (name.to_owned(), why.to_owned()))).collect()
    }

    /// Names of the interfaces whose other ends are reached at once.
    pub fn peers(&self) -> Vec<String> {
        self.peers.names().to_vec()
    }

    /// Leads the maps to what is intended, as far as they let.
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
            tracing::warn!(failed = undone.failed, first = error, "map writes failed and are tried again");
        }
        self.clean = undone.failed == 0;
        self.retry = if self.clean { RETRY_FIRST } else { (self.retry * 2).min(RETRY_MOST) };
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

    /// Brings `wanted` up to date; the changes that did it, where only routes changed.
    fn lower(
        &mut self,
        wanted: &mut MapImage,
        table: &Arc<RoutingTable>,
        listeners: &Arc<Vec<ListenerState>>,
    ) -> Option<Vec<Change>> {
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
                Change::RemoveRoute(id) => Some((*id, wanted.routes.get(id)?)),
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
        // What the maps held before this agent's first table counts as well.
        let before = if wanted.routes.is_empty() { &self.now } else { &*wanted };
        let removed = before.routes.iter().filter(|(id, _)| !image.routes.contains_key(id));
        self.reporter.borrow_mut().follow(table, removed.map(|(id, label)| (*id, label)));
        *wanted = image;
        None
    }
}

fn random_secret() -> io::Result<[u64; 2]> {
    let mut bytes = [0; 16];
    // At most 256 bytes are given whole (random(7)).
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    let number = u128::from_ne_bytes(bytes);
    // Zero stands for no secret.
    Ok([(number >> 64) as u64, number as u64 | 1])
}
