//! The network of a cluster: a bridge in a namespace of its own, which the cluster's machines and its clients join, and a
//! router to pods of nodes.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU8, Ordering};

use anyhow::{Context, Result, ensure};

use crate::command;
use crate::netns::Netns;

/// The bridge. Packets between its members can be delayed in [`Network::netns`].
pub struct Network {
    netns: Netns,
    /// Members so far.
    members: AtomicU8,
}

/// Name of the bridge.
const BRIDGE: &str = "bridge";
/// Address of the router of pods.
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 90, 255, 254);
/// Addresses of pods.
const PODS: &str = "10.91.0.0/16";

impl Network {
    /// A network without members.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn new() -> Result<Network> {
        let netns = Netns::new("network")?;
        netns.ip(&["link", "add", BRIDGE, "type", "bridge"])?;
        netns.equip(BRIDGE, &[&format!("{ROUTER}/16")])?;
        netns.set("ipv4/ip_forward", "1")?;
        // Packets leave by the interface by which they come; members keep to the router.
        for interface in ["all", BRIDGE] {
            netns.set(&format!("ipv4/conf/{interface}/send_redirects"), "0")?;
        }
        Ok(Network { netns, members: AtomicU8::new(0) })
    }

    /// The namespace of the bridge.
    pub fn netns(&self) -> &Netns {
        &self.netns
    }

    /// Connects a namespace by an interface of this name; returns its address: 10.90.0.1 for the first member.
    ///
    /// # Errors
    /// When the kernel refuses, or there are too many members.
    pub fn join(&self, member: &Netns, interface: &str) -> Result<Ipv4Addr> {
        let number = self.members.fetch_add(1, Ordering::Relaxed) + 1;
        ensure!(number < 255, "a network has 254 members at most");
        let address = Ipv4Addr::new(10, 90, 0, number);
        let port = port(address);
        self.netns
            .link((&port, &[]), member, (interface, &[&format!("{address}/16")]))
            .with_context(|| format!("joining the network as {address}"))?;
        self.netns.ip(&["link", "set", &port, "master", BRIDGE])?;
        member.ip(&["route", "add", PODS, "via", &ROUTER.to_string()])?;
        Ok(address)
    }

    /// Routes addresses of pods to a node.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn route(&self, pods: &str, node: Ipv4Addr) -> Result<()> {
        self.netns.ip(&["route", "add", pods, "via", &node.to_string()])
    }

    /// Drops all packets of a member until the value is dropped. The member's interface stays up.
    ///
    /// # Errors
    /// When there is no such member.
    pub fn cut(&self, member: Ipv4Addr) -> Result<Cut> {
        let cut = Cut { netns: self.netns.clone(), port: port(member) };
        cut.set("0").map(|()| cut)
    }
}

/// A member that is cut off.
pub struct Cut {
    netns: Netns,
    port: String,
}

impl Cut {
    /// Sets the state of the port: 0 is disabled, 3 forwarding (linux/if_bridge.h).
    fn set(&self, state: &str) -> Result<()> {
        let set = ["link", "set", "dev", &self.port, "state", state];
        command::output(self.netns.command("bridge")?.args(set)).map(drop)
    }
}

impl Drop for Cut {
    fn drop(&mut self) {
        if let Err(error) = self.set("3") {
            eprintln!("a member of the network stays cut off: {error:#}");
        }
    }
}

/// The bridge's port of a member.
fn port(member: Ipv4Addr) -> String {
    format!("port{}", member.octets()[3])
}
