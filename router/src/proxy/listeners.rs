//! The listening sockets: two per router and address, opened and closed as the routing table says, without touching
//! the others.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
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

/// As many as `net.core.somaxconn` lets: while no agent runs under `sluice keep`, connections wait there.
const BACKLOG: i32 = i32::MAX;
/// For a client to send its first bytes; then the connection is accepted all the same.
const DEFER_ACCEPT: Duration = Duration::from_secs(5);
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
        self.shared.config.sockets.release();
        self.apply(&RoutingTable::default()).await;
    }

    /// Closes what the table does not have, then opens what is missing, then tells.
    async fn apply(&mut self, table: &RoutingTable) {
        let wanted = wanted(table, &self.addresses);
        let addresses: BTreeSet<_> = wanted.keys().map(|key| key.address).collect();
        self.shared.config.sockets.sort(&addresses);
        let gone: Vec<Key> = self.open.keys().filter(|key| !wanted.contains_key(key)).cloned().collect();
        for key in gone {
            if let Some(Ok(open)) = self.open.remove(&key) {
                open.task.abort();
                // The socket closes with the task; its port may be wanted by another router.
                let _ = open.task.await;
                self.shared.config.sockets.closed(open.address);
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
        let config = &self.shared.config;
        let inherited = config.sockets.take(key.address)?;
        let opened = inherited.is_none();
        let socket = inherited.map_or_else(|| bind(key.address), Ok)?;
        if config.steered || !opened {
            defer_accept(&socket, config.steered)?;
        }
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        let listener = TcpListener::from_std(socket.into())?;
        // An inherited socket of both families listens on `[::]`, and serves `0.0.0.0` all the same.
        let address = SocketAddr::new(key.address.ip(), listener.local_addr()?.port());
        if opened {
            config.sockets.opened(address, &listener);
        }
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

fn bind(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        // `::` and `0.0.0.0` are two listeners, so that each family shows in the state.
        socket.set_only_v6(true)?;
    }
    socket.bind(&SockAddr::from(address))?;
    Ok(socket)
}

/// Leaves a connection to the kernel until its first bytes are there, or not.
fn defer_accept(socket: &Socket, defer: bool) -> io::Result<()> {
    let seconds: libc::c_int = if defer { DEFER_ACCEPT.as_secs() as libc::c_int } else { 0 };
    // SAFETY: the option takes a c_int, which is what the pointer and the length describe, and the call does not
    // keep the pointer; the descriptor is open as long as `socket` is borrowed. (socket2 and rustix have no such call.)
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_DEFER_ACCEPT,
            (&raw const seconds).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
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
        let (client, local) = (plain(client), plain(local));
        let accepted = Accepted { router: router.clone(), protocol, client, listener: local, stream };
        let connection = serve(Arc::clone(&shared), accepted);
        shared.spawn(connection);
    }
}

/// An IPv4 client of a socket of both families comes from `::ffff:…`; everything here compares IPv4 addresses.
fn plain(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip if ip == address.ip() => address,
        ip => SocketAddr::new(ip, address.port()),
    }
}

fn is_connection_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, HostUnreachable, NetworkUnreachable};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | HostUnreachable | NetworkUnreachable
    )
}

#[cfg(test)]
mod tests;
