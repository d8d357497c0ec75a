//! The kernel data path: lower the routing table to map entries, plan the difference, write it, attach the program.
//!
//! ```text
//! RoutingTable ─┐
//! listeners    ─┼─► lower ─► MapImage ─► plan ─► [Change] ─► Maps (kernel) ─► Programmed
//! addresses    ─┤            ▲    ▲
//! paths        ─┘            │    └─ adopt: what the maps held when this agent came
//!                            └─ pools: endpoints of routes, under ids that are never given twice
//!
//! flows ─► sweep ─┐
//! flow_ends      ─┼─► ends ─► access log, counters
//! events         ─┘
//! ```
//! Map writes are idempotent; what fails is kept and tried again, and nobody upstream hears of it but the status.
pub mod abi;
pub mod adopt;
pub mod alias;
pub mod batch;
pub mod decide;
pub mod dump;
pub mod ends;
pub mod events;
pub mod flows;
pub mod host;
pub mod image;
pub mod instances;
pub mod interfaces;
pub mod kernel;
pub mod maps;
pub mod netfilter;
pub mod netlink;
pub mod obstacles;
pub mod paths;
pub mod peers;
pub mod plan;
pub mod pools;
pub mod ports;
mod resets;
pub mod sweep;
mod taken;
pub mod task;

use std::path::{Path, PathBuf};

use router_common::maps::ABI;

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

    /// A folder that is there already, of any layout version.
    pub(crate) fn at(folder: PathBuf) -> Self {
        PinFolder(folder)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The folder of what attaches the programs to interfaces.
    pub fn links(&self) -> PathBuf {
        self.0.join("links")
    }

    /// The pin of a map.
    pub fn map(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

/// Which data path the operator asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum DataPath {
    /// The kernel's, if it can be had; else user space, with the reason in the log.
    #[default]
    Auto,
    /// The kernel's, or fail.
    Kernel,
    /// User space only.
    Userspace,
}
