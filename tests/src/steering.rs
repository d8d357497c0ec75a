//! The stage of the stories about steered connections: a client, a router and a backend, each a machine of its own or
//! all on one loopback; and the proof that the kernel, not the agent, carries a connection.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::ops::RangeInclusive;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use router_common::maps::names;
use router_common::verdict::DialCounter;
use serde_json::Value;
use tempfile::TempDir;

use crate::folder;
use crate::hello::client_hello;
use crate::netns::Netns;
use crate::pinned::{self, Flows, Hellos};
use crate::sluice::{DataPath, Options, Sluice};
use crate::stream::{self, Pair};
use crate::wait;
use crate::wire::{Plan, Wire};

/// The host of the stage's route.
pub const HOST: &str = "raw.apps.test";
/// Port of the router for TLS.
pub const ROUTER_PORT: u16 = 8443;
/// Port of the backend.
pub const BACKEND_PORT: u16 = 9000;

/// Version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Address `host` of link `link`.
    pub fn address(self, link: u8, host: u8) -> IpAddr {
        match self {
            Family::V4 => Ipv4Addr::new(10, 81, link, host).into(),
            Family::V6 => Ipv6Addr::new(0xfd81, link.into(), 0, 0, 0, 0, 0, host.into()).into(),
        }
    }

    /// Loopback.
    pub fn loopback(self) -> IpAddr {
        match self {
            Family::V4 => Ipv4Addr::LOCALHOST.into(),
            Family::V6 => Ipv6Addr::LOCALHOST.into(),
        }
    }

    /// Every address, to listen on.
    pub fn any(self) -> IpAddr {
        match self {
            Family::V4 => Ipv4Addr::UNSPECIFIED.into(),
            Family::V6 => Ipv6Addr::UNSPECIFIED.into(),
        }
    }

    /// Bytes of IP and TCP headers without options.
    pub fn headers(self) -> u16 {
        match self {
            Family::V4 => 40,
            Family::V6 => 60,
        }
    }

    fn network(self, link: u8, host: u8) -> String {
        let bits = if self == Family::V4 { 24 } else { 64 };
        format!("{}/{bits}", self.address(link, host))
    }
}

/// Link of the client and the router.
pub const FRONT: u8 = 1;
/// Link of the router and the backend.
pub const BACK: u8 = 2;

/// When a stage ends, nobody waits for connections that go on.
const DRAIN: [&str; 2] = ["--drain", "0"];

/// What a stage is made of.
pub struct Setup {
    /// Version of IP on all links.
    pub family: Family,
    /// The link to the client passes through user space, by this plan.
    pub front: Option<Plan>,
    /// The link to the backend likewise.
    pub back: Option<Plan>,
    /// MTU of the link to the client, and of that to the backend; ignored with a plan.
    pub mtu: (u16, u16),
    /// Whether links leave segmentation and checksums to one another; without it with a plan.
    pub offloads: bool,
    /// Endpoints of the route.
    pub endpoints: Vec<SocketAddr>,
    /// Another host, which has one endpoint.
    pub other: Option<(&'static str, SocketAddr)>,
    /// Annotations of the route, as YAML's flow form has them.
    pub annotations: &'static str,
    /// Further arguments of `sluice run`.
    pub arguments: Vec<String>,
}

impl Setup {
    /// Plain links, and one endpoint, which listens.
    pub fn new(family: Family) -> Setup {
        Setup {
            family,
            front: None,
            back: None,
            mtu: (1500, 1500),
            offloads: true,
            endpoints: vec![SocketAddr::new(family.address(BACK, 2), BACKEND_PORT)],
            other: None,
            annotations: "",
            arguments: Vec::new(),
        }
    }
}

/// A running router between a client and a backend.
pub struct Stage {
    /// The router.
    pub sluice: Sluice,
    /// Where the backend listens: [`BACKEND_PORT`] on every address.
    pub listener: TcpListener,
    /// Where clients connect.
    pub address: SocketAddr,
    /// The links that pass through user space: to the client, to the backend.
    pub wires: (Option<Wire>, Option<Wire>),
    /// The machine of clients.
    pub client: Netns,
    /// The machine of the router.
    pub router: Netns,
    /// The machine of the backend.
    pub backend: Netns,
    /// Version of IP.
    pub family: Family,
    data_path: DataPath,
    manifests: TempDir,
    annotations: &'static str,
    stack_ports: RangeInclusive<u16>,
}

impl Stage {
    /// Builds three machines and starts the router on the middle one.
    ///
    /// # Errors
    /// When something does not start.
    pub fn new(data_path: DataPath, setup: Setup) -> Result<Stage> {
        let (client, router, backend) = (Netns::new("client")?, Netns::new("router")?, Netns::new("backend")?);
        let family = setup.family;
        let networks = |link, hosts: &[u8]| hosts.iter().map(|host| family.network(link, *host)).collect::<Vec<_>>();
        let lay = |left: (&Netns, &str, &[u8]), right: (&Netns, &str, &[u8]), link, plan: Option<Plan>, mtu: u16| {
            let (here, there) = (networks(link, left.2), networks(link, right.2));
            let (here, there): (Vec<&str>, Vec<&str>) =
                (here.iter().map(String::as_str).collect(), there.iter().map(String::as_str).collect());
            if let Some(plan) = plan {
                return Wire::lay((left.0, left.1, &here), (right.0, right.1, &there), plan).map(Some);
            }
            left.0.link((left.1, &here), right.0, (right.1, &there))?;
            for (netns, interface, _) in [left, right] {
                netns.ip(&["link", "set", interface, "mtu", &mtu.to_string()])?;
                if !setup.offloads {
                    netns.without_offloads(interface)?;
                }
            }
            Ok(None)
        };
        let front = lay((&client, "eth0", &[2, 3]), (&router, "front", &[1]), FRONT, setup.front, setup.mtu.0)?;
        let back = lay((&router, "back", &[1]), (&backend, "eth0", &[2, 3]), BACK, setup.back, setup.mtu.1)?;
        let address = SocketAddr::new(family.address(FRONT, 1), ROUTER_PORT);
        let mut options = Options::network(data_path);
        options.arguments = setup.arguments;
        options.arguments.extend(DRAIN.map(str::to_owned));
        let manifests = TempDir::new()?;
        if let Some((host, endpoint)) = setup.other {
            let route = folder::route("other", host, "other", folder::PASSTHROUGH);
            std::fs::write(manifests.path().join("other.yaml"), folder::service("other", endpoint) + &route)?;
        }
        write(manifests.path(), HOST, setup.annotations, &setup.endpoints)?;
        let netnses = [client, router, backend];
        let stage = Stage::start(netnses, (front, back), address, family, manifests, &options)?;
        Ok(Stage { annotations: setup.annotations, ..stage })
    }

    /// Everything on the loopback of one machine.
    ///
    /// # Errors
    /// When something does not start.
    pub fn loopback(data_path: DataPath, family: Family) -> Result<Stage> {
        let netns = Netns::new("loopback")?;
        let address = SocketAddr::new(family.loopback(), ROUTER_PORT);
        let endpoint = SocketAddr::new(family.loopback(), BACKEND_PORT);
        let manifests = TempDir::new()?;
        write(manifests.path(), HOST, "", &[endpoint])?;
        let netnses = [netns.clone(), netns.clone(), netns];
        let mut options = Options::loopback(data_path);
        options.arguments.extend(DRAIN.map(str::to_owned));
        Stage::start(netnses, (None, None), address, family, manifests, &options)
    }

    fn start(
        [client, router, backend]: [Netns; 3],
        wires: (Option<Wire>, Option<Wire>),
        address: SocketAddr,
        family: Family,
        manifests: TempDir,
        options: &Options,
    ) -> Result<Stage> {
        let listener = backend.run(|| Ok(TcpListener::bind((family.any(), BACKEND_PORT))?))?;
        let sluice = Sluice::start(&router, manifests.path(), options)?;
        let range = router.setting("ipv4/ip_local_port_range")?;
        let ports: Vec<u16> = range.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        let [first, last] = ports.try_into().ok().with_context(|| format!("{range:?} is no port range"))?;
        let data_path = options.data_path;
        let stack_ports = first..=last;
        Ok(Stage {
            sluice,
            listener,
            address,
            wires,
            client,
            router,
            backend,
            family,
            data_path,
            manifests,
            annotations: "",
            stack_ports,
        })
    }

    /// Gives the route other endpoints, or another host; waits for nothing.
    ///
    /// # Errors
    /// When the manifest cannot be written.
    pub fn change(&self, host: &str, endpoints: &[SocketAddr]) -> Result<()> {
        write(self.manifests.path(), host, self.annotations, endpoints)
    }

    /// Makes an endpoint of the link to the backend say nothing: its address is that of no machine.
    ///
    /// # Errors
    /// When the neighbour cannot be set.
    pub fn silence(&self, endpoint: SocketAddr) -> Result<()> {
        let nobody = ["lladdr", "02:00:00:00:00:99", "dev", "back", "nud", "permanent"];
        self.router.ip(&[&["neighbour", "replace", &endpoint.ip().to_string()][..], &nobody].concat())
    }

    /// Whether the kernel is to carry connections.
    pub fn steers(&self) -> bool {
        self.data_path == DataPath::Kernel
    }

    /// A connection from a client to the backend. With the kernel's data path the kernel has made it.
    ///
    /// # Errors
    /// When it does not come about.
    pub fn connect(&self) -> Result<Pair> {
        let pair = stream::connect(&self.client, self.address, &self.listener, HOST)?;
        self.check(&pair)?;
        Ok(pair)
    }

    /// A connection whose client sends these pieces, each in a segment of its own, the last being the end of the hello.
    ///
    /// # Errors
    /// When it does not come about.
    pub fn connect_in(&self, pieces: &[&[u8]]) -> Result<Pair> {
        let mut client = stream::open(&self.client, self.address)?;
        for piece in pieces {
            client.write_all(piece)?;
        }
        let origin = stream::accept_with(&self.listener, &pieces.concat())?;
        let pair = Pair { client, origin };
        self.check(&pair)?;
        Ok(pair)
    }

    /// Checks who has made a connection to the backend: the stack takes its ports from one range, the kernel program
    /// from another.
    ///
    /// # Errors
    /// When it is not who should.
    pub fn check(&self, pair: &Pair) -> Result<()> {
        self.check_port(pair.origin.peer_addr()?.port())
    }

    /// As [`Stage::check`], for the port that the backend sees.
    ///
    /// # Errors
    /// When it is not of the right range.
    pub fn check_port(&self, port: u16) -> Result<()> {
        let by_stack = self.stack_ports.contains(&port);
        ensure!(
            by_stack != self.steers(),
            "port {port}, with the data path {:?}: not who should has dialed",
            self.data_path
        );
        Ok(())
    }

    /// Connections of which the program has decided that the agent takes them, by reason.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn passed_up(&self) -> Result<HashMap<String, u64>> {
        if !self.steers() {
            return Ok(HashMap::new());
        }
        let stats = self.sluice.dump(names::REASON_STATS)?;
        let passed = stats.as_array().context("a list")?.iter().filter(|row| row["verdict"] == "pass");
        let count = |row: &Value| Some((row["reason"].as_str()?.to_owned(), row["connections"].as_u64()?));
        passed.map(|row| count(row).with_context(|| format!("{row}"))).collect()
    }

    /// A counter of the programs; 0 without the kernel's data path.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn dial_counter(&self, counter: DialCounter) -> Result<u64> {
        if self.steers() { pinned::dial_counter(&self.sluice, counter) } else { Ok(0) }
    }

    /// Checks that these were all the connections so far, each carried by who should, and each with its line in the
    /// access log.
    ///
    /// # Errors
    /// When there were more or others, or a line is missing.
    pub fn carried(&self, connections: u64) -> Result<()> {
        let lines = |datapath: &str| {
            let ended = format!("datapath=\"{datapath}\"");
            let output = self.sluice.output();
            output.iter().filter(|line| line.contains(" access: ") && line.contains(&ended)).count() as u64
        };
        let (own, others) = if self.steers() { ("kernel", "relay") } else { ("relay", "kernel") };
        wait::wait_until("the access log has every connection", wait::PATIENCE, || lines(own) >= connections)
            .with_context(|| format!("{} of {connections} lines", lines(own)))?;
        ensure!((lines(own), lines(others)) == (connections, 0), "{} lines, {} of others", lines(own), lines(others));
        if self.steers() {
            for counter in [DialCounter::Dialed, DialCounter::Confirmed] {
                let count = self.dial_counter(counter)?;
                ensure!(count == connections, "{counter:?}: {count} instead of {connections}");
            }
        }
        Ok(())
    }

    /// Waits until the kernel has seen the end of every connection. Their entries linger.
    ///
    /// # Errors
    /// When some go on.
    pub fn all_ended(&self) -> Result<()> {
        if !self.steers() {
            return Ok(());
        }
        let mut living = Vec::new();
        wait::wait_until("the kernel has seen every connection's end", wait::PATIENCE / 4, || {
            let flows = self.sluice.dump(names::FLOWS).ok().and_then(|dump| dump.as_array().cloned());
            living = flows.unwrap_or_else(|| vec!["no dump".into()]);
            living.retain(|flow| flow["state"] != "closing");
            living.is_empty()
        })
        .with_context(|| format!("these go on: {living:#?}"))
        .map(drop)
    }

    /// Waits until no flow and no first flight is left: when every connection has ended and lingered.
    ///
    /// # Errors
    /// When some stay.
    pub fn nothing_is_left(&self) -> Result<()> {
        if !self.steers() {
            return Ok(());
        }
        let (flows, hellos) = (Flows::of(&self.sluice)?, Hellos::of(&self.sluice)?);
        let mut left = (0, 0);
        wait::wait_until("no flow and no first flight is left", wait::PATIENCE * 2, || {
            left = (flows.count().unwrap_or(usize::MAX), hellos.count().unwrap_or(usize::MAX));
            left == (0, 0)
        })
        .with_context(|| format!("{} flows and {} first flights stay", left.0, left.1))
        .map(drop)
    }

    /// TCP sockets of the router's machine that are connected to anybody, as `ss` prints them.
    ///
    /// # Errors
    /// When `ss` fails.
    pub fn router_sockets(&self) -> Result<HashSet<String>> {
        let output = crate::sluice::output(self.router.command("ss")?.args(["-tnH", "state", "connected"]))?;
        Ok(String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect())
    }
}

/// A passthrough route of `host` to endpoints, in a router for it.
fn write(folder: &Path, host: &str, annotations: &str, endpoints: &[SocketAddr]) -> Result<()> {
    let annotated = format!("metadata: {{annotations: {{{annotations}}}, ");
    let route = folder::route("raw", host, "raw", folder::PASSTHROUGH).replace("metadata: {", &annotated);
    let text = folder::router() + &folder::service_of("raw", endpoints) + &route;
    folder::replace(&folder.join("all.yaml"), &text)
}

/// A hello for the stage's route.
///
/// # Errors
/// Never, in effect.
pub fn hello() -> Result<Vec<u8>> {
    client_hello(HOST)
}
