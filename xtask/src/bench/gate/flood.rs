//! New connections with and without a flood of SYNs.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::bench::bars::{Ratios, median};
use crate::bench::network::Network;
use crate::bench::passthrough::groups::Measure;
use crate::bench::passthrough::load::flood::FLOODING;
use crate::bench::passthrough::load::hello::Hello;
use crate::bench::passthrough::load::protocol::Load;
use crate::bench::passthrough::ways::{Lane, Way};
use crate::bench::tools::Tools;
use crate::bench::usage::busy;
use crate::process;

/// The processor that receives, where the agent's threads are as well, and the one that sends.
const RECEIVER: usize = 0;
const SENDER: usize = 1;
/// Milliseconds of one measurement.
const TIME: u32 = 2000;
/// Where SYNs go that disturb nobody.
const NOBODY: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 1), 443);

/// What a flood leaves on one way.
pub struct Flood {
    /// Which.
    pub way: Way,
    /// SYNs a second.
    pub sent: f64,
    /// New connections a second while nobody is flooded.
    pub undisturbed: f64,
    /// The same in the flood.
    pub disturbed: f64,
    /// Their ratios, by round.
    pub kept: Ratios,
    /// Connections that failed.
    pub failed: u64,
    /// Time of the receiving processor for one SYN that the gate drops, in ns; `None` without a gate.
    pub cost: Option<f64>,
}

/// Measures one way.
pub fn measure(tools: &Tools, network: &Network, lane: &Lane, rounds: usize) -> Result<Flood> {
    prepare(network, lane)?;
    let listener = lane.middle.listener();
    let clients = Measure { load: Load::Connect, connections: 16, hello: Hello::One };
    let (mut undisturbed, mut disturbed, mut sent, mut costs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut failed = 0;
    for round in 0..rounds {
        eprintln!("xtask: round {} of {rounds}: a flood, {}", round + 1, lane.way.name());
        let connect = || lane.carry(tools, network, clients, TIME);
        let (calm, _) = flooded(tools, network, NOBODY, connect)?;
        undisturbed.push(calm.rate());
        let (made, rate) = flooded(tools, network, listener, connect)?;
        disturbed.push(made.rate());
        failed += made.errors;
        sent.push(rate);
        costs.extend(cost(tools, network, lane)?);
    }
    Ok(Flood {
        way: lane.way,
        kept: ratios(&disturbed, &undisturbed),
        sent: median(sent).unwrap_or_default(),
        undisturbed: median(undisturbed).unwrap_or_default(),
        disturbed: median(disturbed).unwrap_or_default(),
        failed,
        cost: median(costs),
    })
}

/// Time of the receiving processor for one SYN of a flood without clients, in ns, by the packets that the gate drops; `None`
/// without a gate.
fn cost(tools: &Tools, network: &Network, lane: &Lane) -> Result<Option<f64>> {
    if lane.denied()?.is_none() {
        return Ok(None);
    }
    let counted = || anyhow::Ok((busy(RECEIVER)?, lane.denied()?.unwrap_or_default()));
    let alone = || {
        let before = counted()?;
        thread::sleep(Duration::from_millis(TIME.into()));
        Ok((before, counted()?))
    };
    let ((before, after), _) = flooded(tools, network, lane.middle.listener(), alone)?;
    ensure!(after.1 > before.1, "the gate has dropped no SYN of a flood");
    Ok(Some((after.0 - before.0) * 1e9 / (after.1 - before.1) as f64))
}

/// Binds the router to the receiving processor, with what arrives from the client, and gives the flood's sources and its other
/// destination a route.
fn prepare(network: &Network, lane: &Lane) -> Result<()> {
    let link = "ip link add sink type veth peer name drain; ip link set drain up; ip link set sink up";
    network.client.shell(&format!("ip link show sink >/dev/null 2>&1 || {{ {link}; }}"))?;
    network.client.ip("route replace 198.51.100.0/24 dev sink")?;
    network.client.ip("neigh replace 198.51.100.1 lladdr 02:00:00:00:00:01 dev sink nud permanent")?;
    let client = lane.middle.clients()[0];
    lane.middle.netns.ip(&format!("route replace 198.18.0.0/15 via {client}"))?;
    let device = "/sys/class/net/client";
    lane.middle.netns.shell(&format!("printf %x {} > {device}/queues/rx-0/rps_cpus", 1 << RECEIVER))?;
    if lane.way == Way::GateNative {
        lane.middle.netns.shell(&format!("echo 1 > {device}/threaded"))?;
        let polling = processes_of("napi/client")?;
        ensure!(!polling.is_empty(), "the interface has no NAPI thread");
        for thread in polling {
            bind(thread)?;
            // It precedes tasks, as the softirq does that receives for a network card.
            process::run(Command::new("chrt").args(["--fifo", "--pid", "1", &thread.to_string()]))?;
        }
    }
    for process in lane.processes()? {
        for task in fs::read_dir(format!("/proc/{process}/task"))? {
            bind(task?.file_name().to_string_lossy().parse()?)?;
        }
    }
    Ok(())
}

/// Binds a thread to the receiving processor.
fn bind(task: i32) -> Result<()> {
    let mut processors = CpuSet::new();
    processors.set(RECEIVER);
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

/// Does something while SYNs are sent, from before it until after it; returns its result, and SYNs a second.
fn flooded<T>(tools: &Tools, network: &Network, to: SocketAddrV4, act: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
    let mut command = network.client.command(&tools.load)?;
    command.args(["load", "flood", "--to", &to.to_string(), "--processor", &SENDER.to_string()]);
    let mut flood =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("the load tool cannot be run")?;
    let mut printed = BufReader::new(flood.stdout.take().context("stdout is piped")?);
    let mut line = String::new();
    printed.read_line(&mut line)?;
    ensure!(line.trim() == FLOODING, "the flood printed {line:?}");
    let result = act();
    drop(flood.stdin.take());
    let mut rest = String::new();
    printed.read_to_string(&mut rest)?;
    ensure!(flood.wait()?.success(), "the flood failed");
    let numbers: Vec<f64> = rest.split_whitespace().map(str::parse).collect::<Result<_, _>>().context("numbers")?;
    let [sent, nanoseconds] = numbers[..] else { anyhow::bail!("the flood printed {rest:?}") };
    Ok((result?, sent / nanoseconds * 1e9))
}

/// The ratios of two series.
fn ratios(own: &[f64], other: &[f64]) -> Ratios {
    Ratios(own.iter().zip(other).map(|(own, other)| own / other).collect())
}
