//! Every client of a node gets a response, wherever it is, on each kind of pod network: pods behind a bridge, pods with
//! a link each, and pods on the uplink.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use router_common::verdict::Reason;
use tests::netns::Netns;
use tests::steering::{BACK, BACKEND_PORT, Carrier, FRONT, Family, ROUTER_PORT, Setup, Stage, alike};

const BRIDGE: &str = "cni0";
/// The interface that pods of [`Network::Macvlan`] and [`Network::Ipvlan`] use.
const UPLINK: &str = "uplink";

/// Connection of pods to their node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Network {
    /// Pods are ports of a bridge, which has the gateway's address (CNI plugin `bridge`).
    Bridge,
    /// Each pod has a link and a route of its own (CNI plugin `ptp`).
    PointToPoint,
    /// Pods are on the uplink itself (CNI plugin `macvlan`), and so is the node, by an interface of the same kind.
    Macvlan,
    /// Likewise, with one hardware address for all (CNI plugin `ipvlan`).
    Ipvlan,
}

impl Network {
    /// The type of interface that shares the uplink with others.
    fn sharing(self) -> Option<&'static [&'static str]> {
        match self {
            Network::Bridge | Network::PointToPoint => None,
            Network::Macvlan => Some(&["type", "macvlan", "mode", "bridge"]),
            Network::Ipvlan => Some(&["type", "ipvlan", "mode", "l2"]),
        }
    }
}

#[test]
fn all_clients_of_a_node_with_a_bridge_are_answered() -> Result<()> {
    answered(Network::Bridge)
}

#[test]
fn all_clients_of_a_node_with_links_to_its_pods_are_answered() -> Result<()> {
    answered(Network::PointToPoint)
}

#[test]
fn all_clients_of_a_node_with_macvlan_pods_are_answered() -> Result<()> {
    answered(Network::Macvlan)
}

#[test]
#[ignore = "needs ipvlan; run by `cargo xtask verify --kernels`"]
fn all_clients_of_a_node_with_ipvlan_pods_are_answered() -> Result<()> {
    answered(Network::Ipvlan)
}

/// Clients outside, in another pod, in the endpoint's own pod, and on the node, by its address and by loopback.
fn answered(network: Network) -> Result<()> {
    let world = |data_path, family: Family| {
        let [outside, node, pod, endpoint] = ["outside", "node", "pod", "endpoint"].map(Netns::new);
        let (outside, node, pod, endpoint) = (outside?, node?, pod?, endpoint?);
        node.set(family.forwarding(), "1")?;
        outside.link(("eth0", &[&family.network(FRONT, 2)]), &node, ("front", &[&family.network(FRONT, 1)]))?;
        if network == Network::Bridge {
            node.ip(&["link", "add", BRIDGE, "type", "bridge"])?;
            node.equip(BRIDGE, &[&family.network(BACK, 1)])?;
        }
        if let Some(sharing) = network.sharing() {
            node.link((UPLINK, &[]), &outside, ("wire", &[]))?;
            node.ip(&[&["link", "add", "link", UPLINK, "name", "node0"][..], sharing].concat())?;
            node.equip("node0", &[&family.network(BACK, 1)])?;
        }
        for (host, machine, port) in [(2, &pod, "pod"), (3, &endpoint, "endpoint")] {
            plug(family, network, &node, port, machine, host)?;
        }
        let endpoints = vec![SocketAddr::new(family.address(BACK, 3), BACKEND_PORT)];
        let address = SocketAddr::new(family.address(FRONT, 1), ROUTER_PORT);
        let setup = Setup { endpoints, ..Setup::new(family) };
        Ok((Stage::on(data_path, [outside, node, endpoint], address, setup)?, pod))
    };
    // The program neither dials through an interface that shares a link, nor handles packets received by it. An ipvlan
    // packet to an address of the node is received by the uplink; the response leaves by the node's own ipvlan
    // interface.
    let (dialer, of_pods) = match network {
        Network::Bridge | Network::PointToPoint | Network::Macvlan => (Carrier::Kernel, Carrier::Kernel),
        Network::Ipvlan => (Carrier::Agent(Reason::NoEndpoint), Carrier::Agent(Reason::NoHandshake)),
    };
    alike(world, |(stage, pod)| {
        let loopback = SocketAddr::new(stage.family.loopback(), ROUTER_PORT);
        let clients = [
            ("outside", &stage.client, stage.address, dialer),
            ("another pod", pod, stage.address, of_pods),
            ("the endpoint's pod", &stage.backend, stage.address, of_pods),
            ("the node by its address", &stage.router, stage.address, dialer),
            ("the node by loopback", &stage.router, loopback, dialer),
        ];
        let talk = |(who, netns, to, carrier)| stage.talk_from(netns, to, carrier).context(who);
        clients.into_iter().map(talk).collect::<Result<Vec<_>>>()
    })
    .with_context(|| format!("{network:?}"))
}

/// Connects a pod to its node.
fn plug(family: Family, network: Network, node: &Netns, port: &str, pod: &Netns, host: u8) -> Result<()> {
    let (gateway, own) = (family.alone(BACK, 1), family.alone(BACK, host));
    match network {
        Network::Bridge => {
            pod.link(("eth0", &[&family.network(BACK, host)]), node, (port, &[]))?;
            node.ip(&["link", "set", port, "master", BRIDGE])?;
        }
        Network::PointToPoint => {
            pod.link(("eth0", &[&own]), node, (port, &[&gateway]))?;
            node.ip(&["route", "add", &own, "dev", port])?;
            pod.ip(&["route", "add", &gateway, "dev", "eth0"])?;
        }
        Network::Macvlan | Network::Ipvlan => {
            let sharing = network.sharing().unwrap_or_default();
            node.ip(&[&["link", "add", "link", UPLINK, "name", port, "netns", pod.name()][..], sharing].concat())?;
            pod.ip(&["link", "set", port, "name", "eth0"])?;
            pod.equip("eth0", &[&family.network(BACK, host)])?;
        }
    }
    pod.ip(&["route", "add", "default", "via", &family.address(BACK, 1).to_string()])
}
