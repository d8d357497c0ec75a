//! Starts the router with a folder of its own, in a network namespace of its own.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tempfile::TempDir;

use crate::bench::folder::{self, Setting};
use crate::bench::network::Netns;
use crate::process::{self, Running};

/// When to give up on statuses.
const PATIENCE: Duration = Duration::from_secs(120);
/// Ports in the network namespace, where nothing else listens.
pub const SETTING: Setting =
    Setting { http: 80, https: 443, stats: 1936, endpoint: SocketAddr::new(folder::ENDPOINT, 8080) };

/// A running router.
pub struct Launched {
    /// From exec to readiness.
    pub took: Duration,
    /// Its process, which ends first.
    pub running: Running,
    /// Its network namespace.
    pub netns: Netns,
    /// Its manifests.
    pub manifests: PathBuf,
    state: PathBuf,
    _folder: TempDir,
}

impl Launched {
    /// Writes a folder of this number of routes, and starts the router with it.
    pub fn new(sluice: &Path, write: fn(&Path, usize, Setting) -> Result<PathBuf>, routes: usize) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("sluice-bench-").tempdir_in("/dev/shm")?;
        let (manifests, state) = (folder.path().join("manifests"), folder.path().join("state"));
        fs::create_dir(&manifests)?;
        write(&manifests, routes, SETTING)?;
        let netns = Netns::new("start")?;
        let mut command = netns.command(sluice)?;
        command.arg("run").arg("--manifests").arg(&manifests).arg("--state").arg(&state);
        command.args(["--data-path", "userspace", "--endpoint-addresses", "any", "--drain", "1"]);
        let (took, running) = process::start_sluice(&mut command)?;
        Ok(Launched { took, running, netns, manifests, state, _folder: folder })
    }

    /// Waits until the statuses of this number of routes are written.
    pub fn wait_for_statuses(&self, routes: usize) -> Result<()> {
        let (begin, folder) = (Instant::now(), self.state.join("status"));
        // One for each route, and those of what they attach to.
        while fs::read_dir(&folder).map_or(0, Iterator::count) <= routes {
            ensure!(begin.elapsed() < PATIENCE, "statuses are not written {PATIENCE:?} after the start");
            thread::sleep(Duration::from_millis(100));
        }
        self.running.settle()
    }
}
