//! The folder of the BPF file system that an instance pins its maps and links in.

use std::fs;
use std::path::{Path, PathBuf};

use aya::maps::{Array, Map, MapData, MapError};
use router_common::maps::{ABI, MapsMeta, names};

use router_sys::abi::{Plain, Raw};

/// A pinned map cannot be opened: it does not exist, or must not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot open {pin}: {error} (is an agent with the kernel data path running, and are you root?)")]
pub struct PinError {
    /// The pin.
    pub pin: String,
    /// What failed.
    pub error: MapError,
}

/// Where the kernel objects of an instance are pinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinFolder(PathBuf);

/// Mount point of the BPF file system.
pub const BPFFS: &str = "/sys/fs/bpf";

impl PinFolder {
    /// `/sys/fs/bpf/sluice/<instance>/v<ABI>`.
    pub fn of(instance: &str) -> Self {
        PinFolder(Path::new(BPFFS).join("sluice").join(instance).join(format!("v{ABI}")))
    }

    /// An existing folder, of any layout version.
    pub(crate) fn at(folder: PathBuf) -> Self {
        PinFolder(folder)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The folder of the links that attach the programs to interfaces.
    pub fn links(&self) -> PathBuf {
        self.0.join("links")
    }

    /// The folder of the links that attach the XDP program.
    pub fn gate_links(&self) -> PathBuf {
        self.0.join("gate")
    }

    /// The link that attaches the sock_ops program.
    pub fn socket_link(&self) -> PathBuf {
        self.0.join("sockets")
    }

    /// The pin of a map.
    pub fn map(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Opens a pinned map.
    ///
    /// # Errors
    /// See [`PinError`].
    pub fn open(&self, name: &str) -> Result<Map, PinError> {
        let pin = self.map(name);
        let fail = |error| PinError { pin: pin.display().to_string(), error };
        MapData::from_pin(&pin).and_then(Map::from_map_data).map_err(fail)
    }

    /// The first entry of a pinned array; `None` if it cannot be read.
    pub fn first<T: Plain>(&self, name: &str) -> Option<T> {
        let map: Array<_, Raw<T>> = Array::try_from(self.open(name).ok()?).ok()?;
        map.get(&0, 0).ok().map(|Raw(value)| value)
    }

    /// The running agent that wrote the maps, unless it is this one.
    pub fn other_agent(&self) -> Option<u32> {
        let pid = self.first::<MapsMeta>(names::META)?.pid;
        let name = |pid: u32| fs::read_to_string(format!("/proc/{pid}/comm")).ok();
        // In a container every agent may be process 1: the same number is then an earlier process of this one.
        (pid != std::process::id() && name(pid).is_some() && name(pid) == name(std::process::id())).then_some(pid)
    }
}
