//! Changes under load by `wrk` and `h2load`: every error is counted, and none occurs.

use std::fs;
use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use tests::command;
use tests::nginx::Nginx;
use tests::process::Process;
use tests::sluice::Sluice;
use tests::wait::{PATIENCE, wait_until};

use super::stage::{HTTP, HTTPS, Stage, Tls, at};

/// Duration of h2load, in seconds; wrk runs until it is stopped.
const SECONDS: &str = "12";

/// A load on a stage.
struct Load(Vec<(String, Process)>);

impl Load {
    /// GET and POST over kept-alive connections, in clear text and over TLS; new connections for every request; and
    /// many concurrent streams over HTTP/2.
    fn start(stage: &Stage, plain: &str, edge: &str) -> Result<Load> {
        let folder = stage.folder("load")?;
        let post = format!("{folder}/post.lua");
        fs::write(&post, "wrk.method = 'POST'\nwrk.body = string.rep('x', 3000)\n")?;
        let mut all = Vec::new();
        for (what, scheme, port, host, more) in [
            ("GET", "http", HTTP, plain, vec![]),
            ("POST", "https", HTTPS, edge, vec!["--script", &post]),
            ("GET on new connections", "https", HTTPS, edge, vec!["--header", "Connection: close"]),
        ] {
            // wrk resolves one name, and sends another (wrk.c, "host" header and SNI).
            let mut wrk = stage.netns.command("wrk")?;
            wrk.args(["--threads", "1", "--connections", "8", "--duration", "1h", "--timeout", "10s"]).args(more);
            wrk.args(["--header", &format!("Host: {host}"), &format!("{scheme}://127.0.0.1:{port}/")]);
            all.push((format!("wrk, {what}"), Process::start("wrk", &mut wrk)?));
        }
        let mut h2load = stage.netns.command("h2load")?;
        h2load.args(["--clients", "4", "--max-concurrent-streams", "8", "--duration", SECONDS, "--threads", "1"]);
        h2load.args(["--header", &format!(":authority: {edge}"), &format!("https://127.0.0.1:{HTTPS}/")]);
        all.push(("h2load".to_owned(), Process::start("h2load", &mut h2load)?));
        Ok(Load(all))
    }

    /// True if h2load still runs.
    fn goes_on(&mut self) -> bool {
        self.0.iter_mut().all(|(_, process)| process.runs())
    }

    /// Stops all that still run, and checks the reports.
    fn end(self) -> Result<()> {
        for (what, mut process) in self.0 {
            if process.runs() {
                process.signal(Signal::INT)?;
            }
            process.ended(PATIENCE)?;
            let text = process.output().join("\n");
            eprintln!("{what}:\n{text}");
            if what == "h2load" {
                ensure!(text.contains(" 0 failed, 0 errored, 0 timeout"), "{what}:\n{text}");
                ensure!(text.contains(" 0 3xx, 0 4xx, 0 5xx"), "{what}:\n{text}");
            } else {
                let clean = !text.contains("Socket errors") && !text.contains("Non-2xx");
                ensure!(clean && text.contains("requests in"), "{what}:\n{text}");
            }
        }
        Ok(())
    }
}

fn pod(stage: &Stage, address: SocketAddr) -> Result<Nginx> {
    let block = format!(
        "server {{ listen {address}; keepalive_requests 1000000; location / {{ return 200 \"pod {}\"; }} }}",
        address.port()
    );
    Nginx::with(&stage.netns, &[address], &block)
}

fn endpoints(sluice: &Sluice) -> Result<String> {
    Ok(sluice.get("endpoints")?.to_string())
}

/// Open connections to an endpoint, as `ss` prints them.
fn connections_to(stage: &Stage, endpoint: SocketAddr) -> Result<String> {
    let states = ["state", "syn-sent", "state", "established", "state", "close-wait"];
    let output =
        command::output(stage.netns.command("ss")?.arg("-tnH").args(states).args(["dst", &endpoint.to_string()]))?;
    Ok(String::from_utf8(output.stdout)?)
}

#[test]
fn a_roll_over_of_all_endpoints_under_load_fails_no_request() -> Result<()> {
    const PODS: u16 = 3;
    let stage = Stage::new("roll-over", "")?;
    let mut pods: Vec<(SocketAddr, Nginx)> = (0..PODS)
        .map(|pod| at(9001 + pod))
        .map(|address| Ok((address, pod(&stage, address)?)))
        .collect::<Result<_>>()?;
    let service = |pods: &[(SocketAddr, Nginx)]| {
        stage.service("pods", &pods.iter().map(|(address, _)| *address).collect::<Vec<_>>())
    };
    service(&pods)?;
    let plain = stage.route("plain", "pods", Tls::Without, &[])?;
    let edge = stage.route("edge", "pods", Tls::Edge, &[])?;
    let sluice = stage.serve()?;
    let mut load = Load::start(&stage, &plain, &edge)?;
    let mut replaced = 0;
    for port in 9001 + PODS.. {
        if !load.goes_on() {
            break;
        }
        // As in a Deployment: first the new pod; then the old one is removed, and ends when it has no connections.
        pods.push((at(port), pod(&stage, at(port))?));
        service(&pods)?;
        let (old, ends) = pods.remove(0);
        service(&pods)?;
        wait_until("the router knows the new endpoint alone", PATIENCE, || {
            let has = |address: SocketAddr| endpoints(&sluice).map(|text| text.contains(&format!("\"{address}\"")));
            has(at(port)).unwrap_or(false) && !has(old).unwrap_or(true)
        })?;
        // nginx resets connections that wait to be accepted and unread requests on keep-alive connections; a client
        // cannot know whether a POST there was processed. So it ends after the router has closed its connections.
        wait_until("the router has no connection to the old endpoint", PATIENCE, || {
            connections_to(&stage, old).is_ok_and(|lines| lines.is_empty())
        })?;
        ends.quit().with_context(|| format!("{old}"))?;
        replaced += 1;
    }
    load.end()?;
    ensure!(replaced >= u32::from(PODS), "only {replaced} endpoints were replaced under load");
    eprintln!("{replaced} endpoints replaced");
    Ok(())
}

#[test]
fn certificates_rotate_under_load_without_an_error() -> Result<()> {
    let stage = Stage::new("rotation", "")?;
    let _pod = pod(&stage, at(9001))?;
    stage.service("pod", &[at(9001)])?;
    let plain = stage.route("plain", "pod", Tls::Without, &[])?;
    let edge = stage.route("edge", "pod", Tls::Edge, &[])?;
    let sluice = stage.serve()?;
    let mut load = Load::start(&stage, &plain, &edge)?;
    let (mut rotated, mut memory) = (0, Vec::new());
    while load.goes_on() {
        let leaf = stage.ca.leaf(&edge)?;
        stage.route_with("edge", "pod", Tls::Edge, &[], &leaf)?;
        let shown = || -> Result<bool> {
            let url = format!("https://{edge}:{HTTPS}/");
            let answer = stage.curl(&url, &["--write-out", "%{certs}"])?;
            let body: String = leaf.certificate.lines().filter(|line| !line.starts_with("---")).collect();
            Ok(answer.body.replace(['\n', '\r'], "").contains(&body))
        };
        wait_until("the new certificate is shown", PATIENCE, || shown().unwrap_or(false))?;
        rotated += 1;
        memory.push(sluice.resident()?);
    }
    load.end()?;
    eprintln!("{rotated} certificates; memory {memory:?}");
    ensure!(rotated >= 10, "only {rotated} certificates were shown under load");
    let half = memory[memory.len() / 2];
    ensure!(memory.iter().all(|now| *now < half + (16 << 20)), "memory rises with certificates: {memory:?}");
    Ok(())
}

/// Connections of all kinds, while the folder changes.
#[test]
fn three_hundred_changes_of_other_routes_leave_connections_and_memory_alone() -> Result<()> {
    use std::io::Write;
    const OTHERS: usize = 50;
    let stage = Stage::new("others", "")?;
    let _pod = pod(&stage, at(9001))?;
    let _echo = tests::python::server(&stage.netns, "websocket_early", &["server", "9002"])?;
    stage.service("pod", &[at(9001)])?;
    stage.service("early", &[at(9002)])?;
    let plain = stage.route("plain", "pod", Tls::Without, &[])?;
    let tunnel = stage.route("tunnel", "early", Tls::Without, &[])?;
    let sluice = stage.serve()?;
    let revision = || sluice.get("status").ok().and_then(|status| status["revision"].as_u64());
    let ask = |stream: &mut std::net::TcpStream| -> Result<()> {
        stream.write_all(format!("GET / HTTP/1.1\r\nHost: {plain}\r\n\r\n").as_bytes())?;
        tests::stream::read_until(stream, b"pod 9001")?;
        Ok(())
    };
    let mut stays = (0..20).map(|_| tests::stream::open(&stage.netns, at(HTTP))).collect::<Result<Vec<_>>>()?;
    stays.iter_mut().try_for_each(ask)?;
    // A tunnel: its echo shows that it is still the same connection.
    let mut ws = tests::stream::open(&stage.netns, at(HTTP))?;
    ws.write_all(
        format!(
            "GET / HTTP/1.1\r\nHost: {tunnel}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        .as_bytes(),
    )?;
    let greet = |ws: &mut std::net::TcpStream, until: &[u8]| -> Result<()> {
        tests::stream::read_until(ws, until).context("the tunnel")?;
        Ok(())
    };
    greet(&mut ws, b"first word of the server")?;
    let mut memory = Vec::new();
    for change in 0..300_usize {
        let before = revision();
        let others: String = (0..OTHERS)
            .map(|other| tests::folder::route(&format!("o{other}"), &format!("o{other}-{change}.apps.test"), "pod", ""))
            .collect();
        stage.write("others", &others)?;
        wait_until("the change is in force", PATIENCE, || {
            let host = format!("Host: o0-{change}.apps.test");
            let url = format!("http://127.0.0.1:{HTTP}/");
            stage.curl(&url, &["--header", &host]).is_ok_and(|answer| answer.status == 200)
        })
        .with_context(|| format!("change {change}; revision {before:?}, now {:?}", revision()))?;
        if change % 10 == 9 {
            stays.iter_mut().try_for_each(ask).with_context(|| format!("after change {change}"))?;
            // A masked text frame (RFC 6455 §5.2), with a mask of zeros.
            ws.write_all(&[&[0x81, 0x82, 0, 0, 0, 0][..], b"hi"].concat())?;
            greet(&mut ws, b"back: hi").with_context(|| format!("after change {change}"))?;
            memory.push(sluice.resident()?);
        }
    }
    eprintln!("memory: {memory:?}");
    // The minimum of many samples excludes temporary memory of a change.
    let (early, late) = (memory[9..12].iter().max().copied(), memory[20..].iter().min().copied());
    let early = early.context("memory after a hundred changes")?;
    ensure!(late < Some(early + (4 << 20)), "memory rises with changes: {memory:?}");
    Ok(())
}
