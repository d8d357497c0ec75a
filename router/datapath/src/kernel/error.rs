//! Why there is no kernel data path.

use std::io;
use std::path::Path;

use aya::EbpfError;
use aya::maps::MapError;
use aya::programs::ProgramError;

use crate::ports::PortsError;

/// Why there is no kernel data path.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The binary was built without the program.
    #[error("this build has no kernel program; build it with `cargo xtask build-ebpf`, then build the agent again")]
    NoObject,
    /// The binary was built without the program that logs.
    #[error(
        "this build has no kernel program that logs; build it with `cargo xtask build-ebpf --log`, then the agent with \
         `cargo build --release -p router --features kernel-log`"
    )]
    NoLog,
    /// The kernel does not let this process load programs.
    #[error("loading kernel programs needs CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON: run as root or grant them ({0})")]
    NotPermitted(io::Error),
    /// The BPF file system cannot be used.
    #[error("cannot use the BPF file system at {path}: {error}")]
    PinFolder {
        /// What was tried.
        path: String,
        /// What failed.
        error: io::Error,
    },
    /// Another agent uses the folder.
    #[error("process {pid} is using {folder}; give this agent its own --instance")]
    Taken {
        /// The folder.
        folder: String,
        /// The other agent.
        pid: u32,
    },
    /// A pinned map is of another build.
    #[error(
        "cannot adopt the map {map} of {folder}: {what}. End the connections that it carries with \
         `sluice bpf cleanup` and the --instance of this agent, or give it another --instance"
    )]
    Mismatch {
        /// The folder.
        folder: String,
        /// The map.
        map: String,
        /// The difference.
        what: String,
    },
    /// The kernel lacks features that the programs need.
    #[error(
        "this kernel lacks {0}, which the kernel program needs: use a newer kernel, or --data-path userspace, with which \
         the agent relays every connection"
    )]
    Lacking(String),
    /// The kernel rejects a map or the object's BTF.
    #[error("the kernel rejects the maps; with --data-path userspace the agent relays every connection")]
    Load(#[from] EbpfError),
    /// The kernel rejects the program.
    #[error("the kernel rejects the program; with --data-path userspace the agent relays every connection")]
    Program(#[from] ProgramError),
    /// There are no ports to dial from.
    #[error(transparent)]
    Ports(#[from] PortsError),
    /// A map of the object is not as this build expects it.
    #[error("the kernel program is of another build")]
    Map(#[from] MapError),
}

impl KernelError {
    /// A failure with what is pinned in a folder.
    pub(super) fn of_pins(folder: &Path, error: io::Error) -> KernelError {
        match error.kind() {
            io::ErrorKind::PermissionDenied => KernelError::NotPermitted(error),
            _ => KernelError::PinFolder { path: folder.display().to_string(), error },
        }
    }
}
