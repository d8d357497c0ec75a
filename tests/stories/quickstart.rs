//! `examples/quickstart`, served to curl and openssl, with nginx as its backends.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::{Result, ensure};
use tests::client::Client;
use tests::netns::Netns;
use tests::nginx::{self, Nginx};
use tests::sluice::{DataPath, Options, Sluice};
use tests::{folder, workspace};

#[test]
fn on_loopback_in_user_space() -> Result<()> {
    on_loopback(DataPath::UserSpace)
}

#[test]
fn on_loopback_with_the_kernel_program() -> Result<()> {
    on_loopback(DataPath::Kernel)
}

#[test]
fn over_ipv4_in_user_space() -> Result<()> {
    between_namespaces(DataPath::UserSpace, Family::V4)
}

#[test]
fn over_ipv4_with_the_kernel_program() -> Result<()> {
    between_namespaces(DataPath::Kernel, Family::V4)
}

#[test]
fn over_ipv6_in_user_space() -> Result<()> {
    between_namespaces(DataPath::UserSpace, Family::V6)
}

#[test]
fn over_ipv6_with_the_kernel_program() -> Result<()> {
    between_namespaces(DataPath::Kernel, Family::V6)
}

/// The unmodified folder, with names resolved as by curl: to both loopback addresses.
fn on_loopback(data_path: DataPath) -> Result<()> {
    let netns = Netns::new("loopback")?;
    let _nginx = Nginx::start(&netns, &nginx::quickstart(Ipv4Addr::LOCALHOST.into()))?;
    let sluice = Sluice::start(&netns, &workspace().join("examples/quickstart"), &Options::loopback(data_path))?;
    check(&Client::new(&netns), Ipv4Addr::LOCALHOST.into())?;
    check(&Client::of(&netns, Ipv6Addr::LOCALHOST.into()), Ipv6Addr::LOCALHOST.into())?;
    let status = sluice.stop()?;
    ensure!(status.success(), "SIGTERM ends it well: {status}");
    Ok(())
}

#[derive(Clone, Copy)]
enum Family {
    V4,
    V6,
}

/// Client, router and backend in namespaces of their own.
fn between_namespaces(data_path: DataPath, family: Family) -> Result<()> {
    let (client, router, backend) = (Netns::new("client")?, Netns::new("router")?, Netns::new("backend")?);
    client.link(("eth0", &["10.77.1.2/24", "fd77:1::2/64"]), &router, ("front", &["10.77.1.1/24", "fd77:1::1/64"]))?;
    router.link(("back", &["10.77.2.1/24", "fd77:2::1/64"]), &backend, ("eth0", &["10.77.2.2/24", "fd77:2::2/64"]))?;
    let (front, behind): (IpAddr, IpAddr) = match family {
        Family::V4 => (Ipv4Addr::new(10, 77, 1, 1).into(), Ipv4Addr::new(10, 77, 2, 2).into()),
        Family::V6 => {
            let of = |net, host| Ipv6Addr::new(0xfd77, net, 0, 0, 0, 0, 0, host).into();
            (of(1, 1), of(2, 2))
        }
    };
    let _nginx = Nginx::start(&backend, &nginx::quickstart(behind))?;
    let manifests = folder::quickstart(behind)?;
    let _sluice = Sluice::start(&router, manifests.path(), &Options::network(data_path))?;
    check(&Client::of(&client, front), front)
}

/// The claims of the quickstart.
fn check(client: &Client<'_>, router: IpAddr) -> Result<()> {
    let hello = client.get("http://hello.apps.localhost:8080/a/path?q=1")?;
    assert_eq!(hello.status, 200);
    assert_eq!(hello.body, "nginx hello tls= sni= uri=/a/path?q=1 proto=http\n");

    let edge = client.get("https://edge.apps.localhost:8443/e")?;
    assert_eq!(edge.status, 200);
    assert_eq!(edge.body, "nginx edge tls= sni= uri=/e proto=https\n");

    let redirect = client.get("http://edge.apps.localhost:8080/e?q=1")?;
    let location = redirect.header("location").unwrap_or_default();
    assert_eq!((redirect.status, location), (302, "https://edge.apps.localhost:8443/e?q=1"));

    let reencrypt = client.get("https://reencrypt.apps.localhost:8443/r")?;
    assert_eq!(reencrypt.status, 200);
    let body = &reencrypt.body;
    assert!(body.starts_with("nginx reencrypt tls=TLSv1.3 ") && body.ends_with(" uri=/r proto=https\n"), "{body}");

    let passthrough = client.get("https://passthrough.apps.localhost:8443/p")?;
    assert_eq!(passthrough.status, 200);
    assert_eq!(
        passthrough.body, "nginx passthrough tls=TLSv1.3 sni=passthrough.apps.localhost uri=/p proto=\n",
        "the backend itself has terminated TLS, and nothing was added to the request"
    );

    for url in ["http://nobody.apps.localhost:8080/", "http://passthrough.apps.localhost:8080/"] {
        assert_eq!(client.get(url)?.status, 503, "{url} has no clear-text route");
    }

    let address = SocketAddr::new(router, 8443);
    for (name, backend) in
        [("edge", "nginx edge"), ("reencrypt", "nginx reencrypt"), ("passthrough", "nginx passthrough")]
    {
        let host = format!("{name}.apps.localhost");
        let session = client.s_client(address, &host, "/s")?;
        for part in [&format!("CN = {host}"), "Verify return code: 0 (ok)", "HTTP/1.1 200 OK", backend] {
            assert!(session.contains(part), "{part:?} is not in what openssl s_client printed for {host}:\n{session}");
        }
    }
    Ok(())
}
