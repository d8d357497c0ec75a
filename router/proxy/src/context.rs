//! State of the proxy that its parts share: of the process, of a worker, and of its tasks.

use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use router_access_log::{AccessLog, AccessLogForm, Counters};
use router_model::names::RouterName;
use router_table::policy::Timeouts;
use rustls::RootCertStore;
use tokio::sync::{Notify, Semaphore, watch};

use super::dial;
use super::listeners::loop_detection::OriginalLookup;
use super::listeners::sockets::Sockets;
use super::rt::timer::Timers;
use super::serving_table::ServingTable;
use super::upstream::balancer::Balancer;
use super::upstream_tls::UpstreamTls;
use crate::upstream::pool::ConnectionPool;

/// Most mirrored requests in progress per worker. With the waiting data of each
/// ([`MAX_WAITING`](super::http::tee::MAX_WAITING)), 64 MiB if every mirror stalls.
pub const MAX_COPIES: usize = 256;

/// Configuration of the proxy, beside the routing table.
#[derive(Clone, Debug, Default)]
pub struct ProxyConfig {
    /// Addresses that listeners are bound to.
    pub listen: Vec<IpAddr>,
    /// CA bundle for re-encrypt routes without one of their own; if absent, these are not served (fail closed).
    pub service_ca: Option<Arc<RootCertStore>>,
    /// CA certificates for backends whose policy requests the system's; `None`: read from the system.
    pub system_roots: Option<Arc<RootCertStore>>,
    /// Form of the access log.
    pub access_log: AccessLogForm,
    /// Whether error responses name their cause in `x-sluice-cause`.
    pub show_cause: bool,
    /// Inherited listening sockets.
    pub sockets: Sockets,
    /// Whether the kernel data path is active: accepting must be deferred to the first bytes, and the kernel resets
    /// connections that it takes over.
    pub steered: bool,
    /// Looks up the original addresses of a translated connection; without it, the source address is used unchanged.
    pub original: Option<OriginalLookup>,
    /// Number of worker threads; `None`: one for each processor that this process may use.
    pub workers: Option<NonZeroUsize>,
}

/// Phase between start and stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Running,
    Draining,
}

/// State of the process.
#[derive(Debug)]
pub struct ProcessContext {
    pub config: ProxyConfig,
    pub upstream_tls: UpstreamTls,
    pub counters: Arc<Counters>,
    pub log: AccessLog,
    /// Load-balancing state.
    pub balancer: Arc<Balancer>,
    /// The pools of all workers.
    pub pools: Mutex<Vec<Arc<ConnectionPool>>>,
}

impl ProcessContext {
    /// Frees descriptors of idle connections of all workers, and waits until some may be available.
    pub async fn wait_for_descriptor(&self) {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|pool| pool.relieve());
        tokio::time::sleep(dial::DESCRIPTOR_PAUSE).await;
    }
}

/// State of a worker, which no other thread accesses while it serves requests, and through it the state of the process.
#[derive(Debug)]
pub struct WorkerContext {
    pub common: Arc<ProcessContext>,
    /// Index of the worker.
    pub worker: usize,
    /// The newest table.
    pub snapshot: ArcSwap<ServingTable>,
    /// [`ProcessContext::log`], with a reference count of its own.
    pub log: AccessLog,
    /// Connections to endpoints of this worker.
    pub pool: Arc<ConnectionPool>,
    /// Permits of mirrored requests.
    pub copies: Arc<Semaphore>,
    /// Timers for requests.
    pub timers: Timers,
    pub phase: watch::Sender<Phase>,
    pub tasks: Tasks,
}

impl WorkerContext {
    pub fn new(worker: usize, common: Arc<ProcessContext>) -> Arc<Self> {
        let phase = watch::Sender::new(Phase::Running);
        let copies = Arc::new(Semaphore::new(MAX_COPIES));
        let pool = Arc::<ConnectionPool>::default();
        common.pools.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&pool));
        Arc::new(WorkerContext {
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

    /// Current timeouts of a router.
    pub fn timeouts(&self, router: &RouterName) -> Timeouts {
        self.snapshot.load().routers.get(router).map(|served| served.table.policy.timeouts).unwrap_or_default()
    }

    /// Waits until the proxy reaches this phase.
    pub async fn reached(&self, phase: Phase) {
        let mut phases = self.phase.subscribe();
        // The channel cannot close, because its sender is in `self`.
        let _ = phases.wait_for(|current| *current >= phase).await;
    }

    /// Spawns a task on the worker; must be called on its thread. A graceful stop waits for the task.
    pub fn spawn(self: &Arc<Self>, work: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(Active::new(Arc::clone(self)).during(work));
    }
}

impl Deref for WorkerContext {
    type Target = ProcessContext;

    fn deref(&self) -> &ProcessContext {
        &self.common
    }
}

/// Number of tasks that a graceful stop waits for.
#[derive(Debug, Default)]
pub struct Tasks {
    count: AtomicUsize,
    none: Notify,
}

impl Tasks {
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Waits until there are no tasks.
    pub async fn idle(&self) {
        loop {
            // Registered before the check, so that the end of the last task is not missed.
            let none = self.none.notified();
            if self.count.load(Ordering::Acquire) == 0 {
                return;
            }
            none.await;
        }
    }
}

/// Counts a task while it exists.
#[derive(Debug)]
pub struct Active(Arc<WorkerContext>);

impl Active {
    pub fn new(shared: Arc<WorkerContext>) -> Self {
        shared.tasks.count.fetch_add(1, Ordering::Relaxed);
        Active(shared)
    }

    /// Runs a connection's work and then releases the count. The work is boxed first: a task's future is moved eight
    /// times on its way into the runtime, and these have more than a kilobyte.
    pub fn during<W: Future<Output = ()> + Send + 'static>(self, work: W) -> impl Future<Output = ()> + Send + 'static {
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
