//! `examples/quickstart` in a cluster: its objects in the API server, Sluice on a node, and its backends beside the node.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, id};

use anyhow::Result;
use rustix::process::Signal;

use super::control_plane::ControlPlane;
use super::definitions::Definitions;
use crate::netns::Netns;
use crate::process::Process;
use crate::wait::PATIENCE;
use crate::{command, folder, workspace};

/// Sluice and the backends. They end with the value.
pub struct Demonstration {
    // Dropped in this order.
    router: Process,
    _backends: Process,
    _beside: Netns,
}

impl Demonstration {
    /// Installs definitions, rights and objects, and starts Sluice in a namespace of the cluster's network; it is ready when
    /// this returns. Its state is in `state`, its output in `log`.
    ///
    /// # Errors
    /// When an object is rejected, or a process is not ready in time; the error has its output.
    pub fn start(plane: &ControlPlane, site: &Netns, sluice: &Path, state: &Path, log: &Path) -> Result<Demonstration> {
        plane.define(Definitions::GatewayStandard)?;
        let definitions = command::output(Command::new(sluice).arg("crds"))?;
        plane.apply(&String::from_utf8(definitions.stdout)?)?;
        plane.wait_for_definitions()?;
        plane.apply(&fs::read_to_string(workspace().join("deploy/kubernetes/rbac.yaml"))?)?;

        let beside = Netns::new("backends")?;
        let address = plane.network().join(&beside, "eth0")?;
        plane.apply("{apiVersion: v1, kind: Namespace, metadata: {name: openshift-ingress-operator}}")?;
        // The first file has the namespace of the others.
        let example = folder::quickstart(address.into())?;
        let mut files = fs::read_dir(example.path())?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
        files.sort();
        let texts: Vec<String> = files.iter().map(fs::read_to_string).collect::<std::io::Result<_>>()?;
        plane.apply(&texts.join("---\n"))?;

        let mut backends = lasting(&beside, sluice)?;
        backends.arg("demo-backends").args(["--listen", &address.to_string()]);
        let mut backends = Process::start_lasting("sluice demo-backends", backends)?;
        backends.wait_for_line("demo backends: ready", PATIENCE)?;
        let mut router = lasting(site, sluice)?;
        router.args(["run", "--kubernetes", "--kubeconfig"]).arg(plane.kubeconfig_of("sluice", "sluice")?);
        router.arg("--state").arg(state).args(["--instance", &instance(id()), "--drain", "1"]);
        let mut router = Process::start_logged("sluice run", router, log)?;
        router.wait_for_line("sluice: ready", PATIENCE)?;
        Ok(Demonstration { router, _backends: backends, _beside: beside })
    }
}

impl Drop for Demonstration {
    fn drop(&mut self) {
        // It removes what it has in the kernel.
        if let Err(error) = self.router.terminate(PATIENCE) {
            eprintln!("sluice has not ended by itself: {error:#}");
            let _ = self.router.signal(Signal::KILL).and_then(|()| self.router.ended(PATIENCE));
        }
        if pins(id()).exists()
            && let Err(error) = fs::remove_dir_all(pins(id()))
        {
            eprintln!("the pins of sluice stay: {error}");
        }
    }
}

/// Folder of what the Sluice of a process that held a cluster has pinned.
pub fn pins(process: u32) -> PathBuf {
    Path::new("/sys/fs/bpf/sluice").join(instance(process))
}

/// `--instance`.
fn instance(process: u32) -> String {
    format!("cluster-{process}")
}

/// A command that is killed when this process ends.
fn lasting(netns: &Netns, program: impl AsRef<OsStr>) -> Result<Command> {
    let mut command = netns.command("setpriv")?;
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    Ok(command)
}
