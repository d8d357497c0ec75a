//! Threads that serve connections. Each has its own runtime, on which a connection stays from its accept to its end,
//! together with its connections to endpoints. Threads do not wait for each other.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::context::{Active, Phase, ProcessContext, WorkerContext};

const SWEEP_POOL: Duration = Duration::from_secs(10);

/// All workers, at least one. Dropping this ends their threads.
#[derive(Debug)]
pub(super) struct Workers {
    pub common: Arc<ProcessContext>,
    workers: Vec<Worker>,
}

/// A worker as seen by other threads.
#[derive(Debug)]
pub(super) struct Worker {
    /// State of the worker.
    pub shared: Arc<WorkerContext>,
    /// Its runtime.
    pub handle: Handle,
    thread: Mutex<Option<Thread>>,
}

/// A worker's thread. It ends when `stop` is dropped; `ended` is dropped when all its tasks are.
#[derive(Debug)]
struct Thread {
    stop: oneshot::Sender<()>,
    ended: oneshot::Receiver<()>,
}

impl Workers {
    /// Starts `count` threads, or fewer if the system has no resources. Without any, the caller's runtime serves. Must
    /// be called within a tokio runtime.
    pub fn start(count: usize, common: &Arc<ProcessContext>) -> Self {
        let shared = |number| WorkerContext::new(number, Arc::clone(common));
        let mut workers = Vec::with_capacity(count);
        for number in 0..count {
            match Worker::start(shared(number)) {
                Ok(worker) => workers.push(worker),
                Err(error) => {
                    tracing::warn!(%error, wanted = count, started = number, "cannot start all threads");
                    break;
                }
            }
        }
        if workers.is_empty() {
            workers.push(Worker { shared: shared(0), handle: Handle::current(), thread: Mutex::default() });
        }
        Workers { common: Arc::clone(common), workers }
    }

    /// All workers.
    pub fn iter(&self) -> impl Iterator<Item = &Worker> {
        self.workers.iter()
    }

    /// The worker with the fewest connections, if `own` has enough more to justify waking another thread. With few
    /// connections a difference of one is enough, because each may carry much traffic.
    pub fn less_busy_than(&self, own: &WorkerContext) -> Option<&Worker> {
        let idlest = self.workers.iter().min_by_key(|worker| worker.shared.tasks.count())?;
        let count = idlest.shared.tasks.count();
        (own.tasks.count() > count + count / 4).then_some(idlest)
    }

    /// Number of connections.
    pub fn connections(&self) -> usize {
        self.workers.iter().map(|worker| worker.shared.tasks.count()).sum()
    }

    /// Ends connections after their current requests.
    pub fn drain(&self) {
        for worker in &self.workers {
            worker.shared.phase.send_replace(Phase::Draining);
        }
    }

    /// Waits for [`Workers::drain`].
    pub async fn draining(&self) {
        join_all(self.workers.iter().map(|worker| worker.shared.reached(Phase::Draining))).await;
    }

    /// Waits until there are no connections.
    pub async fn idle(&self) {
        for worker in &self.workers {
            worker.shared.tasks.idle().await;
        }
    }

    /// Ends all remaining connections, and the threads.
    pub async fn stop(&self) {
        join_all(self.workers.iter().map(Worker::stop)).await;
    }
}

impl Worker {
    fn start(shared: Arc<WorkerContext>) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let ((stop, stopped), (end, ended)) = (oneshot::channel(), oneshot::channel());
        let pool = Arc::clone(&shared.pool);
        thread::Builder::new().name(format!("worker-{}", shared.worker)).spawn(move || {
            #[cfg(feature = "allocator")]
            let _keeping = router_sys::allocator::CacheGuard::new();
            runtime.spawn(async move {
                let mut sweep = tokio::time::interval(SWEEP_POOL);
                loop {
                    sweep.tick().await;
                    pool.sweep();
                }
            });
            // An error means that the sender was dropped: stop.
            let _ = runtime.block_on(stopped);
            // Dropping it drops its tasks.
            drop(runtime);
            drop::<oneshot::Sender<()>>(end);
        })?;
        Ok(Worker { shared, handle, thread: Mutex::new(Some(Thread { stop, ended })) })
    }

    /// Spawns a connection's task from another thread. A graceful stop waits for the task.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(Active::new(Arc::clone(&self.shared)).during(work));
    }

    async fn stop(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Thread { stop, ended }) = thread {
            drop(stop);
            // An error means that the sender was dropped: stop.
            let _ = ended.await;
        }
    }
}

#[cfg(test)]
mod tests;
