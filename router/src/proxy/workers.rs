//! The threads that serve what is relayed: a runtime of its own on each, so that a connection stays where it is, and
//! a message wakes nobody but the thread that carries it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::watch;

/// Runtimes that connections are spread over. The threads end when this is dropped.
#[derive(Debug)]
pub struct Workers {
    workers: Vec<Worker>,
    _stop: watch::Sender<()>,
}

#[derive(Clone, Debug)]
struct Worker {
    handle: Handle,
    connections: Arc<AtomicUsize>,
}

/// A connection's place on a worker, while it lives.
#[derive(Debug)]
pub struct Place(Worker);

impl Workers {
    /// Starts so many threads; fewer when the system has no more to give, and with none the runtime of the caller
    /// serves. Must be called within a tokio runtime.
    pub fn start(count: usize) -> Self {
        let (stop, stopped) = watch::channel(());
        let started = (0..count).map_while(|number| match start(number, stopped.clone()) {
            Ok(handle) => Some(handle),
            Err(error) => {
                tracing::warn!(%error, wanted = count, started = number, "cannot start all threads for connections");
                None
            }
        });
        let mut handles: Vec<Handle> = started.collect();
        if handles.is_empty() {
            handles.push(Handle::current());
        }
        let workers = handles.into_iter().map(|handle| Worker { handle, connections: Arc::default() });
        Workers { workers: workers.collect(), _stop: stop }
    }

    /// A place on the worker with the fewest connections.
    pub fn place(&self) -> Place {
        let fewest = self.workers.iter().min_by_key(|worker| worker.connections.load(Ordering::Relaxed));
        let worker =
            fewest.cloned().unwrap_or_else(|| Worker { handle: Handle::current(), connections: Arc::default() });
        worker.connections.fetch_add(1, Ordering::Relaxed);
        Place(worker)
    }
}

impl Place {
    /// The runtime to serve the connection on.
    pub fn handle(&self) -> Handle {
        self.0.handle.clone()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

fn start(number: usize, mut stopped: watch::Receiver<()>) -> io::Result<Handle> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    thread::Builder::new().name(format!("relay-{number}")).spawn(move || {
        // An error says that the sender is gone: that is the stop.
        runtime.block_on(async { while stopped.changed().await.is_ok() {} });
    })?;
    Ok(handle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn connections_are_spread_and_places_are_given_back() {
        let workers = Workers::start(2);
        let places: Vec<Place> = (0..4).map(|_| workers.place()).collect();
        let loads = || workers.workers.iter().map(|w| w.connections.load(Ordering::Relaxed)).collect::<Vec<_>>();
        assert_eq!(loads(), [2, 2]);
        assert_ne!(places[0].handle().id(), places[1].handle().id());
        drop(places);
        assert_eq!(loads(), [0, 0]);
    }

    #[tokio::test]
    async fn without_threads_the_callers_runtime_serves() {
        let workers = Workers::start(0);
        assert_eq!(workers.place().handle().id(), Handle::current().id());
    }

    #[tokio::test]
    async fn a_worker_ends_with_its_set() {
        let workers = Workers::start(1);
        let task = workers.place().handle().spawn(std::future::pending::<()>());
        drop(workers);
        // The runtime that goes away cancels what it still has.
        let ended = tokio::time::timeout(std::time::Duration::from_secs(10), task).await;
        assert!(ended.expect("the thread ends").is_err_and(|error| error.is_cancelled()));
    }
}
