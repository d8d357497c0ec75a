//! The user-space data path: listeners, TLS, HTTP, passthrough. It can serve everything; the kernel only takes work
//! off it.
//!
//! ```text
//! RoutingTable ─► snapshot ─┬─► listeners ─► connection ─┬─► hello ─► passthrough ─► relay
//!                           │                            ├─► TLS ───┐
//!                           └─► (newest, per request) ───┴─► http ◄─┘ ─► forward ─► pool ─► endpoint
//! ```
//! A passthrough connection is decided by the snapshot at its accept, a request by the newest one.

mod access;
mod certificates;
mod client_io;
mod clock;
mod connection;
mod counters;
mod dial;
mod hello;
mod http;
pub mod listeners;
mod passthrough;
mod pool;
mod prefixed;
mod snapshot;
mod upstream_tls;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use router_core::table::RoutingTable;
use rustls::RootCertStore;
use tokio::sync::watch;

use client_io::ClientLimits;
use counters::Counters;
use listeners::Listeners;
use pool::Pool;
use snapshot::{Snapshot, Snapshots};
use upstream_tls::UpstreamTls;

use crate::keep::Sockets;

pub use access::{AccessLog, Carried, Flag};
pub use counters::RouteCounters;
pub use listeners::{BindState, ListenerState, Protocol};

const SWEEP_POOL: Duration = Duration::from_secs(10);

/// What the proxy needs to know beside the routing table.
#[derive(Clone, Debug, Default)]
pub struct ProxyConfig {
    /// Addresses that every router's ports are opened on.
    pub listen: Vec<IpAddr>,
    /// CA bundle for re-encrypt routes that name none; without it they are not served (fail closed).
    pub service_ca: Option<Arc<RootCertStore>>,
    /// Whether error responses name their cause in `x-sluice-cause`.
    pub show_cause: bool,
    /// The timeouts.
    pub timeouts: Timeouts,
    /// Listening sockets that are there already.
    pub sockets: Sockets,
    /// Whether the kernel data path is in use: it relies on there being no socket of a connection before its first
    /// bytes, and it resets those that it takes over.
    pub steered: bool,
}

/// Timeouts, with OpenShift's defaults (`tuningOptions`).
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// For a complete ClientHello (`tlsInspectDelay`, 5 s).
    pub hello: Duration,
    /// For the TLS handshake after it, 10 s.
    pub handshake: Duration,
    /// For a complete request head, 10 s.
    pub head: Duration,
    /// Between requests (`httpKeepAliveTimeout`, 300 s).
    pub keep_alive: Duration,
    /// For a client to take what is sent (`clientTimeout`, 30 s).
    pub client: Duration,
    /// For an endpoint to connect, and for TLS with it (`connectTimeout`, 5 s each).
    pub connect: Duration,
    /// For an endpoint to answer, and between parts of its answer (`serverTimeout`, 30 s).
    pub server: Duration,
    /// For a byte in either direction of a relayed connection or a tunnel (`tunnelTimeout`, 1 h).
    pub tunnel: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            hello: Duration::from_secs(5),
            handshake: Duration::from_secs(10),
            head: Duration::from_secs(10),
            keep_alive: Duration::from_secs(300),
            client: Duration::from_secs(30),
            connect: Duration::from_secs(5),
            server: Duration::from_secs(30),
            tunnel: Duration::from_secs(3600),
        }
    }
}

impl ProxyConfig {
    fn client_limits(&self) -> ClientLimits {
        ClientLimits { head: self.timeouts.head, idle: self.timeouts.keep_alive, write: self.timeouts.client }
    }
}

/// A running proxy.
pub struct Proxy {
    shared: Arc<Shared>,
    listeners: watch::Receiver<Arc<Vec<ListenerState>>>,
}

impl Proxy {
    /// Starts serving the tables that come through `tables`, beginning with the one that is there. Must be called
    /// within a tokio runtime.
    pub fn start(config: ProxyConfig, tables: watch::Receiver<Arc<RoutingTable>>) -> Proxy {
        let shared = Arc::new(Shared {
            upstream_tls: UpstreamTls::new(config.service_ca.clone()),
            snapshot: ArcSwap::default(),
            pool: Arc::default(),
            counters: Arc::default(),
            phase: watch::Sender::new(Phase::Running),
            active: watch::Sender::new(0),
            config,
        });
        let (states, listeners) = watch::channel(Arc::default());
        tokio::spawn(run(Arc::clone(&shared), tables, states));
        Proxy { shared, listeners }
    }

    /// The listeners as they stand.
    pub fn listeners(&self) -> watch::Receiver<Arc<Vec<ListenerState>>> {
        self.listeners.clone()
    }

    /// What the routes of the current table have served, by router and route.
    pub fn counters(&self) -> Vec<RouteCounters> {
        self.shared.counters.snapshot()
    }

    /// [`Proxy::counters`], for whoever outlives the borrow.
    pub fn counter_view(&self) -> Box<dyn Fn() -> Vec<RouteCounters> + Send + Sync> {
        let counters = Arc::clone(&self.shared.counters);
        Box::new(move || counters.snapshot())
    }

    /// The access log, for connections that are served elsewhere.
    pub fn access_log(&self) -> AccessLog {
        AccessLog::new(Arc::clone(&self.shared.counters))
    }

    /// Closes the listeners, lets connections finish for at most `deadline`, then ends them.
    pub async fn shutdown(self, deadline: Duration) {
        self.shared.phase.send_replace(Phase::Draining);
        let mut active = self.shared.active.subscribe();
        let drained = tokio::time::timeout(deadline, active.wait_for(|active| *active == 0)).await.is_ok();
        self.shared.phase.send_replace(Phase::Stopped);
        if !drained {
            tracing::warn!(connections = *active.borrow(), "connections were ended at the deadline");
        }
        // They end at their next poll. The channel cannot close: its sender is in `shared`.
        let _ = active.wait_for(|active| *active == 0).await;
    }
}

/// Where the proxy is on its way from start to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Running,
    Draining,
    Stopped,
}

/// What all connections share.
#[derive(Debug)]
struct Shared {
    config: ProxyConfig,
    snapshot: ArcSwap<Snapshot>,
    upstream_tls: UpstreamTls,
    pool: Arc<Pool>,
    counters: Arc<Counters>,
    phase: watch::Sender<Phase>,
    /// Tasks that a graceful stop waits for.
    active: watch::Sender<usize>,
}

impl Shared {
    /// Waits until the proxy has come to this phase.
    async fn reached(&self, phase: Phase) {
        let mut phases = self.phase.subscribe();
        // The channel cannot close: its sender is in `self`.
        let _ = phases.wait_for(|current| *current >= phase).await;
    }

    /// Starts a task that a graceful stop waits for, and that ends when the proxy stops.
    fn spawn(self: &Arc<Self>, work: impl Future<Output = ()> + Send + 'static) {
        let active = Active::new(Arc::clone(self));
        tokio::spawn(async move {
            tokio::select! {
                () = work => {}
                () = active.0.reached(Phase::Stopped) => {}
            }
        });
    }
}

/// Counts a task as active while it lives.
struct Active(Arc<Shared>);

impl Active {
    fn new(shared: Arc<Shared>) -> Self {
        shared.active.send_modify(|active| *active += 1);
        Active(shared)
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.0.active.send_modify(|active| *active = active.saturating_sub(1));
    }
}

/// Makes a snapshot of each table and lets the listeners follow it.
async fn run(
    shared: Arc<Shared>,
    mut tables: watch::Receiver<Arc<RoutingTable>>,
    states: watch::Sender<Arc<Vec<ListenerState>>>,
) {
    let mut snapshots = Snapshots::default();
    let mut serve = |table: &Arc<RoutingTable>| {
        let snapshot = snapshots.make(table, &shared.snapshot.load());
        shared.snapshot.store(Arc::new(snapshot));
        shared.upstream_tls.retain();
        shared.counters.retain(table);
    };
    let first = Arc::clone(&tables.borrow_and_update());
    serve(&first);
    // The listeners follow the snapshots, so that none is open before its router can be served.
    let (served, follow) = watch::channel(first);
    let listeners = Listeners::new(Arc::clone(&shared), shared.config.listen.clone(), states);
    let closed = Active::new(Arc::clone(&shared));
    tokio::spawn(async move {
        listeners.run(follow).await;
        drop(closed);
    });
    let mut sweep = tokio::time::interval(SWEEP_POOL);
    loop {
        tokio::select! {
            changed = tables.changed() => {
                if changed.is_err() {
                    break;
                }
                let table = Arc::clone(&tables.borrow_and_update());
                serve(&table);
                served.send_replace(table);
            }
            _ = sweep.tick() => shared.pool.sweep(),
            () = shared.reached(Phase::Stopped) => return,
        }
    }
    // No tables will come any more; the last one is served until the stop.
    loop {
        tokio::select! {
            _ = sweep.tick() => shared.pool.sweep(),
            () = shared.reached(Phase::Stopped) => return,
        }
    }
}
