//! The corpora of the parsers, file by file, on real connections: on both data paths, the result of each is that of its
//! manifest, and the endpoint receives only its own bytes.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

use anyhow::{Context, Result, bail, ensure};
use router_common::http::{Framing, HeadParser, UnreadHost};
use router_common::verdict::DialCounter;
use tempfile::TempDir;
use tests::netns::Netns;
use tests::sluice::{DataPath, Options, Sluice};
use tests::stream::{accept, open, read_some};
use tests::{folder, pinned, workspace};

on_both_data_paths! {
    hellos_reach_only_the_endpoint_that_they_name,
}

/// The only host with a route.
const HOST: &str = "a.test";
/// Its endpoint.
const ENDPOINT: u16 = 9001;
/// Routes that the kernel may carry in clear text, without health checks, which would add connections.
const PLAIN: [(&str, &str); 3] = [
    ("haproxy.router.openshift.io/set-forwarded-headers", "never"),
    ("haproxy.router.openshift.io/disable_cookies", "true"),
    ("router.openshift.io/haproxy.health.check.interval", "1h"),
];

fn at(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// Expected result of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExpectedResult {
    /// The endpoint receives the bytes unchanged.
    Endpoint,
    /// The router terminates TLS: a handshake record, or an alert about parts of the hello that only an endpoint reads.
    Terminated,
    /// A fatal alert, then the end of the connection.
    Alert(u8),
    /// A response of the router, with this status.
    Status(u16),
    /// The end of the connection without data.
    Closed,
}

/// A router with one route, and its endpoint.
struct Stage {
    netns: Netns,
    endpoint: TcpListener,
    sluice: Sluice,
    _manifests: TempDir,
}

impl Stage {
    fn new(data_path: DataPath, spec: &str) -> Result<Stage> {
        let netns = Netns::new("corpus")?;
        let endpoint = netns.run(|| Ok(TcpListener::bind(at(ENDPOINT))?))?;
        let manifests = TempDir::new()?;
        let route = folder::annotated(&folder::route("a", HOST, "a", spec), &PLAIN);
        folder::replace(
            &manifests.path().join("all.yaml"),
            &(folder::router() + &folder::service("a", endpoint.local_addr()?) + &route),
        )?;
        let arguments = ["--drain", "0"].map(str::to_owned).to_vec();
        let options = Options { arguments, ..Options::loopback(data_path) };
        let sluice = Sluice::start(&netns, manifests.path(), &options)?;
        Ok(Stage { netns, endpoint, sluice, _manifests: manifests })
    }

    /// Sends a file to a port of the router, and checks the result.
    fn check(&self, port: u16, bytes: &[u8], fate: ExpectedResult) -> Result<()> {
        let mut client = open(&self.netns, at(port))?;
        // The router may already have decided.
        let _ = client.write_all(bytes);
        if fate == ExpectedResult::Endpoint {
            let mut endpoint = accept(&self.endpoint)?;
            let mut received = vec![0; bytes.len()];
            endpoint.read_exact(&mut received)?;
            ensure!(received == bytes, "the endpoint got {:?}", String::from_utf8_lossy(&received));
            return Ok(());
        }
        match (fate, answer(&mut client)?.as_slice()) {
            (ExpectedResult::Closed, []) | (ExpectedResult::Terminated, [21 | 22, 3, 3, ..]) => {}
            (ExpectedResult::Alert(code), [21, 3, 3, 0, 2, 2, alert]) if *alert == code => {}
            (ExpectedResult::Status(status), [b'H', b'T', b'T', b'P', b'/', b'1', b'.', _, b' ', text @ ..])
                if text.starts_with(status.to_string().as_bytes()) => {}
            (_, other) => bail!("the client got {:?}", String::from_utf8_lossy(other)),
        }
        self.endpoint.set_nonblocking(true)?;
        let nobody = self.endpoint.accept().err().map(|error| error.kind());
        self.endpoint.set_nonblocking(false)?;
        ensure!(nobody == Some(ErrorKind::WouldBlock), "the endpoint got a connection");
        Ok(())
    }
}

/// The bytes received until the end, or until the router waits: for the rest of a handshake, or for another request.
fn answer(client: &mut TcpStream) -> Result<Vec<u8>> {
    let (mut answer, mut part) = (Vec::new(), [0; 4096]);
    while answer.first() != Some(&22) && !answer.windows(4).any(|end| end == b"\r\n\r\n") {
        match read_some(client, &mut part)? {
            0 => break,
            read => answer.extend_from_slice(&part[..read]),
        }
    }
    Ok(answer)
}

/// The files of a corpus, each with its line of the manifest.
fn files(kind: &str) -> Result<Vec<(String, Vec<u8>, String)>> {
    let folder = workspace().join("router-common/corpus").join(kind);
    let manifest = fs::read_to_string(folder.join("MANIFEST"))?;
    let lines = manifest.lines().filter(|line| !line.starts_with('#'));
    let files = lines.map(|line| {
        let (name, outcome) = line.split_once(' ').context("an outcome")?;
        Ok((name.to_owned(), fs::read(folder.join(name))?, outcome.to_owned()))
    });
    files.collect()
}

/// A word of an outcome, such as `name=a.test`.
fn word<'o>(outcome: &'o str, key: &str) -> Option<&'o str> {
    outcome.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
}

fn hellos_reach_only_the_endpoint_that_they_name(data_path: DataPath) -> Result<()> {
    let stage = Stage::new(data_path, folder::PASSTHROUGH)?;
    let mut reached = 0;
    for (name, bytes, outcome) in files("hello")? {
        let fate = match (word(&outcome, "name"), word(&outcome, "alert")) {
            (Some(HOST), _) => ExpectedResult::Endpoint,
            (Some(_), _) => ExpectedResult::Terminated,
            (_, Some("-")) => ExpectedResult::Closed,
            (_, Some(code)) => ExpectedResult::Alert(code.parse()?),
            _ => ExpectedResult::Closed,
        };
        stage.check(8443, &bytes, fate).with_context(|| format!("{name}: {outcome}, {fate:?}"))?;
        reached += u64::from(fate == ExpectedResult::Endpoint);
    }
    ensure!(reached > 20, "{reached} hellos for the route");
    if data_path == DataPath::Kernel {
        let dialed = pinned::dial_counter(&stage.sluice, DialCounter::Dialed)?;
        // All except those that exceed its buffer.
        ensure!(dialed + 5 > reached, "the kernel carried {dialed} of {reached}");
    }
    Ok(())
}

/// True if the end of the content after a head is ambiguous.
fn is_unclear(head: &[u8]) -> bool {
    let mut parser = HeadParser::new();
    parser.feed(&mut UnreadHost, head);
    parser.head().framing == Framing::Unclear
}

/// In user space, heads have a corpus of their own, together with the bytes after them.
#[test]
fn heads_that_the_kernel_does_not_carry_are_answered_by_the_router() -> Result<()> {
    let stage = Stage::new(DataPath::Kernel, "")?;
    let mut reached = 0;
    for (name, bytes, outcome) in files("head")? {
        let fate = match (word(&outcome, "host"), word(&outcome, "status"), word(&outcome, "form")) {
            (Some(HOST), _, Some("origin"))
                if word(&outcome, "len") == Some(&bytes.len().to_string()) && !is_unclear(&bytes) =>
            {
                ExpectedResult::Endpoint
            }
            // Those reach the endpoint as well, or are rejected by the proxy.
            (Some(HOST), _, Some("origin" | "absolute")) => continue,
            // The proxy reads them as HTTP/1.1.
            _ if name.starts_with("http-12") => continue,
            (_, _, Some("asterisk")) => ExpectedResult::Status(200),
            (_, _, Some("authority")) => ExpectedResult::Status(405),
            (Some("-"), _, _) => ExpectedResult::Status(400),
            (Some(_), _, _) => ExpectedResult::Status(503),
            (_, Some("-"), _) => ExpectedResult::Closed,
            (_, Some(status), _) => ExpectedResult::Status(status.parse()?),
            // 408 after a time-out.
            _ => continue,
        };
        stage.check(8080, &bytes, fate).with_context(|| format!("{name}: {outcome}, {fate:?}"))?;
        reached += u64::from(fate == ExpectedResult::Endpoint);
    }
    let dialed = pinned::dial_counter(&stage.sluice, DialCounter::Dialed)?;
    ensure!(dialed == reached && reached > 20, "the kernel carried {dialed} of {reached}");
    Ok(())
}
