//! A node of a cluster: containerd and the kubelet, in namespaces of their own for mounts, processes and the network.
//!
//! containerd is the first process of the node; all others end with it, and their mounts with them. Pods are in a cgroup of
//! the node. Nothing of the machine's own `/var` and `/run` is seen or changed.

pub mod cgroup;
mod config;
mod containerd;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use cgroup::Cgroup;
pub use config::Pods;
use containerd::Containerd;
use serde_json::Value;
use tempfile::TempDir;

use super::built::built;
use super::control_plane::ControlPlane;
use crate::command;
use crate::netns::Netns;
use crate::process::Process;
use crate::wait::PATIENCE;

/// A running node; a pod can be scheduled on it.
pub struct Node {
    name: String,
    // Dropped in this order: containerd's end is that of every process of the node.
    containerd: Containerd,
    kubelet: Process,
    cgroup: Cgroup,
    netns: Netns,
    _folder: TempDir,
}

impl Node {
    /// Starts a node and waits until it is ready. Its pods have addresses of 10.91.N.0/24, where N is the last byte of the
    /// node's own.
    ///
    /// # Errors
    /// When a component does not start, or the node is not ready in time; the error has their output.
    pub fn start(plane: &ControlPlane, name: &str, pods: Pods) -> Result<Node> {
        let (folder, kube) = (TempDir::new()?, built("kube")?);
        for path in [folder.path(), &kube] {
            let is_hidden = ["/run", "/var"].iter().any(|hidden| path.starts_with(hidden));
            ensure!(!is_hidden, "nodes have a /run and a /var of their own, without {}: move it", path.display());
        }
        let netns = Netns::new(name)?;
        let address = plane.network().join(&netns, "eth0")?;
        let [.., number] = address.octets();
        let subnet = format!("10.91.{number}.0/24");
        plane.network().route(&subnet, address)?;
        netns.set("ipv4/ip_forward", "1")?;
        let cgroup = Cgroup::new(netns.name())?;
        config::write(folder.path(), pods, &subnet)?;
        let containerd = Containerd::start(&netns, folder.path())?;
        let server = plane.credentials().server(name, &[name, &address.to_string()])?;
        let [certificate, key] = server.write(folder.path(), "kubelet")?;
        let user = plane.credentials().user(&format!("system:node:{name}"), "system:nodes")?;
        let kubeconfig = plane.credentials().kubeconfig(&format!("kubelet-{name}"), &user)?;
        let config = config::kubelet(&cgroup.name(), &plane.credentials().ca(), &certificate, &key);
        let file = folder.path().join("kubelet.json");
        fs::write(&file, serde_json::to_vec_pretty(&config)?)?;
        let mut kubelet = containerd.command(kube)?;
        kubelet.arg("kubelet").arg("--config").arg(file).arg("--kubeconfig").arg(kubeconfig);
        kubelet.args(["--hostname-override", name, "--node-ip", &address.to_string()]);
        let kubelet = Process::start("kubelet", &mut kubelet)?;
        let node = Node { name: name.to_owned(), containerd, kubelet, cgroup, netns, _folder: folder };
        node.import(&built("images/pause.tar")?)?;
        node.wait_until_ready(plane)?;
        Ok(node)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its network namespace, where pods with `hostNetwork` are.
    pub fn netns(&self) -> &Netns {
        &self.netns
    }

    /// Imports an image from an archive of the OCI image layout.
    ///
    /// # Errors
    /// When containerd rejects it.
    pub fn import(&self, image: &Path) -> Result<()> {
        let mut ctr = self.command("ctr")?;
        command::output(ctr.args(["--namespace", "k8s.io", "images", "import"]).arg(image)).map(drop)
    }

    /// A command to run on the node, with its mounts and processes.
    ///
    /// # Errors
    /// When the namespace cannot be handed on.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Result<Command> {
        self.containerd.command(program)
    }

    /// Process id of its first process.
    pub fn first_process(&self) -> u32 {
        self.containerd.id()
    }

    /// Folders of its cgroups.
    pub fn cgroups(&self) -> &[PathBuf] {
        self.cgroup.folders()
    }

    fn wait_until_ready(&self, plane: &ControlPlane) -> Result<()> {
        let ready = |node: &Value| {
            let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
            conditions.into_iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
        };
        let said = || format!("the kubelet printed:\n{}", self.kubelet.output().join("\n"));
        plane.api().wait_for("/api/v1/nodes", &self.name, PATIENCE, ready).map(drop).with_context(said)
    }
}
