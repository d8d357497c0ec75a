//! Clear text carried by the kernel: a route without forwarding headers, and later requests for another host.

mod content;
mod order;

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use anyhow::{Context, Result, bail, ensure};
use router_common::verdict::DialCounter;
use tempfile::TempDir;
use tests::folder;
use tests::netns::Netns;
use tests::pinned;
use tests::sluice::{DataPath, Options, Sluice};
use tests::stream::read_some;
use tests::wait;
use tests::wire::{Plan, Wire};

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
    router: Netns,
    _wire: Option<Wire>,
    _manifests: TempDir,
}

impl Stage {
    /// Hosts `one` and `two`, each with its own backend; `two` requires forwarding headers.
    fn new() -> Result<Stage> {
        Stage::behind(None)
    }

    /// The same, with a link to the backends that passes through user space if it has a plan.
    fn behind(plan: Option<Plan>) -> Result<Stage> {
        let (client, router, backend) = (Netns::new("client")?, Netns::new("router")?, Netns::new("backend")?);
        client.link(("eth0", &["10.82.1.2/24"]), &router, ("front", &["10.82.1.1/24"]))?;
        let (back, hosts): (&[&str], &[&str]) = (&["10.82.2.1/24"], &["10.82.2.2/24", "10.82.2.3/24"]);
        let wire = match plan {
            Some(plan) => Some(Wire::lay((&router, "back", back), (&backend, "eth0", hosts), plan)?),
            None => router.link(("back", back), &backend, ("eth0", hosts)).map(|()| None)?,
        };
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
        Ok(Stage { sluice, client, address, one, two, router, _wire: wire, _manifests: manifests })
    }

    fn open(&self) -> Result<TcpStream> {
        tests::stream::open(&self.client, self.address)
    }

    /// A connection that the kernel carries, on which a request was served.
    fn carried(&self) -> Result<(TcpStream, TcpStream)> {
        let mut client = self.open()?;
        client.write_all(b"GET /first HTTP/1.1\r\nHost: one.apps.test\r\n\r\n")?;
        let mut origin = tests::stream::accept(&self.one)?;
        serve(&mut origin)?;
        answer(&mut client)?;
        Ok((client, origin))
    }

    fn counted(&self, counter: DialCounter) -> Result<u64> {
        pinned::dial_counter(&self.sluice, counter)
    }
}

/// Reads a request at the backend; responds without a body.
fn serve(origin: &mut TcpStream) -> Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        ensure!(read_some(origin, &mut byte)? == 1, "the request ends early: {:?}", String::from_utf8_lossy(&head));
        head.extend(byte);
    }
    origin.write_all(b"HTTP/1.1 204 No Content\r\n\r\n")?;
    Ok(String::from_utf8(head)?)
}

/// The bytes received until the connection is reset.
fn until_reset(stream: &mut TcpStream) -> Result<Vec<u8>> {
    let (mut all, mut part) = (Vec::new(), [0; 4096]);
    loop {
        match read_some(stream, &mut part) {
            Ok(0) => bail!("an end instead of a reset"),
            Ok(read) => all.extend_from_slice(&part[..read]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(all),
            Err(error) => bail!("{error} instead of a reset"),
        }
    }
}

/// Checks that these pieces, the last of which is part of a request for another host, end a connection that the kernel
/// carries, before the backend has received all of it.
fn refused(stage: &Stage, pieces: &[&[u8]]) -> Result<()> {
    let (mut client, mut origin) = stage.carried()?;
    for piece in pieces {
        // The reset may arrive before the last of them.
        if client.write_all(piece).is_err() {
            break;
        }
    }
    until_reset(&mut client).context("the client")?;
    let seen = until_reset(&mut origin).context("the backend")?;
    let whole = pieces.concat();
    ensure!(
        seen.len() < whole.len() && whole.starts_with(&seen),
        "the backend got {:?}",
        String::from_utf8_lossy(&seen)
    );
    Ok(())
}

/// Checks that a request in these pieces reaches the connection's backend.
fn passed(stage: &Stage, pieces: &[&[u8]]) -> Result<()> {
    let (mut client, mut origin) = stage.carried()?;
    pieces.iter().try_for_each(|piece| client.write_all(piece))?;
    ensure!(serve(&mut origin)?.as_bytes() == pieces.concat(), "the request was changed");
    answer(&mut client)
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

    // The same host in another spelling, with a body that does not look like a request.
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
        match read_some(stream, &mut byte) {
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            other => bail!("the {who} saw {other:?} instead of a reset"),
        }
    }
    ensure!(stage.counted(DialCounter::OtherHost)? == 1, "the reset was not counted");

    // On a connection of its own, the proxy forwards it, with its headers.
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

fn request(path: &str, host: &str, more: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: {host}.apps.test\r\n{more}\r\n").into_bytes()
}

fn post(path: &str, host: &str, more: &str) -> Vec<u8> {
    [b"POST", &request(path, host, more)[3..]].concat()
}

#[test]
fn two_requests_that_come_at_once_reach_each_its_own_backend() -> Result<()> {
    let stage = Stage::new()?;
    let mut client = stage.open()?;
    client.write_all(&[request("/a", "one", ""), request("/b", "two", "")].concat())?;
    for (listener, line) in [(&stage.one, "GET /a HTTP/1.1\r\n"), (&stage.two, "GET /b HTTP/1.1\r\n")] {
        let head = serve(&mut tests::stream::accept(listener)?)?;
        ensure!(head.starts_with(line), "{head:?} instead of {line:?}");
        let mut status = [0; 12];
        client.read_exact(&mut status)?;
        ensure!(&status == b"HTTP/1.1 204", "{:?}", String::from_utf8_lossy(&status));
        let mut end = Vec::new();
        while !end.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            client.read_exact(&mut byte)?;
            end.extend(byte);
        }
    }
    ensure!(stage.counted(DialCounter::Dialed)? == 0, "the kernel has dialed");
    Ok(())
}

#[test]
fn a_later_request_for_another_host_is_detected_wherever_it_is_split() -> Result<()> {
    let stage = Stage::new()?;
    let (own, other) = (request("/later", "ONE", "X: y\r\n"), request("/later", "two", "X: y\r\n"));
    let mut refusals = 0;
    for cut in 1..own.len() {
        let (first, second) = own.split_at(cut);
        passed(&stage, &[first, second]).with_context(|| format!("its own, cut at {cut}"))?;
        let (first, second) = other.split_at(cut);
        refused(&stage, &[first, second]).with_context(|| format!("another one's, cut at {cut}"))?;
        refusals += 1;
    }
    let bytes = |request: &'static [u8]| request.chunks(1).collect::<Vec<_>>();
    passed(&stage, &bytes(own.leak())).context("its own, byte by byte")?;
    refused(&stage, &bytes(other.leak())).context("another one's, byte by byte")?;
    ensure!(stage.counted(DialCounter::OtherHost)? == refusals + 1, "the resets were not counted");
    Ok(())
}

#[test]
fn a_later_request_for_another_host_is_detected_behind_others_and_in_large_heads() -> Result<()> {
    let stage = Stage::new()?;
    let large = format!("Cookie: {}\r\n", "c".repeat(6000));
    passed(&stage, &[&request("/large", "one", &large)]).context("a large head")?;
    refused(&stage, &[&request("/large", "two", &large)]).context("a large head for another host")?;
    let behind = [request("/c", "one", ""), request("/d", "two", "")].concat();
    refused(&stage, &[&behind]).context("behind another request")?;
    let none = b"GET /none HTTP/1.1\r\nHost: one.apps.test, two.apps.test\r\n\r\n";
    refused(&stage, &[none]).context("for what is no host")?;

    // Empty lines before a request are no part of it (RFC 9112 §2.2).
    for empty in ["\r\n", "\r\n\r\n"] {
        let [own, other] = ["one", "two"].map(|host| [empty.as_bytes(), &request("/e", host, "")].concat());
        refused(&stage, &[&other]).context("behind an empty line")?;
        refused(&stage, &[empty.as_bytes(), &request("/e", "two", "")]).context("behind one of its own segment")?;
        let (mut client, mut origin) = stage.carried()?;
        client.write_all(&own)?;
        let mut received = vec![0; own.len()];
        origin.read_exact(&mut received)?;
        ensure!(received == own, "the request was changed");
    }

    // Content that looks like the beginning of a request, for a few bytes.
    for content in ["HELLO", "HELLO WORLD", "HELLO /WORLD HT"] {
        let (mut client, mut origin) = stage.carried()?;
        let post = format!("POST / HTTP/1.1\r\nHost: one.apps.test\r\nContent-Length: {}\r\n\r\n", content.len());
        client.write_all(post.as_bytes())?;
        ensure!(serve(&mut origin)? == post, "the request was changed");
        answer(&mut client)?;
        client.write_all(content.as_bytes())?;
        let mut received = vec![0; content.len()];
        origin.read_exact(&mut received)?;
        ensure!(received == content.as_bytes(), "the content was changed");
        client.write_all(&request("/own", "one", ""))?;
        serve(&mut origin).with_context(|| format!("behind {content:?}"))?;
        answer(&mut client)?;
        client.write_all(&request("/other", "two", ""))?;
        until_reset(&mut client).with_context(|| format!("behind {content:?}"))?;
        ensure!(until_reset(&mut origin)?.is_empty(), "the backend got a request that is not its own");
    }
    Ok(())
}
