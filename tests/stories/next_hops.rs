//! The kernel path follows changes of routes, also for live connections: the programs cache next hops only briefly.

use std::net::{SocketAddr, TcpListener};

use anyhow::{Result, ensure};
use router_common::maps::names;
use router_common::verdict::DialCounter;
use tempfile::TempDir;
use tests::netns::Netns;
use tests::sluice::{DataPath, Options, Sluice};
use tests::steering::{Family, Setup, Stage};
use tests::wait::{PATIENCE, wait_until};
use tests::{folder, pinned, stream};

const HOST: &str = "raw.apps.test";

/// Addresses by link (1: client to router, 2: router to gateway, 3: gateway to backend) and host.
struct Plan {
    address: fn(u8, u8) -> String,
    /// Prefix lengths of a link's network, and of the half of it that contains the router and the other gateway
    /// address.
    bits: [u8; 2],
    forwarding: &'static str,
}

const V4: Plan =
    Plan { address: |link, host| format!("10.85.{link}.{host}"), bits: [24, 25], forwarding: "ipv4/ip_forward" };
const V6: Plan = Plan {
    address: |link, host| format!("fd85:{link}::{host}"),
    bits: [64, 65],
    forwarding: "ipv6/conf/all/forwarding",
};

#[test]
fn a_live_connection_follows_its_route_to_another_gateway() -> Result<()> {
    follow(&V4, true)
}

#[test]
fn a_live_connection_follows_its_route_to_another_gateway_over_ipv6() -> Result<()> {
    follow(&V6, true)
}

/// The programs stay attached to an interface that is down.
#[test]
fn connections_outlive_a_link_that_is_down_for_a_while() -> Result<()> {
    for family in [Family::V4, Family::V6] {
        let stage = Stage::new(DataPath::Kernel, Setup::new(family))?;
        if family == Family::V6 {
            // Otherwise its addresses are removed when the link goes down.
            stage.router.set("ipv6/conf/back/keep_addr_on_down", "1")?;
        }
        let pair = stage.connect()?;
        pair.greet()?;
        let endpoints = || Ok::<_, anyhow::Error>(stage.sluice.dump(names::ENDPOINTS)?.as_array().map_or(0, Vec::len));
        stage.router.ip(&["link", "set", "back", "down"])?;
        wait_until("the agent has noticed", PATIENCE, || endpoints().is_ok_and(|count| count == 0))?;
        stage.router.ip(&["link", "set", "back", "up"])?;
        wait_until("the endpoint is there again", PATIENCE, || endpoints().is_ok_and(|count| count == 1))?;
        pair.greet()?;
        pair.exchange(1, 200_000, 200_000)?;
        stage.connect()?.exchange(2, 200_000, 200_000)?;
        stage.carried(2)?;
    }
    Ok(())
}

/// Then the programs cannot look up next hops, and the kernel looks one up for each packet.
#[test]
fn the_same_where_the_router_does_not_forward() -> Result<()> {
    follow(&V4, false)?;
    follow(&V6, false)
}

/// client ─1─ router ─2─ gateway ─3─ backend; the gateway has two addresses, and loses the one in use.
fn follow(plan: &Plan, forwards: bool) -> Result<()> {
    let names = ["client", "router", "gateway", "backend"];
    let machines = names.iter().map(|name| Netns::new(name)).collect::<Result<Vec<_>>>()?;
    let address = |link, host| (plan.address)(link, host);
    let [bits, half] = plan.bits;
    let network = |link, host| format!("{}/{bits}", address(link, host));
    for (link, pair) in (1..).zip(machines.windows(2)) {
        let [left, right] = pair else { continue };
        left.link(("right", &[&network(link, 1)]), right, ("left", &[&network(link, 2)]))?;
    }
    let [client, router, gateway, backend] = &machines[..] else { unreachable!("four machines were made") };
    gateway.set(plan.forwarding, "1")?;
    router.set(plan.forwarding, if forwards { "1" } else { "0" })?;
    // Not of the first address's network, or it would be removed with it.
    let other = format!("{}/{half}", address(2, 3));
    gateway.ip(&["address", "add", &other, "dev", "left", "nodad"])?;
    backend.ip(&["route", "add", "default", "via", &address(3, 1)])?;
    router.ip(&["route", "add", &network(3, 0), "via", &address(2, 2)])?;

    let bracketed = |address: String| if address.contains(':') { format!("[{address}]") } else { address };
    let listener = backend.run(|| Ok(TcpListener::bind(format!("{}:9000", bracketed(address(3, 2))))?))?;
    let manifests = TempDir::new()?;
    let text = folder::router()
        + &folder::service("raw", listener.local_addr()?)
        + &folder::route("raw", HOST, "raw", folder::PASSTHROUGH);
    folder::replace(&manifests.path().join("all.yaml"), &text)?;
    let sluice = Sluice::start(router, manifests.path(), &Options::network(DataPath::Kernel))?;
    let to: SocketAddr = format!("{}:8443", bracketed(address(1, 2))).parse()?;
    let pair = stream::connect(client, to, &listener, HOST)?;
    pair.greet()?;

    router.ip(&["route", "replace", &network(3, 0), "via", &address(2, 3)])?;
    gateway.ip(&["address", "delete", &network(2, 2), "dev", "left"])?;
    // A packet to the old address gets no response.
    router.ip(&["neighbour", "flush", "dev", "right"])?;
    pair.greet()?;
    pair.exchange(1, 2_000_000, 2_000_000)?;
    stream::connect(client, to, &listener, HOST)?.exchange(2, 200_000, 200_000)?;
    ensure!(pinned::dial_counter(&sluice, DialCounter::Dialed)? == 2, "the kernel did not dial");
    Ok(())
}
