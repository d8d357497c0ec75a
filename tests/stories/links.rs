//! Links of every kind between the router and its clients and endpoints: over each, both data paths behave equally.

use std::io::{Read, Write};
use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use router_common::verdict::Reason;
use tests::hello::short_hello;
use tests::netns::Netns;
use tests::raw::{self, End, Nature, Place};
use tests::sluice::DataPath;
use tests::steering::{BACK, BACKEND_PORT, Carrier, FRONT, Family, HOST, ROUTER_PORT, Seen, Setup, Stage, alike};
use tests::stream;
use tests::tunnel::Tunnel;
use tests::wait::{PATIENCE, wait_until};

use crate::ways_out::explained;

/// Numbers of the links under VXLAN.
const UNDER: [u8; 2] = [8, 9];

/// Unconnected client, router and backend. The router forwards, so the programs can look up next hops.
pub fn machines(family: Family) -> Result<[Netns; 3]> {
    let machines = [Netns::new("client")?, Netns::new("router")?, Netns::new("backend")?];
    machines[1].set(family.forwarding(), "1")?;
    Ok(machines)
}

fn at(family: Family, link: u8, host: u8, port: u16) -> SocketAddr {
    SocketAddr::new(family.address(link, host), port)
}

/// A stage with the addresses of [`Stage::new`], on connected machines.
pub fn stage(data_path: DataPath, family: Family, machines: [Netns; 3]) -> Result<Stage> {
    Stage::on(data_path, machines, at(family, FRONT, 1, ROUTER_PORT), Setup::new(family))
}

/// Creates the client's or the backend's link as [`Stage::new`] does.
pub fn plain(family: Family, [client, router, backend]: &[Netns; 3], link: u8) -> Result<()> {
    let [near, far] = [1, 2].map(|host| family.network(link, host));
    match link {
        FRONT => client.link(("eth0", &[&far]), router, ("front", &[&near])),
        _ => router.link(("back", &[&near]), backend, ("eth0", &[&far])),
    }
}

#[test]
fn an_endpoint_is_its_own_client() -> Result<()> {
    let world = |data_path, family: Family| {
        let [pod, router, _] = machines(family)?;
        let [near, far] = [1, 2].map(|host| family.network(FRONT, host));
        pod.link(("eth0", &[&far]), &router, ("front", &[&near]))?;
        let endpoints = vec![at(family, FRONT, 2, BACKEND_PORT)];
        let address = at(family, FRONT, 1, ROUTER_PORT);
        Stage::on(data_path, [pod.clone(), router, pod], address, Setup { endpoints, ..Setup::new(family) })
    };
    alike(world, |stage| stage.talk(Carrier::Kernel))
}

/// Connections arrive and leave on one interface.
#[test]
fn a_client_and_an_endpoint_are_on_one_segment() -> Result<()> {
    let world = |data_path, family: Family| {
        let (machines, switch) = (machines(family)?, Netns::new("switch")?);
        switch.ip(&["link", "add", "br0", "type", "bridge"])?;
        switch.ip(&["link", "set", "br0", "up"])?;
        for ((port, host), machine) in [("client", 2), ("router", 1), ("backend", 3)].into_iter().zip(&machines) {
            machine.link(("eth0", &[&family.network(FRONT, host)]), &switch, (port, &[]))?;
            switch.ip(&["link", "set", port, "master", "br0"])?;
        }
        let endpoints = vec![at(family, FRONT, 3, BACKEND_PORT)];
        let address = at(family, FRONT, 1, ROUTER_PORT);
        // Keeps the switch.
        Ok((Stage::on(data_path, machines, address, Setup { endpoints, ..Setup::new(family) })?, switch))
    };
    alike(world, |(stage, _)| stage.talk(Carrier::Kernel))
}

/// Like those of WireGuard. The programs attach to none of them.
#[test]
fn clients_arrive_over_an_interface_without_ethernet_headers() -> Result<()> {
    let world = |data_path, family: Family| {
        let machines = machines(family)?;
        plain(family, &machines, BACK)?;
        let tunnel = tunnel(family, FRONT, &machines[1], &machines[0])?;
        Ok((stage(data_path, family, machines)?, tunnel))
    };
    alike(world, |(stage, _)| stage.talk(Carrier::AgentAlone))
}

/// Like a macvlan in passthru mode, the only one on its host: it has the hardware address of the link itself.
#[test]
fn clients_arrive_over_a_macvlan_that_has_its_whole_link() -> Result<()> {
    let world = |data_path, family: Family| {
        let machines = machines(family)?;
        let [client, router, _] = &machines;
        plain(family, &machines, BACK)?;
        client.link(("eth0", &[&family.network(FRONT, 2)]), router, ("under", &[]))?;
        router.ip(&["link", "add", "link", "under", "name", "front", "type", "macvlan", "mode", "passthru"])?;
        router.equip("front", &[&family.network(FRONT, 1)])?;
        stage(data_path, family, machines)
    };
    alike(world, |stage| stage.talk(Carrier::Kernel))
}

#[test]
fn an_endpoint_is_behind_an_interface_without_ethernet_headers() -> Result<()> {
    let world = |data_path, family: Family| {
        let machines = machines(family)?;
        plain(family, &machines, FRONT)?;
        let tunnel = tunnel(family, BACK, &machines[1], &machines[2])?;
        Ok((stage(data_path, family, machines)?, tunnel))
    };
    alike(world, |(stage, _)| {
        if stage.steers() {
            explained(stage, "its route leaves by an interface that no kernel program is attached to")?;
        }
        stage.talk(Carrier::Agent(Reason::NoEndpoint))
    })
}

fn tunnel(family: Family, link: u8, near: &Netns, far: &Netns) -> Result<Tunnel> {
    let [own, other] = [1, 2].map(|host| family.network(link, host));
    Tunnel::lay((near, "tun0", &[&own]), (far, "tun0", &[&other]))
}

#[test]
fn clients_and_an_endpoint_are_behind_vxlan() -> Result<()> {
    for overlaid in [&[FRONT][..], &[BACK], &[FRONT, BACK]] {
        let world = |data_path, family: Family| {
            let machines = machines(family)?;
            for link in [FRONT, BACK] {
                match overlaid.contains(&link) {
                    true => vxlan(family, link, &machines[1], &machines[usize::from(link - 1) * 2])?,
                    false => plain(family, &machines, link)?,
                }
            }
            stage(data_path, family, machines)
        };
        alike(world, |stage| stage.talk(Carrier::Kernel))?;
    }
    Ok(())
}

/// A link whose Ethernet frames are carried over UDP (RFC 7348).
fn vxlan(family: Family, link: u8, near: &Netns, far: &Netns) -> Result<()> {
    let under = UNDER[usize::from(link - 1)];
    let device = format!("under{link}");
    let [own, other] = [1, 2].map(|host| family.network(under, host));
    near.link((&device, &[&own]), far, (&device, &[&other]))?;
    for (netns, host, remote) in [(near, 1, 2), (far, 2, 1)] {
        let [own, remote] = [host, remote].map(|host| family.address(under, host).to_string());
        let id = link.to_string();
        let ends = ["id", &id, "local", &own, "remote", &remote, "dstport", "4789", "dev", &device];
        let name = format!("vxlan{link}");
        netns.ip(&[&["link", "add", &name, "type", "vxlan"][..], &ends].concat())?;
        netns.equip(&name, &[&family.network(link, host)])?;
    }
    Ok(())
}

/// RFC 3021, RFC 6164.
#[test]
fn links_have_two_addresses() -> Result<()> {
    let world = |data_path, family: Family| {
        let [client, router, backend] = machines(family)?;
        let bits = if family == Family::V4 { 31 } else { 127 };
        let network = |link, host| format!("{}/{bits}", family.address(link, host));
        client.link(("eth0", &[&network(FRONT, 2)]), &router, ("front", &[&network(FRONT, 3)]))?;
        router.link(("back", &[&network(BACK, 2)]), &backend, ("eth0", &[&network(BACK, 3)]))?;
        let endpoints = vec![at(family, BACK, 3, BACKEND_PORT)];
        let address = at(family, FRONT, 3, ROUTER_PORT);
        Stage::on(data_path, [client, router, backend], address, Setup { endpoints, ..Setup::new(family) })
    };
    alike(world, |stage| stage.talk(Carrier::Kernel))
}

/// Links without IPv4 addresses: next hops are IPv6 addresses of the link (RFC 5549), also those of IPv4 routes.
#[test]
fn next_hops_are_ipv6_addresses_of_the_link() -> Result<()> {
    let world = |data_path, family: Family| {
        let machines = machines(family)?;
        let [client, router, backend] = &machines;
        client.link(("eth0", &["fe80::2/64"]), router, ("front", &["fe80::1/64"]))?;
        router.link(("back", &["fe80::1/64"]), backend, ("eth0", &["fe80::2/64"]))?;
        let lead = |netns: &Netns, interface: &str, link: u8, own: u8, other: u8| {
            let (address, to) = (family.address(link, own).to_string(), family.alone(link, other));
            netns.equip("lo", &[&family.alone(link, own)])?;
            let hop = format!("fe80::{other}");
            netns.ip(&["route", "add", &to, "via", "inet6", &hop, "dev", interface, "src", &address])
        };
        lead(client, "eth0", FRONT, 2, 1)?;
        lead(router, "front", FRONT, 1, 2)?;
        lead(router, "back", BACK, 1, 2)?;
        lead(backend, "eth0", BACK, 2, 1)?;
        stage(data_path, family, machines)
    };
    alike(world, |stage| stage.talk(Carrier::Kernel))
}

/// An interface is renamed while a connection uses it, and new connections arrive.
#[test]
fn interfaces_are_renamed() -> Result<()> {
    let world = |data_path, family| Stage::new(data_path, Setup::new(family));
    alike(world, |stage| {
        stage.carried_by(Carrier::Kernel, || {
            let pair = stage.connect()?;
            let mut seen = vec![Seen::of(&pair)?];
            for (old, new) in [("front", "uplink"), ("back", "pods"), ("uplink", "front")] {
                stage.router.ip(&["link", "set", old, "name", new])?;
                let named = || {
                    stage.sluice.get("status").is_ok_and(|status| {
                        let names = status["dataPath"]["interfaces"].to_string();
                        names.contains(new) && !names.contains(old)
                    })
                };
                let mut went_on = Ok(());
                wait_until("the agent knows the new name", PATIENCE, || {
                    went_on = pair.greet();
                    went_on.is_err() || !stage.steers() || named()
                })?;
                went_on.with_context(|| format!("{old} became {new}"))?;
                pair.greet()?;
                seen.push(stage.talk(Carrier::Kernel)?);
            }
            pair.exchange(2, 200_000, 200_000)?;
            Ok(seen)
        })
    })
}

/// The interface is promiscuous, or its segment floods: a frame with another hardware address belongs to another host,
/// even if everything else in it is right.
#[test]
fn frames_for_other_hosts_are_left_alone() -> Result<()> {
    const OTHER: [u8; 6] = [2, 0, 0, 0, 0, 0x42];
    let world = |data_path, family| Stage::new(data_path, Setup { offloads: false, ..Setup::new(family) });
    alike(world, |stage| {
        stage.router.ip(&["link", "set", "front", "promisc", "on"])?;
        stage.carried_by(Carrier::Kernel, || {
            let address = SocketAddr::new(raw::address_on(stage.family.address(FRONT, 2)), 20_001);
            let place = Place { at: (&stage.client, "eth0"), gateway: (&stage.router, "front"), address };
            let mut end = End::connect(&place, stage.address, Nature::COMMON)?;
            let hello = short_hello(HOST)?;
            let router = end.send_frames_to(OTHER);
            end.send_again(0, &short_hello("other.apps.test")?)?;
            end.send_frames_to(router);
            end.send(&hello)?;
            let mut origin = stream::accept_with(&stage.listener, &hello)?;
            end.all_acknowledged()?;
            end.send_frames_to(OTHER);
            end.send_again(hello.len(), b"of other hosts")?;
            end.forge_reset(0)?;
            end.send_frames_to(router);
            let text = b"for the endpoint";
            end.send(text)?;
            end.all_acknowledged()?;
            let mut received = vec![0; text.len()];
            origin.read_exact(&mut received)?;
            ensure!(received == text, "{:?} arrived", String::from_utf8_lossy(&received));
            origin.write_all(b"and back")?;
            end.receive(8)?;
            Ok((received, end.received().to_vec()))
        })
    })
}
