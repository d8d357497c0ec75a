//! SYN cookies: through a flood of SYNs every client connects, and both ends of a connection have the options that they agreed on.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use router_common::verdict::DialCounter;
use serde_json::{Value, json};
use tests::command;
use tests::folder;
use tests::frames::Frames;
use tests::netns::Netns;
use tests::raw::{Packet, Path};
use tests::sluice::DataPath;
use tests::steering::{FRONT, Family, HOST, Setup, Stage};
use tests::stream::{self, Pair, joined};
use tests::wait::{PATIENCE, wait_until};

/// Port of the router for clear text.
const HTTP_PORT: u16 = 8080;
/// Hosts whose requests the proxy handles.
const CLEAR: &str = "clear.apps.test";
const EDGE: &str = "edge.apps.test";

/// A number of the environment, for larger runs.
fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Settings of a client's stack: timestamps, SACK, and the most it buffers, from which its window shift follows.
#[derive(Clone, Copy, Debug)]
struct Options {
    timestamps: bool,
    sack: bool,
    /// `None`: it offers no scaling.
    shift: Option<u8>,
}

impl Options {
    fn all() -> impl Iterator<Item = Options> {
        let shifts = [Some(0), Some(7), Some(14), None];
        let with = |shift| [(true, true), (true, false), (false, true), (false, false)].map(|both| (both, shift));
        shifts.into_iter().flat_map(with).map(|((timestamps, sack), shift)| Options { timestamps, sack, shift })
    }

    fn set(self, client: &Netns) -> Result<()> {
        let switch = |is_on| if is_on { "1" } else { "0" };
        client.set("ipv4/tcp_timestamps", switch(self.timestamps))?;
        client.set("ipv4/tcp_sack", switch(self.sack))?;
        client.set("ipv4/tcp_window_scaling", switch(self.shift.is_some()))?;
        let most = (0xffff_u64 << self.shift.unwrap_or(7)).min(i32::MAX as u64);
        client.set("ipv4/tcp_rmem", &format!("4096 {} {most}", most.min(131_072)))
    }
}

/// Options that a socket with these ports uses, as `ss` names them.
pub fn used(netns: &Netns, local: SocketAddr, peer: SocketAddr) -> Result<Vec<String>> {
    let filter = format!("sport = :{} and dport = :{}", local.port(), peer.port());
    let output = command::output(netns.command("ss")?.args(["-tinoH", &filter]))?;
    let text = String::from_utf8(output.stdout)?;
    let is_option = |word: &&str| matches!(*word, "ts" | "sack" | "ecn") || word.starts_with("wscale:");
    ensure!(text.contains("cwnd:"), "{text}");
    Ok(text.split_whitespace().filter(is_option).map(str::to_owned).collect())
}

/// Sends SYNs of ever other sources to an address, until the flag is set; counts them.
fn flood(stage: &Stage, to: IpAddr, is_over: &AtomicBool, sent: &AtomicU64) -> Result<()> {
    let frames = Frames::open(&stage.client, "eth0")?;
    let mut path = Path {
        hardware: stage.client.hardware_address("eth0")?,
        gateway: stage.router.hardware_address("front")?,
        local: stage.address,
        remote: SocketAddr::new(to, stage.address.port()),
    };
    let mut number = 0_u32;
    while !is_over.load(Ordering::Relaxed) {
        number = number.wrapping_add(0x9e37_79b9);
        let [a, b, c, d] = number.to_be_bytes();
        let source: IpAddr = match stage.family {
            Family::V4 => Ipv4Addr::new(198, 18 + (a & 1), b, c).into(),
            Family::V6 => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, (number >> 16) as u16, number as u16).into(),
        };
        path.local = SocketAddr::new(source, 1024 + u16::from_be_bytes([c, d]) % 60_000);
        path.remote.set_port(if d & 3 == 0 { HTTP_PORT } else { stage.address.port() });
        let options = Packet { max_segment: Some(1460), shift: Some(7), sack_permitted: true, ..Packet::default() };
        let syn = Packet { seq: number, syn: true, window: u16::MAX, timestamps: Some((number, 0)), ..options };
        super::send(&frames, &syn.write(&path)?)?;
        sent.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Does something while SYNs are sent to an address; given their number so far.
fn beside<T>(stage: &Stage, to: IpAddr, act: impl FnOnce(&AtomicU64) -> Result<T>) -> Result<T> {
    let (is_over, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let sender = scope.spawn(|| flood(stage, to, &is_over, &sent));
        let result = act(&sent);
        is_over.store(true, Ordering::Relaxed);
        joined(sender)?;
        result
    })
}

/// Does something while SYNs are sent, after their listener was noticed.
pub fn flooded<T>(stage: &Stage, attached: Option<&str>, act: impl FnOnce() -> Result<T>) -> Result<T> {
    beside(stage, stage.address.ip(), |sent| {
        let is_noticed = || {
            stage.sluice.get("status").is_ok_and(|status| {
                let gate = &status["dataPath"]["gate"];
                let flooded = gate["flooded"].as_array().is_some_and(|addresses| addresses.len() >= 2);
                flooded && attached.is_none_or(|mode| gate["attached"].to_string().contains(mode))
            })
        };
        wait_until("the flood is noticed", PATIENCE, is_noticed)
            .with_context(|| format!("{:?} sent; {:#?}", sent.load(Ordering::Relaxed), stage.sluice.get("status")))?;
        let begin = (Instant::now(), sent.load(Ordering::Relaxed));
        let result = act();
        let rate = (sent.load(Ordering::Relaxed) - begin.1) as f64 / begin.0.elapsed().as_secs_f64();
        eprintln!("{:?}, {attached:?}: {rate:.0} SYNs a second", stage.family);
        result
    })
}

/// A router with hosts of every kind, whose SYNs are answered from some hundred a second on.
pub fn stage(setup: Setup, mode: &str, cookies: &str) -> Result<Stage> {
    let family = setup.family;
    let arguments = ["--xdp", mode].map(str::to_owned).to_vec();
    let stage = Stage::new(DataPath::Kernel, Setup { arguments, ..setup })?;
    stage.router.set("ipv4/tcp_syncookies", cookies)?;
    // The stack drops SYNs that it cannot answer.
    stage.router.ip(&["route", "add", "default", "via", &family.address(FRONT, 2).to_string()])?;
    stage.place("clear.yaml", &folder::route("clear", CLEAR, "raw", ""))?;
    stage.place("edge.yaml", &folder::route("edge", EDGE, "raw", "  tls: {termination: edge}\n"))?;
    stage.annotate_router("gate.sluice.dev/syn-cookies: 500/s")?;
    wait_until("the rate is in force", PATIENCE, || {
        let rows = stage.sluice.dump("gate_pressure");
        rows.is_ok_and(|rows| rows.as_array().is_some_and(|rows| rows.iter().any(|row| row["above"] == json!(500))))
    })?;
    ensure!(stage.sluice.get("status")?["dataPath"]["gate"].is_null(), "nothing is attached before");
    Ok(stage)
}

/// A connection to the passthrough host.
struct Connected {
    pair: Pair,
    /// Its client's options.
    options: Vec<String>,
    /// Whether the kernel carries it.
    is_carried: bool,
}

/// Connects to the passthrough host.
fn passthrough(stage: &Stage) -> Result<Connected> {
    let pair = stream::connect(&stage.client, stage.address, &stage.listener, HOST)?;
    pair.greet()?;
    let (local, router) = (pair.client.local_addr()?, pair.client.peer_addr()?);
    let client = used(&stage.client, local, router)?;
    let is_carried = stage.check_port(pair.origin.peer_addr()?.port()).is_ok();
    // The other end of the client's connection.
    let other = if is_carried {
        used(&stage.backend, pair.origin.local_addr()?, pair.origin.peer_addr()?)?
    } else {
        used(&stage.router, router, local)?
    };
    let kinds = |of: &[String]| {
        let mut kinds: Vec<String> =
            of.iter().map(|word| word.split(':').next().unwrap_or_default().to_owned()).collect();
        kinds.sort();
        kinds
    };
    ensure!(kinds(&client) == kinds(&other), "the client has {client:?}, the other end {other:?}");
    Ok(Connected { pair, options: client, is_carried })
}

/// A request that the proxy handles.
fn proxied(stage: &Stage, url: &str) -> Result<()> {
    let listener = stage.listener.try_clone()?;
    thread::scope(|scope| {
        let backend = scope.spawn(move || -> Result<()> {
            let mut stream = stream::accept(&listener)?;
            stream::read_until(&mut stream, b"\r\n\r\n")?;
            stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 6\r\n\r\nserved")?;
            let _ = stream.read(&mut [0; 1]);
            Ok(())
        });
        let address = match stage.address.ip() {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        let (clear, edge) = (format!("{CLEAR}:{HTTP_PORT}:{address}"), format!("{EDGE}:8443:{address}"));
        let arguments = ["-sSk", "--max-time", "20", "--resolve", &clear, "--resolve", &edge, url];
        let output = command::output(stage.client.command("curl")?.args(arguments))?;
        ensure!(output.stdout == b"served", "{output:?}");
        joined(backend)
    })
}

/// Loads an XDP program and pins it.
const LOAD_XDP: &str = include_str!("../../src/load_xdp.py");
/// One that passes everything: a veth pair's end receives what XDP sends with one only.
const PASSING: &str = "b7000000020000009500000000000000";

/// Attaches [`PASSING`] to an interface, in its driver.
fn pass(stage: &Stage, netns: &Netns, interface: &str) -> Result<()> {
    let pin = format!("/sys/fs/bpf/passing-{}", stage.sluice.instance());
    command::output(netns.command("python3")?.args(["-c", LOAD_XDP, &pin, PASSING]))?;
    let attached = netns.ip(&["link", "set", "dev", interface, "xdpdrv", "pinned", &pin]);
    std::fs::remove_file(&pin)?;
    attached
}

fn connects(family: Family, mode: &str, attached: Option<&str>, cookies: &str) -> Result<()> {
    through_flood(&stage(Setup::new(family), mode, cookies)?, attached, cookies)
}

/// Sends so many bytes each way; how long that takes.
fn exchange(pair: Pair, bytes: u64) -> Result<Duration> {
    let begin = Instant::now();
    pair.exchange(bytes, bytes, bytes)?;
    Ok(begin.elapsed())
}

fn median(mut of: Vec<Duration>) -> Duration {
    of.sort();
    of[of.len() / 2]
}

/// How long it takes clients with all options to send so many bytes each way without a flood, the median. What is sent to nobody
/// meanwhile costs the sender as much.
fn undisturbed(stage: &Stage, bytes: u64) -> Result<Duration> {
    let took = beside(stage, stage.family.address(FRONT, 200), |_| {
        let one = |options: Options| {
            options.set(&stage.client)?;
            exchange(passthrough(stage)?.pair, bytes)
        };
        Options::all().map(one).collect::<Result<Vec<_>>>()
    })?;
    Ok(median(took))
}

/// Clients with all options, through a flood.
fn through_flood(stage: &Stage, attached: Option<&str>, cookies: &str) -> Result<()> {
    let at_once = usize::try_from(number("SLUICE_COOKIE_CLIENTS", 16))?;
    let bytes = number("SLUICE_COOKIE_BYTES", 100_000);
    let least = Duration::from_secs(number("SLUICE_COOKIE_SECONDS", 0));
    let calm = undisturbed(stage, bytes)?;
    let carried = flooded(stage, attached, || {
        let (begin, mut took) = (Instant::now(), Vec::new());
        let (mut without, mut carried) = (0, 0);
        while took.is_empty() || begin.elapsed() < least {
            let mut open = Vec::new();
            while open.len() < at_once {
                for options in Options::all() {
                    options.set(&stage.client)?;
                    let one =
                        passthrough(stage).with_context(|| format!("{options:?}, {:#?}", stage.sluice.output()))?;
                    without += u64::from(one.options.is_empty());
                    carried += u64::from(one.is_carried);
                    open.push(one.pair);
                }
                for url in [format!("http://{CLEAR}:{HTTP_PORT}/"), format!("https://{EDGE}:8443/")] {
                    proxied(stage, &url).with_context(|| url.clone())?;
                }
            }
            for pair in open {
                took.push(exchange(pair, bytes)?);
            }
        }
        let clients = took.len() as u64;
        eprintln!(
            "{clients} connections in {:?}, {at_once} at once; {bytes} bytes each way take {:?} (undisturbed {:?}); \
             {without} without options, {carried} carried by the kernel",
            begin.elapsed(),
            median(took),
            calm
        );
        Ok([clients, without, carried])
    })?;
    ensure!(stage.dial_counter(DialCounter::SynCookies)? > 0);
    if cookies == "2" {
        ensure!(carried.iter().all(|number| *number == carried[0]), "{carried:?}");
        ensure!(stage.dial_counter(DialCounter::CookiesConfirmed)? >= carried[0]);
    }
    // Those of the flood's beginning, until the queues of two listeners were full.
    let handshakes = stage.sluice.dump("handshakes")?;
    let rows = handshakes.as_array().context("rows")?.len();
    ensure!(rows < 12_000, "{rows} handshakes");
    Ok(())
}

#[test]
fn xdp_answers_where_every_syn_gets_a_cookie() -> Result<()> {
    [Family::V4, Family::V6].into_iter().try_for_each(|family| connects(family, "generic", Some("generic"), "2"))
}

#[test]
fn the_driver_answers_where_the_other_end_hears_it() -> Result<()> {
    let stage = stage(Setup::new(Family::V4), "native", "2")?;
    pass(&stage, &stage.client, "eth0")?;
    // XDP in a veth pair's driver costs the other end its segmentation offload, whatever the program does.
    let ends = ["front", "back"];
    ends.iter().try_for_each(|end| pass(&stage, &stage.router, end))?;
    let with_another = undisturbed(&stage, number("SLUICE_COOKIE_BYTES", 100_000))?;
    ends.iter().try_for_each(|end| stage.router.ip(&["link", "set", "dev", end, "xdpdrv", "off"]))?;
    eprintln!("undisturbed, with another program in the driver: {with_another:?}");
    through_flood(&stage, Some("native"), "2")?;
    let answers = stage.sluice.dump("gate_answers")?;
    ensure!(answers.as_array().is_some_and(|rows| rows.len() == 1), "{answers}");
    Ok(())
}

#[test]
fn xdp_answers_while_the_stack_is_full() -> Result<()> {
    connects(Family::V4, "generic", Some("generic"), "1")
}

#[test]
fn tc_answers_where_xdp_is_not_attached_or_cannot_be_heard() -> Result<()> {
    connects(Family::V6, "auto", None, "2")?;
    connects(Family::V4, "native", Some("native"), "2")
}

#[test]
fn the_gate_is_detached_when_the_flood_is_over() -> Result<()> {
    let stage = stage(Setup::new(Family::V4), "generic", "2")?;
    flooded(&stage, Some("generic"), || Ok(()))?;
    wait_until("the flood is over", PATIENCE, || {
        stage.sluice.get("status").is_ok_and(|status| status["dataPath"]["gate"]["flooded"] == json!([]))
    })?;
    let is_gone = || stage.sluice.get("status").is_ok_and(|status| status["dataPath"]["gate"] == Value::Null);
    wait_until("the gate is detached", Duration::from_secs(90), is_gone)?;
    let used = passthrough(&stage)?.options;
    ensure!(used.iter().any(|word| word == "ts"), "{used:?}: handshakes are the stack's again");
    Ok(())
}
