//! The harness itself, without a router: guarantees that the other stories rely on.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use anyhow::Result;
use tests::client::Client;
use tests::netns::Netns;
use tests::nginx::{Nginx, Server};
use tests::wait::{self, PATIENCE};

#[test]
fn a_client_reaches_nginx_over_a_link() -> Result<()> {
    let (client, server) = (Netns::new("client")?, Netns::new("server")?);
    client.link(("eth0", &["10.79.0.2/24", "fd79::2/64"]), &server, ("eth0", &["10.79.0.1/24", "fd79::1/64"]))?;
    let v4 = SocketAddr::from((Ipv4Addr::new(10, 79, 0, 1), 8443));
    let v6 = SocketAddr::from((Ipv6Addr::new(0xfd79, 0, 0, 0, 0, 0, 0, 1), 8443));
    let certificate = || Some("demo-only-passthrough".into());
    let servers = [v4, v6].map(|listen| Server { name: "direct", listen, certificate: certificate() });
    let _nginx = Nginx::start(&server, &servers)?;
    for address in [v4, v6] {
        let client = Client::of(&client, address.ip());
        let answer = client.get("https://passthrough.apps.localhost:8443/a")?;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.body, "nginx direct tls=TLSv1.3 sni=passthrough.apps.localhost uri=/a proto=\n");
        let session = client.s_client(address, "passthrough.apps.localhost", "/a")?;
        assert!(session.contains("Verify return code: 0 (ok)") && session.contains("nginx direct"), "{session}");
        assert!(client.s_client(address, "edge.apps.localhost", "/a").is_err(), "another name is not accepted");
        assert!(client.get("https://edge.apps.localhost:8443/").is_err(), "another name is not accepted");
    }
    Ok(())
}

#[test]
fn a_namespace_goes_when_it_is_dropped() -> Result<()> {
    let netns = Netns::new("gone")?;
    let path = Path::new("/run/netns").join(netns.name());
    assert!(path.exists());
    drop(netns);
    assert!(!path.exists());
    Ok(())
}

#[test]
fn nginx_leaves_no_worker_behind() -> Result<()> {
    let netns = Netns::new("workers")?;
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 8080));
    let nginx = Nginx::start(&netns, &[Server { name: "direct", listen, certificate: None }])?;
    let master = nginx.id();
    // It listens before it starts them.
    let started = || {
        let children = std::fs::read_to_string(format!("/proc/{master}/task/{master}/children")).ok()?;
        let workers: Vec<String> = children.split_whitespace().map(str::to_owned).collect();
        (!workers.is_empty()).then_some(workers)
    };
    let (workers, _) = wait::wait_for("nginx starts its workers", PATIENCE, started)?;
    drop(nginx);
    for worker in workers {
        assert!(!Path::new("/proc").join(&worker).exists(), "worker {worker} was left behind");
    }
    Ok(())
}
