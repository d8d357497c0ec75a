//! `ip_allowlist` on a passthrough route: other clients are rejected; with the kernel program before a socket exists.

use std::io::{ErrorKind, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};

use anyhow::{Context, Result, bail};
use router_common::maps::names;
use tempfile::TempDir;
use tests::client::Client;
use tests::folder;
use tests::hello::client_hello;
use tests::netns::Netns;
use tests::nginx::{Nginx, Server};
use tests::sluice::{DataPath, Options, Sluice};
use tests::stream::read_once;
use tests::wait::PATIENCE;

const HOST: &str = "passthrough.apps.localhost";
const ROUTER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 78, 1, 1));
const ROUTER_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd78, 1, 0, 0, 0, 0, 0, 1));
const LISTED: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(10, 78, 1, 2)), IpAddr::V6(Ipv6Addr::new(0xfd78, 1, 0, 0, 0, 0, 0, 2))];

#[test]
fn the_kernel_refuses_who_is_not_listed() -> Result<()> {
    let stage = Stage::new(DataPath::Kernel)?;
    for (router, listed) in [(ROUTER, LISTED[0]), (ROUTER_V6, LISTED[1])] {
        stage.admits(router, listed)?;
        assert!(matches!(stage.knock(router)?, Refusal::Reset), "the kernel resets");
    }
    let reasons = stage.sluice.dump(names::REASON_STATS)?.to_string();
    assert!(reasons.contains("\"source-not-allowed\"") && reasons.contains("\"connections\":2"), "{reasons}");
    let verdicts = stage.sluice.dump(names::VERDICTS)?;
    let refused = verdicts.as_array().context("a list")?.iter().filter(|entry| entry["verdict"] == "drop");
    assert_eq!(refused.count(), 2, "{verdicts}");
    Ok(())
}

#[test]
fn user_space_refuses_who_is_not_listed() -> Result<()> {
    let stage = Stage::new(DataPath::UserSpace)?;
    for (router, listed) in [(ROUTER, LISTED[0]), (ROUTER_V6, LISTED[1])] {
        stage.admits(router, listed)?;
        stage.knock(router)?;
    }
    Ok(())
}

enum Refusal {
    Reset,
    Closed,
}

struct Stage {
    client: Netns,
    sluice: Sluice,
    _nginx: Nginx,
    _manifests: TempDir,
}

impl Stage {
    fn new(data_path: DataPath) -> Result<Stage> {
        let (client, router, backend) = (Netns::new("client")?, Netns::new("router")?, Netns::new("backend")?);
        let addresses = ["10.78.1.3/24", "10.78.1.2/24", "fd78:1::3/64", "fd78:1::2/64"];
        client.link(("eth0", &addresses), &router, ("front", &["10.78.1.1/24", "fd78:1::1/64"]))?;
        router.link(("back", &["10.78.2.1/24"]), &backend, ("eth0", &["10.78.2.2/24"]))?;
        let endpoint = SocketAddr::from((Ipv4Addr::new(10, 78, 2, 2), 18443));
        let server =
            Server { name: "passthrough", listen: endpoint, certificate: Some("demo-only-passthrough".into()) };
        let nginx = Nginx::start(&backend, &[server])?;
        let route = folder::route("listed", HOST, "listed", folder::PASSTHROUGH).replace(
            "metadata: {",
            "metadata: {annotations: {haproxy.router.openshift.io/ip_allowlist: \"10.78.1.2 192.0.2.0/24 fd78:1::2\"}, ",
        );
        let manifests = TempDir::new()?;
        let text = folder::router() + &folder::service("listed", endpoint) + &route;
        std::fs::write(manifests.path().join("all.yaml"), text)?;
        let sluice = Sluice::start(&router, manifests.path(), &Options::network(data_path))?;
        Ok(Stage { client, sluice, _nginx: nginx, _manifests: manifests })
    }

    /// A client of a listed address is served.
    fn admits(&self, router: IpAddr, from: IpAddr) -> Result<()> {
        let mut client = Client::of(&self.client, router);
        client.from = Some(from);
        let answer = client.get(&format!("https://{HOST}:8443/"))?;
        assert!(answer.body.starts_with("nginx passthrough "), "{answer:?}");
        Ok(())
    }

    /// A client of another address sends its hello. It must receive nothing.
    fn knock(&self, router: IpAddr) -> Result<Refusal> {
        let from: IpAddr = match router {
            IpAddr::V4(_) => Ipv4Addr::new(10, 78, 1, 3).into(),
            IpAddr::V6(_) => Ipv6Addr::new(0xfd78, 1, 0, 0, 0, 0, 0, 3).into(),
        };
        let mut stream = self.client.run(|| connect_from(from, SocketAddr::new(router, 8443)))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(&client_hello(HOST)?)?;
        match read_once(&mut stream) {
            Ok(0) => Ok(Refusal::Closed),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(Refusal::Reset),
            other => bail!("a client that is not listed got {other:?}"),
        }
    }
}

fn connect_from(from: IpAddr, to: SocketAddr) -> Result<TcpStream> {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let family = if from.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let socket = socket(family, SocketType::STREAM, None)?;
    bind(&socket, &SocketAddr::new(from, 0))?;
    connect(&socket, &to)?;
    Ok(TcpStream::from(socket))
}
