//! containerd as the first process of a node.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};

use crate::netns::Netns;
use crate::process::Process;
use crate::wait::{PATIENCE, wait_for};
use crate::workspace;

/// A running containerd. When it ends, the kernel ends all processes of its PID namespace.
pub struct Containerd {
    /// `unshare`, which waits for it.
    parent: Process,
    process: Pid,
    netns: Netns,
}

impl Containerd {
    /// Starts it in the node's network namespace and in new ones of mounts and processes; it answers when this returns.
    ///
    /// # Errors
    /// When it does not start; the error has its output.
    pub fn start(netns: &Netns, folder: &Path) -> Result<Containerd> {
        let mut command = netns.command("setpriv")?;
        command.args(["--pdeathsig", "KILL", "--", "unshare", "--mount", "--pid", "--fork", "--kill-child"]);
        command.arg("--mount-proc").arg(workspace().join("tests/cluster/node/init.sh")).arg(folder);
        let mut parent = Process::start_lasting("containerd", command)?;
        let id = parent.id();
        let child = || {
            let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
            children.split_whitespace().next().and_then(|child| Pid::from_raw(child.parse().ok()?))
        };
        let listening = || {
            let child = child()?;
            let socket = format!("/proc/{}/root/run/containerd/containerd.sock", child.as_raw_nonzero());
            Path::new(&socket).exists().then_some(child)
        };
        let (process, _) = wait_for("containerd listens", PATIENCE, || {
            let listening = listening();
            (listening.is_some() || !parent.runs()).then_some(listening)
        })?;
        let said = || format!("containerd has ended, printing:\n{}", parent.output().join("\n"));
        Ok(Containerd { process: process.with_context(said)?, netns: netns.clone(), parent })
    }

    /// A command in the namespaces of the node.
    ///
    /// # Errors
    /// When the network namespace cannot be handed on.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Result<Command> {
        let mut command = self.netns.command("nsenter")?;
        command.args(["--target", &self.id().to_string(), "--mount", "--pid", "--"]).arg(program);
        Ok(command)
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.as_raw_nonzero().get().unsigned_abs()
    }
}

impl Drop for Containerd {
    fn drop(&mut self) {
        // Its parent gets to know of its end when the last process of the namespace has ended.
        if self.parent.runs()
            && kill_process(self.process, Signal::KILL).is_ok()
            && let Err(error) = self.parent.ended(PATIENCE)
        {
            eprintln!("leaving processes of a node behind: {error:#}");
        }
    }
}
