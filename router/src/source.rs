//! Where objects come from. A source owns its `Resources` and publishes a new version after every effective change.

mod accepted;
pub mod cluster;
pub mod diagnostic;
pub mod directory;
mod document;
mod entry;
mod manifests;
mod snapshot;
mod unrendered;
mod walk;
mod watch;

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use router_api::defaults::Defaults;
use router_model::field::FieldPath;
use router_model::object::ObjectRef;
use tokio::sync::watch::Receiver;

use crate::kubernetes::client::{ApiServer, ClientError, client};
use cluster::{Cluster, ClusterOptions};
pub use diagnostic::{Diagnostic, Severity};
pub use directory::{Directory, FolderError, folder_of};
use document::tree::Mark;
pub use snapshot::SourceSnapshot;

/// Which source.
#[derive(Clone, Debug)]
pub enum SourceOptions {
    /// A folder of manifests, or a single file.
    Folder(PathBuf),
    /// A Kubernetes API server.
    Cluster(ClusterOptions),
}

/// A source that was read once.
pub enum Source {
    /// A folder of manifests.
    Folder(Box<Directory>),
    /// A Kubernetes API server.
    Cluster(Cluster),
}

/// Why there is no source.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The folder of manifests.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The client of the API server.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The API server cannot be reached.
    #[error("the API server cannot be reached")]
    Unreachable(#[source] kube::Error),
    /// The operating system.
    #[error("no thread reads the API server")]
    Runtime(#[source] std::io::Error),
}

impl Source {
    /// Reads a source for the first time. An API server that cannot be reached is waited for.
    ///
    /// # Errors
    /// [`SourceError`]. Faults of single objects are diagnostics of the snapshot.
    pub async fn open(options: &SourceOptions, defaults: Defaults) -> Result<(Source, SourceSnapshot), SourceError> {
        Ok(match options {
            SourceOptions::Folder(path) => Self::open_folder(path, defaults)?,
            SourceOptions::Cluster(options) => {
                let server = client(options.kubeconfig.as_deref()).await?;
                let opened = Cluster::open(server, options, defaults).await;
                let cluster = opened.map_err(SourceError::Runtime)?;
                let snapshot = cluster.snapshots().borrow().clone();
                (Source::Cluster(cluster), snapshot)
            }
        })
    }

    fn open_folder(path: &Path, defaults: Defaults) -> Result<(Source, SourceSnapshot), SourceError> {
        let (directory, snapshot) = Directory::open(path, defaults)?;
        Ok((Source::Folder(Box::new(directory)), snapshot))
    }

    /// Reads a source once, for a verb of the command line. An API server that cannot be reached is an error.
    ///
    /// # Errors
    /// [`SourceError`].
    pub fn read(options: &SourceOptions, defaults: Defaults) -> Result<(Source, SourceSnapshot), SourceError> {
        let cluster = match options {
            SourceOptions::Folder(path) => return Self::open_folder(path, defaults),
            SourceOptions::Cluster(cluster) => cluster,
        };
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(SourceError::Runtime)?;
        runtime.block_on(async {
            let server = client(cluster.kubeconfig.as_deref()).await?;
            server.client.apiserver_version().await.map_err(SourceError::Unreachable)?;
            Source::open(options, defaults).await
        })
    }

    /// The API server, if it is the source.
    pub fn server(&self) -> Option<ApiServer> {
        match self {
            Source::Folder(_) => None,
            Source::Cluster(cluster) => Some(cluster.server()),
        }
    }

    /// Publishes a new snapshot after each effective change, until every receiver is dropped. The receiver has the present
    /// one at once. The future needs a runtime that allows blocking calls.
    pub fn watch(self) -> (Receiver<SourceSnapshot>, Pin<Box<dyn Future<Output = ()> + Send>>) {
        match self {
            Source::Folder(directory) => {
                let (snapshots, watching) = directory.watch();
                (snapshots, Box::pin(watching))
            }
            Source::Cluster(cluster) => {
                let (snapshots, reading) = cluster.into_snapshots();
                (snapshots, Box::pin(reading))
            }
        }
    }

    /// The current places of fields of objects: file, line and column. An API server's objects have no file, and line and
    /// column 0.
    pub fn locate(&self, fields: &[(&ObjectRef, &FieldPath)]) -> Vec<Option<(Arc<str>, u32, u32)>> {
        match self {
            Source::Folder(directory) => {
                let places = directory.locate(fields).into_iter();
                places.map(|place| place.map(|(file, Mark { line, column })| (file, line, column))).collect()
            }
            Source::Cluster(_) => fields.iter().map(|_| Some(("".into(), 0, 0))).collect(),
        }
    }
}

impl SourceOptions {
    /// A problem as one line, with its place.
    pub fn display(&self, problem: &Diagnostic) -> String {
        match self {
            SourceOptions::Folder(path) => {
                let (folder, _): (&Path, _) = folder_of(path);
                problem.display_in(folder)
            }
            SourceOptions::Cluster(_) => problem.to_string(),
        }
    }
}
