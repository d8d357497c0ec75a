//! Other agents of this host, under names of their own (`--instance`), whose programs see the packets that this one's see.

use std::fs;
use std::path::{Path, PathBuf};

use router_common::maps::{Config, names};

use super::pin_folder::{BPFFS, PinFolder};
use super::ports::range::PortRange;

/// An agent that works in this thread's network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Its name.
    pub name: String,
    /// Its process.
    pub pid: u32,
    /// The source ports of its dials.
    pub ports: PortRange,
}

/// All of them but those of one's own name. An agent in another PID namespace is not seen.
pub fn others(own: &PinFolder) -> Vec<Instance> {
    let own_instance = own.path().parent();
    let instances = folders(&Path::new(BPFFS).join("sluice"));
    let others = instances.into_iter().filter(|instance| Some(instance.as_path()) != own_instance);
    // Each in the folder of its layout version.
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

/// The folders in a folder; none where it cannot be read.
fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}
