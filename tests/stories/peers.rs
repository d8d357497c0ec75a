//! Packets for a pod on the router's host bypass the router's end of the veth pair, unless something attached there
//! handles outgoing packets.

use std::fs;

use anyhow::{Context, Result, ensure};
use router_common::maps::names;
use rustix::net::netdevice::name_to_index;
use rustix::process::Signal;
use socket2::{Domain, Socket, Type};
use tests::command;
use tests::netns::Netns;
use tests::sluice::DataPath;
use tests::steering::{Family, HOST, Setup, Stage};
use tests::stream::{self, Pair};
use tests::wait::{self, PATIENCE};
use tests::watcher::{self, Hook};

/// Both links of the stage: to the client, to the backend.
const LINKS: [&str; 2] = ["front", "back"];
/// Questions of one measurement; each question and each response is a packet.
const QUESTIONS: u64 = 20;

#[test]
fn packets_go_straight_to_the_other_ends() -> Result<()> {
    let stage = stage(&[])?;
    opened(&stage, &LINKS)?;
    let pair = connect(&stage)?;
    go(&stage, &pair, Way::Straight)?;
    // The status reports it, and every byte arrives: in one write and in many.
    let shown = stage.sluice.get("status")?;
    ensure!(shown["dataPath"]["peerRedirect"] == serde_json::json!(["back", "front"]), "{shown}");
    pair.exchange(1, 3_000_000, 3_000_000)?;
    for seed in 2..40 {
        connect(&stage)?.exchange(seed, 100_000, 100_000)?;
    }
    stage.carried(39)
}

#[test]
fn where_it_is_not_wanted_packets_leave_by_their_interface() -> Result<()> {
    let stage = stage(&["--peer-redirect", "never"])?;
    let pair = connect(&stage)?;
    go(&stage, &pair, Way::ByInterface)?;
    ensure!(leases(&stage)?.is_empty(), "{:?}", leases(&stage)?);
    pair.exchange(1, 300_000, 300_000)
}

/// A pair with both ends in one namespace has no end to redirect to.
#[test]
fn on_the_loopback_nothing_is_skipped() -> Result<()> {
    let stage = Stage::loopback(DataPath::Kernel, Family::V4)?;
    stream::connect(&stage.client, stage.address, &stage.listener, HOST)?.exchange(1, 300_000, 300_000)?;
    ensure!(leases(&stage)?.is_empty(), "{:?}", leases(&stage)?);
    Ok(())
}

#[test]
fn a_queueing_discipline_sees_all_packets() -> Result<()> {
    watched("back", |stage| {
        let shaper = ["root", "tbf", "rate", "10gbit", "burst", "10mb", "latency", "100ms"];
        tc(&stage.router, &["qdisc", "add", "dev", "back"], &shaper)?;
        Ok(Box::new(|stage| tc(&stage.router, &["qdisc", "del", "dev", "back"], &["root"])))
    })
}

#[test]
fn a_filter_sees_all_packets() -> Result<()> {
    watched("front", |stage| {
        tc(&stage.router, &["qdisc", "add", "dev", "front"], &["clsact"])?;
        let all = ["protocol", "ip", "u32", "match", "u32", "0", "0", "flowid", "1:1"];
        tc(&stage.router, &["filter", "add", "dev", "front", "egress"], &all)?;
        Ok(Box::new(|stage| tc(&stage.router, &["filter", "del", "dev", "front"], &["egress"])))
    })
}

#[test]
fn another_program_sees_all_packets() -> Result<()> {
    watched("back", |stage| {
        let link = stage.router.run(|| watcher::attach(Hook::TcxEgress, index("back")?))?;
        Ok(until_dropped(link))
    })
}

/// The rules of the chain do not matter: no interface is bypassed.
#[test]
fn a_chain_of_nftables_sees_all_packets() -> Result<()> {
    watched_as("back", Way::ByInterface, |stage| {
        let table = stage.router.run(|| watcher::chain("back"))?;
        Ok(until_dropped(table))
    })
}

#[test]
fn a_pods_xdp_program_sees_all_packets() -> Result<()> {
    watched("back", |stage| {
        let link = stage.backend.run(|| watcher::attach(Hook::Xdp, index("eth0")?))?;
        Ok(until_dropped(link))
    })
}

/// A pod with a packet socket may need frames as on a wire.
#[test]
fn an_interface_without_offloads_cuts_and_sums_up_all_packets() -> Result<()> {
    watched("back", |stage| {
        stage.router.without_offloads("back")?;
        let on = ["-K", "back", "tx", "on", "sg", "on", "tso", "on", "gso", "on"];
        Ok(Box::new(move |stage| command::output(stage.router.command("ethtool")?.args(on)).map(drop)))
    })
}

/// Connections without a monitoring agent end by themselves.
#[test]
fn without_an_agent_packets_leave_by_their_interface_soon() -> Result<()> {
    let stage = stage(&[])?;
    opened(&stage, &LINKS)?;
    let pair = connect(&stage)?;
    go(&stage, &pair, Way::Straight)?;
    stage.sluice.signal(Signal::KILL)?;
    go(&stage, &pair, Way::ByInterface)?;
    pair.exchange(1, 300_000, 300_000)
}

type Undo<'s> = Box<dyn FnOnce(&Stage) -> Result<()> + 's>;

/// An observer that is removed by dropping a value.
fn until_dropped(held: impl Sized + 'static) -> Undo<'static> {
    Box::new(move |_| {
        drop(held);
        Ok(())
    })
}

/// A connection survives when an observer of outgoing packets is attached to an interface, and when it is removed.
fn watched(interface: &str, come: impl FnOnce(&Stage) -> Result<Undo<'static>>) -> Result<()> {
    watched_as(interface, Way::By(interface), come)
}

/// The same; the expected way of the packets is `way`.
fn watched_as(interface: &str, way: Way, come: impl FnOnce(&Stage) -> Result<Undo<'static>>) -> Result<()> {
    let stage = stage(&[])?;
    opened(&stage, &LINKS)?;
    let pair = connect(&stage)?;
    go(&stage, &pair, Way::Straight)?;
    let leave = come(&stage)?;
    closed(&stage, interface)?;
    go(&stage, &pair, way)?;
    leave(&stage)?;
    opened(&stage, &LINKS)?;
    go(&stage, &pair, Way::Straight)?;
    pair.exchange(1, 300_000, 300_000)
}

fn stage(arguments: &[&str]) -> Result<Stage> {
    let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    Stage::new(DataPath::Kernel, Setup { arguments, ..Setup::new(Family::V4) })
}

fn connect(stage: &Stage) -> Result<Pair> {
    let pair = stream::connect(&stage.client, stage.address, &stage.listener, HOST)?;
    stage.check(&pair)?;
    Ok(pair)
}

/// Indices of the interfaces that may be bypassed now.
fn leases(stage: &Stage) -> Result<Vec<u64>> {
    let dump = stage.sluice.dump(names::PEERS)?;
    let rows = dump.as_array().context("a list")?.iter().filter(|row| row["stands"] == true);
    rows.map(|row| row["interface"].as_u64().context("an interface")).collect()
}

fn opened(stage: &Stage, interfaces: &[&str]) -> Result<()> {
    let indices = indices(stage, interfaces)?;
    let has_all = || leases(stage).is_ok_and(|leases| indices.iter().all(|index| leases.contains(index)));
    wait::wait_until("interfaces may be skipped", PATIENCE, has_all).map(drop)
}

fn closed(stage: &Stage, interface: &str) -> Result<()> {
    let indices = indices(stage, &[interface])?;
    let has_none = || leases(stage).is_ok_and(|leases| !indices.iter().any(|index| leases.contains(index)));
    wait::wait_until("the interface may not be skipped", PATIENCE, has_none).map(drop)
}

fn indices(stage: &Stage, interfaces: &[&str]) -> Result<Vec<u64>> {
    stage.router.run(|| interfaces.iter().map(|name| index(name).map(u64::from)).collect())
}

/// Way of a connection's packets.
#[derive(Clone, Copy)]
enum Way<'a> {
    /// No packet leaves through an interface of the router, except those of the stack itself.
    Straight,
    /// All leave through both.
    ByInterface,
    /// All leave through this one, and none through the other.
    By(&'a str),
}

/// Waits until a live connection's packets take a way: the programs check a few times per second.
fn go(stage: &Stage, pair: &Pair, way: Way) -> Result<()> {
    let mut seen = Ok([0; 2]);
    let as_wanted = || {
        seen = questions(stage, pair);
        let Ok(seen) = &seen else { return true };
        LINKS.iter().zip(seen).all(|(link, seen)| match way {
            Way::Straight => *seen < QUESTIONS / 2,
            Way::ByInterface => *seen >= QUESTIONS,
            Way::By(watched) if watched == *link => *seen >= QUESTIONS,
            Way::By(_) => *seen < QUESTIONS / 2,
        })
    };
    let waited = wait::wait_until("packets go as they should", PATIENCE, as_wanted);
    let seen = seen?;
    waited.with_context(|| format!("of {QUESTIONS} questions and answers {seen:?} left by {LINKS:?}")).map(drop)
}

/// Sends this many questions; returns the number of packets that left through each link meanwhile.
fn questions(stage: &Stage, pair: &Pair) -> Result<[u64; 2]> {
    let now = || Ok([sent(&stage.router, LINKS[0])?, sent(&stage.router, LINKS[1])?]);
    let before: Result<_> = now();
    let [front, back] = before?;
    (0..QUESTIONS).try_for_each(|_| pair.greet())?;
    let after: Result<_> = now();
    let [front_now, back_now] = after?;
    Ok([front_now - front, back_now - back])
}

/// Number of packets sent by an interface.
fn sent(netns: &Netns, interface: &str) -> Result<u64> {
    let table = netns.run(|| Ok(fs::read_to_string("/proc/thread-self/net/dev")?))?;
    let line = table.lines().find_map(|line| line.trim().strip_prefix(interface)?.strip_prefix(':'));
    // Eight columns of received counters, then bytes and packets sent.
    let column = line.and_then(|line| line.split_whitespace().nth(9));
    column.with_context(|| format!("{interface}: {table}"))?.parse().context("packets that left")
}

/// The index of an interface of this thread's network namespace.
fn index(interface: &str) -> Result<u32> {
    let any = Socket::new(Domain::UNIX, Type::DGRAM, None)?;
    name_to_index(&any, interface).with_context(|| format!("the interface {interface}"))
}

fn tc(netns: &Netns, what: &[&str], how: &[&str]) -> Result<()> {
    command::output(netns.command("tc")?.args(what).args(how)).map(drop)
}
