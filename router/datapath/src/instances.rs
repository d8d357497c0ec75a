//! Other agents of this host (`--instance`), whose programs see the same packets as this one's.

use std::fs;
use std::path::{Path, PathBuf};

use router_common::maps::{Config, names};

use super::pin_folder::{BPFFS, PinFolder};
use super::ports::range::PortRange;

/// An agent that runs in this thread's network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Its name.
    pub name: String,
    /// Its process id.
    pub pid: u32,
    /// The source ports of its dials.
    pub ports: PortRange,
}

/// All agents except those of this instance's name. An agent in another PID namespace is not found.
pub fn others(own: &PinFolder) -> Vec<Instance> {
    let own_instance = own.path().parent();
    let instances = folders(&Path::new(BPFFS).join("sluice"));
    let others = instances.into_iter().filter(|instance| Some(instance.as_path()) != own_instance);
    // Each instance has a folder for each layout version.
    others.flat_map(|instance| folders(&instance)).filter_map(|folder| instance(PinFolder::at(folder))).collect()
}

fn instance(folder: PinFolder) -> Option<Instance> {
    let pid = folder.other_agent()?;
    let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/net")).ok();
    if namespace(&pid.to_string())? != namespace("thread-self")? {
        return None;
    }
    let config: Config = folder.first(names::CONFIG)?;
    let (low, high) = (config.first_port, config.first_port.checked_add(config.ports.checked_sub(1)?)?);
    let name = folder.path().parent()?.file_name()?.to_string_lossy().into_owned();
    Some(Instance { name, pid, ports: PortRange { low, high } })
}

/// The subfolders of a folder; none if it cannot be read.
fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}
