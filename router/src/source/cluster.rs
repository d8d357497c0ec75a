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
mod scope;
mod update;
mod watch;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use kube::Client;
use reader::ClusterReader;
use router_api::defaults::Defaults;
use tokio::sync::{oneshot, watch as channel};

use super::diagnostic::log_new;
use super::directory::FolderSnapshot;

/// Options of the source.
#[derive(Clone, Debug, Default)]
pub struct ClusterOptions {
    /// The kubeconfig; `None`: that of the environment, or the pod's service account.
    pub kubeconfig: Option<PathBuf>,
    /// Namespaces to read; empty: all.
    pub namespaces: Vec<Arc<str>>,
}

/// A cluster that was read once. Its thread ends with the last receiver of its snapshots.
pub struct Cluster {
    client: Client,
    snapshots: channel::Receiver<FolderSnapshot>,
}

impl Cluster {
    /// Lists every kind. Returns when each was listed once; an API server that cannot be reached is waited for.
    ///
    /// # Errors
    /// There is no thread.
    pub async fn open(client: Client, namespaces: Vec<Arc<str>>, defaults: Defaults) -> io::Result<Cluster> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (opened, opening) = oneshot::channel();
        let reading = client.clone();
        thread::Builder::new().name("kubernetes".to_owned()).spawn(move || {
            runtime.block_on(read(reading, namespaces, defaults, opened));
        })?;
        // The sender is dropped only if the thread panicked.
        let snapshots = opening.await.map_err(io::Error::other)?;
        Ok(Cluster { client, snapshots })
    }

    /// The client of the API server.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The snapshots: the present one at once, and a new one after each change.
    pub fn snapshots(&self) -> channel::Receiver<FolderSnapshot> {
        self.snapshots.clone()
    }
}

/// Reads until nobody receives.
async fn read(
    client: Client,
    namespaces: Vec<Arc<str>>,
    defaults: Defaults,
    mut opened: oneshot::Sender<channel::Receiver<FolderSnapshot>>,
) {
    // The first request opens the connection that all watches share.
    drop(client.apiserver_version().await);
    let mut reader = ClusterReader::new(client, namespaces, defaults);
    tokio::select! {
        () = reader.complete() => {}
        () = opened.closed() => return,
    }
    let first = reader.snapshot();
    let mut logged = Arc::clone(&first.diagnostics);
    log_new(&[], &logged);
    let (sender, receiver) = channel::channel(first);
    if opened.send(receiver).is_err() {
        return;
    }
    loop {
        tokio::select! {
            () = reader.change() => {}
            () = sender.closed() => return,
        }
        let snapshot = reader.snapshot();
        log_new(&logged, &snapshot.diagnostics);
        logged = Arc::clone(&snapshot.diagnostics);
        sender.send_replace(snapshot);
    }
}
