//! The listening sockets: two per router and address, opened and closed as the routing table requires, independently of
//! each other.

mod accept;
pub mod address;
pub mod loop_detection;
pub mod sockets;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use router_listener::{BindState, ListenerState, OwnAddresses, Protocol};
use router_model::names::RouterName;
use router_sys::socket::defer_accept;
use router_table::table::RoutingTable;
use socket2::{Domain, SockAddr, Socket, Type};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::capacity::Capacity;
use super::keep_alive::keep_alive;
use super::workers::Workers;
use accept::{Acceptor, Descriptors};

/// Limited by `net.core.somaxconn`: while no agent runs under `sluice keep`, connections wait in this queue.
const BACKLOG: i32 = i32::MAX;
/// How long the kernel defers a connection for the client's first bytes; then it is accepted without them.
const DEFER_ACCEPT: Duration = Duration::from_secs(5);
/// Most workers that accept from a listener: each new connection wakes all idle ones. They pass connections on to other
/// workers.
const ACCEPTORS: usize = 4;
const RETRY_BIND: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ListenerId {
    router: RouterName,
    protocol: Protocol,
    address: SocketAddr,
}

/// The set of listeners, owned by a single task.
pub(super) struct Listeners {
    workers: Arc<Workers>,
    addresses: Vec<IpAddr>,
    states: watch::Sender<Arc<Vec<ListenerState>>>,
    open: BTreeMap<ListenerId, Result<Open, String>>,
    /// Connection limit of each router.
    capacities: BTreeMap<RouterName, Arc<Capacity>>,
    descriptors: Arc<Descriptors>,
}

struct Open {
    address: SocketAddr,
    /// The accept tasks, one per worker.
    accepting: Vec<JoinHandle<()>>,
}

impl Open {
    /// Closes the socket. When this returns, the port is free, unless another process holds the socket.
    async fn close(mut self) {
        for task in self.accepting.drain(..) {
            task.abort();
            let _ = task.await;
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.accepting.iter().for_each(JoinHandle::abort);
    }
}

impl Listeners {
    /// No listeners yet; [`Listeners::run`] opens them.
    pub fn new(workers: Arc<Workers>, addresses: Vec<IpAddr>, states: watch::Sender<Arc<Vec<ListenerState>>>) -> Self {
        let (open, capacities) = (BTreeMap::new(), BTreeMap::new());
        Listeners { workers, addresses, states, open, capacities, descriptors: Arc::default() }
    }

    /// Applies tables until the router drains; then closes all listeners.
    pub async fn run(mut self, mut tables: watch::Receiver<Arc<RoutingTable>>) {
        loop {
            let table = Arc::clone(&tables.borrow_and_update());
            self.apply(&table).await;
            let failed = self.open.values().any(Result::is_err);
            tokio::select! {
                () = self.workers.draining() => break,
                // If the channel closes, the last table stays.
                () = changed(&mut tables) => {}
                () = tokio::time::sleep(RETRY_BIND), if failed => {}
            }
        }
        self.workers.common.config.sockets.release();
        self.apply(&RoutingTable::default()).await;
    }

    /// Closes listeners that the table lacks, opens missing ones, and publishes the state.
    async fn apply(&mut self, table: &RoutingTable) {
        let wanted = wanted(table, &self.addresses);
        let addresses: BTreeSet<_> = wanted.keys().map(|key| key.address).collect();
        self.workers.common.config.sockets.sort(&addresses);
        let gone: Vec<ListenerId> = self.open.keys().filter(|key| !wanted.contains_key(key)).cloned().collect();
        for key in gone {
            if let Some(Ok(open)) = self.open.remove(&key) {
                let address = open.address;
                // Another router may need its port.
                open.close().await;
                self.workers.common.config.sockets.closed(address);
                tracing::info!(router = %key.router, %address, "listener closed");
            }
        }
        self.limit(table);
        for key in wanted.keys() {
            let before = self.open.get(key);
            if matches!(before, Some(Ok(_))) {
                continue;
            }
            let now = self.bind(key).map_err(|error| error.to_string());
            match &now {
                Ok(open) => tracing::info!(router = %key.router, address = %open.address, "listening"),
                Err(error) if before.is_none() => {
                    tracing::error!(router = %key.router, address = %key.address, %error, "cannot listen; will retry");
                }
                Err(_) => {}
            }
            self.open.insert(key.clone(), now);
        }
        self.publish(&wanted);
    }

    /// Applies the table's connection limits.
    fn limit(&mut self, table: &RoutingTable) {
        self.capacities.retain(|name, _| table.router(name).is_some());
        for router in &table.routers {
            let most = router.policy.limits.connections.map_or(usize::MAX, |most| most.get() as usize);
            self.capacities.entry(router.name.clone()).or_default().set(most);
        }
    }

    fn bind(&self, key: &ListenerId) -> io::Result<Open> {
        let config = &self.workers.common.config;
        let inherited = config.sockets.take(key.address)?;
        let opened = inherited.is_none();
        let socket = inherited.map_or_else(|| bind(key.address), Ok)?;
        if config.steered || !opened {
            defer_accept(&socket, if config.steered { DEFER_ACCEPT } else { Duration::ZERO })?;
        }
        // Connections inherit both options from their listener, and work without them.
        let _ = socket.set_tcp_nodelay(true);
        let _ = keep_alive(&socket);
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        let listener = std::net::TcpListener::from(socket);
        // An inherited dual-stack socket listens on `[::]` and serves `0.0.0.0`, too.
        let address = SocketAddr::new(key.address.ip(), listener.local_addr()?.port());
        if opened {
            config.sockets.opened(address, &listener);
        }
        let mut open = Open { address, accepting: Vec::new() };
        for worker in self.workers.iter().take(ACCEPTORS) {
            // Registers with the worker's runtime.
            let _on_worker = worker.handle.enter();
            let acceptor = Acceptor {
                listener: TcpListener::from_std(listener.try_clone()?)?,
                router: key.router.clone(),
                protocol: key.protocol,
                capacity: self.capacities.get(&key.router).cloned().unwrap_or_default(),
                descriptors: Arc::clone(&self.descriptors),
                own: Arc::clone(&worker.shared),
                workers: Arc::clone(&self.workers),
            };
            open.accepting.push(tokio::spawn(acceptor.run()));
        }
        Ok(open)
    }

    fn publish(&self, wanted: &BTreeMap<ListenerId, u32>) {
        let states = self.open.iter().map(|(key, open)| ListenerState {
            router: key.router.clone(),
            router_id: wanted.get(key).copied().unwrap_or_default(),
            protocol: key.protocol,
            address: open.as_ref().map_or(key.address, |open| open.address),
            state: match open {
                Ok(_) => BindState::Bound,
                Err(error) => BindState::Failed(error.clone()),
            },
        });
        let states: Vec<ListenerState> = states.collect();
        self.workers.common.balancer.health.own.store(Arc::new(OwnAddresses::of(&states)));
        self.states.send_if_modified(|current| {
            let changed = **current != states;
            if changed {
                *current = Arc::new(states);
            }
            changed
        });
    }
}

async fn changed(tables: &mut watch::Receiver<Arc<RoutingTable>>) {
    if tables.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// The listeners that a table requires, with their router's id.
fn wanted(table: &RoutingTable, addresses: &[IpAddr]) -> BTreeMap<ListenerId, u32> {
    let mut wanted = BTreeMap::new();
    for router in &table.routers {
        for ip in addresses {
            for (protocol, port) in [(Protocol::Http, router.http_port), (Protocol::Https, router.https_port)] {
                let Some(port) = port else { continue };
                let key = ListenerId { router: router.name.clone(), protocol, address: (*ip, port).into() };
                wanted.insert(key, router.id);
            }
        }
    }
    wanted
}

fn bind(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        // `::` and `0.0.0.0` are separate listeners, so that the state shows each address family.
        socket.set_only_v6(true)?;
    }
    socket.bind(&SockAddr::from(address))?;
    Ok(socket)
}

#[cfg(test)]
mod tests;
