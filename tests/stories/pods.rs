//! Every client of a node is answered, wherever it is, on each kind of pod network: pods behind a bridge, pods with a link
//! each, and pods on the uplink.

use std::net::{IpAddr, SocketAddr, TcpListener};

use anyhow::{Context, Result, ensure};
use router_common::verdict::DialCounter;
use tempfile::TempDir;
use tests::netns::Netns;
use tests::sluice::{DataPath, Options, Sluice};
use tests::{folder, pinned, stream};

const HOST: &str = "raw.apps.test";
const BRIDGE: &str = "cni0";
/// The interface that pods of [`Network::Macvlan`] are on.
const UPLINK: &str = "uplink";

/// How pods are connected to their node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Network {
    /// Pods are ports of a bridge, which has the gateway's address (CNI plugin `bridge`).
    Bridge,
    /// Each pod has a link and a route of its own (CNI plugin `ptp`).
    PointToPoint,
    /// Pods are on the uplink itself (CNI plugin `macvlan`), and so is the node, by an interface of the same kind.
    Macvlan,
}

/// Addresses by link (1: outside, 2: pods) and host; the node is host 1.
struct Plan {
    address: fn(u8, u8) -> String,
    /// Bits of a link's network, and of an address.
    bits: [u8; 2],
    forwarding: &'static str,
    loopback: &'static str,
}

const V4: Plan = Plan {
    address: |link, host| format!("10.86.{link}.{host}"),
    bits: [24, 32],
    forwarding: "ipv4/ip_forward",
    loopback: "127.0.0.1",
};
const V6: Plan = Plan {
    address: |link, host| format!("fd86:{link}::{host}"),
    bits: [64, 128],
    forwarding: "ipv6/conf/all/forwarding",
    loopback: "::1",
};

#[test]
fn all_clients_of_a_node_with_a_bridge_are_answered() -> Result<()> {
    answered(&V4, Network::Bridge)?;
    answered(&V6, Network::Bridge)
}

#[test]
fn all_clients_of_a_node_with_links_to_its_pods_are_answered() -> Result<()> {
    answered(&V4, Network::PointToPoint)?;
    answered(&V6, Network::PointToPoint)
}

#[test]
fn all_clients_of_a_node_with_macvlan_pods_are_answered() -> Result<()> {
    answered(&V4, Network::Macvlan)?;
    answered(&V6, Network::Macvlan)
}

fn answered(plan: &Plan, network: Network) -> Result<()> {
    for data_path in [DataPath::Kernel, DataPath::UserSpace] {
        every_client(plan, network, data_path).with_context(|| format!("{network:?}, {data_path:?}"))?;
    }
    Ok(())
}

/// The same script over both paths: outside, another pod, the endpoint's own pod, the node by its address, and by loopback.
fn every_client(plan: &Plan, network: Network, data_path: DataPath) -> Result<()> {
    let names = ["outside", "node", "pod", "endpoint"];
    let machines = names.iter().map(|name| Netns::new(name)).collect::<Result<Vec<_>>>()?;
    let [outside, node, pod, endpoint] = &machines[..] else { unreachable!("four machines were made") };
    node.set(plan.forwarding, "1")?;
    let on = |link, host| format!("{}/{}", (plan.address)(link, host), plan.bits[0]);
    outside.link(("eth0", &[&on(1, 2)]), node, ("front", &[&on(1, 1)]))?;
    if network == Network::Bridge {
        node.ip(&["link", "add", BRIDGE, "type", "bridge"])?;
        node.ip(&["address", "add", &on(2, 1), "dev", BRIDGE, "nodad"])?;
        node.ip(&["link", "set", BRIDGE, "up"])?;
    }
    if network == Network::Macvlan {
        node.link((UPLINK, &[]), outside, ("wire", &[]))?;
        node.ip(&["link", "add", "link", UPLINK, "name", "node0", "type", "macvlan", "mode", "bridge"])?;
        node.ip(&["address", "add", &on(2, 1), "dev", "node0", "nodad"])?;
        node.ip(&["link", "set", "node0", "up"])?;
    }
    for (host, machine, port) in [(2, pod, "pod"), (3, endpoint, "endpoint")] {
        plug(plan, network, node, port, machine, host)?;
    }

    let address = |host: u8| -> Result<IpAddr> { Ok((plan.address)(2, host).parse()?) };
    let listener = endpoint.run(|| Ok(TcpListener::bind((address(3)?, 9000))?))?;
    let manifests = TempDir::new()?;
    let text = folder::router()
        + &folder::service("raw", listener.local_addr()?)
        + &folder::route("raw", HOST, "raw", folder::PASSTHROUGH);
    folder::replace(&manifests.path().join("all.yaml"), &text)?;
    let sluice = Sluice::start(node, manifests.path(), &Options::network(data_path))?;

    let front = SocketAddr::new((plan.address)(1, 1).parse()?, 8443);
    let loopback = SocketAddr::new(plan.loopback.parse()?, 8443);
    let clients = [
        ("outside", outside, front),
        ("another pod", pod, front),
        ("the endpoint's pod", endpoint, front),
        ("the node by its address", node, front),
        ("the node by loopback", node, loopback),
    ];
    for (seed, (who, netns, to)) in (1..).zip(clients) {
        let pair = stream::connect(netns, to, &listener, HOST).with_context(|| who.to_owned())?;
        pair.greet().with_context(|| who.to_owned())?;
        pair.exchange(seed, 200_000, 200_000).with_context(|| who.to_owned())?;
        // By a macvlan of the node nothing is dialed.
        if data_path == DataPath::Kernel && network != Network::Macvlan {
            let dialed = pinned::dial_counter(&sluice, DialCounter::Dialed)?;
            ensure!(dialed == seed, "{who} was not steered: {dialed} of {seed} connections were");
        }
    }
    Ok(())
}

/// Connects a pod to its node.
fn plug(plan: &Plan, network: Network, node: &Netns, port: &str, pod: &Netns, host: u8) -> Result<()> {
    let (gateway, address) = ((plan.address)(2, 1), (plan.address)(2, host));
    let alone = |address: &str| format!("{address}/{}", plan.bits[1]);
    match network {
        Network::Bridge => {
            pod.link(("eth0", &[&format!("{address}/{}", plan.bits[0])]), node, (port, &[]))?;
            node.ip(&["link", "set", port, "master", BRIDGE])?;
        }
        Network::PointToPoint => {
            pod.link(("eth0", &[&alone(&address)]), node, (port, &[&alone(&gateway)]))?;
            node.ip(&["route", "add", &alone(&address), "dev", port])?;
            pod.ip(&["route", "add", &alone(&gateway), "dev", "eth0"])?;
        }
        Network::Macvlan => {
            let macvlan = ["type", "macvlan", "mode", "bridge"];
            node.ip(&[&["link", "add", "link", UPLINK, "name", port, "netns", pod.name()][..], &macvlan].concat())?;
            pod.ip(&["link", "set", port, "name", "eth0"])?;
            pod.ip(&["address", "add", &format!("{address}/{}", plan.bits[0]), "dev", "eth0", "nodad"])?;
            pod.ip(&["link", "set", "eth0", "up"])?;
        }
    }
    pod.ip(&["route", "add", "default", "via", &gateway])
}
