//! Connections of others that use the router's address: the host forwards and masquerades them, or programs of the host
//! opened them. Dials do not use their ports.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, Result, ensure};
use router_common::maps::names;
use router_common::verdict::DialCounter;
use serde_json::Value;
use socket2::{Domain, Socket, Type};
use tests::netns::Netns;
use tests::sluice::DataPath;
use tests::steering::{BACK, BACKEND_PORT, Family, Setup, Stage};
use tests::stream;
use tests::wait::{PATIENCE, wait_until};

/// Number of the link between strangers and router.
const SIDE: u8 = 4;
/// The range of ports for the router's dials, and for masquerading.
const PORTS: (u16, u16) = (20_000, 20_899);
/// A third of the ports.
const STRANGERS: usize = 300;

/// A stage whose router also forwards for other hosts, behind its own address.
struct Streets {
    stage: Stage,
    strangers: Netns,
    backend: SocketAddr,
}

impl Streets {
    fn new(data_path: DataPath, family: Family, masquerade: &str) -> Result<Streets> {
        let mut setup = Setup::new(family);
        setup.arguments = vec!["--snat-ports".to_owned(), format!("{}-{}", PORTS.0, PORTS.1)];
        let stage = Stage::new(data_path, setup)?;
        let (bits, forwarding, version) = match family {
            Family::V4 => (24, "ipv4/ip_forward", "ip"),
            Family::V6 => (64, "ipv6/conf/all/forwarding", "ip6"),
        };
        stage.router.set(forwarding, "1")?;
        for state in ["time_wait", "close", "last_ack", "fin_wait"] {
            stage.router.set(&format!("netfilter/nf_conntrack_tcp_timeout_{state}"), "1")?;
        }
        let strangers = Netns::new("strangers")?;
        let [own, other] = [1, 2].map(|host| format!("{}/{bits}", family.address(SIDE, host)));
        strangers.link(("eth0", &[&other]), &stage.router, ("side", &[&own]))?;
        strangers.ip(&["route", "add", "default", "via", &family.address(SIDE, 1).to_string()])?;
        let rules = format!(
            "table {version} strangers {{\n chain post {{\n type nat hook postrouting priority 100\n \
             {version} saddr {other} meta l4proto tcp masquerade {masquerade}\n }}\n}}\n"
        );
        stage.router.feed(&["nft", "-f", "-"], &rules)?;
        Ok(Streets { stage, strangers, backend: SocketAddr::new(family.address(BACK, 2), BACKEND_PORT) })
    }

    /// A connection to the backend that bypasses the router, and the backend's end of it.
    fn stranger(&self) -> Result<Stranger> {
        let client = stream::open(&self.strangers, self.backend)?;
        Ok(Stranger { client, origin: stream::accept(&self.stage.listener)? })
    }

    /// Opens this many connections through the router, one after another; each reaches the backend, and is closed.
    fn connections(&self, count: usize) -> Result<()> {
        for number in 0..count {
            let pair = self.stage.connect();
            let pair = pair.with_context(|| format!("connection {number}; passed up: {:?}", self.stage.passed_up()))?;
            pair.greet().with_context(|| format!("connection {number}"))?;
        }
        Ok(())
    }

    /// Number of entries in the programs' map of foreign ports.
    fn taken(&self) -> Result<usize> {
        Ok(self.stage.sluice.dump(names::TAKEN)?.as_array().context("a list")?.len())
    }
}

pub struct Stranger {
    client: TcpStream,
    origin: TcpStream,
}

impl Stranger {
    pub fn lives(&self) -> bool {
        let says = |mut from: &TcpStream, mut to: &TcpStream| {
            from.write_all(b"still here").and_then(|()| to.read_exact(&mut [0; 10])).is_ok()
        };
        says(&self.client, &self.origin) && says(&self.origin, &self.client)
    }

    fn port(&self) -> Result<u16> {
        Ok(self.origin.peer_addr()?.port())
    }
}

#[test]
fn masqueraded_connections_outlive_dials_from_their_ports() -> Result<()> {
    for (data_path, family) in paths() {
        masqueraded(data_path, family).with_context(|| format!("{data_path:?}, {family:?}"))?;
    }
    Ok(())
}

fn masqueraded(data_path: DataPath, family: Family) -> Result<()> {
    let streets = Streets::new(data_path, family, &format!("to :{}-{} fully-random", PORTS.0, PORTS.1))?;
    let strangers = (0..STRANGERS).map(|_| streets.stranger()).collect::<Result<Vec<_>>>()?;
    let ports: BTreeSet<u16> = strangers.iter().map(Stranger::port).collect::<Result<_>>()?;
    ensure!(ports.len() == STRANGERS && ports.iter().all(|port| (PORTS.0..=PORTS.1).contains(port)), "{ports:?}");
    let all_live = |when| {
        let dead = strangers.iter().filter(|stranger| !stranger.lives()).count();
        ensure!(dead == 0, "{dead} of {STRANGERS} strangers' connections died {when}");
        Ok(())
    };
    streets.connections(2 * STRANGERS)?;
    all_live("of dials whose ports the agent had not asked for")?;
    if streets.stage.steers() {
        wait_until("the agent knows the strangers", PATIENCE, || {
            streets.taken().is_ok_and(|taken| taken == STRANGERS)
        })?;
    }
    let challenged = streets.stage.dial_counter(DialCounter::Challenged)?;
    streets.connections(2 * STRANGERS)?;
    all_live("later")?;
    ensure!(
        streets.stage.dial_counter(DialCounter::Challenged)? == challenged,
        "a port that is known to be taken was tried"
    );
    drop(strangers);
    if streets.stage.steers() {
        wait_until("the strangers are forgotten", PATIENCE, || streets.taken().is_ok_and(|taken| taken == 0))?;
    }
    Ok(())
}

/// Connections of the host's programs with explicitly bound ports, which the stack would not select.
#[test]
fn sockets_of_the_host_keep_their_ports() -> Result<()> {
    const PORTS: (u16, u16) = (20_000, 20_063);
    for (data_path, family) in paths() {
        let mut setup = Setup::new(family);
        setup.arguments = vec!["--snat-ports".to_owned(), format!("{}-{}", PORTS.0, PORTS.1)];
        let stage = Stage::new(data_path, setup)?;
        let backend = SocketAddr::new(family.address(BACK, 2), BACKEND_PORT);
        let ports = (PORTS.0..=PORTS.1).step_by(2);
        let open =
            |port| from_port(&stage, &stage.router, None, SocketAddr::new(family.address(BACK, 1), port), backend);
        let sockets = ports.map(open).collect::<Result<Vec<_>>>()?;
        for number in 0..2 * (PORTS.1 - PORTS.0) {
            stage
                .connect()
                .and_then(|pair| pair.greet())
                .with_context(|| format!("{data_path:?}, {family:?}, {number}"))?;
        }
        let dead = sockets.iter().filter(|socket| !socket.lives()).count();
        ensure!(dead == 0, "{data_path:?}, {family:?}: {dead} of {} connections of the host died", sockets.len());
        ensure!(stage.dial_counter(DialCounter::Challenged)? == 0, "{data_path:?}, {family:?}: their ports were tried");
    }
    Ok(())
}

/// Connection tracking does not know the ports of the programs' dials, and may use one of them for masquerading.
#[test]
fn a_stranger_that_is_given_the_port_of_a_carried_connection_gets_another() -> Result<()> {
    for (data_path, family) in paths() {
        given(data_path, family).with_context(|| format!("{data_path:?}, {family:?}"))?;
    }
    Ok(())
}

fn given(data_path: DataPath, family: Family) -> Result<()> {
    // Without flags, masquerading keeps a free port.
    let streets = Streets::new(data_path, family, "")?;
    let stage = &streets.stage;
    let carried = stage.connect()?;
    let port = carried.origin.peer_addr()?.port();
    let own = |port| SocketAddr::new(family.address(SIDE, 2), port);
    let stranger = from_port(stage, &streets.strangers, None, own(port), streets.backend)?;
    ensure!(stranger.port()? != port, "both have port {port}");
    carried.greet().context("the carried connection")?;
    ensure!(stranger.lives(), "the stranger's connection died");

    let ended = stage.connect()?;
    let port = ended.origin.peer_addr()?.port();
    let clashed = stage.dial_counter(DialCounter::Clashed)?;
    drop(ended);
    if stage.steers() {
        wait_until("the connection has ended", PATIENCE, || ended_from(stage, port).unwrap_or(false))?;
        let after = from_port(stage, &streets.strangers, None, own(port), streets.backend)?;
        ensure!(after.port()? == port && after.lives(), "an ended connection has not given its port back");
        ensure!(stage.dial_counter(DialCounter::Clashed)? == clashed, "it took a second SYN");
    }
    carried.greet().context("the carried connection, later")
}

/// True if the programs have processed the end of the connection that they dialed from a port.
pub fn ended_from(stage: &Stage, port: u16) -> Result<bool> {
    let flows = stage.sluice.dump(names::FLOWS)?;
    let of_port = |flow: &&Value| flow.to_string().contains(&format!(":{port}\""));
    let flows = flows.as_array().context("a list")?;
    Ok(flows.iter().filter(of_port).all(|flow| flow["state"] == "closing"))
}

/// A connection to the backend from an address and a port, which bypasses the router's listeners; its socket is bound
/// to this interface.
pub fn from_port(
    stage: &Stage,
    netns: &Netns,
    interface: Option<&str>,
    from: SocketAddr,
    to: SocketAddr,
) -> Result<Stranger> {
    let client = netns.run(|| {
        let socket = Socket::new(Domain::for_address(from), Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        socket.bind_device(interface.map(str::as_bytes))?;
        socket.bind(&from.into())?;
        socket.connect_timeout(&to.into(), PATIENCE)?;
        Ok(TcpStream::from(socket))
    })?;
    client.set_read_timeout(Some(PATIENCE))?;
    Ok(Stranger { client, origin: stream::accept(&stage.listener)? })
}

fn paths() -> impl Iterator<Item = (DataPath, Family)> {
    let paths = [DataPath::Kernel, DataPath::UserSpace];
    paths.into_iter().flat_map(|path| [Family::V4, Family::V6].map(|family| (path, family)))
}
