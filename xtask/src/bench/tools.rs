//! What the benchmarks against peers need: release builds, and a folder.

use std::path::{Path, PathBuf};
use std::{fs, thread};

use anyhow::Result;

use crate::process;
use crate::{ebpf, install};

/// Programs and places.
pub struct Tools {
    /// The workspace.
    pub root: PathBuf,
    /// The release build of this program.
    pub load: PathBuf,
    /// The release build of Sluice.
    pub sluice: PathBuf,
    /// A folder of the run's own.
    pub work: PathBuf,
    /// Threads or workers of every router that wants a number.
    pub cores: usize,
}

impl Tools {
    /// Builds what is to be measured, unless `SLUICE_BINARY` names another build of it, and this program.
    pub fn new(root: &Path) -> Result<Tools> {
        // As with the end-to-end tests, another build can be measured.
        let sluice = match std::env::var_os("SLUICE_BINARY") {
            Some(other) => other.into(),
            None => {
                install::for_tests(root)?;
                ebpf::build(root)?;
                process::build_sluice(root, true)?
            }
        };
        process::run(process::cargo(root).args(["build", "--locked", "--release", "--package", "xtask"]))?;
        let work = std::env::temp_dir().join(format!("sluice-bench-{}", std::process::id()));
        fs::create_dir_all(&work)?;
        let load = process::target(root).join("release/xtask");
        Ok(Tools { root: root.to_owned(), load, sluice, work, cores: thread::available_parallelism()?.get() })
    }
}

impl Drop for Tools {
    fn drop(&mut self) {
        // What cannot be removed is in the system's folder for such things.
        let _ = fs::remove_dir_all(&self.work);
    }
}
