//! A client and an endpoint with different versions of IP: the kernel carries them like any others.

use std::net::{IpAddr, SocketAddr, TcpListener};

use anyhow::{Context, Result, ensure};
use router_common::verdict::DialCounter;
use tempfile::TempDir;
use tests::netns::Netns;
use tests::sluice::{DataPath, Options, Sluice};
use tests::{folder, pinned, stream};

const HOST: &str = "raw.apps.test";
const FRONT: [(&str, &str); 2] = [("10.83.1.1", "10.83.1.2"), ("fd83:1::1", "fd83:1::2")];
const BACK: [(&str, &str); 2] = [("10.83.2.1", "10.83.2.2"), ("fd83:2::1", "fd83:2::2")];

#[test]
fn ipv4_clients_and_an_ipv6_endpoint() -> Result<()> {
    every_way(0, 1)
}

#[test]
fn ipv6_clients_and_an_ipv4_endpoint() -> Result<()> {
    every_way(1, 0)
}

/// Versions of IP of the front and the back link, as indexes above.
fn every_way(front: usize, back: usize) -> Result<()> {
    for (offloads, annotations) in [(true, ""), (false, ""), (true, "router.sluice.dev/proxy-protocol: v2")] {
        exchanges(FRONT[front], BACK[back], offloads, annotations)
            .with_context(|| format!("offloads {offloads}, annotations {annotations:?}"))?;
    }
    Ok(())
}

fn exchanges(front: (&str, &str), back: (&str, &str), offloads: bool, annotations: &str) -> Result<()> {
    let (client, router, backend) = (Netns::new("client")?, Netns::new("router")?, Netns::new("backend")?);
    let network = |address: &str| format!("{address}/{}", if address.contains(':') { 64 } else { 24 });
    client.link(("eth0", &[&network(front.1)]), &router, ("front", &[&network(front.0)]))?;
    router.link(("back", &[&network(back.0)]), &backend, ("eth0", &[&network(back.1)]))?;
    if !offloads {
        for (netns, interface) in [(&client, "eth0"), (&router, "front"), (&router, "back"), (&backend, "eth0")] {
            netns.without_offloads(interface)?;
        }
    }
    let endpoint: IpAddr = back.1.parse()?;
    let listener = backend.run(|| Ok(TcpListener::bind((endpoint, 9000))?))?;
    let annotated = format!("metadata: {{annotations: {{{annotations}}}, ");
    let route = folder::route("raw", HOST, "raw", folder::PASSTHROUGH).replace("metadata: {", &annotated);
    let manifests = TempDir::new()?;
    let text = folder::router() + &folder::service("raw", listener.local_addr()?) + &route;
    folder::replace(&manifests.path().join("all.yaml"), &text)?;
    let sluice = Sluice::start(&router, manifests.path(), &Options::network(DataPath::Kernel))?;
    let address = SocketAddr::new(front.0.parse()?, 8443);
    const CONNECTIONS: u64 = 4;
    for seed in 0..CONNECTIONS {
        if annotations.is_empty() {
            stream::connect(&client, address, &listener, HOST)?.exchange(seed, 3_000_000, 3_000_000)?;
        } else {
            with_header(&client, address, &listener, seed)?;
        }
    }
    let dialed = pinned::dial_counter(&sluice, DialCounter::Dialed)?;
    ensure!(dialed == CONNECTIONS, "the kernel dialed {dialed} of {CONNECTIONS}");
    let dropped = pinned::dial_counter(&sluice, DialCounter::Untranslated)?;
    ensure!(dropped == 0, "{dropped} packets could not be translated");
    Ok(())
}

/// The PROXY header names the client and the listener in their version of IP, whatever the endpoint's is.
fn with_header(client: &Netns, address: SocketAddr, listener: &TcpListener, seed: u64) -> Result<()> {
    use std::io::{Read, Write};
    let hello = tests::hello::client_hello(HOST)?;
    let mut client = stream::open(client, address)?;
    client.write_all(&hello)?;
    let mut origin = stream::accept(listener)?;
    let mut header = vec![0; if address.is_ipv4() { 28 } else { 52 }];
    origin.read_exact(&mut header)?;
    let family = if address.is_ipv4() { 0x11 } else { 0x21 };
    ensure!(header[12..14] == [0x21, family], "{header:?}");
    ensure!(header.ends_with(&address.port().to_be_bytes()), "{header:?}");
    let mut received = vec![0; hello.len()];
    origin.read_exact(&mut received)?;
    ensure!(received == hello, "the hello was changed");
    stream::Pair { client, origin }.exchange(seed, 1_000_000, 1_000_000)
}
