//! Requirements of the benchmarks against peers: release builds, and a folder.

use std::path::{Path, PathBuf};
use std::{fs, thread};

use anyhow::Result;

use crate::process;
use crate::{dist, ebpf, install};

/// Programs and places.
pub struct Tools {
    /// The workspace.
    pub root: PathBuf,
    /// The release build of this program.
    pub load: PathBuf,
    /// Sluice.
    pub sluice: PathBuf,
    /// What kind of build that is, for the report.
    pub build: String,
    /// A folder of the run's own.
    pub work: PathBuf,
    /// Threads or workers of every router with such a setting.
    pub cores: usize,
}

impl Tools {
    /// Builds the agent, unless `SLUICE_BINARY` names another build, and this program.
    pub fn new(root: &Path) -> Result<Tools> {
        // As with the end-to-end tests, another build can be measured.
        let (sluice, build) = match std::env::var_os("SLUICE_BINARY").map(PathBuf::from) {
            Some(other) if is_dist(root, &other) => {
                (other, "the build of `cargo xtask dist` (`SLUICE_BINARY=target/dist/sluice`)".to_owned())
            }
            Some(other) => {
                let build = format!("the build at {}", other.display());
                (other, build)
            }
            None => {
                install::for_tests(root)?;
                ebpf::build(root)?;
                (process::build_sluice(root)?, "the release build".to_owned())
            }
        };
        eprintln!("xtask: measuring {build}");
        process::run(process::cargo(root).args(["build", "--locked", "--release", "--package", "xtask"]))?;
        let work = std::env::temp_dir().join(format!("sluice-bench-{}", std::process::id()));
        fs::create_dir_all(&work)?;
        let load = process::target(root).join("release/xtask");
        Ok(Tools { root: root.to_owned(), load, sluice, build, work, cores: thread::available_parallelism()?.get() })
    }
}

fn is_dist(root: &Path, binary: &Path) -> bool {
    fs::canonicalize(dist::binary(root)).ok().is_some_and(|dist| fs::canonicalize(binary).is_ok_and(|it| it == dist))
}

impl Drop for Tools {
    fn drop(&mut self) {
        // What cannot be removed is in the system's folder for such things.
        let _ = fs::remove_dir_all(&self.work);
    }
}
