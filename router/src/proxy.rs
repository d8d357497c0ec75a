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
mod capacity;
mod certificates;
mod client_io;
mod clock;
mod connection;
mod counters;
mod dial;
mod hello;
mod http;
mod interim;
mod joined;
mod keep_alive;
mod known;
mod limits;
pub mod listeners;
mod passthrough;
mod preface;
mod prefixed;
mod proxied;
mod snapshot;
mod streams;
mod task_waker;
mod tls;
mod upstream;
mod upstream_tls;
mod workers;

#[cfg(test)]
pub(crate) use upstream::testing;

use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use router_core::model::RouterName;
use router_core::policy::Timeouts;
use router_core::table::RoutingTable;
use rustls::RootCertStore;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinHandle;

use counters::Counters;
use http::mirror::MAX_COPIES;
use listeners::Listeners;
use snapshot::{Snapshot, Snapshots};
use upstream::balancer::Balancer;
use upstream::pool::Pool;
use upstream::{checks, gone, probes};
use workers::{Worker, Workers};

use crate::keep::Sockets;
use crate::timer::{self, Timers};

pub use access::{AccessLog, AccessLogForm, Carried, Flag, Mark};
pub use counters::RouteCounters;
pub use known::Known;
pub use listeners::{BindState, ListenerState, Protocol};
pub use upstream_tls::UpstreamTls;

/// What the proxy needs to know beside the routing table.
#[derive(Clone, Debug, Default)]
pub struct ProxyConfig {
    /// Addresses that every router's ports are opened on.
    pub listen: Vec<IpAddr>,
    /// CA bundle for re-encrypt routes that name none; without it they are not served (fail closed).
    pub service_ca: Option<Arc<RootCertStore>>,
    /// CA certificates for backends whose policy asks for the system's; `None`: those of the system.
    pub system_roots: Option<Arc<RootCertStore>>,
    /// How the access log is written.
    pub access_log: AccessLogForm,
    /// Whether error responses name their cause in `x-sluice-cause`.
    pub show_cause: bool,
    /// Listening sockets that are there already.
    pub sockets: Sockets,
    /// Whether the kernel data path is in use: it relies on there being no socket of a connection before its first
    /// bytes, and it resets those that it takes over.
    pub steered: bool,
    /// Threads that serve connections; `None`: one for each processor that this process may use.
    pub workers: Option<NonZeroUsize>,
}

/// A running proxy.
pub struct Proxy {
    workers: Arc<Workers>,
    listeners: watch::Receiver<Arc<Vec<ListenerState>>>,
    /// Ends when the listeners are closed.
    listening: JoinHandle<()>,
    /// Follows the tables.
    serving: JoinHandle<()>,
    /// Finds out which endpoints answer, and which say that they are well.
    checking: [JoinHandle<()>; 2],
}

impl Proxy {
    /// Starts serving the tables that come through `tables`, beginning with the one that is there. Must be called
    /// within a tokio runtime; connections are served on threads of their own.
    pub fn start(config: ProxyConfig, mut tables: watch::Receiver<Arc<RoutingTable>>) -> Proxy {
        let threads = config.workers.or_else(|| std::thread::available_parallelism().ok()).map_or(1, usize::from);
        let counters = Arc::default();
        let common = Arc::new(Common {
            upstream_tls: UpstreamTls::new(config.service_ca.clone(), config.system_roots.clone()),
            log: AccessLog::start(config.access_log, Arc::clone(&counters)),
            counters,
            balancer: Arc::default(),
            pools: Mutex::default(),
            config,
        });
        let workers = Arc::new(Workers::start(threads, &common));
        let mut serve =
            Serve { workers: Arc::clone(&workers), snapshots: Snapshots::default(), current: Snapshot::default() };
        let (states, listeners) = watch::channel(Arc::default());
        let first = Arc::clone(&tables.borrow_and_update());
        serve.table(&first);
        // The listeners follow the snapshots, so that none is open before its router can be served.
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

    /// The listeners as they stand.
    pub fn listeners(&self) -> watch::Receiver<Arc<Vec<ListenerState>>> {
        self.listeners.clone()
    }

    /// What the routes of the current table have served, by router and route.
    pub fn counters(&self) -> Vec<RouteCounters> {
        self.workers.common.counters.snapshot()
    }

    /// [`Proxy::counters`], for whoever outlives the borrow.
    pub fn counter_view(&self) -> Box<dyn Fn() -> Vec<RouteCounters> + Send + Sync> {
        let counters = Arc::clone(&self.workers.common.counters);
        Box::new(move || counters.snapshot())
    }

    /// What is known of endpoints, for `explain`.
    pub fn known(&self) -> Known {
        Known::of(&self.workers.common)
    }

    /// The access log, for connections that are served elsewhere.
    pub fn access_log(&self) -> AccessLog {
        self.workers.common.log.clone()
    }

    /// Closes the listeners, lets connections finish for at most `deadline`, then ends them.
    pub async fn shutdown(self, deadline: Duration) {
        self.workers.drain();
        let drained = async {
            // It was not cancelled and does not panic; if it had, its listeners would be closed as well.
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

/// Where the proxy is on its way from start to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Running,
    Draining,
}

/// What all connections share.
#[derive(Debug)]
struct Common {
    config: ProxyConfig,
    upstream_tls: UpstreamTls,
    counters: Arc<Counters>,
    log: AccessLog,
    /// How endpoints are chosen.
    balancer: Arc<Balancer>,
    /// Those of all workers.
    pools: Mutex<Vec<Arc<Pool>>>,
}

impl Common {
    /// There is no descriptor for a connection: those of idle ones are free, whichever worker has them, and one may be
    /// after this moment.
    async fn wait_for_descriptor(&self) {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|pool| pool.relieve());
        tokio::time::sleep(dial::DESCRIPTOR_PAUSE).await;
    }
}

/// What the connections of one worker share: what belongs to it alone, so that no other thread touches it while
/// requests are served, and through it what is [`Common`].
#[derive(Debug)]
struct Shared {
    common: Arc<Common>,
    /// The worker's number, from 0.
    worker: usize,
    /// The newest table.
    snapshot: ArcSwap<Snapshot>,
    /// [`Common::log`], counted here.
    log: AccessLog,
    /// Idle connections of this worker.
    pool: Arc<Pool>,
    /// How many copies of requests there may still be.
    copies: Arc<Semaphore>,
    /// For waits of requests.
    timers: Timers,
    phase: watch::Sender<Phase>,
    tasks: Tasks,
}

impl Shared {
    fn new(worker: usize, common: Arc<Common>) -> Arc<Self> {
        let phase = watch::Sender::new(Phase::Running);
        let copies = Arc::new(Semaphore::new(MAX_COPIES));
        let pool = Arc::<Pool>::default();
        common.pools.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&pool));
        Arc::new(Shared {
            log: common.log.of_thread(),
            common,
            worker,
            snapshot: ArcSwap::default(),
            pool,
            copies,
            timers: Timers::default(),
            phase,
            tasks: Tasks::default(),
        })
    }

    /// The timeouts of a router, as the newest table has them.
    fn timeouts(&self, router: &RouterName) -> Timeouts {
        self.snapshot.load().routers.get(router).map(|served| served.table.policy.timeouts).unwrap_or_default()
    }

    /// Waits until the proxy has come to this phase.
    async fn reached(&self, phase: Phase) {
        let mut phases = self.phase.subscribe();
        // The channel cannot close: its sender is in `self`.
        let _ = phases.wait_for(|current| *current >= phase).await;
    }

    /// Starts a task on the worker, whose thread this must be. A graceful stop waits for it.
    fn spawn(self: &Arc<Self>, work: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(Active::new(Arc::clone(self)).during(work));
    }
}

impl Deref for Shared {
    type Target = Common;

    fn deref(&self) -> &Common {
        &self.common
    }
}

/// How many tasks there are that a graceful stop waits for.
#[derive(Debug, Default)]
struct Tasks {
    count: AtomicUsize,
    none: Notify,
}

impl Tasks {
    fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Waits until there is none.
    async fn idle(&self) {
        loop {
            // Notified from here on, so that the last task cannot end unseen between the look and the wait.
            let none = self.none.notified();
            if self.count.load(Ordering::Acquire) == 0 {
                return;
            }
            none.await;
        }
    }
}

/// Counts a task as active while it lives.
#[derive(Debug)]
struct Active(Arc<Shared>);

impl Active {
    fn new(shared: Arc<Shared>) -> Self {
        shared.tasks.count.fetch_add(1, Ordering::Relaxed);
        Active(shared)
    }

    /// Does a connection's work, and then counts no more. The work is put where it stays first: on its way into the
    /// runtime a task's future is moved eight times, and these have more than a kilobyte.
    fn during<W: Future<Output = ()> + Send + 'static>(self, work: W) -> impl Future<Output = ()> + Send + 'static {
        let work = Box::pin(work);
        async move {
            work.await;
            drop(self);
        }
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        if self.0.tasks.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.tasks.none.notify_waiters();
        }
    }
}

/// Makes a snapshot of each table.
struct Serve {
    workers: Arc<Workers>,
    snapshots: Snapshots,
    /// The newest one.
    current: Snapshot,
}

impl Serve {
    fn table(&mut self, table: &Arc<RoutingTable>) {
        let common = &self.workers.common;
        let gone = gone::gone(&self.current, table);
        common.log.follow(table);
        self.current = self.snapshots.make(table, &self.current);
        for Worker { shared, .. } in self.workers.iter() {
            shared.snapshot.store(Arc::new(self.current.of_thread()));
            if !gone.is_empty() {
                shared.pool.retire(&gone);
            }
        }
        common.upstream_tls.retain();
        common.counters.retain(table);
        common.balancer.follow(table, &gone);
    }

    /// Follows the tables as long as there are any; the last one stays. The listeners hear of each after it is served.
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
