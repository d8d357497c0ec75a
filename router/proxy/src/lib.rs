//! The user-space data path: listeners, TLS, HTTP, passthrough. It can serve all traffic; the kernel data path offloads
//! some of it.
//!
//! ```text
//! RoutingTable ─► snapshot ─┬─► listeners ─► connection ─┬─► hello ─► passthrough ─► relay
//!                           │                            ├─► TLS ───┐
//!                           └─► (newest, per request) ───┴─► http ◄─┘ ─► forward ─► pool ─► endpoint
//! ```
//! A passthrough connection uses the snapshot at its accept, a request the newest one.

#![forbid(unsafe_code)]

mod access_record;
mod capacity;
mod certificates;
mod client_io;
mod coalesced_write;
mod connection;
mod connection_state;
mod context;
mod dial;
mod hello;
mod http;
mod interim;
mod keep_alive;
mod limits;
pub mod listeners;
mod passthrough;
mod peeked_stream;
mod preface;
mod proxy_protocol;
mod proxy_state;
pub mod relay;
pub mod rt;
mod serving_table;
mod streams;
mod tls;
mod upstream;
mod upstream_tls;
mod workers;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use router_table::table::RoutingTable;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use context::ProcessContext;
use listeners::Listeners;
use serving_table::{ServingTable, Snapshots};
use upstream::{checks, probes, removed_endpoints};
use workers::{Worker, Workers};

use router_access_log::{AccessLog, RouteCounters};
use router_listener::ListenerState;

pub use context::ProxyConfig;
pub use proxy_state::ProxyState;
pub use upstream_tls::UpstreamTls;

/// A running proxy.
pub struct Proxy {
    workers: Arc<Workers>,
    listeners: watch::Receiver<Arc<Vec<ListenerState>>>,
    /// Ends when the listeners are closed.
    listening: JoinHandle<()>,
    /// Applies new tables.
    serving: JoinHandle<()>,
    /// Run the active health checks.
    checking: [JoinHandle<()>; 2],
}

impl Proxy {
    /// Starts to serve the tables from `tables`, beginning with the current one. Must be called within a tokio runtime;
    /// connections are served on worker threads.
    pub fn start(config: ProxyConfig, mut tables: watch::Receiver<Arc<RoutingTable>>) -> Proxy {
        let threads = config.workers.or_else(|| std::thread::available_parallelism().ok()).map_or(1, usize::from);
        let counters = Arc::default();
        let common = Arc::new(ProcessContext {
            upstream_tls: UpstreamTls::new(config.service_ca.clone(), config.system_roots.clone()),
            log: AccessLog::start(config.access_log, Arc::clone(&counters)),
            counters,
            balancer: Arc::default(),
            pools: Mutex::default(),
            config,
        });
        let workers = Arc::new(Workers::start(threads, &common));
        let mut serve = Serve {
            workers: Arc::clone(&workers),
            snapshots: Snapshots::default(),
            current: Arc::default(),
            snapshot: ServingTable::default(),
        };
        let (states, listeners) = watch::channel(Arc::default());
        let first = Arc::clone(&tables.borrow_and_update());
        serve.table(&first);
        // Listeners are updated after the snapshots, so none is open before its router can be served.
        let (served, follow) = watch::channel(first);
        let open = Listeners::new(Arc::clone(&workers), common.config.listen.clone(), states);
        let checking = [
            tokio::spawn(checks::run(Arc::clone(&common.balancer), follow.clone())),
            tokio::spawn(probes::run(Arc::clone(&common), follow.clone())),
        ];
        let listening = tokio::spawn(open.run(follow));
        let serving = tokio::spawn(serve.follow(tables, served));
        Proxy { workers, listeners, listening, serving, checking }
    }

    /// State of the listeners.
    pub fn listeners(&self) -> watch::Receiver<Arc<Vec<ListenerState>>> {
        self.listeners.clone()
    }

    /// Counters of the current table's routes, by router and route.
    pub fn counters(&self) -> Vec<RouteCounters> {
        self.workers.common.counters.snapshot()
    }

    /// [`Proxy::counters`] without a borrow.
    pub fn counter_view(&self) -> Box<dyn Fn() -> Vec<RouteCounters> + Send + Sync> {
        let counters = Arc::clone(&self.workers.common.counters);
        Box::new(move || counters.snapshot())
    }

    /// Health of endpoints, for `explain`.
    pub fn known(&self) -> ProxyState {
        ProxyState::of(&self.workers.common)
    }

    /// The access log, for connections of the kernel data path.
    pub fn access_log(&self) -> AccessLog {
        self.workers.common.log.clone()
    }

    /// Closes the listeners, lets connections finish for at most `deadline`, then ends them.
    pub async fn shutdown(self, deadline: Duration) {
        self.workers.drain();
        let drained = async {
            // The task is not cancelled and does not panic; even then its listeners would be closed.
            let _ = self.listening.await;
            self.workers.idle().await;
        };
        if tokio::time::timeout(deadline, drained).await.is_err() {
            tracing::warn!(connections = self.workers.connections(), "connections were ended at the deadline");
        }
        self.workers.stop().await;
        self.serving.abort();
        self.checking.iter().for_each(JoinHandle::abort);
        self.workers.common.log.flush().await;
    }
}

/// Creates a snapshot of each table.
struct Serve {
    workers: Arc<Workers>,
    snapshots: Snapshots,
    /// The newest table.
    current: Arc<RoutingTable>,
    /// Its snapshot.
    snapshot: ServingTable,
}

impl Serve {
    fn table(&mut self, table: &Arc<RoutingTable>) {
        let common = &self.workers.common;
        let gone = removed_endpoints::gone(&self.current, table);
        common.log.follow(table);
        // Before the workers serve any route of the table.
        common.balancer.bind(&table.endpoints);
        self.snapshot = self.snapshots.make(table, &self.snapshot);
        for Worker { shared, .. } in self.workers.iter() {
            shared.snapshot.store(Arc::new(self.snapshot.of_thread()));
            if !gone.is_empty() {
                shared.pool.retire(&gone);
            }
        }
        common.upstream_tls.retain();
        common.balancer.health.forget(&gone, Instant::now());
        // Skipped if only endpoints changed.
        let (now, before) = (&table.routers, &self.current.routers);
        if now.len() != before.len() || now.iter().zip(before).any(|(now, before)| !Arc::ptr_eq(now, before)) {
            common.counters.retain(table);
            common.balancer.retain(table);
        }
        self.current = Arc::clone(table);
    }

    /// Applies tables until the channel closes; the last one stays. Listeners are updated after each is served.
    async fn follow(
        mut self,
        mut tables: watch::Receiver<Arc<RoutingTable>>,
        served: watch::Sender<Arc<RoutingTable>>,
    ) {
        while tables.changed().await.is_ok() {
            let table = Arc::clone(&tables.borrow_and_update());
            self.table(&table);
            served.send_replace(table);
        }
    }
}
