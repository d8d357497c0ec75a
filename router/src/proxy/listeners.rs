//! The listening sockets: two per router and address, opened and closed as the routing table says, without touching
//! the others.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use router_core::model::RouterName;
use router_core::table::RoutingTable;
use socket2::{Domain, SockAddr, Socket, Type};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::connection::{Accepted, serve};
use super::{Phase, Shared};

const BACKLOG: i32 = 4096;
const RETRY_BIND: Duration = Duration::from_secs(1);
/// Pause after `accept` failed for want of resources: descriptors do not come back by asking more often.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What a listener speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// Clear-text HTTP/1.
    Http,
    /// TLS: passed through, or HTTP/1.1 and HTTP/2 after termination here.
    Https,
}

/// How a listener stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerState {
    /// Its router.
    pub router: RouterName,
    /// The router's scope in the kernel maps.
    pub router_id: u32,
    /// What it speaks.
    pub protocol: Protocol,
    /// Where it listens; with port 0 in the table, the port that the kernel gave.
    pub address: SocketAddr,
    /// Whether it does.
    pub state: BindState,
}

/// Whether a listener listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindState {
    /// It accepts connections.
    Bound,
    /// Why not. It is tried again every second.
    Failed(String),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    router: RouterName,
    protocol: Protocol,
    address: SocketAddr,
}

/// The set of listeners. Runs as one task, which owns all of them.
pub(super) struct Listeners {
    shared: Arc<Shared>,
    addresses: Vec<IpAddr>,
    states: watch::Sender<Arc<Vec<ListenerState>>>,
    open: BTreeMap<Key, Result<Open, String>>,
}

struct Open {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Listeners {
    /// None yet; [`Listeners::run`] opens them.
    pub fn new(shared: Arc<Shared>, addresses: Vec<IpAddr>, states: watch::Sender<Arc<Vec<ListenerState>>>) -> Self {
        Listeners { shared, addresses, states, open: BTreeMap::new() }
    }

    /// Follows the tables until the router drains; then closes all.
    pub async fn run(mut self, mut tables: watch::Receiver<Arc<RoutingTable>>) {
        loop {
            let table = Arc::clone(&tables.borrow_and_update());
            self.apply(&table).await;
            let failed = self.open.values().any(Result::is_err);
            let drain = {
                let shared = Arc::clone(&self.shared);
                async move { shared.reached(Phase::Draining).await }
            };
            tokio::select! {
                () = drain => break,
                // When the sender is gone the last table stays.
                () = changed(&mut tables) => {}
                () = tokio::time::sleep(RETRY_BIND), if failed => {}
            }
        }
        self.apply(&RoutingTable::default()).await;
    }

    /// Closes what the table does not have, then opens what is missing, then tells.
    async fn apply(&mut self, table: &RoutingTable) {
        let wanted = wanted(table, &self.addresses);
        let gone: Vec<Key> = self.open.keys().filter(|key| !wanted.contains_key(key)).cloned().collect();
        for key in gone {
            if let Some(Ok(open)) = self.open.remove(&key) {
                open.task.abort();
                // The socket closes with the task; its port may be wanted by another router.
                let _ = open.task.await;
                tracing::info!(router = %key.router, address = %open.address, "listener closed");
            }
        }
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
        self.tell(&wanted);
    }

    fn bind(&self, key: &Key) -> io::Result<Open> {
        let listener = bind(key.address)?;
        let address = listener.local_addr()?;
        let accepting = accept(Arc::clone(&self.shared), listener, key.router.clone(), key.protocol);
        Ok(Open { address, task: tokio::spawn(accepting) })
    }

    fn tell(&self, wanted: &BTreeMap<Key, u32>) {
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

/// The listeners that a table asks for, with their router's id.
fn wanted(table: &RoutingTable, addresses: &[IpAddr]) -> BTreeMap<Key, u32> {
    let mut wanted = BTreeMap::new();
    for router in &table.routers {
        for ip in addresses {
            for (protocol, port) in [(Protocol::Http, router.http_port), (Protocol::Https, router.https_port)] {
                let key = Key { router: router.name.clone(), protocol, address: (*ip, port).into() };
                wanted.insert(key, router.id);
            }
        }
    }
    wanted
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        // `::` and `0.0.0.0` are two listeners, so that each family shows in the state.
        socket.set_only_v6(true)?;
    }
    socket.bind(&SockAddr::from(address))?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    TcpListener::from_std(socket.into())
}

async fn accept(shared: Arc<Shared>, listener: TcpListener, router: RouterName, protocol: Protocol) {
    loop {
        let (stream, client) = match listener.accept().await {
            Ok(accepted) => accepted,
            // The connection failed before it was taken (accept(2)): no concern of the listener.
            Err(error) if is_connection_error(&error) => continue,
            Err(error) => {
                tracing::warn!(%router, %error, "cannot accept connections");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Ok(local) = stream.local_addr() else { continue };
        // Latency only; a socket that refuses the option still carries the bytes.
        let _ = stream.set_nodelay(true);
        let accepted = Accepted { router: router.clone(), protocol, client, listener: local, stream };
        let connection = serve(Arc::clone(&shared), accepted);
        shared.spawn(connection);
    }
}

fn is_connection_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, HostUnreachable, NetworkUnreachable};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | HostUnreachable | NetworkUnreachable
    )
}
