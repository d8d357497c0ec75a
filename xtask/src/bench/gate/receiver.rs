//! The processor that receives a flood: who works on it, and when XDP takes the flood's SYNs.

use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::Value;

use super::frames::{self, FEW, HEADERS, MODERATION, SENDERS_MODERATION, attach, moderated};
use crate::bench::network::Network;
use crate::bench::passthrough::ways::{Lane, Way};
use crate::bench::usage::family;
use crate::process;

/// The processor that receives, where the agent, the clients and the backends work as well.
pub const RECEIVER: usize = 0;
/// The processor that sends, and does nothing else but receive what XDP sends back.
pub const SENDER: usize = 1;
/// Polls without a packet after which an interface is no longer polled in a measurement: 200 s of them.
const MANY: u32 = 1_000_000;
/// Polls that are counted before it.
const OBSERVED: u64 = 100;
/// A port to which nobody listens (RFC 863).
const DISCARD: u16 = 9;
/// How long a flood may last until XDP answers.
const PATIENCE: Duration = Duration::from_secs(20);

const PASS: &str = "b700000002000000"; // r0 = XDP_PASS
/// Behind [`PASS`] and [`HEADERS`], for the client's end of its link: it drops what is sent to the sources of a flood, as they are
/// not behind it, and passes all else. Without one, the kernel drops what XDP sends at the router's end.
const FAR_END: &str = concat!(
    "2d23040000000000", // if r3 > r2, exit
    "69111e0000000000", // r1 = the first half of the destination
    "57010000fffe0000", // r1 &= 255.254
    "55010100c6120000", // if r1 != 198.18, exit
    "b700000001000000", // r0 = XDP_DROP
    "9500000000000000", // exit
);

/// Binds what arrives from the client to the receiving processor, and gives the flood's sources and its other destination a
/// route.
pub fn prepare(network: &Network, lane: &Lane) -> Result<()> {
    let link = "ip link add sink type veth peer name drain; ip link set drain up; ip link set sink up";
    network.client.shell(&format!("ip link show sink >/dev/null 2>&1 || {{ {link}; }}"))?;
    network.client.ip("route replace 198.51.100.0/24 dev sink")?;
    network.client.ip("neigh replace 198.51.100.1 lladdr 02:00:00:00:00:01 dev sink nud permanent")?;
    let client = lane.middle.clients()[0];
    lane.middle.netns.ip(&format!("route replace 198.18.0.0/15 via {client}"))?;
    lane.middle.netns.shell(&steered("client"))?;
    if frames::are_made(lane) {
        frames::prepare(network, lane)?;
    }
    if matches!(lane.way, Way::CookiesGeneric | Way::CookiesNative) {
        hear(network, lane)?;
    }
    Ok(())
}

/// A command that has what an interface receives handled by the receiving processor (receive packet steering).
fn steered(interface: &str) -> String {
    format!("printf %x {} > /sys/class/net/{interface}/queues/rx-0/rps_cpus", 1 << RECEIVER)
}

/// Binds this process and its descendants to the receiving processor, and with them all that they start from then on.
pub fn bind_all() -> Result<()> {
    for process in family(std::process::id())? {
        for task in fs::read_dir(format!("/proc/{process}/task"))? {
            bind(task?.file_name().to_string_lossy().parse()?, RECEIVER)?;
        }
    }
    Ok(())
}

/// Does something while the receiving processor polls a way's interface that receives frames, in its softirq, as at a card's
/// interrupts, and not the processor of the flood.
pub fn polled<T>(network: &Network, lane: &Lane, act: impl FnOnce() -> Result<T>) -> Result<T> {
    if !frames::are_made(lane) {
        return act();
    }
    begin_polls(network, lane)?;
    let result = act()?;
    poll_until(network, lane, FEW)?;
    Ok(result)
}

/// A packet of this process has the interface polled here first; from then on a timer of this processor has, and not the sender.
fn begin_polls(network: &Network, lane: &Lane) -> Result<()> {
    poll_until(network, lane, MANY)?;
    let (before, begin) = (softirqs()?, Instant::now());
    let after = loop {
        let after = softirqs()?;
        if after.0 - before.0 >= OBSERVED {
            break after;
        }
        ensure!(begin.elapsed() < PATIENCE, "in {PATIENCE:?} {} polls, not {OBSERVED}", after.0 - before.0);
        thread::sleep(Duration::from_nanos(OBSERVED * u64::from(MODERATION)));
    };
    ensure!(after.1 - before.1 < OBSERVED / 2, "the sender polls too: {} times", after.1 - before.1);
    Ok(())
}

/// Has an interface polled until so many polls have found no packet.
fn poll_until(network: &Network, lane: &Lane, empty: u32) -> Result<()> {
    lane.middle.netns.shell(&format!("echo {empty} > /sys/class/net/client/napi_defer_hard_irqs"))?;
    // A poll that finds a packet reads the setting.
    let to = SocketAddrV4::new(*lane.middle.listener().ip(), DISCARD);
    network.client.run(|| {
        UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?.send_to(&[0], to).context("a datagram to the router")?;
        Ok(())
    })
}

/// Does something without a flood, and checks that what it sends is received, in softirq, by the receiving processor alone.
pub fn check_place<T>(act: impl FnOnce() -> Result<T>) -> Result<()> {
    let before = softirqs()?;
    act()?;
    let after = softirqs()?;
    let (receiver, sender) = (after.0 - before.0, after.1 - before.1);
    ensure!(
        sender < receiver / 10,
        "undisturbed, the sender receives {sender} times, and the receiver {receiver} times"
    );
    Ok(())
}

/// How often the receiving and the sending processor have received since they were started (proc(5), `/proc/softirqs`).
fn softirqs() -> Result<(u64, u64)> {
    let counted = fs::read_to_string("/proc/softirqs")?;
    let received = counted.lines().find_map(|line| line.trim_start().strip_prefix("NET_RX:"));
    let fields: Vec<&str> = received.context("/proc/softirqs has another form")?.split_whitespace().collect();
    let of = |processor: usize| {
        fields.get(processor).context("no such processor")?.parse::<u64>().context("a number of softirqs")
    };
    Ok((of(RECEIVER)?, of(SENDER)?))
}

/// Gives the client's end of its link [`FAR_END`], in a thread of the sending processor. What passes is handled by the receiving
/// processor. Else clients would send from the sending one, which would then poll the router's interface while nobody is flooded.
fn hear(network: &Network, lane: &Lane) -> Result<()> {
    let interface = lane.middle.clients_interface();
    attach(network, &interface, &format!("{PASS}{HEADERS}{FAR_END}"))?;
    network.client.shell(&format!(
        "echo 1 > /sys/class/net/{interface}/threaded; {}; {}",
        steered(&interface),
        moderated(&interface, SENDERS_MODERATION)
    ))?;
    let polling = processes_of(&format!("napi/{interface}"))?;
    ensure!(!polling.is_empty(), "{interface} has no NAPI thread");
    for thread in polling {
        bind(thread, SENDER)?;
        // It precedes tasks, as a softirq does.
        process::run(Command::new("chrt").args(["--fifo", "--pid", "1", &thread.to_string()]))?;
    }
    Ok(())
}

/// Checks that XDP is attached to nothing, where there is no policy.
pub fn check_rest(lane: &Lane) -> Result<()> {
    let Some(instance) = lane.instance().filter(|_| !matches!(lane.way, Way::GateGeneric | Way::GateNative)) else {
        return Ok(());
    };
    let gate = instance.gate()?;
    ensure!(gate.is_null(), "nobody floods it, and it has {gate}");
    Ok(())
}

/// Waits in a flood of a port until XDP answers it, on a way of cookies.
pub fn wait_for_cookies(lane: &Lane, port: u16) -> Result<()> {
    let mode = match lane.way {
        Way::CookiesGeneric => "client (generic)",
        Way::CookiesNative => "client (native)",
        _ => return Ok(()),
    };
    let instance = lane.instance().context("the way is Sluice's")?;
    let is_of = |text: &str| text == mode || text.ends_with(&format!(":{port}"));
    let has = |texts: &Value| texts.as_array().is_some_and(|texts| texts.iter().filter_map(Value::as_str).any(is_of));
    let is_answered = || {
        let gate = instance.gate()?;
        anyhow::Ok(has(&gate["attached"]) && has(&gate["flooded"]) && !instance.rows("gate_answers")?.is_empty())
    };
    let begin = Instant::now();
    while !is_answered()? {
        ensure!(begin.elapsed() < PATIENCE, "in {PATIENCE:?} XDP does not answer the flood");
        thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// Binds a thread to a processor.
fn bind(task: i32, processor: usize) -> Result<()> {
    let mut processors = CpuSet::new();
    processors.set(processor);
    sched_setaffinity(Pid::from_raw(task), &processors).with_context(|| format!("binding thread {task}"))
}

/// Kernel threads with this beginning of their name.
fn processes_of(name: &str) -> Result<Vec<i32>> {
    let processes = fs::read_dir("/proc")?.flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_named =
        |process: &i32| fs::read_to_string(format!("/proc/{process}/comm")).is_ok_and(|comm| comm.starts_with(name));
    Ok(numbers.filter(is_named).collect())
}
