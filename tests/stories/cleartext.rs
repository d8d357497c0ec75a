//! Clear text that the kernel carries: a route that wants no forwarding headers, and later requests for another host.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use anyhow::{Context, Result, bail, ensure};
use router_common::verdict::DialCounter;
use tempfile::TempDir;
use tests::folder;
use tests::netns::Netns;
use tests::pinned;
use tests::sluice::{DataPath, Options, Sluice};
use tests::wait;

const NEVER: &str = "haproxy.router.openshift.io/set-forwarded-headers: never, \
                     haproxy.router.openshift.io/disable_cookies: \"true\"";
const HTTP_PORT: u16 = 8080;
const BACKEND_PORT: u16 = 9000;

struct Stage {
    sluice: Sluice,
    client: Netns,
    address: SocketAddr,
    one: TcpListener,
    two: TcpListener,
    _router: Netns,
    _manifests: TempDir,
}

impl Stage {
    /// Hosts `one` and `two`, each with a backend of its own; `two` wants forwarding headers.
    fn new() -> Result<Stage> {
        let (client, router, backend) = (Netns::new("client")?, Netns::new("router")?, Netns::new("backend")?);
        client.link(("eth0", &["10.82.1.2/24"]), &router, ("front", &["10.82.1.1/24"]))?;
        router.link(("back", &["10.82.2.1/24"]), &backend, ("eth0", &["10.82.2.2/24", "10.82.2.3/24"]))?;
        let listen = |address: &str| backend.run(|| Ok(TcpListener::bind((address, BACKEND_PORT))?));
        let (one, two) = (listen("10.82.2.2")?, listen("10.82.2.3")?);
        let never = format!("metadata: {{annotations: {{{NEVER}}}, ");
        let text = [
            folder::router(),
            folder::service("one", one.local_addr()?),
            folder::route("one", "one.apps.test", "one", "").replace("metadata: {", &never),
            folder::service("two", two.local_addr()?),
            folder::route("two", "two.apps.test", "two", ""),
        ];
        let manifests = TempDir::new()?;
        folder::replace(&manifests.path().join("all.yaml"), &text.concat())?;
        let sluice = Sluice::start(&router, manifests.path(), &Options::network(DataPath::Kernel))?;
        let address = SocketAddr::from(([10, 82, 1, 1], HTTP_PORT));
        Ok(Stage { sluice, client, address, one, two, _router: router, _manifests: manifests })
    }

    fn open(&self) -> Result<TcpStream> {
        tests::stream::open(&self.client, self.address)
    }

    fn counted(&self, counter: DialCounter) -> Result<u64> {
        pinned::dial_counter(&self.sluice, counter)
    }
}

/// A request as the backend gets it; answered without a body.
fn serve(origin: &mut TcpStream) -> Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        ensure!(origin.read(&mut byte)? == 1, "the request ends early: {:?}", String::from_utf8_lossy(&head));
        head.extend(byte);
    }
    origin.write_all(b"HTTP/1.1 204 No Content\r\n\r\n")?;
    Ok(String::from_utf8(head)?)
}

fn answer(client: &mut TcpStream) -> Result<()> {
    let mut answer = [0; 27];
    client.read_exact(&mut answer)?;
    ensure!(answer.starts_with(b"HTTP/1.1 204"), "{:?}", String::from_utf8_lossy(&answer));
    Ok(())
}

#[test]
fn a_request_goes_to_the_endpoint_as_it_is_and_one_for_another_host_ends_the_connection() -> Result<()> {
    let stage = Stage::new()?;
    let mut client = stage.open()?;
    let first = "GET /a HTTP/1.1\r\nHost: one.apps.test\r\nX-Odd:  kept \r\n\r\n";
    client.write_all(first.as_bytes())?;
    let mut origin = tests::stream::accept(&stage.one)?;
    ensure!(serve(&mut origin)? == first, "the request was changed");
    answer(&mut client)?;
    ensure!(stage.counted(DialCounter::Dialed)? == 1, "the kernel did not dial");

    // The same host in another spelling, with a body that looks like no request.
    let again = "POST /b HTTP/1.1\r\nHost: ONE.apps.test.:8080\r\nContent-Length: 5\r\n\r\n";
    client.write_all(again.as_bytes())?;
    ensure!(serve(&mut origin)? == again, "the second request was changed");
    answer(&mut client)?;
    client.write_all(b"HELLO")?;
    let mut body = [0; 5];
    origin.read_exact(&mut body)?;
    ensure!(&body == b"HELLO", "the body was changed");

    // Another host's request must not reach this backend.
    client.write_all(b"GET /c HTTP/1.1\r\nHost: two.apps.test\r\n\r\n")?;
    for (who, stream) in [("client", &mut client), ("backend", &mut origin)] {
        let mut byte = [0];
        match stream.read(&mut byte) {
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            other => bail!("the {who} saw {other:?} instead of a reset"),
        }
    }
    ensure!(stage.counted(DialCounter::OtherHost)? == 1, "the reset was not counted");

    // On a connection of its own it is answered, through the proxy, which adds its headers.
    let mut client = stage.open()?;
    client.write_all(b"GET /c HTTP/1.1\r\nHost: two.apps.test\r\n\r\n")?;
    let mut origin = tests::stream::accept(&stage.two)?;
    let head = serve(&mut origin)?.to_ascii_lowercase();
    ensure!(head.contains("x-forwarded-for: 10.82.1.2"), "no forwarding header in {head:?}");
    ensure!(stage.counted(DialCounter::Dialed)? == 1, "the kernel dialed for a route that needs the proxy");
    Ok(())
}

#[test]
fn the_access_log_has_one_line_for_such_a_connection() -> Result<()> {
    let stage = Stage::new()?;
    let mut client = stage.open()?;
    client.write_all(b"GET / HTTP/1.1\r\nHost: one.apps.test\r\n\r\n")?;
    let mut origin = tests::stream::accept(&stage.one)?;
    serve(&mut origin)?;
    answer(&mut client)?;
    drop(client);
    drop(origin);
    let (line, _) = wait::wait_for("a line in the access log", wait::PATIENCE, || {
        stage.sluice.output().into_iter().find(|line| line.contains("access:") && line.contains("one.apps.test"))
    })?;
    ensure!(line.contains("datapath=\"kernel\""), "{line}");
    let bytes_in = line.split("bytes_in=").nth(1).and_then(|rest| rest.split(' ').next()).context("bytes_in")?;
    ensure!(bytes_in == "39", "{line}");
    Ok(())
}
