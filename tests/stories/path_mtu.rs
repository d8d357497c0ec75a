//! A link beyond this host has a smaller MTU than the ends know: the ICMP error of the router before it reaches the
//! sender, on both data paths.

use std::net::{SocketAddr, TcpListener};

use anyhow::{Context, Result, ensure};
use router_common::verdict::DialCounter;
use tempfile::TempDir;
use tests::netns::Netns;
use tests::sluice::{DataPath, Options, Sluice};
use tests::{folder, pinned, stream};

const HOST: &str = "raw.apps.test";
const NARROW: &str = "1300";

/// Addresses of the client's link, the link between the two routers in front, and so on to the backend; the two numbers
/// are the host parts.
struct Plan {
    network: fn(u8, u8) -> String,
    bits: u8,
    forwarding: &'static str,
}

const V4: Plan = Plan { network: |link, host| format!("10.84.{link}.{host}"), bits: 24, forwarding: "ipv4/ip_forward" };
const V6: Plan =
    Plan { network: |link, host| format!("fd84:{link}::{host}"), bits: 64, forwarding: "ipv6/conf/all/forwarding" };

#[test]
fn the_sender_hears_of_it() -> Result<()> {
    on_both_sides(&V4, DataPath::Kernel)
}

#[test]
fn the_sender_hears_of_it_over_ipv6() -> Result<()> {
    on_both_sides(&V6, DataPath::Kernel)
}

#[test]
fn the_sender_hears_of_it_in_user_space() -> Result<()> {
    on_both_sides(&V4, DataPath::UserSpace)?;
    on_both_sides(&V6, DataPath::UserSpace)
}

/// client ─1─ near ─2─ router ─3─ far ─4─ backend; links 1 and 4 are narrow as seen from `near` and `far` only.
fn on_both_sides(plan: &Plan, data_path: DataPath) -> Result<()> {
    let names = ["client", "near", "router", "far", "backend"];
    let machines = names.iter().map(|name| Netns::new(name)).collect::<Result<Vec<_>>>()?;
    let address = |link, host| (plan.network)(link, host);
    let network = |link, host| format!("{}/{}", address(link, host), plan.bits);
    for (link, pair) in (1..).zip(machines.windows(2)) {
        let [left, right] = pair else { continue };
        left.link(("right", &[&network(link, 1)]), right, ("left", &[&network(link, 2)]))?;
    }
    let [client, near, router, far, backend] = &machines[..] else { unreachable!("five machines were made") };
    for middle in [near, far] {
        middle.set(plan.forwarding, "1")?;
    }
    // Set on the route, not on the interface: a veth interface also drops received packets larger than its MTU.
    near.ip(&["route", "replace", &network(1, 0), "dev", "left", "mtu", "lock", NARROW])?;
    far.ip(&["route", "replace", &network(4, 0), "dev", "right", "mtu", "lock", NARROW])?;
    let default = |netns: &Netns, via: String| netns.ip(&["route", "add", "default", "via", &via]);
    default(client, address(1, 2))?;
    default(backend, address(4, 1))?;
    router.ip(&["route", "add", &network(1, 0), "via", &address(2, 1)])?;
    router.ip(&["route", "add", &network(4, 0), "via", &address(3, 2)])?;

    let listener = backend.run(|| Ok(TcpListener::bind(format!("{}:9000", bracketed(&address(4, 2))))?))?;
    let manifests = TempDir::new()?;
    let text = folder::router()
        + &folder::service("raw", listener.local_addr()?)
        + &folder::route("raw", HOST, "raw", folder::PASSTHROUGH);
    folder::replace(&manifests.path().join("all.yaml"), &text)?;
    let sluice = Sluice::start(router, manifests.path(), &Options::network(data_path))?;
    let to: SocketAddr = format!("{}:8443", bracketed(&address(2, 2))).parse()?;
    for seed in 0..3 {
        let pair = stream::connect(client, to, &listener, HOST)?;
        pair.exchange(seed, 2_000_000, 2_000_000).with_context(|| format!("connection {seed}"))?;
    }
    if data_path == DataPath::Kernel {
        ensure!(pinned::dial_counter(&sluice, DialCounter::Dialed)? == 3, "the kernel did not dial");
    }
    Ok(())
}

fn bracketed(address: &str) -> String {
    if address.contains(':') { format!("[{address}]") } else { address.to_owned() }
}
