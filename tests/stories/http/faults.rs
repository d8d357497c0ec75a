//! Endpoints that do not respond, send invalid or incomplete responses, or are unreachable.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tests::python;
use tests::stream::read_some;
use tests::wait::{PATIENCE, wait_until};

use super::stage::{HTTP, HTTPS, Stage, Tls, at};

/// Time-out of the routes.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Time-out for an endpoint to accept a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// Extra time for a response on a busy machine.
const SLACK: Duration = Duration::from_secs(3);

/// Action of an endpoint after it has read a request.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Ends the connection.
    End,
    /// Resets the connection.
    Reset,
    /// Sends these bytes and ends the connection.
    Says(&'static [u8]),
    /// Sends these bytes and nothing more.
    Stops(&'static [u8]),
}

/// Result for a client.
#[derive(Clone, Copy, Debug)]
enum Seen {
    /// A response of the router.
    Status(u16),
    /// An incomplete response; curl's exit codes over HTTP/1.1 and HTTP/2 (curl(1), "EXIT CODES").
    Broken([i32; 2]),
}

const FAULTS: [(&str, Fault, Seen); 10] = [
    ("ends", Fault::End, Seen::Status(502)),
    ("resets", Fault::Reset, Seen::Status(502)),
    ("says-garbage", Fault::Says(b"this is no HTTP\r\n\r\n"), Seen::Status(502)),
    ("says-half-a-head", Fault::Says(b"HTTP/1.1 200 OK\r\nContent-Le"), Seen::Status(502)),
    (
        "says-two-lengths",
        Fault::Says(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
        Seen::Status(502),
    ),
    ("is-silent", Fault::Stops(b""), Seen::Status(504)),
    ("stops-in-the-head", Fault::Stops(b"HTTP/1.1 200 OK\r\nContent-Le"), Seen::Status(504)),
    ("ends-in-the-body", Fault::Says(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"), Seen::Broken([18, 92])),
    (
        "ends-in-a-chunk",
        Fault::Says(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n20\r\nhalf"),
        Seen::Broken([18, 92]),
    ),
    ("stops-in-the-body", Fault::Stops(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"), Seen::Broken([18, 92])),
];

/// Serves connections until it is stopped; every request on one connection gets the same response.
fn serve(listener: &TcpListener, fault: Fault, stop: &AtomicBool) -> Result<()> {
    let mut silent = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let mut ready = [PollFd::new(listener, PollFlags::IN)];
        if poll(&mut ready, Some(&Timespec::try_from(Duration::from_millis(50))?))? == 0 {
            continue;
        }
        let (mut stream, _) = listener.accept()?;
        stream.set_read_timeout(Some(PATIENCE))?;
        // The router may have opened a connection without using it.
        let _ = read_some(&mut stream, &mut [0; 4096]);
        match fault {
            Fault::End => {}
            Fault::Reset => socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO))?,
            Fault::Says(what) => stream.write_all(what)?,
            Fault::Stops(what) => {
                stream.write_all(what)?;
                silent.push(stream);
            }
        }
    }
    Ok(())
}

/// `curl` without output: its exit code, and the status of the response (0 without one).
fn ask(stage: &Stage, url: &str, arguments: &[&str]) -> Result<(i32, u16)> {
    let mut curl = stage.client().command(url)?;
    curl.args(["--output", "/dev/null", "--write-out", "%{http_code}", "--cacert", &stage.ca()?]).args(arguments);
    let output = curl.output()?;
    let status = String::from_utf8(output.stdout)?.parse().context("a status")?;
    Ok((output.status.code().context("curl was killed")?, status))
}

#[test]
fn every_fault_of_an_endpoint_has_its_response_and_affects_no_other() -> Result<()> {
    let stage = Stage::new("faults", "")?;
    let folder = stage.folder("none")?;
    let _origin = python::server(&stage.netns, "origin", &["9001", &folder])?;
    stage.service("good", &[at(9001)])?;
    let good = stage.route("good", "good", Tls::Without, &[])?;
    let timeout = ("haproxy.router.openshift.io/timeout", "1s");
    let mut listeners = Vec::new();
    for (number, (name, fault, _)) in (9100..).zip(FAULTS) {
        listeners.push((stage.netns.run(|| Ok(TcpListener::bind(at(number))?))?, fault));
        stage.service(name, &[at(number)])?;
        stage.route(name, name, Tls::Without, &[timeout])?;
        stage.route(&format!("s-{name}"), name, Tls::Edge, &[timeout])?;
    }
    let sluice = stage.serve()?;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let servers: Vec<_> = listeners.iter().map(|(l, fault)| scope.spawn(|| serve(l, *fault, &stop))).collect();
        let told = thread::scope(|scope| {
            let clients: Vec<_> = FAULTS
                .iter()
                .map(|(name, fault, seen)| {
                    let stage = &stage;
                    scope.spawn(move || check(stage, name, *seen).with_context(|| format!("{name}: {fault:?}")))
                })
                .collect();
            clients.into_iter().map(tests::stream::joined).collect::<Result<Vec<_>>>()
        });
        stop.store(true, Ordering::Relaxed);
        servers.into_iter().map(tests::stream::joined).collect::<Result<Vec<_>>>()?;
        told
    })?;
    assert_eq!(stage.curl(&format!("http://{good}:{HTTP}/name"), &[])?.body, "9001");
    // The access log names the cause of each end.
    let lines = || {
        let lines = sluice.output().into_iter();
        lines.filter(|line| line.contains(" access: ") && !line.contains("good.apps.test")).collect::<Vec<_>>()
    };
    // For each fault two over HTTP/1.1 in clear text, two over TLS, and one over HTTP/2.
    wait_until("every request has a line", PATIENCE, || lines().len() == FAULTS.len() * 5)?;
    let unexplained: Vec<_> = lines().into_iter().filter(|line| line.contains("flags=\"-\"")).collect();
    ensure!(unexplained.is_empty(), "{unexplained:#?}");
    Ok(())
}

/// Effects of a fault on clients: for a repeatable request, and for one that must not be repeated.
fn check(stage: &Stage, name: &str, seen: Seen) -> Result<()> {
    for (url, number, version) in [
        (format!("http://{name}.apps.test:{HTTP}/"), 0, "--http1.1"),
        (format!("https://s-{name}.apps.test:{HTTPS}/"), 0, "--http1.1"),
        (format!("https://s-{name}.apps.test:{HTTPS}/"), 1, "--http2"),
    ] {
        // curl 7.88 may lose a response over HTTP/2 that arrives before it has sent its body.
        for more in [&[][..], &["--data", "x=1"]].into_iter().take(if number == 1 { 1 } else { 2 }) {
            let begin = Instant::now();
            let (code, status) = ask(stage, &url, &[&[version][..], more].concat())?;
            let took = begin.elapsed();
            let expected = match seen {
                Seen::Status(status) => (0, status),
                Seen::Broken(codes) => (codes[number], 200),
            };
            let seen = (code, status);
            ensure!(seen == expected, "{url} {version} {more:?}: {seen:?} instead of {expected:?}");
            ensure!(took < TIMEOUT + SLACK, "{url} {version} {more:?}: took {took:?}");
        }
    }
    Ok(())
}

/// A listener with a full accept queue.
#[test]
fn an_endpoint_that_never_accepts_is_given_up_and_the_next_one_serves() -> Result<()> {
    let stage = Stage::new("accepts-not", "")?;
    let folder = stage.folder("none")?;
    let _origin = python::server(&stage.netns, "origin", &["9001", &folder])?;
    let (full, _queued) = stage.netns.run(|| {
        let full = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
        full.bind(&at(9002).into())?;
        full.listen(0)?;
        // One connection is in the queue; the others stay half open, and their packets are dropped.
        let mut queued = vec![TcpStream::connect(at(9002))?];
        while let Ok(stream) = TcpStream::connect_timeout(&at(9002), Duration::from_millis(300)) {
            queued.push(stream);
            ensure!(queued.len() < 10, "the queue does not become full");
        }
        Ok((full, queued))
    })?;
    stage.service("full", &[at(9002)])?;
    stage.service("half", &[at(9002), at(9001), at(9003)])?;
    let alone = stage.route("alone", "full", Tls::Without, &[])?;
    let half = stage.route("half", "half", Tls::Without, &[])?;
    let _sluice = stage.serve()?;
    let begin = Instant::now();
    let (code, status) = ask(&stage, &format!("http://{alone}:{HTTP}/"), &[])?;
    let took = begin.elapsed();
    ensure!(code == 0 && [503, 504].contains(&status), "{status}");
    ensure!(took >= Duration::from_millis(900) && took < CONNECT + SLACK, "given up after {took:?}");
    // One of three serves, one refuses, one is full: the first serves every request, after a retry or not.
    for number in 0..20 {
        let url = format!("http://{half}:{HTTP}/name");
        let answer = stage.curl(&url, if number % 2 == 0 { &[] } else { &["--data", "x=1"] })?;
        assert_eq!((answer.status, answer.body.as_str()), (200, "9001"), "request {number}");
    }
    drop(full);
    Ok(())
}
