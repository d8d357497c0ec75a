//! New connections with and without a flood of SYNs.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddrV4;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::frames::{self, NOBODY};
use super::receiver::{self, RECEIVER, SENDER};
use super::route::Route;
use crate::bench::bars::{Ratios, median};
use crate::bench::network::Network;
use crate::bench::passthrough::load::flood::FLOODING;
use crate::bench::passthrough::ways::{Lane, Way};
use crate::bench::tools::Tools;
use crate::bench::usage::busy;

/// Connections at a time: as few as leave the processor time, and as many as leave it none.
pub const CLIENTS: [usize; 2] = [1, 16];

/// How often both are measured in a round, where there are bars, and elsewhere.
const TURNS: (u32, u32) = (12, 4);
/// How long the cost of a SYN is measured.
const COST_TIME: Duration = Duration::from_secs(2);

/// What a flood leaves to one route on one way, by round.
pub struct Flood {
    /// Which way.
    pub way: Way,
    /// Which route.
    pub route: Route,
    /// Connections at a time.
    pub clients: usize,
    sent: Vec<f64>,
    undisturbed: Vec<f64>,
    disturbed: Vec<f64>,
    costs: Vec<f64>,
    /// Connections that failed, in all rounds.
    pub failed: u64,
}

impl Flood {
    fn new(way: Way, route: Route, clients: usize) -> Flood {
        Flood { way, route, clients, sent: vec![], undisturbed: vec![], disturbed: vec![], costs: vec![], failed: 0 }
    }

    /// Measures a round.
    fn round(&mut self, tools: &Tools, network: &Network, lane: &Lane, twin: &Lane) -> Result<()> {
        let (mut sent, mut undisturbed, mut disturbed) = (0.0, 0.0, 0.0);
        let turns = if frames::are_made(lane) { TURNS.0 } else { TURNS.1 };
        for turn in 0..turns {
            // The first of a turn is the last of the one before.
            for is_flooded in [turn % 2 == 0, turn % 2 != 0] {
                if is_flooded {
                    let listener = self.route.listener(lane);
                    let connect = || {
                        receiver::wait_for_cookies(lane, listener.port())?;
                        self.route.connect(tools, network, lane, self.clients)
                    };
                    let flood = || flooded(tools, network, lane, listener, connect);
                    let (made, syns) = receiver::polled(network, lane, flood)?;
                    disturbed += made.0;
                    self.failed += made.1;
                    sent += syns;
                } else {
                    let connect = || self.route.connect(tools, network, twin, self.clients);
                    undisturbed += flooded(tools, network, twin, NOBODY, connect)?.0.0;
                }
            }
        }
        self.sent.push(sent / f64::from(turns));
        self.undisturbed.push(undisturbed / f64::from(turns));
        self.disturbed.push(disturbed / f64::from(turns));
        Ok(())
    }

    /// SYNs a second.
    pub fn sent(&self) -> f64 {
        median(self.sent.clone()).unwrap_or_default()
    }

    /// New connections a second while nobody is flooded.
    pub fn undisturbed(&self) -> f64 {
        median(self.undisturbed.clone()).unwrap_or_default()
    }

    /// The same in the flood.
    pub fn disturbed(&self) -> f64 {
        median(self.disturbed.clone()).unwrap_or_default()
    }

    /// Their ratios.
    pub fn kept(&self) -> Ratios {
        Ratios(self.disturbed.iter().zip(&self.undisturbed).map(|(in_flood, calm)| in_flood / calm).collect())
    }

    /// Time of the receiving processor for one SYN that XDP takes, in ns; `None` where it takes none, and but for one route.
    pub fn cost(&self) -> Option<f64> {
        median(self.costs.clone())
    }
}

/// Measures all ways, each with a twin that nobody floods. In a round both take turns, with pauses of some 100 ms: a machine whose
/// speed changes is as fast for one as for the other.
pub fn measure(tools: &Tools, network: &Network, pairs: &[(Lane, Lane)], rounds: usize) -> Result<Vec<Flood>> {
    // The routers and the backends run; the clients inherit it.
    receiver::bind_all()?;
    pairs.iter().flat_map(|(lane, twin)| [lane, twin]).try_for_each(|lane| receiver::prepare(network, lane))?;
    let of_pair = |(lane, _): &(Lane, Lane)| {
        let loads = Route::of(lane.way).iter().flat_map(|route| CLIENTS.map(|clients| (*route, clients)));
        loads.map(|(route, clients)| Flood::new(lane.way, route, clients)).collect()
    };
    let mut ways: Vec<Vec<Flood>> = pairs.iter().map(of_pair).collect();
    for ((_, twin), floods) in pairs.iter().zip(&ways) {
        let check = |flood: &Flood| receiver::check_place(|| flood.route.connect(tools, network, twin, flood.clients));
        floods.iter().try_for_each(check)?;
    }
    for round in 0..rounds {
        for ((lane, twin), floods) in pairs.iter().zip(&mut ways) {
            eprintln!("xtask: round {} of {rounds}: a flood, {}", round + 1, lane.way.name());
            floods.iter_mut().try_for_each(|flood| flood.round(tools, network, lane, twin))?;
            receiver::check_rest(twin)?;
            if let Some(first) = floods.first_mut() {
                first.costs.extend(cost(tools, network, lane)?);
            }
        }
    }
    Ok(ways.into_iter().flatten().collect())
}

/// Time of the receiving processor for one SYN of a flood without clients, in ns, by the SYNs that XDP takes; `None` where it
/// takes none.
fn cost(tools: &Tools, network: &Network, lane: &Lane) -> Result<Option<f64>> {
    if lane.taken()?.is_none() {
        return Ok(None);
    }
    let listener = lane.middle.listener();
    let counted = || anyhow::Ok((busy(RECEIVER)?, lane.taken()?.unwrap_or_default()));
    let alone = || {
        receiver::wait_for_cookies(lane, listener.port())?;
        let before = counted()?;
        thread::sleep(COST_TIME);
        Ok((before, counted()?))
    };
    let flood = || flooded(tools, network, lane, listener, alone);
    let ((before, after), _) = receiver::polled(network, lane, flood)?;
    ensure!(after.1 > before.1, "XDP has taken no SYN of a flood");
    Ok(Some((after.0 - before.0) * 1e9 / (after.1 - before.1) as f64))
}

/// Does something while SYNs are sent, from before it until after it; returns its result, and SYNs a second.
fn flooded<T>(
    tools: &Tools,
    network: &Network,
    lane: &Lane,
    to: SocketAddrV4,
    act: impl FnOnce() -> Result<T>,
) -> Result<(T, f64)> {
    let mut command = network.client.command(&tools.load)?;
    command.args(["load", "flood", "--to", &to.to_string(), "--processor", &SENDER.to_string()]);
    if let Some(interface) = frames::of_flood(lane) {
        command.args(["--through", &interface]);
    }
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
