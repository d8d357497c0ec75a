//! A running router between a client and a backend.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::RangeInclusive;
use std::path::Path;

use anyhow::{Context, Result};
use socket2::{Domain, Socket, Type};
use tempfile::TempDir;

use super::setup::{BACK, BACKEND_PORT, FRONT, Family, HOST, ROUTER_PORT, Setup};
use crate::folder;
use crate::hello::client_hello;
use crate::netns::Netns;
use crate::sluice::{DataPath, Options, Sluice};
use crate::stream::{self, Pair};
use crate::wait::PATIENCE;
use crate::wire::{Plan, Wire};

/// Connections are not drained at the end of a stage.
const DRAIN: [&str; 2] = ["--drain", "0"];

/// A running router between a client and a backend.
pub struct Stage {
    /// The router.
    pub sluice: Sluice,
    /// Listener of the backend: [`BACKEND_PORT`] on every address.
    pub listener: TcpListener,
    /// Address to which clients connect.
    pub address: SocketAddr,
    /// The links that pass through user space: to the client, and to the backend.
    pub wires: (Option<Wire>, Option<Wire>),
    /// The client's machine.
    pub client: Netns,
    /// The router's machine.
    pub router: Netns,
    /// The backend's machine.
    pub backend: Netns,
    /// Version of IP.
    pub family: Family,
    pub(super) data_path: DataPath,
    manifests: TempDir,
    annotations: &'static str,
    pub(super) stack_ports: RangeInclusive<u16>,
}

impl Stage {
    /// Builds three machines and starts the router on the middle one.
    ///
    /// # Errors
    /// When something does not start.
    pub fn new(data_path: DataPath, mut setup: Setup) -> Result<Stage> {
        let (client, router, backend) = (Netns::new("client")?, Netns::new("router")?, Netns::new("backend")?);
        let family = setup.family;
        // On a forwarding host, the programs look up next hops and neighbours; over IPv6 the host does not forward.
        if family == Family::V4 {
            router.set("ipv4/ip_forward", "1")?;
        }
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
        let front = lay((&client, "eth0", &[2, 3]), (&router, "front", &[1]), FRONT, setup.front.take(), setup.mtu.0)?;
        let back = lay((&router, "back", &[1]), (&backend, "eth0", &[2, 3]), BACK, setup.back.take(), setup.mtu.1)?;
        let address = SocketAddr::new(family.address(FRONT, 1), ROUTER_PORT);
        let stage = Stage::on(data_path, [client, router, backend], address, setup)?;
        Ok(Stage { wires: (front, back), ..stage })
    }

    /// Starts the router between connected machines: those of the client, the router and the backend. Clients connect
    /// to `address`. The setup's links are ignored.
    ///
    /// # Errors
    /// When something does not start.
    pub fn on(data_path: DataPath, machines: [Netns; 3], address: SocketAddr, setup: Setup) -> Result<Stage> {
        let mut options = Options::network(data_path);
        options.kept = setup.kept;
        options.log = setup.log;
        options.arguments = setup.arguments;
        options.arguments.extend(DRAIN.map(str::to_owned));
        let manifests = TempDir::new()?;
        if let Some((host, endpoint)) = setup.other {
            let route = folder::route("other", host, "other", folder::PASSTHROUGH);
            std::fs::write(manifests.path().join("other.yaml"), folder::service("other", endpoint) + &route)?;
        }
        write(manifests.path(), HOST, setup.annotations, &setup.endpoints, "")?;
        let stage = Stage::start(machines, address, setup.family, manifests, &options)?;
        Ok(Stage { annotations: setup.annotations, ..stage })
    }

    /// Client, router and backend on the loopback of one machine.
    ///
    /// # Errors
    /// When something does not start.
    pub fn loopback(data_path: DataPath, family: Family) -> Result<Stage> {
        let netns = Netns::new("loopback")?;
        let address = SocketAddr::new(family.loopback(), ROUTER_PORT);
        let endpoint = SocketAddr::new(family.loopback(), BACKEND_PORT);
        let manifests = TempDir::new()?;
        write(manifests.path(), HOST, "", &[endpoint], "")?;
        let machines = [netns.clone(), netns.clone(), netns];
        let mut options = Options::loopback(data_path);
        options.arguments.extend(DRAIN.map(str::to_owned));
        Stage::start(machines, address, family, manifests, &options)
    }

    fn start(
        [client, router, backend]: [Netns; 3],
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
            wires: (None, None),
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

    /// Changes the endpoints or the host of the route; does not wait.
    ///
    /// # Errors
    /// When the manifest cannot be written.
    pub fn change(&self, host: &str, endpoints: &[SocketAddr]) -> Result<()> {
        write(self.manifests.path(), host, self.annotations, endpoints, "")
    }

    /// Gives the router annotations, in YAML's flow style; does not wait. The route has the usual endpoint.
    ///
    /// # Errors
    /// When the manifest cannot be written.
    pub fn annotate_router(&self, annotations: &str) -> Result<()> {
        let endpoint = SocketAddr::new(self.family.address(BACK, 2), BACKEND_PORT);
        write(self.manifests.path(), HOST, self.annotations, &[endpoint], annotations)
    }

    /// Writes a further manifest, or another text to one that is there; does not wait.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn place(&self, file: &str, text: &str) -> Result<()> {
        folder::replace(&self.manifests.path().join(file), text)
    }

    /// Makes an endpoint on the link to the backend unresponsive: its address belongs to no machine.
    ///
    /// # Errors
    /// When the neighbour cannot be set.
    pub fn silence(&self, endpoint: SocketAddr) -> Result<()> {
        let nobody = ["lladdr", "02:00:00:00:00:99", "dev", "back", "nud", "permanent"];
        self.router.ip(&[&["neighbour", "replace", &endpoint.ip().to_string()][..], &nobody].concat())
    }

    /// True if the kernel should carry connections.
    pub fn steers(&self) -> bool {
        self.data_path == DataPath::Kernel
    }

    /// A connection from a client to the backend, on the stage's data path.
    ///
    /// # Errors
    /// When it does not come about.
    pub fn connect(&self) -> Result<Pair> {
        let pair = stream::connect(&self.client, self.address, &self.listener, HOST)?;
        self.check(&pair)?;
        Ok(pair)
    }

    /// Likewise, from this address and port of the client.
    ///
    /// # Errors
    /// When it does not come about.
    pub fn connect_from(&self, from: SocketAddr) -> Result<Pair> {
        let mut client = self.open_from(from)?;
        let hello = client_hello(HOST)?;
        client.write_all(&hello)?;
        let pair = Pair { client, origin: stream::accept_with(&self.listener, &hello)? };
        self.check(&pair)?;
        Ok(pair)
    }

    /// Connects from this address and port of the client without sending.
    ///
    /// # Errors
    /// The connection is not accepted.
    pub fn open_from(&self, from: SocketAddr) -> Result<TcpStream> {
        self.client.run(|| {
            let socket = Socket::new(Domain::for_address(from), Type::STREAM, None)?;
            socket.set_reuse_address(true)?;
            socket.bind(&from.into())?;
            socket.connect_timeout(&self.address.into(), PATIENCE)?;
            socket.set_read_timeout(Some(PATIENCE))?;
            Ok(socket.into())
        })
    }

    /// A connection whose client sends these pieces, each in its own segment; the last one completes the hello.
    ///
    /// # Errors
    /// It cannot be established.
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
}

/// A passthrough route of `host` to endpoints, in a router for it.
fn write(folder: &Path, host: &str, annotations: &str, endpoints: &[SocketAddr], of_router: &str) -> Result<()> {
    // Health checks would cause connections that the stories do not expect.
    let unchecked = "router.openshift.io/haproxy.health.check.interval: 1h";
    let separator = if annotations.is_empty() { "" } else { ", " };
    let annotated = format!("metadata: {{annotations: {{{unchecked}{separator}{annotations}}}, ");
    let route = folder::route("raw", host, "raw", folder::PASSTHROUGH).replace("metadata: {", &annotated);
    let router = folder::router().replacen("metadata: {", &format!("metadata: {{annotations: {{{of_router}}}, "), 1);
    let text = router + &folder::service_of("raw", endpoints) + &route;
    folder::replace(&folder.join("all.yaml"), &text)
}
