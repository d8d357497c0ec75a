//! A thousand certificates, one after another, while clients connect and send.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustls::client::Resumption;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tests::client::trusting;
use tests::command;
use tests::folder;
use tests::nginx::Nginx;
use tests::pki::Leaf;
use tests::stream::{joined, read_until};
use tests::wait::PATIENCE;

use super::stage::{HTTPS, Stage, at};

const HOST: &str = "renewed.apps.test";
const ROTATIONS: usize = 1000;
/// Memory is compared with that after this many rounds.
const SETTLED: usize = 200;
/// Maximum growth of memory after that, in bytes.
const GROWTH: u64 = 8 << 20;
/// Duration of one run of h2load, in seconds; its connections last as long.
const H2LOAD: &str = "4";

/// State shared by all clients.
struct Rotation {
    config: Arc<ClientConfig>,
    /// In the order of writing.
    certificates: Vec<CertificateDer<'static>>,
    /// Index of the newest certificate observed; the router presents none before it any more.
    shown: AtomicUsize,
    /// Index of the newest certificate that may be in the folder.
    written: AtomicUsize,
    over: AtomicBool,
}

impl Rotation {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// A full handshake; returns the index of its certificate, which must have been current during the handshake.
    fn connect(&self) -> Result<(StreamOwned<ClientConnection, TcpStream>, usize)> {
        let first = self.shown.load(Ordering::SeqCst);
        let tcp = TcpStream::connect(at(HTTPS))?;
        tcp.set_read_timeout(Some(PATIENCE))?;
        let name = ServerName::try_from(HOST)?;
        let mut stream = StreamOwned::new(ClientConnection::new(Arc::clone(&self.config), name)?, tcp);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock).context("the handshake failed")?;
        }
        let last = self.written.load(Ordering::SeqCst);
        let certificate = stream.conn.peer_certificates().and_then(|chain| chain.first()).context("no certificate")?;
        let number = self.certificates.iter().position(|known| known == certificate).context("an unknown one")?;
        ensure!((first..=last).contains(&number), "{number} was shown, and {first} to {last} were current");
        Ok((stream, number))
    }

    /// Sequential new connections with a request each; returns their number.
    fn handshakes(&self) -> Result<usize> {
        let mut count = 0;
        while !self.is_over() {
            let (mut stream, _) = self.connect().with_context(|| format!("connection {count}"))?;
            ask(&mut stream).with_context(|| format!("the request of connection {count}"))?;
            count += 1;
        }
        Ok(count)
    }

    /// Requests on one connection that lasts for all certificates; returns their number.
    fn requests(&self) -> Result<usize> {
        let (mut stream, _) = self.connect()?;
        let mut count = 0;
        while !self.is_over() {
            ask(&mut stream).with_context(|| format!("request {count}"))?;
            count += 1;
        }
        Ok(count)
    }

    /// Streams on connections that last for many certificates; returns their number.
    fn streams(&self, stage: &Stage) -> Result<usize> {
        let mut count = 0;
        while !self.is_over() {
            let mut h2load = stage.netns.command("h2load")?;
            h2load.args(["--clients", "2", "--max-concurrent-streams", "4", "--duration", H2LOAD, "--threads", "1"]);
            h2load.args(["--header", &format!(":authority: {HOST}"), &format!("https://127.0.0.1:{HTTPS}/")]);
            let text = String::from_utf8(command::output(&mut h2load)?.stdout)?;
            ensure!(text.contains(" 0 failed, 0 errored, 0 timeout"), "{text}");
            ensure!(text.contains(" 0 3xx, 0 4xx, 0 5xx"), "{text}");
            let done = text.lines().find_map(|line| line.strip_prefix("requests: ")?.split(' ').next()?.parse().ok());
            count += done.filter(|done: &usize| *done > 0).with_context(|| format!("no requests:\n{text}"))?;
        }
        Ok(count)
    }

    /// Writes the certificates one after another, each once the previous one is presented; returns the memory after
    /// each hundred.
    fn rotate(&self, leaves: &[Leaf], stage: &Stage, resident: impl Fn() -> Result<u64>) -> Result<Vec<u64>> {
        let mut memory = Vec::new();
        for (number, leaf) in leaves.iter().enumerate().skip(1) {
            self.written.store(number, Ordering::SeqCst);
            stage.write("secret", &leaf.secret("test", "renewed"))?;
            let begun = Instant::now();
            while self.connect()?.1 != number {
                ensure!(begun.elapsed() < PATIENCE, "certificate {number} is not shown");
            }
            self.shown.store(number, Ordering::SeqCst);
            if number % 100 == 0 {
                memory.push(resident()?);
            }
        }
        Ok(memory)
    }
}

/// A request and its entire response.
fn ask(stream: &mut (impl Read + Write)) -> Result<()> {
    stream.write_all(format!("GET / HTTP/1.1\r\nHost: {HOST}\r\n\r\n").as_bytes())?;
    let answer = read_until(stream, b"\r\n\r\npod")?;
    ensure!(answer.starts_with(b"HTTP/1.1 200 "), "{:?}", String::from_utf8_lossy(&answer));
    Ok(())
}

#[test]
fn a_thousand_certificates_of_a_secret_fail_no_handshake_and_end_no_connection() -> Result<()> {
    let stage = Stage::new("thousand", "")?;
    let block =
        format!("server {{ listen {}; keepalive_requests 10000000; location / {{ return 200 \"pod\"; }} }}", at(9001));
    let _pod = Nginx::with(&stage.netns, &[at(9001)], &block)?;
    stage.service("pod", &[at(9001)])?;
    let tls = "  tls:\n    termination: edge\n    externalCertificate: {name: renewed}\n";
    stage.write("route", &folder::route("renewed", HOST, "pod", tls))?;
    let leaves = (0..=ROTATIONS).map(|_| stage.ca.leaf(HOST)).collect::<Result<Vec<_>>>()?;
    let der = |leaf: &Leaf| CertificateDer::from_pem_slice(leaf.certificate.as_bytes());
    stage.write("secret", &leaves[0].secret("test", "renewed"))?;
    let sluice = stage.serve()?;
    let mut config = trusting(stage.ca.pem().as_bytes())?;
    // Full handshakes only, so that each presents a certificate.
    config.resumption = Resumption::disabled();
    let rotation = Rotation {
        config: Arc::new(config),
        certificates: leaves.iter().map(der).collect::<Result<_, _>>()?,
        shown: AtomicUsize::new(0),
        written: AtomicUsize::new(0),
        over: AtomicBool::new(false),
    };
    let begun = Instant::now();
    let (memory, counts) = thread::scope(|scope| {
        let inside = |work: fn(&Rotation) -> Result<usize>| {
            let (rotation, netns) = (&rotation, &stage.netns);
            scope.spawn(move || netns.run(|| work(rotation)))
        };
        let clients = [
            inside(Rotation::handshakes),
            inside(Rotation::handshakes),
            inside(Rotation::requests),
            inside(Rotation::requests),
            scope.spawn(|| rotation.streams(&stage)),
        ];
        let memory = stage.netns.run(|| rotation.rotate(&leaves, &stage, || sluice.resident()));
        rotation.over.store(true, Ordering::SeqCst);
        let counts = clients.map(joined).into_iter().collect::<Result<Vec<_>>>();
        // The error of a failed client is more useful than its result.
        counts.and_then(|counts| Ok((memory?, counts)))
    })?;
    let took = begun.elapsed();
    eprintln!("{ROTATIONS} certificates in {took:?}; handshakes, requests and streams: {counts:?}; memory: {memory:?}");
    ensure!(counts.iter().all(|count| *count > 0), "{counts:?}");
    let (early, late) = (memory[SETTLED / 100 - 1], memory.iter().copied().max().unwrap_or_default());
    ensure!(late < early + GROWTH, "memory rises with certificates: {memory:?}");
    ensure!(took < Duration::from_secs(300), "a certificate takes {:?} to be shown", took / ROTATIONS as u32);
    Ok(())
}
