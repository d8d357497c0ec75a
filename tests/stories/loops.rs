//! A route to the router itself: what it would send there would come back as a client's, and take a descriptor and a port
//! each time round.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

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
            // Loopback too.
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
    for question in [format!("{RAW}:8443"), format!("http://{CLEAR}:8080/")] {
        let state = sluice.state().as_os_str();
        let arguments = ["explain".as_ref(), question.as_ref(), "--state".as_ref(), state];
        let output = sluice::run(&arguments)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(text.contains("this router listens there itself, so nothing is sent to it"), "{text}");
    }
    Ok(())
}
