//! Slow clients: deliberately slow ones are disconnected, those with little bandwidth are not.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tests::python;
use tests::stream::{self, Content};
use tests::wait::PATIENCE;

use super::stage::{HTTP, HTTPS, Stage, Tls, at};

/// Time-out of a complete request head.
const HEAD: Duration = Duration::from_secs(10);
/// Time-out of a complete ClientHello.
const HELLO: Duration = Duration::from_secs(5);
/// `clientTimeout` of these stories.
const CLIENT: Duration = Duration::from_secs(2);
/// Interval between two bytes: the few bytes sent until the hello's time-out are all part of its `random` (RFC 8446
/// §4.1.2).
const DRIP: Duration = Duration::from_millis(250);
/// Tolerance for each on a busy machine.
const SLACK: Duration = Duration::from_secs(4);

/// Clients that send a byte from time to time.
struct Dripping {
    streams: Vec<(TcpStream, Option<Duration>)>,
    begin: Instant,
}

impl Dripping {
    fn open(stage: &Stage, port: u16, count: usize) -> Result<Dripping> {
        let begin = Instant::now();
        let streams = (0..count).map(|_| {
            let stream = stream::open(&stage.netns, at(port))?;
            stream.set_nonblocking(true)?;
            Ok((stream, None))
        });
        Ok(Dripping { streams: streams.collect::<Result<_>>()?, begin })
    }

    /// Sends this byte on each open connection; records which have been closed.
    fn drip(&mut self, byte: u8) {
        for (stream, ended) in self.streams.iter_mut().filter(|(_, ended)| ended.is_none()) {
            let over = match stream.read(&mut [0; 1024]) {
                Ok(0) => true,
                Ok(_) => false,
                Err(error) => error.kind() != ErrorKind::WouldBlock,
            };
            if over || stream.write_all(&[byte]).is_err() {
                *ended = Some(self.begin.elapsed());
            }
        }
    }

    /// Checks that all were closed at the expected time.
    fn ended(&self, at: Duration) -> Result<()> {
        for (number, (_, ended)) in self.streams.iter().enumerate() {
            let in_time = ended.is_some_and(|ended| ended + Duration::from_secs(1) >= at && ended <= at + SLACK);
            ensure!(in_time, "client {number} was closed after {ended:?} instead of {at:?}");
        }
        Ok(())
    }
}

#[test]
fn heads_and_hellos_that_never_end_are_given_up_while_others_are_served() -> Result<()> {
    let stage = Stage::new("slowloris", "")?;
    let folder = stage.folder("none")?;
    let _origin = python::server(&stage.netns, "origin", &["9001", &folder])?;
    stage.service("origin", &[at(9001)])?;
    let plain = stage.route("plain", "origin", Tls::Without, &[])?;
    let edge = stage.route("edge", "origin", Tls::Edge, &[])?;
    let sluice = stage.serve()?;
    let memory = sluice.resident()?;
    let mut heads = Dripping::open(&stage, HTTP, 500)?;
    let mut hellos = Dripping::open(&stage, HTTPS, 500)?;
    let head = format!("GET /name HTTP/1.1\r\nHost: {plain}\r\nX-Slow: ");
    for (stream, _) in &mut heads.streams {
        stream.write_all(head.as_bytes())?;
    }
    // A handshake record with a ClientHello that is far from complete.
    for (stream, _) in &mut hellos.streams {
        stream.write_all(&[22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3])?;
    }
    let mut drips = 0;
    while heads.begin.elapsed() < HEAD + SLACK {
        if heads.begin.elapsed() >= DRIP * drips {
            heads.drip(b'a');
            hellos.drip(0);
            drips += 1;
        }
        // Their number affects no other client.
        for url in [format!("http://{plain}:{HTTP}/name"), format!("https://{edge}:{HTTPS}/name")] {
            let begin = Instant::now();
            assert_eq!(stage.curl(&url, &[])?.body, "9001");
            ensure!(begin.elapsed() < Duration::from_secs(2), "{url} took {:?}", begin.elapsed());
        }
    }
    heads.ended(HEAD)?;
    hellos.ended(HELLO)?;
    let now = sluice.resident()?;
    ensure!(now < memory + (50 << 20), "memory rose from {memory} to {now} bytes");
    Ok(())
}

#[test]
fn stalled_bodies_and_unread_responses_time_out() -> Result<()> {
    let stage = Stage::new("stopped", &format!("  tuningOptions: {{clientTimeout: {}s}}\n", CLIENT.as_secs()))?;
    let folder = stage.folder("files")?;
    Content::new(1).send(&mut std::fs::File::create(format!("{folder}/large"))?, 64 << 20, |_| ())?;
    let _origin = python::server(&stage.netns, "origin", &["9001", &folder])?;
    stage.service("origin", &[at(9001)])?;
    let host = stage.route("origin", "origin", Tls::Without, &[])?;
    let sluice = stage.serve()?;
    let memory = sluice.resident()?;
    let open = |count: usize, head: String| -> Result<Vec<TcpStream>> {
        let mut streams = (0..count).map(|_| stream::open(&stage.netns, at(HTTP))).collect::<Result<Vec<_>>>()?;
        streams.iter_mut().try_for_each(|stream| stream.write_all(head.as_bytes()))?;
        Ok(streams)
    };
    let begin = Instant::now();
    let uploads =
        open(50, format!("PUT /sum HTTP/1.1\r\nHost: {host}\r\nContent-Length: 1000\r\n\r\nonly the beginning"))?;
    let downloads = open(50, format!("GET /file/large HTTP/1.1\r\nHost: {host}\r\n\r\n"))?;
    for mut stream in uploads {
        let mut answer = Vec::new();
        // An error response or a reset, but not a success.
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer);
        ensure!(answer.is_empty() || answer.starts_with("HTTP/1.1 408 "), "{answer}");
    }
    let took = begin.elapsed();
    ensure!(took + Duration::from_millis(500) >= CLIENT && took <= CLIENT + SLACK, "bodies: given up after {took:?}");
    // Clients that read nothing: the router logs that it has disconnected them.
    let lines = || {
        let lines = sluice.output();
        let given_up = |line: &&String| !line.contains("flags=\"-\"");
        lines.iter().filter(|line| line.contains("path=\"/file/large\"")).filter(given_up).count()
    };
    tests::wait::wait_until("nobody is waited for any more", PATIENCE, || lines() == 50)
        .with_context(|| format!("{} lines of:\n{}", lines(), sluice.output().join("\n")))?;
    let took = begin.elapsed();
    ensure!(took <= CLIENT * 2 + SLACK, "downloads: given up after {took:?}");
    let peak = sluice.peak()?;
    ensure!(peak < memory + 50 * (1 << 20), "memory rose from {memory} to {peak} bytes");
    drop(downloads);
    assert_eq!(stage.curl(&format!("http://{host}:{HTTP}/name"), &[])?.body, "9001");
    Ok(())
}

/// `curl --limit-rate`: little bandwidth, but continuous progress.
#[test]
fn a_thin_line_is_not_a_slow_client() -> Result<()> {
    // curl empties its socket buffer, and then reads nothing until its average is right: here for less than 2 s.
    const PATIENT: Duration = Duration::from_secs(5);
    let stage = Stage::new("thin", &format!("  tuningOptions: {{clientTimeout: {}s}}\n", PATIENT.as_secs()))?;
    let folder = stage.folder("files")?;
    const LENGTH: u64 = 32 << 20;
    Content::new(1).send(&mut std::fs::File::create(format!("{folder}/large"))?, LENGTH, |_| ())?;
    let _origin = python::server(&stage.netns, "origin", &["9001", &folder])?;
    stage.service("origin", &[at(9001)])?;
    let plain = stage.route("plain", "origin", Tls::Without, &[])?;
    let edge = stage.route("edge", "origin", Tls::Edge, &[])?;
    let _sluice = stage.serve()?;
    let file = format!("{folder}/large");
    thread::scope(|scope| {
        let mut clients = Vec::new();
        for (base, version) in [
            (format!("http://{plain}:{HTTP}"), "--http1.1"),
            (format!("https://{edge}:{HTTPS}"), "--http1.1"),
            (format!("https://{edge}:{HTTPS}"), "--http2"),
        ] {
            for (path, upload) in [("/file/large", false), ("/sum", true)] {
                let (url, stage, file) = (format!("{base}{path}"), &stage, &file);
                clients.push(scope.spawn(move || -> Result<()> {
                    let begin = Instant::now();
                    let size = if upload { "%{size_upload}" } else { "%{size_download}" };
                    let mut curl = stage.client().command(&url)?;
                    curl.args([version, "--limit-rate", "4m", "--cacert", &stage.ca()?, "--fail"]);
                    curl.args(["--output", "/dev/null", "--write-out", size]);
                    if upload {
                        curl.args(["--upload-file", file]);
                    }
                    let output = tests::command::output(&mut curl)?;
                    assert_eq!(String::from_utf8(output.stdout)?, LENGTH.to_string(), "{url} {version}");
                    // curl exceeds its limit at first; what matters is that the transfer takes longer than the
                    // time-out.
                    ensure!(begin.elapsed() > PATIENT, "{url} {version} was not slow: {:?}", begin.elapsed());
                    Ok(())
                }));
            }
        }
        clients.into_iter().try_for_each(stream::joined)
    })
}
