//! The ways from client to backend: direct, through Sluice, or through one of its peers.

use std::fs;
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::groups::Measure;
use super::load::client::Amount;
use super::load::hello::{Hello, NAME};
use super::load::protocol::Load;
use super::peers;
use crate::bench::network::{BACKEND_PORT, Middle, Network, ROUTER_PORT};
use crate::bench::programs::Peer;
use crate::bench::tools::Tools;
use crate::bench::usage;
use crate::process::{self, Running, Server};

/// How packets, or bytes, get from client to backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Routed without a proxy: the baseline.
    Direct,
    /// Sluice with its kernel data path.
    Kernel,
    /// The same where every packet leaves by an interface, as it does towards other hosts.
    ByInterface,
    /// Sluice without.
    Relay,
    /// HAProxy.
    HaProxy,
    /// nginx' stream module.
    Nginx,
    /// Envoy.
    Envoy,
    /// Sluice with its kernel data path, and the XDP gate by the kernel's generic hook.
    GateGeneric,
    /// The same by the driver's hook.
    GateNative,
}

impl Way {
    /// Those of `bench passthrough`, in the order of tables.
    pub const ALL: [Way; 7] =
        [Way::Direct, Way::Kernel, Way::ByInterface, Way::Relay, Way::HaProxy, Way::Nginx, Way::Envoy];

    /// Name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Way::Direct => "direct",
            Way::Kernel => "Sluice kernel",
            Way::ByInterface => "Sluice kernel, by interface",
            Way::Relay => "Sluice relay",
            Way::HaProxy => Peer::HaProxy.name(),
            Way::Nginx => Peer::Nginx.name(),
            Way::Envoy => Peer::Envoy.name(),
            Way::GateGeneric => "gate, generic",
            Way::GateNative => "gate, native",
        }
    }

    /// For `--ways`.
    pub fn id(self) -> &'static str {
        match self {
            Way::Direct => "direct",
            Way::Kernel => "kernel",
            Way::ByInterface => "by-interface",
            Way::Relay => "relay",
            Way::HaProxy => "haproxy",
            Way::Nginx => "nginx",
            Way::Envoy => "envoy",
            Way::GateGeneric => "gate-generic",
            Way::GateNative => "gate-native",
        }
    }

    /// The other project, for a peer's way.
    pub fn peer(self) -> Option<Peer> {
        match self {
            Way::Direct | Way::Kernel | Way::ByInterface | Way::Relay | Way::GateGeneric | Way::GateNative => None,
            Way::HaProxy => Some(Peer::HaProxy),
            Way::Nginx => Some(Peer::Nginx),
            Way::Envoy => Some(Peer::Envoy),
        }
    }
}

/// A way that is open.
pub struct Lane {
    /// Which.
    pub way: Way,
    /// The machine in the middle.
    pub middle: Middle,
    /// None on the direct way.
    router: Option<Running>,
    /// Sluice's kernel objects, of the kernel data path alone.
    instance: Option<PinnedInstance>,
}

/// How long a router may take from its start to the first connection.
const PATIENCE: Duration = Duration::from_secs(20);

impl Lane {
    /// Starts the router and waits until connections work.
    ///
    /// # Errors
    /// It cannot be started, or connections fail; the error says what.
    pub fn open(tools: &Tools, network: &Network, way: Way) -> Result<Lane> {
        let number = way as u8;
        let middle = network.middle(number + 1)?;
        let folder = tools.work.join(format!("router-{number}"));
        fs::create_dir_all(&folder)?;
        let mut instance = None;
        let router = match way {
            Way::Direct => None,
            Way::Kernel | Way::ByInterface | Way::Relay | Way::GateGeneric | Way::GateNative => {
                let started = PinnedInstance {
                    sluice: tools.sluice.clone(),
                    name: format!("bench-{}-{number}", std::process::id()),
                };
                let running = started.start(way, &middle, &folder)?;
                instance = (way != Way::Relay).then_some(started);
                Some(running)
            }
            Way::HaProxy | Way::Nginx | Way::Envoy => {
                let peer = way.peer().context("it is a peer")?;
                Some(peers::start(tools, peer, &middle, &folder)?)
            }
        };
        let lane = Lane { way, middle, router, instance };
        let begin = Instant::now();
        while let Err(error) = lane.probe(tools, network) {
            if begin.elapsed() > PATIENCE {
                return Err(error.context("no connection comes through"));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(lane)
    }

    /// Where clients connect to.
    pub fn targets(&self) -> Vec<SocketAddrV4> {
        match self.way {
            Way::Direct => self.middle.endpoints().to_vec(),
            _ => vec![self.middle.listener()],
        }
    }

    /// The router's processes.
    pub fn processes(&self) -> Result<Vec<u32>> {
        self.router.as_ref().map_or(Ok(Vec::new()), |router| usage::family(router.id()))
    }

    /// Where its kernel maps are pinned.
    pub fn pins(&self) -> Option<PathBuf> {
        self.instance.as_ref().map(PinnedInstance::pins)
    }

    /// Connections that the kernel has dialed; `None` where it does not.
    pub fn dialed(&self) -> Result<Option<u64>> {
        self.instance.as_ref().map(|instance| instance.counted("dialed")).transpose()
    }

    /// Packets of denied sources that the gate has dropped; `None` where there is no gate.
    pub fn denied(&self) -> Result<Option<u64>> {
        let gate = self.instance.as_ref().filter(|_| matches!(self.way, Way::GateGeneric | Way::GateNative));
        gate.map(|instance| instance.counted("source-denied")).transpose()
    }

    /// Makes a load on it.
    pub fn carry(&self, tools: &Tools, network: &Network, measure: Measure, milliseconds: u32) -> Result<Amount> {
        let mut command = network.client.command(&tools.load)?;
        let to: Vec<String> = self.targets().iter().map(ToString::to_string).collect();
        let [load, hello] = [measure.load.name(), measure.hello.name()];
        command.args(["load", "client", "--to", &to.join(","), "--load", &load, "--hello", &hello]);
        command.args(["--connections", &measure.connections.to_string()]);
        command.args(["--milliseconds", &milliseconds.to_string()]);
        let output = command.output().context("the load tool cannot be run")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}", said.trim().trim_start_matches("xtask: "));
        if !said.is_empty() {
            eprintln!("{}", said.trim());
        }
        Amount::read(&String::from_utf8_lossy(&output.stdout))
    }

    /// A few messages there and back, after each hello.
    fn probe(&self, tools: &Tools, network: &Network) -> Result<()> {
        for hello in [Hello::One, Hello::Two] {
            self.carry(tools, network, Measure { load: Load::Echo, connections: 1, hello }, 5)?;
        }
        Ok(())
    }
}

/// Sluice's name in the BPF file system.
struct PinnedInstance {
    sluice: PathBuf,
    name: String,
}

impl PinnedInstance {
    fn start(&self, way: Way, middle: &Middle, folder: &Path) -> Result<Running> {
        let manifests = folder.join("manifests");
        fs::create_dir_all(&manifests)?;
        let (xdp, annotations) = match way {
            Way::GateGeneric => ("generic", DENIED),
            Way::GateNative => ("native", DENIED),
            _ => ("off", ""),
        };
        fs::write(manifests.join("router.yaml"), self::manifests(middle, annotations))?;
        let mut command = middle.netns.command(&self.sluice)?;
        command
            .args(["run", "--huge-text", "auto"])
            .arg("--manifests")
            .arg(manifests)
            .arg("--state")
            .arg(folder.join("state"));
        command.args(["--data-path", if way == Way::Relay { "userspace" } else { "kernel" }]);
        command.args(["--peer-redirect", if matches!(way, Way::ByInterface | Way::Relay) { "never" } else { "auto" }]);
        command.args(["--instance", &self.name, "--drain", "1", "--xdp", xdp]);
        // No access log, as with the peers.
        command.env("SLUICE_LOG", "warn");
        let mut server = Server::start("sluice run", &mut command)?;
        server.wait_for("sluice: ready")?;
        Ok(server.echo())
    }

    fn pins(&self) -> PathBuf {
        Path::new("/sys/fs/bpf/sluice").join(&self.name)
    }

    /// A counter of `sluice bpf stats`; 0 without it.
    fn counted(&self, counter: &str) -> Result<u64> {
        let mut command = Command::new(&self.sluice);
        command.args(["bpf", "stats", "--instance", &self.name]);
        let output = command.output().with_context(|| format!("`{}` cannot be run", process::text(&command)))?;
        if !output.status.success() {
            bail!("`{}`: {}", process::text(&command), String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(count_of(counter, &String::from_utf8_lossy(&output.stdout)))
    }
}

impl Drop for PinnedInstance {
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

/// A policy of the gate that no client meets: those of a flood are denied.
const DENIED: &str = ", annotations: {gate.sluice.dev/deny: 198.18.0.0/15}";

/// One passthrough Route to all endpoints, and the router's annotations.
fn manifests(middle: &Middle, annotations: &str) -> String {
    let addresses = middle.endpoints().map(|endpoint| endpoint.ip().to_string()).join(", ");
    format!(
        "apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {{name: default, namespace: openshift-ingress-operator{annotations}}}
spec:
  domain: bench.test
  endpointPublishingStrategy:
    type: HostNetwork
    hostNetwork: {{httpPort: 8080, httpsPort: {ROUTER_PORT}, statsPort: 1936}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {{name: app, namespace: bench, creationTimestamp: \"2026-01-01T00:00:00Z\"}}
spec:
  host: {NAME}
  to: {{kind: Service, name: app, weight: 100}}
  tls: {{termination: passthrough}}
---
apiVersion: v1
kind: Service
metadata: {{name: app, namespace: bench}}
spec: {{ports: [{{port: 443, targetPort: {BACKEND_PORT}}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: app-1, namespace: bench, labels: {{kubernetes.io/service-name: app}}}}
addressType: IPv4
endpoints: [{{addresses: [{addresses}]}}]
ports: [{{port: {BACKEND_PORT}}}]
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
