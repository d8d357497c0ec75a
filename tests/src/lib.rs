//! The harness of Sluice's end-to-end stories: network namespaces, the real binary, third-party servers and clients.
//!
//! Every story creates its own namespaces, so stories run concurrently with fixed ports. No story is skipped: one that
//! cannot run fails with a line that names what is missing.

pub mod claims;
pub mod client;
pub mod cluster;
pub mod command;
pub mod dress;
pub mod echo;
pub mod folder;
pub mod frames;
pub mod hello;
pub mod netns;
pub mod nginx;
pub mod pauses;
pub mod pinned;
pub mod pki;
pub mod process;
pub mod program;
pub mod python;
pub mod raw;
pub mod sluice;
pub mod socket_option;
pub mod steering;
pub mod stream;
pub mod tunnel;
pub mod wait;
pub mod watcher;
pub mod wire;

use std::path::{Path, PathBuf};

/// The root folder of the workspace.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").components().collect::<PathBuf>()
}

/// Path of a file of `examples/demo-certificates`; an absolute path is unchanged.
pub fn demo_certificate(name: impl AsRef<Path>) -> PathBuf {
    workspace().join("examples/demo-certificates").join(name)
}

/// The CA of all certificates in the quickstart.
pub fn demo_ca() -> PathBuf {
    demo_certificate("demo-only-ca.crt")
}
