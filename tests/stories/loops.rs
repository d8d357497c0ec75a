//! A route to the router itself: its connections would come back as those of a client, and use a descriptor and a port
//! on each round.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use router_common::verdict::DialCounter;
use tempfile::TempDir;
use tests::hello::client_hello;
use tests::netns::Netns;
use tests::sluice::{self, DataPath, Options, Sluice};
use tests::{folder, pinned, stream};

const RAW: &str = "raw.apps.test";
const CLEAR: &str = "clear.apps.test";

#[test]
fn a_route_to_the_router_itself_is_refused() -> Result<()> {
    for data_path in [DataPath::Kernel, DataPath::UserSpace] {
        let (client, router) = (Netns::new("client")?, Netns::new("router")?);
        client.link(
            ("eth0", &["10.87.1.2/24", "fd87:1::2/64"]),
            &router,
            ("front", &["10.87.1.1/24", "fd87:1::1/64"]),
        )?;
        let outside = [Ipv4Addr::new(10, 87, 1, 1).into(), Ipv6Addr::new(0xfd87, 1, 0, 0, 0, 0, 0, 1).into()];
        for own in outside.into_iter().chain([Ipv4Addr::new(127, 0, 0, 9).into()]) {
            let manifests = TempDir::new()?;
            let text = folder::router()
                + &folder::service("raw", SocketAddr::new(own, 8443))
                + &folder::route("raw", RAW, "raw", folder::PASSTHROUGH)
                + &folder::service("clear", SocketAddr::new(own, 8080))
                + &folder::route("clear", CLEAR, "clear", "");
            folder::replace(&manifests.path().join("all.yaml"), &text)?;
            // Endpoints on loopback, too.
            let mut options = Options::loopback(data_path);
            options.arguments.push("--show-cause".to_owned());
            let sluice = Sluice::start(&router, manifests.path(), &options)?;
            refused(&sluice, &client, outside[usize::from(own.is_ipv6())], data_path)
                .with_context(|| format!("{data_path:?}, {own}"))?;
        }
    }
    Ok(())
}

fn refused(sluice: &Sluice, client: &Netns, router: std::net::IpAddr, data_path: DataPath) -> Result<()> {
    let mut passthrough = stream::open(client, SocketAddr::new(router, 8443))?;
    passthrough.write_all(&client_hello(RAW)?)?;
    let read = passthrough.read(&mut [0; 16]);
    ensure!(read.as_ref().is_err_and(|error| error.kind() == ErrorKind::ConnectionReset), "{read:?}");

    let mut clear = stream::open(client, SocketAddr::new(router, 8080))?;
    write!(clear, "GET / HTTP/1.1\r\nHost: {CLEAR}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    clear.read_to_string(&mut answer)?;
    ensure!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("x-sluice-cause: own-listener"), "{answer}");

    if data_path == DataPath::Kernel {
        let dialed = pinned::dial_counter(sluice, DialCounter::Dialed)?;
        ensure!(dialed == 0, "the kernel has dialed {dialed} times");
    }
    let status = sluice.get("status")?;
    let mut findings = status["findings"].as_array().context("findings")?.iter();
    let own = findings.find(|finding| finding["reason"] == "own-listener").context("no finding of it")?;
    let names = own["names"].as_array().context("names")?;
    let has = |route: &str| names.iter().any(|name| name.as_str().is_some_and(|name| name.ends_with(route)));
    ensure!(names.len() == 2 && has("/raw") && has("/clear"), "{own}");
    explained(sluice)
}

fn explained(sluice: &Sluice) -> Result<()> {
    for question in [format!("{RAW}:8443"), format!("http://{CLEAR}:8080/")] {
        let state = sluice.state().as_os_str();
        let arguments = ["explain".as_ref(), question.as_ref(), "--state".as_ref(), state];
        let output = sluice::run(&arguments)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(text.contains("this router listens there itself, so nothing is sent to it"), "{text}");
    }
    Ok(())
}

/// Unused addresses that the router's host translates to the router's own listeners, like those of a Service.
const SERVICE: [&str; 2] = ["10.99.0.1", "fd99::1"];
/// Descriptors, beyond those of an idle router, for a client's connections and the first round.
const FEW: usize = 32;

#[test]
fn a_connection_that_address_translation_brings_back_is_refused() -> Result<()> {
    for data_path in [DataPath::Kernel, DataPath::UserSpace] {
        for v6 in [false, true] {
            for hairpin in ["", "masquerade fully-random"] {
                translated(data_path, v6, hairpin).with_context(|| format!("{data_path:?}, v6: {v6}, {hairpin}"))?;
            }
        }
    }
    Ok(())
}

fn translated(data_path: DataPath, v6: bool, hairpin: &str) -> Result<()> {
    let (client, router) = (Netns::new("client")?, Netns::new("router")?);
    client.link(("eth0", &["10.87.1.2/24", "fd87:1::2/64"]), &router, ("front", &["10.87.1.1/24", "fd87:1::1/64"]))?;
    let version = if v6 { "ip6" } else { "ip" };
    let (own, via) = if v6 { ("fd87:1::1", "fd87:1::2") } else { ("10.87.1.1", "10.87.1.2") };
    let service = SERVICE[usize::from(v6)];
    router.ip(&["route", "add", service, "via", via])?;
    let literal = if v6 { format!("[{own}]") } else { own.to_owned() };
    let dnat = |from, to| format!("{version} daddr {service} tcp dport {from} dnat to {literal}:{to}\n");
    let back =
        if hairpin.is_empty() { String::new() } else { format!("{version} daddr {own} meta l4proto tcp {hairpin}\n") };
    let rules = format!(
        "table {version} story {{\n chain out {{\n type nat hook output priority -100\n {}{} }}\n \
         chain post {{\n type nat hook postrouting priority 100\n {back} }}\n}}\n",
        dnat(443, 8443),
        dnat(80, 8080)
    );
    router.feed(&["nft", "-f", "-"], &rules)?;
    let manifests = TempDir::new()?;
    let endpoint = |port| -> Result<SocketAddr> { Ok(SocketAddr::new(service.parse()?, port)) };
    let text = folder::router()
        + &folder::service("raw", endpoint(443)?)
        + &folder::route("raw", RAW, "raw", folder::PASSTHROUGH)
        + &folder::service("clear", endpoint(80)?)
        + &folder::route("clear", CLEAR, "clear", "");
    folder::replace(&manifests.path().join("all.yaml"), &text)?;
    let mut options = Options::loopback(data_path);
    options.arguments.push("--show-cause".to_owned());
    let sluice = Sluice::start(&router, manifests.path(), &options)?;
    let idle = sluice.descriptors()?;

    let mut passthrough = stream::open(&client, SocketAddr::new(own.parse()?, 8443))?;
    passthrough.write_all(&client_hello(RAW)?)?;
    passthrough.set_read_timeout(Some(Duration::from_secs(8)))?;
    let read = passthrough.read(&mut [0; 16]);
    let open = sluice.descriptors()?;
    ensure!(open < idle + FEW, "{open} descriptors are open after 8 s, {idle} were before: {read:?}");
    ensure!(read.as_ref().is_err_and(|error| error.kind() == ErrorKind::ConnectionReset), "{read:?}");

    // The first connection detects the loop.
    let answers = [ask(&client, own)?, ask(&client, own)?];
    ensure!(answers[0].starts_with("HTTP/1.1 50"), "{answers:?}");
    let told = |answer: &str| answer.starts_with("HTTP/1.1 503 ") && answer.contains("x-sluice-cause: own-listener");
    ensure!(told(&answers[1]), "{answers:?}");
    let open = sluice.descriptors()?;
    ensure!(open < idle + FEW, "{open} descriptors are open, {idle} were before");
    explained(&sluice)
}

fn ask(client: &Netns, router: &str) -> Result<String> {
    let mut clear = stream::open(client, SocketAddr::new(router.parse()?, 8080))?;
    write!(clear, "GET / HTTP/1.1\r\nHost: {CLEAR}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    clear.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Clients on the host itself are served, whatever destination the host translates their connections to.
#[test]
fn clients_of_the_host_are_served_behind_its_address_translation() -> Result<()> {
    let router = Netns::new("router")?;
    let rules = "table ip story {\n chain out {\n type nat hook output priority -100\n \
                 ip daddr 127.0.0.9 tcp dport 80 dnat to 127.0.0.1:8080\n }\n}\n";
    router.feed(&["nft", "-f", "-"], rules)?;
    let backend = router.run(|| Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 9000))?))?;
    let manifests = TempDir::new()?;
    let text = folder::router()
        + &folder::service("clear", backend.local_addr()?)
        + &folder::route("clear", CLEAR, "clear", "");
    folder::replace(&manifests.path().join("all.yaml"), &text)?;
    let _sluice = Sluice::start(&router, manifests.path(), &Options::loopback(DataPath::UserSpace))?;
    let mut client = stream::open(&router, SocketAddr::from(([127, 0, 0, 9], 80)))?;
    write!(client, "GET / HTTP/1.1\r\nHost: {CLEAR}\r\nConnection: close\r\n\r\n")?;
    let mut origin = stream::accept(&backend)?;
    stream::read_until(&mut origin, b"\r\n\r\n")?;
    origin.write_all(b"HTTP/1.1 204 No Content\r\n\r\n")?;
    let mut answer = String::new();
    client.read_to_string(&mut answer)?;
    ensure!(answer.starts_with("HTTP/1.1 204 "), "{answer}");
    Ok(())
}
