//! What the parts of the proxy share: of the process, of a worker, and its tasks.

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
use super::listeners::returned::OriginalLookup;
use super::listeners::sockets::Sockets;
use super::rt::timer::Timers;
use super::snapshot::Snapshot;
use super::upstream::balancer::Balancer;
use super::upstream_tls::UpstreamTls;
use crate::upstream::pool::Pool;

/// Most copies under way on one worker. With what waits of each ([`MAX_WAITING`](super::http::tee::MAX_WAITING)) that is
/// 64 MiB when every mirror hangs.
pub const MAX_COPIES: usize = 256;

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
    /// Finds out how a connection began that the host translates; without it, its source counts as it is.
    pub original: Option<OriginalLookup>,
    /// Threads that serve connections; `None`: one for each processor that this process may use.
    pub workers: Option<NonZeroUsize>,
}

/// Where the proxy is on its way from start to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Running,
    Draining,
}

/// What all connections share.
#[derive(Debug)]
pub struct Common {
    pub config: ProxyConfig,
    pub upstream_tls: UpstreamTls,
    pub counters: Arc<Counters>,
    pub log: AccessLog,
    /// How endpoints are chosen.
    pub balancer: Arc<Balancer>,
    /// Those of all workers.
    pub pools: Mutex<Vec<Arc<Pool>>>,
}

impl Common {
    /// There is no descriptor for a connection: those of idle ones are free, whichever worker has them, and one may be
    /// after this moment.
    pub async fn wait_for_descriptor(&self) {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|pool| pool.relieve());
        tokio::time::sleep(dial::DESCRIPTOR_PAUSE).await;
    }
}

/// What the connections of one worker share: what belongs to it alone, so that no other thread touches it while
/// requests are served, and through it what is [`Common`].
#[derive(Debug)]
pub struct Shared {
    pub common: Arc<Common>,
    /// The worker's number, from 0.
    pub worker: usize,
    /// The newest table.
    pub snapshot: ArcSwap<Snapshot>,
    /// [`Common::log`], counted here.
    pub log: AccessLog,
    /// Idle connections of this worker.
    pub pool: Arc<Pool>,
    /// How many copies of requests there may still be.
    pub copies: Arc<Semaphore>,
    /// For waits of requests.
    pub timers: Timers,
    pub phase: watch::Sender<Phase>,
    pub tasks: Tasks,
}

impl Shared {
    pub fn new(worker: usize, common: Arc<Common>) -> Arc<Self> {
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
    pub fn timeouts(&self, router: &RouterName) -> Timeouts {
        self.snapshot.load().routers.get(router).map(|served| served.table.policy.timeouts).unwrap_or_default()
    }

    /// Waits until the proxy has come to this phase.
    pub async fn reached(&self, phase: Phase) {
        let mut phases = self.phase.subscribe();
        // The channel cannot close: its sender is in `self`.
        let _ = phases.wait_for(|current| *current >= phase).await;
    }

    /// Starts a task on the worker, whose thread this must be. A graceful stop waits for it.
    pub fn spawn(self: &Arc<Self>, work: impl Future<Output = ()> + Send + 'static) {
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
pub struct Tasks {
    count: AtomicUsize,
    none: Notify,
}

impl Tasks {
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Waits until there is none.
    pub async fn idle(&self) {
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
pub struct Active(Arc<Shared>);

impl Active {
    pub fn new(shared: Arc<Shared>) -> Self {
        shared.tasks.count.fetch_add(1, Ordering::Relaxed);
        Active(shared)
    }

    /// Does a connection's work, and then counts no more. The work is put where it stays first: on its way into the
    /// runtime a task's future is moved eight times, and these have more than a kilobyte.
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
