//! The ways from client to backend: direct, through Sluice, or through one of its peers.

use std::fs;
use std::net::SocketAddrV4;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::groups::Measure;
use super::instance::{Instance, Setting};
use super::load::client::Amount;
use super::load::hello::Hello;
use super::load::protocol::Load;
use super::peers;
use crate::bench::network::{Middle, Network};
use crate::bench::programs::Peer;
use crate::bench::tools::Tools;
use crate::bench::usage;
use crate::process::{self, Running};

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
    /// Sluice with its kernel data path, no policy, and the XDP gate as by default.
    GateIdle,
    /// Sluice with its kernel data path, and the XDP gate by the kernel's generic hook.
    GateGeneric,
    /// The same by the driver's hook.
    GateNative,
    /// Sluice with its kernel data path and no policy; a flood is answered with SYN cookies by the kernel's generic hook.
    CookiesGeneric,
    /// The same by the driver's hook.
    CookiesNative,
}

/// A policy of the gate that no client meets: those of a flood are denied.
const DENIED: &str = ", annotations: {gate.sluice.dev/deny: 198.18.0.0/15}";

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
            Way::GateIdle => "gate, no policy",
            Way::GateGeneric => "gate, generic",
            Way::GateNative => "gate, native",
            Way::CookiesGeneric => "cookies, generic",
            Way::CookiesNative => "cookies, native",
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
            Way::GateIdle => "gate-idle",
            Way::GateGeneric => "gate-generic",
            Way::GateNative => "gate-native",
            Way::CookiesGeneric => "cookies-generic",
            Way::CookiesNative => "cookies-native",
        }
    }

    /// The other project, for a peer's way.
    pub fn peer(self) -> Option<Peer> {
        match self {
            Way::HaProxy => Some(Peer::HaProxy),
            Way::Nginx => Some(Peer::Nginx),
            Way::Envoy => Some(Peer::Envoy),
            _ => None,
        }
    }

    /// Of Sluice's ways.
    fn setting(self) -> Setting {
        let usual =
            Setting { data_path: "kernel", peer_redirect: "auto", xdp: "off", annotations: "", has_requests: false };
        match self {
            Way::ByInterface => Setting { peer_redirect: "never", ..usual },
            Way::Relay => Setting { data_path: "userspace", peer_redirect: "never", ..usual },
            Way::GateIdle => Setting { xdp: "auto", ..usual },
            Way::GateGeneric => Setting { xdp: "generic", annotations: DENIED, ..usual },
            Way::GateNative => Setting { xdp: "native", annotations: DENIED, ..usual },
            Way::CookiesGeneric => Setting { xdp: "generic", has_requests: true, ..usual },
            Way::CookiesNative => Setting { xdp: "native", has_requests: true, ..usual },
            _ => usual,
        }
    }

    /// The counter of the SYNs of a flood that XDP takes; `None` where it takes none.
    fn counter(self) -> Option<&'static str> {
        match self {
            Way::GateGeneric | Way::GateNative => Some("source-denied"),
            Way::CookiesGeneric | Way::CookiesNative => Some("syn-cookies"),
            _ => None,
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
    instance: Option<Instance>,
}

/// Numbers of twins begin here, behind those of all ways.
const TWINS: u8 = 32;
/// How long a router may take from its start to the first connection.
const PATIENCE: Duration = Duration::from_secs(20);

impl Lane {
    /// Starts the router and waits until connections work.
    ///
    /// # Errors
    /// It cannot be started, or connections fail; the error says what.
    pub fn open(tools: &Tools, network: &Network, way: Way) -> Result<Lane> {
        Lane::numbered(tools, network, way, way as u8)
    }

    /// The same once more, beside the first.
    ///
    /// # Errors
    /// As of [`Lane::open`].
    pub fn open_twin(tools: &Tools, network: &Network, way: Way) -> Result<Lane> {
        Lane::numbered(tools, network, way, TWINS + way as u8)
    }

    fn numbered(tools: &Tools, network: &Network, way: Way, number: u8) -> Result<Lane> {
        let middle = network.middle(number + 1)?;
        let folder = tools.work.join(format!("router-{number}"));
        fs::create_dir_all(&folder)?;
        let mut instance = None;
        let router = match way.peer() {
            Some(peer) => Some(peers::start(tools, peer, &middle, &folder)?),
            None if way == Way::Direct => None,
            None => {
                let name = format!("bench-{}-{number}", std::process::id());
                let started = Instance::new(&tools.sluice, name, &folder);
                let running = started.start(way.setting(), &middle, &folder)?;
                instance = (way != Way::Relay).then_some(started);
                Some(running)
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

    /// Sluice with its kernel data path.
    pub fn instance(&self) -> Option<&Instance> {
        self.instance.as_ref()
    }

    /// Connections that the kernel has dialed; `None` where it does not.
    pub fn dialed(&self) -> Result<Option<u64>> {
        self.instance.as_ref().map(|instance| instance.counted("dialed")).transpose()
    }

    /// SYNs of a flood that XDP has dropped or answered; `None` where it does not.
    pub fn taken(&self) -> Result<Option<u64>> {
        let counted = self.instance.as_ref().zip(self.way.counter());
        counted.map(|(instance, counter)| instance.counted(counter)).transpose()
    }

    /// Makes a load on it.
    pub fn carry(&self, tools: &Tools, network: &Network, measure: Measure, milliseconds: u32) -> Result<Amount> {
        let mut command = network.client.command(&tools.load)?;
        let to: Vec<String> = self.targets().iter().map(ToString::to_string).collect();
        let [load, hello] = [measure.load.name(), measure.hello.name()];
        command.args(["load", "client", "--to", &to.join(","), "--load", &load, "--hello", &hello]);
        command.args(["--connections", &measure.connections.to_string()]);
        command.args(["--milliseconds", &milliseconds.to_string()]);
        Amount::read(&process::output(&mut command)?)
    }

    /// A few messages there and back, after each hello.
    fn probe(&self, tools: &Tools, network: &Network) -> Result<()> {
        for hello in [Hello::One, Hello::Two] {
            self.carry(tools, network, Measure { load: Load::Echo, connections: 1, hello }, 5)?;
        }
        Ok(())
    }
}
