//! What is left of clusters whose process was killed: no process, but names.

use std::fs;
use std::process::Command;

use anyhow::Result;

use super::demonstration;
use super::node::cgroup;
use crate::command;

/// Removes the network namespaces and cgroups of a process that has ended, and what its Sluice has pinned.
///
/// # Errors
/// When one cannot be removed.
pub fn remove(process: u32) -> Result<()> {
    // As `Netns::new` names them; cgroups have the name of their node's namespace.
    let prefix = format!("sluice-{process}-");
    cgroup::sweep(&prefix)?;
    let pins = demonstration::pins(process);
    if pins.exists() {
        fs::remove_dir_all(pins)?;
    }
    for entry in fs::read_dir("/run/netns")? {
        let name = entry?.file_name();
        if name.to_string_lossy().starts_with(&prefix) {
            command::output(Command::new("ip").args(["netns", "delete"]).arg(name))?;
        }
    }
    Ok(())
}
