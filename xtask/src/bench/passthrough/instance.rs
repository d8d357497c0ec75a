//! Sluice on its ways: its objects, its arguments, and what it says of itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use serde_json::Value;

use super::load::hello::NAME;
use crate::bench::http::backend::WEB_PORT;
use crate::bench::network::{BACKEND_PORT, CLEAR_PORT, Middle, ROUTER_PORT};
use crate::process::{Running, Server, output};

/// Host of the edge route.
pub const EDGE: &str = "edge.bench.test";
/// Host of the clear-text route.
pub const CLEAR: &str = "clear.bench.test";

/// What differs between the ways.
#[derive(Clone, Copy)]
pub struct Setting {
    /// `--data-path`.
    pub data_path: &'static str,
    /// `--peer-redirect`.
    pub peer_redirect: &'static str,
    /// `--xdp`.
    pub xdp: &'static str,
    /// Of the IngressController.
    pub annotations: &'static str,
    /// Whether there are an edge and a clear-text route beside the passthrough one.
    pub has_requests: bool,
}

/// A running Sluice's name in the BPF file system, and its state.
pub struct Instance {
    sluice: PathBuf,
    name: String,
    state: PathBuf,
}

impl Instance {
    /// With files below a folder.
    pub fn new(sluice: &Path, name: String, folder: &Path) -> Instance {
        Instance { sluice: sluice.to_owned(), name, state: folder.join("state") }
    }

    /// Starts it.
    pub fn start(&self, setting: Setting, middle: &Middle, folder: &Path) -> Result<Running> {
        let manifests = folder.join("manifests");
        fs::create_dir_all(&manifests)?;
        fs::write(manifests.join("router.yaml"), passthrough(middle, setting.annotations))?;
        if setting.has_requests {
            fs::write(manifests.join("requests.yaml"), requests(middle))?;
        }
        let mut command = middle.netns.command(&self.sluice)?;
        command.args(["run", "--huge-text", "auto"]).arg("--manifests").arg(manifests).arg("--state").arg(&self.state);
        command.args(["--data-path", setting.data_path, "--peer-redirect", setting.peer_redirect]);
        command.args(["--instance", &self.name, "--drain", "1", "--xdp", setting.xdp]);
        // No access log, as with the peers.
        command.env("SLUICE_LOG", "warn");
        let mut server = Server::start("sluice run", &mut command)?;
        server.wait_for("sluice: ready")?;
        Ok(server.echo())
    }

    /// Where its kernel maps are pinned.
    pub fn pins(&self) -> PathBuf {
        Path::new("/sys/fs/bpf/sluice").join(&self.name)
    }

    /// A counter of `sluice bpf stats`; 0 without it.
    pub fn counted(&self, counter: &str) -> Result<u64> {
        let stats = output(Command::new(&self.sluice).args(["bpf", "stats", "--instance", &self.name]))?;
        Ok(count_of(counter, &stats))
    }

    /// The gate in `sluice get status`; null without a policy and a flood.
    pub fn gate(&self) -> Result<Value> {
        let status =
            output(Command::new(&self.sluice).args(["get", "status", "-o", "json", "--state"]).arg(&self.state))?;
        let status: Value = serde_json::from_str(&status)?;
        Ok(status["dataPath"]["gate"].clone())
    }

    /// The rows of `sluice bpf dump`.
    pub fn rows(&self, map: &str) -> Result<Vec<Value>> {
        let mut command = Command::new(&self.sluice);
        Ok(serde_json::from_str(&output(command.args(["bpf", "dump", map, "-o", "json", "--instance", &self.name]))?)?)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // A clean end has removed the pins; this is for the other ends.
        let _ = fs::remove_dir_all(self.pins());
    }
}

/// The last number of the line that has a counter's name as a word.
fn count_of(counter: &str, stats: &str) -> u64 {
    let words = stats.lines().map(|line| line.split_whitespace());
    let line = words.into_iter().find(|words| words.clone().any(|word| word == counter));
    line.and_then(|words| words.filter_map(|word| word.parse().ok()).next_back()).unwrap_or_default()
}

/// The router with its annotations, and one passthrough Route to all endpoints.
fn passthrough(middle: &Middle, annotations: &str) -> String {
    let controller = format!(
        "apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {{name: default, namespace: openshift-ingress-operator{annotations}}}
spec:
  domain: bench.test
  endpointPublishingStrategy:
    type: HostNetwork
    hostNetwork: {{httpPort: {CLEAR_PORT}, httpsPort: {ROUTER_PORT}, statsPort: 1936}}
"
    );
    [controller, route("app", NAME, "app", "\n  tls: {termination: passthrough}"), service("app", BACKEND_PORT, middle)]
        .concat()
}

/// Routes whose requests the proxy handles.
fn requests(middle: &Middle) -> String {
    let edge = route("edge", EDGE, "web", "\n  tls: {termination: edge}");
    [edge, route("clear", CLEAR, "web", ""), service("web", WEB_PORT, middle)].concat()
}

fn route(name: &str, host: &str, service: &str, tls: &str) -> String {
    format!(
        "---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {{name: {name}, namespace: bench, creationTimestamp: \"2026-01-01T00:00:00Z\"}}
spec:
  host: {host}
  to: {{kind: Service, name: {service}, weight: 100}}{tls}
"
    )
}

/// A Service of all endpoints.
fn service(name: &str, port: u16, middle: &Middle) -> String {
    let addresses = middle.endpoints().map(|endpoint| endpoint.ip().to_string()).join(", ");
    format!(
        "---
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: bench}}
spec: {{ports: [{{port: 443, targetPort: {port}}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: {name}-1, namespace: bench, labels: {{kubernetes.io/service-name: {name}}}}}
addressType: IPv4
endpoints: [{{addresses: [{addresses}]}}]
ports: [{{port: {port}}}]
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_in_the_statistics() {
        let stats = "VERDICT  REASON       CONNECTIONS\nsteer    passthrough  12\n\nCOUNTER  COUNT\ndialed   11\n";
        assert_eq!(["dialed", "passthrough", "source-denied"].map(|counter| count_of(counter, stats)), [11, 12, 0]);
    }
}
