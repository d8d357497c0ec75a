//! The cgroup of a node's pods, in every hierarchy of the machine.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::wait::{PATIENCE, wait_until};

const ROOT: &str = "/sys/fs/cgroup";

/// A cgroup of the same name in each hierarchy, without processes when it is dropped.
pub struct Cgroup {
    name: String,
    folders: Vec<PathBuf>,
}

impl Cgroup {
    /// A new cgroup.
    ///
    /// # Errors
    /// When the machine has no cgroups, or the kernel refuses.
    pub fn new(name: &str) -> Result<Cgroup> {
        let hierarchies = hierarchies(Path::new(ROOT))?;
        ensure!(!hierarchies.is_empty(), "this machine has no cgroups in {ROOT}, which nodes of Kubernetes need");
        let folders = hierarchies.iter().map(|hierarchy| hierarchy.join(name)).collect();
        let cgroup = Cgroup { name: name.to_owned(), folders };
        for folder in &cgroup.folders {
            fs::create_dir(folder).with_context(|| format!("making {}", folder.display()))?;
        }
        Ok(cgroup)
    }

    /// Its path below the root of each hierarchy.
    pub fn name(&self) -> String {
        format!("/{}", self.name)
    }

    /// Its folder in each hierarchy.
    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // A cgroup can be removed when the kernel is done with the last process that was in it.
        let removed = |folder: &PathBuf| wait_until("a cgroup is empty", PATIENCE, || remove(folder).is_ok());
        for error in self.folders.iter().map(removed).filter_map(Result::err) {
            eprintln!("leaving a cgroup behind: {error:#}");
        }
    }
}

/// Removes the cgroups whose names begin so, of a process that was killed.
///
/// # Errors
/// When one has processes.
pub fn sweep(prefix: &str) -> Result<()> {
    for hierarchy in hierarchies(Path::new(ROOT))? {
        for entry in fs::read_dir(&hierarchy)? {
            let folder = entry?.path();
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with(prefix) && folder.is_dir() {
                wait_until(&format!("{} is empty", folder.display()), PATIENCE, || remove(&folder).is_ok())?;
            }
        }
    }
    Ok(())
}

/// The unified hierarchy, or each hierarchy of version 1 (cgroups(7)).
fn hierarchies(root: &Path) -> Result<Vec<PathBuf>> {
    if root.join("cgroup.controllers").exists() {
        return Ok(vec![root.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(root).with_context(|| format!("reading {}", root.display()))? {
        let entry = entry?;
        // `cpu` may be a link to `cpu,cpuacct`.
        if entry.file_type()?.is_dir() && entry.path().join("cgroup.procs").exists() {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// Removes a cgroup with those below it.
fn remove(folder: &Path) -> std::io::Result<()> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove(&entry.path())?;
        }
    }
    fs::remove_dir(folder)
}
