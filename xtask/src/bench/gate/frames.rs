//! XDP frames instead of socket buffers: a router's interface receives them as from the driver of a network card.
//!
//! Of a socket buffer without room for XDP's headers, veth makes a copy where XDP is attached. Here further veth pairs make it, on
//! the processor of the sender, and redirect the frames, with at least as many bytes as Ethernet has (IEEE 802.3 §4.2.3.3); the
//! interface's NAPI receives them, whether XDP is attached to it or not.

use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::process::Command;

use anyhow::Result;

use crate::bench::network::{CONGESTION_CONTROL, Network};
use crate::bench::passthrough::ways::{Lane, Way};
use crate::process;

/// Where SYNs go that disturb nobody.
pub const NOBODY: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 1), 443);
/// Nanoseconds between two polls of the router's interface. This and [`FEW`] are what DPDK's guide to AF_XDP recommends for busy
/// polling; network cards moderate their interrupts at the same scale under load.
pub const MODERATION: u32 = 200_000;
/// The same of an interface that the sending processor polls.
pub const SENDERS_MODERATION: u32 = 100_000;
/// Polls without a packet after which it is no longer polled, until the next packet.
pub const FEW: u32 = 2;

/// Loads a program and pins it.
const LOAD_XDP: &str = include_str!("../../../../tests/src/load_xdp.py");
/// Instructions of XDP programs: r1 = data, and r3 > r2 where it ends before its Ethernet and IPv4 headers do.
pub const HEADERS: &str = concat!(
    "6112040000000000", // r2 = data_end
    "6111000000000000", // r1 = data
    "bf13000000000000", // r3 = r1
    "0703000022000000", // r3 += 34
);
const DROP: &str = "b700000001000000"; // r0 = XDP_DROP
const KEEP: &str = "bf16000000000000"; // r6 = r1
/// Behind [`DROP`], [`KEEP`] and [`HEADERS`], it pads what is sent to 10.0.0.0/8 to 60 bytes, redirects it to the interface of the
/// number that follows, and drops all else; the end is [`REDIRECT`].
const CHOOSE: &str = concat!(
    "2d230c0000000000", // if r3 > r2, exit
    "71141e0000000000", // r4 = the first byte of the destination
    "55040a000a000000", // if r4 != 10, exit
    "bf13000000000000", // r3 = r1
    "070300003c000000", // r3 += 60
    "bd23040000000000", // if r3 <= r2, skip four
    "1f23000000000000", // r3 -= r2
    "bf32000000000000", // r2 = r3
    "bf61000000000000", // r1 = r6
    "8500000041000000", // bpf_xdp_adjust_tail
    "b7010000",         // r1 = the interface
);
const REDIRECT: &str = concat!(
    "b702000000000000", // r2 = 0
    "8500000017000000", // bpf_redirect
    "9500000000000000", // exit
);

/// Whether frames are made on a way: where XDP is in the driver.
pub fn are_made(lane: &Lane) -> bool {
    matches!(lane.way, Way::GateNative | Way::CookiesNative)
}

/// The interface of the client that a flood leaves by, if not by that of the clients' packets.
pub fn of_flood(lane: &Lane) -> Option<String> {
    are_made(lane).then(|| format!("flood-{}", lane.middle.number()))
}

/// Makes frames of what the clients of a way, and the flood, send to the router.
pub fn prepare(network: &Network, lane: &Lane) -> Result<()> {
    // Without XDP, the driver takes frames only if it merges segments.
    lane.middle.netns.shell(&format!("ethtool -K client gro on; {}", moderated("client", MODERATION)))?;
    let client = &network.client;
    if let Some(flood) = of_flood(lane) {
        let far = pair(network, lane, &flood)?;
        client.shell(&moderated(&far, SENDERS_MODERATION))?;
        // For sockets that are bound to it, behind the routes of all others.
        client.ip(&format!("route append default dev {flood} metric {}", lane.middle.number()))?;
    }
    let clients = format!("load-{}", lane.middle.number());
    pair(network, lane, &clients)?;
    // A frame has no place for a checksum that is still to be made.
    client.shell(&format!("ethtool -K {clients} tx off"))?;
    let (listener, source) = (lane.middle.listener(), lane.middle.clients()[0]);
    client.ip(&format!("route replace {}/32 dev {clients} src {source} {CONGESTION_CONTROL}", listener.ip()))
}

/// Adds a veth pair whose far end makes frames of what the near one sends, and redirects them to the router's interface; returns
/// the far end. Answers arrive at the client's end of its link: the near end has the same address.
fn pair(network: &Network, lane: &Lane, near: &str) -> Result<String> {
    let (client, far) = (&network.client, format!("{near}-far"));
    let (number, address) = client.interface(&lane.middle.clients_interface())?;
    client.ip(&format!("link add {near} address {address} type veth peer name {far}"))?;
    client.ip(&format!("link set {far} up"))?;
    client.ip(&format!("link set {near} up"))?;
    attach(network, &far, &format!("{DROP}{KEEP}{HEADERS}{CHOOSE}{:08x}{REDIRECT}", number.swap_bytes()))?;
    let (_, router) = lane.middle.netns.interface("client")?;
    for to in [*lane.middle.listener().ip(), *NOBODY.ip()] {
        client.ip(&format!("neigh replace {to} lladdr {router} dev {near} nud permanent"))?;
    }
    Ok(far)
}

/// A command that sets the nanoseconds between two polls of an interface.
pub fn moderated(interface: &str, nanoseconds: u32) -> String {
    let settings = [("gro_flush_timeout", nanoseconds), ("napi_defer_hard_irqs", FEW)];
    settings.map(|(name, value)| format!("echo {value} > /sys/class/net/{interface}/{name}")).join("; ")
}

/// Attaches an XDP program to an interface of the client, in its driver.
pub fn attach(network: &Network, interface: &str, instructions: &str) -> Result<()> {
    let pin = format!("/sys/fs/bpf/sluice-bench-{}", std::process::id());
    process::run(Command::new("python3").args(["-c", LOAD_XDP, &pin, instructions]))?;
    let attached = network.client.ip(&format!("link set dev {interface} xdpdrv pinned {pin}"));
    fs::remove_file(&pin)?;
    attached
}
