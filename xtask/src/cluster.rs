//! `cargo xtask cluster`: a Kubernetes cluster for a person, in network namespaces of this machine. It is that of the
//! tests (`tests/src/cluster.rs`), held by a program of theirs.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Subcommand;

use crate::process::{self, cargo};
use crate::{ebpf, install, kube};

/// What to do with the cluster.
#[derive(Subcommand)]
pub enum Cluster {
    /// Start it, in the background: a control plane, its nodes, and Sluice with examples/quickstart on the first node.
    Up {
        /// Number of nodes.
        #[arg(long, default_value_t = 1)]
        nodes: u8,
    },
    /// Stop it; nothing of it is left.
    Down,
    /// Run kubectl as its administrator.
    #[command(disable_help_flag = true)]
    Kubectl {
        /// Handed to kubectl.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run a program in the network of Sluice: `exec curl http://hello.apps.localhost:8080/`.
    Exec {
        /// The program and its arguments.
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
}

/// Builds what is needed, and becomes the program.
pub fn run(root: &Path, what: Cluster) -> Result<()> {
    ensure!(process::is_root(), "a cluster needs network namespaces: run it again by `sudo --preserve-env=PATH,HOME`");
    let mut arguments: Vec<OsString> = Vec::new();
    match what {
        Cluster::Up { nodes } => {
            install::for_clusters()?;
            install::for_run(root)?;
            kube::build(root)?;
            ebpf::build(root)?;
            let sluice = process::build_sluice(root)?;
            arguments.extend(["up".into(), nodes.to_string().into(), sluice.into()]);
        }
        Cluster::Down => arguments.push("down".into()),
        Cluster::Kubectl { arguments: further } => {
            arguments.push("kubectl".into());
            arguments.extend(further.into_iter().map(OsString::from));
        }
        Cluster::Exec { command } => {
            arguments.push("exec".into());
            arguments.extend(command.into_iter().map(OsString::from));
        }
    }
    let error = Command::new(program(root)?).args(arguments).exec();
    Err(error).context("the program of the tests' clusters cannot be run")
}

/// Builds the program that holds a cluster.
fn program(root: &Path) -> Result<PathBuf> {
    process::run(cargo(root).args(["build", "--quiet", "--locked", "--package", "tests", "--bin", "cluster"]))?;
    Ok(process::target(root).join("debug/cluster"))
}
