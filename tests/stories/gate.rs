//! The XDP gate, from an IngressController's annotations to packets: denied sources, limited SYNs, an agent that is killed,
//! and who is rejected.

mod chain;
mod common;
mod connections;
mod cookies;
mod forward;
mod limited;
mod many_connections;
mod used_ports;

use std::ffi::OsStr;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tests::folder;
use tests::frames::Frames;
use tests::raw::{Packet, Path};
use tests::sluice::{self, DataPath};
use tests::steering::{FRONT, Family, Setup, Stage};
use tests::stream::joined;
use tests::wait::{PATIENCE, wait_until};

use common::{explain, explain_host, guard, is_attached, is_closed, is_open, rejected, stage};

/// The network of the link to the client.
fn clients(family: Family) -> String {
    family.network(FRONT, 0)
}

#[test]
fn denied_sources_get_no_answer_until_they_are_removed() -> Result<()> {
    for (family, mode) in [(Family::V4, "generic"), (Family::V6, "native")] {
        let stage = stage(family, mode)?;
        ensure!(stage.sluice.get("status")?["dataPath"]["gate"].is_null(), "without a policy there is no gate");
        let open = stage.connect()?;
        let deny = format!("gate.sluice.dev/deny: \"{}\"", clients(family));
        guard(&stage, &deny, is_attached(mode))?;
        is_closed(&stage, "source-denied")?;
        let client = family.address(FRONT, 2);
        let explained = explain(&stage, client)?;
        let verdict = format!("not served: no answer: the XDP gate drops packets of {client}");
        ensure!(explained.contains(&verdict) && !explained.contains("data path"), "{explained}");
        let explained = explain(&stage, IpAddr::from(Ipv4Addr::LOCALHOST))?;
        ensure!(explained.contains("\nserved: ") && explained.contains("data path"), "{explained}");
        let nets = stage.sluice.dump("gate_nets")?;
        ensure!(nets[0]["source"] == json!(clients(family)) && nets[0]["list"] == json!(1), "{nets}");
        // Connections of before are not spared.
        let before = rejected(&stage, "source-denied")?;
        (&open.client).write_all(b"x")?;
        wait_until("its packets are dropped", PATIENCE, || {
            rejected(&stage, "source-denied").is_ok_and(|now| now > before)
        })?;
        guard(&stage, "", Value::is_null)?;
        stage.connect()?.exchange(1, 10_000, 10_000)?;
        let policies = stage.sluice.dump("gate_policies")?;
        ensure!(policies == json!([]) && stage.sluice.dump("gate_nets")? == json!([]), "{policies}");
    }
    Ok(())
}

/// The kernel carries connections past the gate, whatever it does to packets.
#[test]
fn a_policy_on_trial_drops_nothing() -> Result<()> {
    for (family, mode) in [(Family::V4, "native"), (Family::V4, "generic"), (Family::V6, "generic")] {
        let stage = stage(family, mode)?;
        let deny = format!("gate.sluice.dev/deny: \"{}\", gate.sluice.dev/mode: observe", clients(family));
        guard(&stage, &deny, is_attached(mode))?;
        stage.connect().context(mode)?.exchange(1, 100_000, 100_000)?;
        ensure!(rejected(&stage, "source-denied")? > 0);
    }
    Ok(())
}

#[test]
fn a_policy_without_a_gate_is_a_finding() -> Result<()> {
    // Both interfaces are veth pairs.
    for (mode, reason) in [("off", "--xdp off"), ("auto", "every interface is a veth pair")] {
        let stage = stage(Family::V4, mode)?;
        guard(&stage, "gate.sluice.dev/deny: 0.0.0.0/0", |gate| gate["attached"] == json!([]))?;
        stage.connect()?.exchange(1, 1000, 1000)?;
        let explained = explain(&stage, Family::V4.address(FRONT, 2))?;
        ensure!(explained.contains("\nserved: "), "{explained}");
        let status = stage.sluice.get("status")?;
        let findings = status["findings"].as_array().context("findings")?;
        let says_why = |finding: &Value| finding["why"].as_str().is_some_and(|why| why.contains(reason));
        ensure!(findings.iter().any(says_why), "{status:#}");
    }
    Ok(())
}

#[test]
fn the_gate_outlives_its_agent_and_the_next_one_goes_on() -> Result<()> {
    let arguments = ["--xdp", "native"].map(str::to_owned).to_vec();
    let stage = Stage::new(DataPath::Kernel, Setup { arguments, kept: true, ..Setup::new(Family::V4) })?;
    let deny = format!("gate.sluice.dev/deny: \"{}\"", clients(Family::V4));
    guard(&stage, &deny, is_attached("native"))?;
    let agents = stage.sluice.agents()?;
    for agent in &agents {
        kill_process(Pid::from_raw(i32::try_from(*agent)?).context("a process id")?, Signal::KILL)?;
    }
    is_closed(&stage, "source-denied")?;
    let is_another = || stage.sluice.agents().is_ok_and(|now| !now.is_empty() && now != agents);
    wait_until("the keeper starts another agent", PATIENCE, is_another)?;
    let is_adopted = |gate: &Value| is_attached("native")(gate) && gate["networks"] == json!(1);
    guard(&stage, &deny, is_adopted)?;
    is_closed(&stage, "source-denied")?;
    guard(&stage, "", Value::is_null)?;
    is_open(&stage)
}

#[test]
fn allow_lists_of_routes_reach_the_gate_while_all_have_the_same() -> Result<()> {
    // In another form, the clients' network is not in it.
    let annotations = "haproxy.router.openshift.io/ip_allowlist: 192.0.2.0/25 192.0.2.128/25";
    let arguments = ["--xdp", "native"].map(str::to_owned).to_vec();
    let stage = Stage::new(DataPath::Kernel, Setup { annotations, arguments, ..Setup::new(Family::V4) })?;
    let lists = "gate.sluice.dev/route-allow-lists: drop";
    let is_listed = |gate: &Value| is_attached("native")(gate) && gate["networks"] == json!(1);
    guard(&stage, lists, is_listed)?;
    is_closed(&stage, "source-not-listed")?;
    let client = Family::V4.address(FRONT, 2);
    let explained = explain(&stage, client)?;
    let rule = "only 192.0.2.0/24 may connect: the allow-list of every route";
    ensure!(explained.contains(rule) && explained.contains("not served: no answer"), "{explained}");

    // Another route has none: the proxy decides again.
    let other = folder::route("other", "other.apps.test", "raw", folder::PASSTHROUGH);
    stage.place("other.yaml", &other)?;
    guard(&stage, lists, |gate| is_attached("native")(gate) && gate["networks"] == json!(0))?;
    is_open(&stage)?;
    let explained = explain(&stage, client)?;
    let rule = "allow-lists of routes stay with the routes: not all routes have the same one";
    ensure!(explained.contains(rule) && explained.contains("not served: ") && !explained.contains("XDP gate drops"));

    let list = [("haproxy.router.openshift.io/ip_allowlist", "192.0.2.0/24")];
    stage.place("other.yaml", &folder::annotated(&other, &list))?;
    guard(&stage, lists, is_listed)?;
    is_closed(&stage, "source-not-listed")
}

/// A Gateway with a listener of TLS passthrough on this port.
fn gateway(name: &str, port: u16, annotations: &str) -> String {
    format!(
        "---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: {name}, namespace: default, annotations: {{{annotations}}}}}
spec:
  gatewayClassName: sluice
  listeners: [{{name: tls, port: {port}, protocol: TLS, hostname: {name}.gw.test, tls: {{mode: Passthrough}}}}]
"
    )
}

#[test]
fn policies_of_gateways_hold_on_ports_where_they_agree() -> Result<()> {
    const PORT: u16 = 9443;
    let mut stage = stage(Family::V4, "native")?;
    stage.address.set_port(PORT);
    let deny = format!("gate.sluice.dev/deny: \"{}\"", clients(Family::V4));
    let place =
        |gateways: &[String]| stage.place("gateways.yaml", &(folder::gateway_class().to_owned() + &gateways.concat()));
    let attached = |is_attached: bool| {
        let is_there = move |status: Value| {
            let gate = &status["dataPath"]["gate"];
            if is_attached { self::is_attached("native")(gate) } else { gate.is_null() }
        };
        let in_force = || stage.sluice.get("status").is_ok_and(is_there);
        wait_until(&format!("a policy: {is_attached}"), PATIENCE, in_force).map(drop)
    };
    place(&[gateway("one", PORT, &deny)])?;
    attached(true)?;
    is_closed(&stage, "source-denied")?;
    let explained = explain_host(&stage, &format!("one.gw.test:{PORT}"), Family::V4.address(FRONT, 2))?;
    ensure!(explained.contains(&format!("the Gateways with listeners on port {PORT}")), "{explained}");

    // Another tenant's Gateway: neither can close the port for the other.
    place(&[gateway("one", PORT, &deny), gateway("two", PORT, "")])?;
    attached(false)?;
    is_open(&stage)?;
    let warned = || {
        let said = stage.sluice.output();
        said.iter().any(|line| line.contains(&format!("not in force on port {PORT}: other Gateways")))
    };
    wait_until("the Gateway's owner is warned", PATIENCE, warned)?;
    place(&[gateway("one", PORT, &deny), gateway("two", PORT, &deny)])?;
    attached(true)?;
    is_closed(&stage, "source-denied")
}

/// The way from the client's machine to the router, for frames from an address.
fn path(stage: &Stage, local: SocketAddr) -> Result<Path> {
    let hardware = stage.client.hardware_address("eth0")?;
    Ok(Path { hardware, gateway: stage.router.hardware_address("front")?, local, remote: stage.address })
}

fn syn(seq: u32, payload: &[u8]) -> Packet {
    Packet { seq, syn: true, window: u16::MAX, payload: payload.to_vec(), ..Packet::default() }
}

/// Sends a frame; again while the link has no room for it.
fn send(frames: &Frames, frame: &[u8]) -> Result<()> {
    let has_no_room = |error: &anyhow::Error| {
        let error = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::raw_os_error);
        error == Some(Errno::NOBUFS.raw_os_error())
    };
    while let Err(error) = frames.send(frame) {
        ensure!(has_no_room(&error), error);
        thread::yield_now();
    }
    Ok(())
}

#[test]
fn eight_senders_at_once_get_as_many_syns_through_as_the_policy_allows() -> Result<()> {
    const SENDERS: u16 = 8;
    const EACH: u16 = 2000;
    for mode in ["generic", "native"] {
        let stage = stage(Family::V4, mode)?;
        let rates = "gate.sluice.dev/syn-rate-per-source: 100/h burst 100, gate.sluice.dev/source-prefix: \"30,64\"";
        // An hour in which a full bucket of 100 fills.
        guard(&stage, rates, is_attached(mode))?;
        let path = path(&stage, SocketAddr::new(Family::V4.address(FRONT, 2), 0))?;
        thread::scope(|scope| {
            let sender = |ports: Range<u16>| {
                let (client, mut path) = (&stage.client, path);
                scope.spawn(move || {
                    let frames = Frames::open(client, "eth0")?;
                    ports.into_iter().try_for_each(|port| {
                        path.local.set_port(port);
                        send(&frames, &syn(0, b"").write(&path)?)
                    })
                })
            };
            let ports = (0..SENDERS).map(|number| 1024 + number * EACH..1024 + (number + 1) * EACH);
            let senders: Vec<_> = ports.map(sender).collect();
            senders.into_iter().try_for_each(joined)
        })?;
        let sent = u64::from(SENDERS * EACH);
        let all_seen = || rejected(&stage, "source-syn-rate").is_ok_and(|dropped| dropped >= sent - 100);
        wait_until("every SYN was decided", PATIENCE, all_seen)?;
        let dropped = rejected(&stage, "source-syn-rate")?;
        ensure!(dropped == sent - 100, "{mode}: {} of {sent} passed", sent - dropped);
        let sources = stage.sluice.dump("gate_sources")?;
        ensure!(sources.as_array().is_some_and(|rows| rows.len() == 1), "{sources}");
    }
    Ok(())
}

/// The rows of `sluice gate top`, as the first fields of a line.
fn top(stage: &Stage) -> Result<Vec<Vec<String>>> {
    let arguments = ["gate", "top", "--once", "--instance", stage.sluice.instance()].map(OsStr::new);
    let output = sluice::run(&arguments)?;
    ensure!(output.status.success(), "{output:?}");
    let is_harmless = |byte: &u8| *byte == b'\n' || (b' '..=b'~').contains(byte);
    ensure!(output.stdout.iter().all(is_harmless), "{}", output.stdout.escape_ascii());
    let text = String::from_utf8(output.stdout)?;
    Ok(text.lines().map(|line| line.split_ascii_whitespace().take(4).map(str::to_owned).collect()).collect())
}

/// Bytes that clear a terminal's screen, as an address.
const ESCAPE: [u8; 4] = *b"\x1b[2J";

#[test]
fn top_names_those_who_are_rejected_and_why() -> Result<()> {
    let stage = stage(Family::V4, "native")?;
    let policy = "gate.sluice.dev/syn-rate-per-source: 4/h burst 1, gate.sluice.dev/deny: 27.0.0.0/8";
    guard(&stage, policy, is_attached("native"))?;
    // Packets of each sender in a round. The last one's are of a denied source, and what they contain is hostile.
    let senders = [([10, 81, FRONT, 21], 12), ([10, 81, FRONT, 22], 6), ([10, 81, FRONT, 23], 3), (ESCAPE, 1)];
    let of = |(source, count): ([u8; 4], usize)| Ok((path(&stage, (source, 1024).into())?, count));
    let senders = senders.into_iter().map(of).collect::<Result<Vec<_>>>()?;
    let listener = &stage.address.to_string();
    let row = |fields: [&str; 4]| fields.map(str::to_owned).to_vec();
    let limited = |source| row([source, listener, "source-syn-rate", "dropped"]);
    let expected = [
        row(["SOURCE", "LISTENER", "REASON", "EFFECT"]),
        limited("10.81.1.21"),
        limited("10.81.1.22"),
        limited("10.81.1.23"),
        row(["27.91.50.74", listener, "source-denied", "dropped"]),
    ];
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let flood = scope.spawn(|| -> Result<()> {
            let frames = Frames::open(&stage.client, "eth0")?;
            let mut seq = 0_u32;
            while !is_over.load(Ordering::Relaxed) {
                for (path, count) in &senders {
                    for _ in 0..*count {
                        seq += 1;
                        send(&frames, &syn(seq, &ESCAPE.repeat(10)).write(path)?)?;
                    }
                }
                thread::sleep(Duration::from_millis(5));
            }
            Ok(())
        });
        let begin = Instant::now();
        let rows = loop {
            match top(&stage) {
                Ok(rows) if rows != expected && begin.elapsed() < PATIENCE => {}
                last => break last,
            }
        };
        is_over.store(true, Ordering::Relaxed);
        joined(flood)?;
        let rows = rows?;
        ensure!(rows == expected, "{rows:#?}");
        Ok(())
    })
}
