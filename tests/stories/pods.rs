//! Every client of a node is answered, wherever it is, on both kinds of pod network: pods behind a bridge, and pods with a
//! link each.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use tests::netns::Netns;
use tests::steering::{BACK, BACKEND_PORT, Carrier, FRONT, Family, ROUTER_PORT, Setup, Stage, alike};

const BRIDGE: &str = "cni0";

/// How pods are connected to their node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Network {
    /// Pods are ports of a bridge, which has the gateway's address (CNI plugin `bridge`).
    Bridge,
    /// Each pod has a link and a route of its own (CNI plugin `ptp`).
    PointToPoint,
}

#[test]
fn all_clients_of_a_node_with_a_bridge_are_answered() -> Result<()> {
    answered(Network::Bridge)
}

#[test]
fn all_clients_of_a_node_with_links_to_its_pods_are_answered() -> Result<()> {
    answered(Network::PointToPoint)
}

/// Outside, another pod, the endpoint's own pod, the node by its address, and by loopback.
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
        for (host, machine, port) in [(2, &pod, "pod"), (3, &endpoint, "endpoint")] {
            plug(family, network, &node, port, machine, host)?;
        }
        let endpoints = vec![SocketAddr::new(family.address(BACK, 3), BACKEND_PORT)];
        let address = SocketAddr::new(family.address(FRONT, 1), ROUTER_PORT);
        let setup = Setup { endpoints, ..Setup::new(family) };
        Ok((Stage::on(data_path, [outside, node, endpoint], address, setup)?, pod))
    };
    alike(world, |(stage, pod)| {
        let loopback = SocketAddr::new(stage.family.loopback(), ROUTER_PORT);
        let clients = [
            ("outside", &stage.client, stage.address),
            ("another pod", pod, stage.address),
            ("the endpoint's pod", &stage.backend, stage.address),
            ("the node by its address", &stage.router, stage.address),
            ("the node by loopback", &stage.router, loopback),
        ];
        let talk = |(who, netns, to)| stage.talk_from(netns, to, Carrier::Kernel).context(who);
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
    }
    pod.ip(&["route", "add", "default", "via", &family.address(BACK, 1).to_string()])
}
