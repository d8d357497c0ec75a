//! A Kubernetes API server as a source of objects.
//!
//! Each kind is listed and watched; nothing is published before every kind was listed once. A kind that is not installed
//! or may not be read holds nothing back. While the API server cannot be reached, what was last read stays in force.
//!
//! First the kinds that reference others are listed, then EndpointSlices, Secrets and ConfigMaps, of which only those are
//! held that are referenced. Reading has a thread of its own: parsing must not delay the proxy's tasks.

mod fetch;
mod objects;
mod reader;
mod referenced;
mod revision;
mod scope;
mod snapshot;
mod update;
mod watch;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use reader::ClusterReader;
use router_api::defaults::Defaults;
use snapshot::Place;
use tokio::sync::{oneshot, watch as channel};
use tokio::time::timeout;

use super::diagnostic::log_new;
use super::snapshot::SourceSnapshot;
use crate::kubernetes::client::ApiServer;

/// Time for the API server to list every kind before a snapshot is used.
const PATIENCE: Duration = Duration::from_secs(2);

/// Options of the source.
#[derive(Clone, Debug, Default)]
pub struct ClusterOptions {
    /// The kubeconfig; `None`: that of the environment, or the pod's service account.
    pub kubeconfig: Option<PathBuf>,
    /// Namespaces to read; empty: all.
    pub namespaces: Vec<Arc<str>>,
    /// File of the snapshot that serves while the API server cannot be reached at a start; `None`: there is none.
    pub snapshot: Option<PathBuf>,
}

/// A cluster that was read once. Its thread ends with the last receiver of its snapshots.
pub struct Cluster {
    server: ApiServer,
    snapshots: channel::Receiver<SourceSnapshot>,
    ended: oneshot::Receiver<()>,
}

impl Cluster {
    /// Lists every kind. Returns when each was listed once, or when the snapshot of an earlier agent was read instead; an
    /// API server that cannot be reached is waited for if there is none.
    ///
    /// # Errors
    /// There is no thread.
    pub async fn open(server: ApiServer, options: &ClusterOptions, defaults: Defaults) -> io::Result<Cluster> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (opened, opening) = oneshot::channel();
        let (ending, ended) = oneshot::channel();
        let namespaces = options.namespaces.clone();
        let place = options.snapshot.clone();
        let place = place.map(|path| Place { path, server: server.url.clone(), namespaces: namespaces.join(",") });
        let reading = server.clone();
        thread::Builder::new().name("kubernetes".to_owned()).spawn(move || {
            runtime.block_on(read(reading, namespaces, defaults, place, opened));
            drop(ending);
        })?;
        // The sender is dropped only if the thread panicked.
        let snapshots = opening.await.map_err(io::Error::other)?;
        Ok(Cluster { server, snapshots, ended })
    }

    /// The API server.
    pub fn server(&self) -> ApiServer {
        self.server.clone()
    }

    /// The snapshots: the present one at once, and a new one after each change.
    pub fn snapshots(&self) -> channel::Receiver<SourceSnapshot> {
        self.snapshots.clone()
    }

    /// The snapshots, and a future that ends when what was read is in the file of the snapshot, after the last receiver was
    /// dropped.
    pub fn into_snapshots(self) -> (channel::Receiver<SourceSnapshot>, impl Future<Output = ()> + Send) {
        let ended = self.ended;
        (self.snapshots, async { drop(ended.await) })
    }
}

/// Waits for a change; first until every kind was listed.
async fn next(reader: &mut ClusterReader, complete: bool) {
    if complete {
        reader.change().await;
    } else {
        reader.complete(None).await;
    }
}

/// Reads until nobody receives.
async fn read(
    server: ApiServer,
    namespaces: Vec<Arc<str>>,
    defaults: Defaults,
    place: Option<Place>,
    mut opened: oneshot::Sender<channel::Receiver<SourceSnapshot>>,
) {
    let deadline = place.is_some().then(|| Instant::now() + PATIENCE);
    // The first request opens the connection that all watches share.
    let _ = timeout(PATIENCE, server.client.apiserver_version()).await;
    let mut reader = ClusterReader::new(server, namespaces, defaults, place);
    let mut complete = tokio::select! {
        complete = reader.complete(deadline) => complete,
        () = opened.closed() => return,
    };
    let as_of = if complete { None } else { reader.load() };
    if let Some(as_of) = as_of {
        let age = as_of.elapsed().unwrap_or_default().as_secs();
        tracing::warn!(
            age_in_seconds = age,
            "the API server has not listed every kind: the snapshot of an earlier agent serves"
        );
    } else if !complete {
        complete = tokio::select! {
            complete = reader.complete(None) => complete,
            () = opened.closed() => return,
        };
    }
    let as_of = as_of.and_then(|as_of| Timestamp::try_from(as_of).ok());
    let first = SourceSnapshot { as_of, ..reader.snapshot() };
    let mut logged = Arc::clone(&first.diagnostics);
    log_new(&[], &logged);
    let (sender, receiver) = channel::channel(first);
    if opened.send(receiver).is_err() {
        return;
    }
    loop {
        tokio::select! {
            () = next(&mut reader, complete) => {}
            () = sender.closed() => return,
        }
        if !complete {
            complete = true;
            tracing::info!("the API server has listed every kind: the snapshot of an earlier agent serves no longer");
        }
        let snapshot = reader.snapshot();
        log_new(&logged, &snapshot.diagnostics);
        logged = Arc::clone(&snapshot.diagnostics);
        sender.send_replace(snapshot);
    }
}
