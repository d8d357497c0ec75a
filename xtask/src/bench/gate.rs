//! `bench gate`: what the XDP gate costs when nothing happens, and how many new connections come about while one processor
//! sends SYNs from denied sources.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;

use self::flood::Flood;
use super::bars::{self, Bar};
use super::document::{self, machine};
use super::network::Network;
use super::passthrough::backends;
use super::passthrough::groups::GROUPS;
use super::passthrough::measure::{Column, Plan, rounds};
use super::passthrough::ways::{Lane, Way};
use super::tools::Tools;
use crate::process;

mod flood;

/// Arguments of `bench gate`.
#[derive(Clone, Args)]
pub struct Arguments {
    /// Rounds, of which the middle one counts.
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Nothing is written.
    #[arg(long)]
    dry: bool,
}

/// The ways: the first is what the others are compared with.
const WAYS: [Way; 3] = [Way::Kernel, Way::GateGeneric, Way::GateNative];
/// Groups of `bench passthrough` that are measured.
const MEASURED: [&str; 4] = ["bulk-down", "bulk-up", "round-trips", "new-connections"];
/// Least share of the undisturbed new connections that comes about in the flood.
const KEPT: f64 = 0.8;

/// Measures, prints, writes docs/benchmarks.md, and fails when a bar is missed.
pub fn run(root: &Path, arguments: &Arguments) -> Result<()> {
    ensure!(process::is_root(), "the benchmark makes network namespaces and attaches XDP programs: run it with sudo");
    let tools = Tools::new(root)?;
    let network = Network::new()?;
    let _backends = backends(&tools, &network)?;
    let lanes = WAYS.map(|way| Lane::open(&tools, &network, way));
    let lanes = lanes.into_iter().collect::<Result<Vec<_>>>()?;
    let plan = Plan { rounds: arguments.rounds.into(), parts: 5, milliseconds: 100, pause: Duration::from_secs(12) };
    let columns = rounds(&tools, &network, &lanes, |group| MEASURED.contains(&group.id), plan)?;
    let floods = lanes.iter().map(|lane| flood::measure(&tools, &network, lane, plan.rounds));
    let floods = floods.collect::<Result<Vec<_>>>()?;
    let (text, bars) = text(&tools, &columns, &floods)?;
    println!("{text}");
    if arguments.dry {
        return Ok(());
    }
    document::write_section(root, "Gate", &text)?;
    let missed: Vec<_> = bars.iter().filter(|bar| !bar.figure.as_ref().is_some_and(|(_, met)| *met)).collect();
    ensure!(
        missed.is_empty(),
        "bars missed: {}",
        missed.iter().map(|bar| bar.what.as_str()).collect::<Vec<_>>().join("; ")
    );
    Ok(())
}

fn text(tools: &Tools, columns: &[Column], floods: &[Flood]) -> Result<(String, Vec<Bar>)> {
    let mut text = format!(
        "`cargo xtask bench gate`, on {}, of {}. Network, load and rounds are those of `bench passthrough`; the gate has a
policy that concerns no client, and `Sluice kernel` has none, as by default. In parentheses the median of the ratios to it in the
same round.

| connections at a time |{}
|---|{}
",
        machine()?,
        tools.build,
        columns.iter().map(|column| format!(" {} |", column.way.name())).collect::<String>(),
        "---|".repeat(columns.len()),
    );
    let first = columns.first().context("a way was measured")?;
    let measured = GROUPS.iter().enumerate().filter(|(_, group)| MEASURED.contains(&group.id));
    for (at, group) in measured {
        for (place, connections) in group.connections.iter().enumerate() {
            text.push_str(&format!("| {}, {connections} ({}) |", group.title, group.unit));
            for column in columns {
                let rate = column.rate(at, place).map(|rate| rate / group.scale);
                let ratio = column.ratios(first, at, place).median().filter(|_| column.way != first.way);
                text.push_str(&match (rate, ratio) {
                    (Some(rate), Some(ratio)) => format!(" {rate:.1} ({ratio:.2}) |"),
                    (Some(rate), None) => format!(" {rate:.1} |"),
                    (None, _) => " failed |".to_owned(),
                });
            }
            text.push('\n');
        }
    }
    text.push_str(
        "
One processor sends SYNs of 131,072 denied sources to the listener; another one receives them, where the agent works as well: by
receive packet steering, with the gate in native mode in the interface's NAPI thread, which precedes tasks. Sixteen clients make new connections to a
passthrough route meanwhile; undisturbed, the same processor sends the same to an interface of its own. The cost of a SYN is the
time of the receiving processor in a flood without clients, by the packets that the gate counts as `source-denied` in it.

| way | SYNs/s sent | new connections/s undisturbed | in the flood | kept | failed | ns for a SYN | SYNs/s that saturate a processor |
|---|---|---|---|---|---|---|---|
",
    );
    for flood in floods {
        let kept = flood.kept.median().map_or("–".to_owned(), |kept| format!("{kept:.2}"));
        let cost = flood.cost.map_or(("–".to_owned(), "–".to_owned()), |cost| {
            (format!("{cost:.0}"), format!("{:.2} million", 1e3 / cost))
        });
        text.push_str(&format!(
            "| {} | {:.0} | {:.0} | {:.0} | {kept} | {} | {} | {} |\n",
            flood.way.name(),
            flood.sent,
            flood.undisturbed,
            flood.disturbed,
            flood.failed,
            cost.0,
            cost.1
        ));
    }
    let native = floods.iter().find(|flood| flood.way == Way::GateNative);
    let bars = vec![
        Bar {
            what: "native: share of new connections that a flood leaves".to_owned(),
            promised: format!("≥ {KEPT:.2}"),
            figure: native.and_then(|native| native.kept.judged(|kept| kept >= KEPT)),
        },
        Bar {
            what: "native: connections that failed in a flood".to_owned(),
            promised: "0".to_owned(),
            figure: native.map(|native| (native.failed.to_string(), native.failed == 0)),
        },
    ];
    bars::write(&mut text, &bars)?;
    Ok((text, bars))
}
