//! What is measured, and in which order.

use std::thread;
use std::time::Duration;

use anyhow::Result;

use super::load::Outcome;
use super::ways::{Hosts, Lane, Way};
use super::{tools, turns};
use crate::bench::bars::{Ratios, median};
use crate::bench::network::Network;
use crate::bench::order::order;
use crate::bench::tools::Tools;
use crate::bench::usage::{self, Processor};

/// Bytes of a large body.
pub const BODY: usize = 64 * 1024;

/// What a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// HTTP/1.1 requests on connections that stay.
    Requests {
        /// Over TLS.
        tls: bool,
        /// Method.
        method: &'static str,
        /// Path.
        path: &'static str,
        /// Bytes of the request's body.
        body: usize,
    },
    /// A full TLS handshake and one request on each connection.
    Handshakes,
    /// HTTP/2 over TLS, this many requests at a time on each connection.
    Streams(u32),
    /// WebSocket messages there and back.
    Messages,
}

/// One row of the tables.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// For `--only`.
    pub id: &'static str,
    /// In tables.
    pub title: &'static str,
    /// What is counted.
    pub unit: &'static str,
    /// What a client does.
    pub kind: Kind,
    /// At a time.
    pub connections: usize,
    /// Whether it is measured with many hosts as well.
    pub many: bool,
    /// Least ratio of Sluice's rate to the best peer's.
    pub bar: Option<f64>,
    /// Whether Sluice's 99th percentile must be no greater than that peer's.
    pub tail: bool,
}

impl Measure {
    /// Whether its rate is measured once more, over all ways in [`turns`]: those of wrk's that have bars.
    pub fn is_in_turns(&self) -> bool {
        self.bar.is_some() && matches!(self.kind, Kind::Requests { .. })
    }
}

const SMALL: Kind = Kind::Requests { tls: false, method: "GET", path: "/", body: 0 };

/// All of them.
pub const MEASURES: [Measure; 7] = [
    Measure {
        id: "cleartext",
        title: "clear text, keep-alive",
        unit: "requests",
        kind: SMALL,
        connections: 64,
        many: true,
        bar: Some(0.95),
        tail: true,
    },
    Measure {
        id: "tls",
        title: "TLS, keep-alive",
        unit: "requests",
        kind: Kind::Requests { tls: true, method: "GET", path: "/", body: 0 },
        connections: 64,
        many: true,
        bar: Some(1.0),
        tail: true,
    },
    Measure {
        id: "handshakes",
        title: "TLS, new connections",
        unit: "connections",
        kind: Kind::Handshakes,
        connections: 16,
        many: true,
        bar: Some(1.15),
        tail: false,
    },
    Measure {
        id: "h2",
        title: "HTTP/2, 8 streams",
        unit: "requests",
        kind: Kind::Streams(8),
        connections: 16,
        many: true,
        bar: Some(0.9),
        tail: false,
    },
    Measure {
        id: "download",
        title: "64 KiB down",
        unit: "requests",
        kind: Kind::Requests { tls: false, method: "GET", path: "/64k", body: 0 },
        connections: 16,
        many: false,
        bar: None,
        tail: false,
    },
    Measure {
        id: "upload",
        title: "64 KiB up",
        unit: "requests",
        kind: Kind::Requests { tls: false, method: "POST", path: "/own/upload", body: BODY },
        connections: 16,
        many: false,
        bar: None,
        tail: false,
    },
    Measure {
        id: "websocket",
        title: "WebSocket echo",
        unit: "messages",
        kind: Kind::Messages,
        connections: 64,
        many: false,
        bar: None,
        tail: false,
    },
];

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// What the client did.
    pub outcome: Outcome,
    /// Of the router's processes, and of the machine.
    pub processor: Processor,
    /// Seconds of processor time of the client.
    pub load: f64,
}

impl Figure {
    /// Part of the machine's work that was the client's.
    pub fn share_of_load(&self) -> f64 {
        self.load / self.processor.busy
    }

    /// The same with the times of single requests from another figure, and with what failed there.
    fn with_times_of(mut self, other: &Figure) -> Figure {
        (self.outcome.p50, self.outcome.p99) = (other.outcome.p50, other.outcome.p99);
        self.outcome.errors += other.outcome.errors;
        self
    }

    /// Microseconds of the router's processes, in user mode and in the kernel, for each unit.
    pub fn each(&self) -> [f64; 2] {
        [self.processor.user, self.processor.system].map(|seconds| seconds * 1e6 / self.outcome.units as f64)
    }
}

/// Everything on one way.
pub struct Column {
    /// Which.
    pub way: Way,
    /// By measure and round; `None` where it failed or was not to be measured.
    pub figures: [Vec<Option<Figure>>; MEASURES.len()],
}

impl Column {
    /// Nothing yet.
    pub fn new(way: Way) -> Column {
        Column { way, figures: Default::default() }
    }

    /// The middle of the rounds of what is read off a figure.
    pub fn middle(&self, measure: usize, read: impl Fn(&Figure) -> f64) -> Option<f64> {
        median(self.figures[measure].iter().flatten().map(read).collect())
    }

    /// What is read off its figures by what is read off another way's in the same round.
    pub fn ratios(&self, to: &Column, measure: usize, read: impl Fn(&Figure) -> f64) -> Ratios {
        let pairs = self.figures[measure].iter().zip(&to.figures[measure]);
        Ratios(pairs.filter_map(|(own, other)| Some(read(own.as_ref()?) / read(other.as_ref()?))).collect())
    }

    /// Requests and connections that failed.
    pub fn errors(&self) -> u64 {
        self.figures.iter().flatten().flatten().map(|figure| figure.outcome.errors).sum()
    }
}

/// How often and how long.
#[derive(Clone, Copy)]
pub struct Plan {
    /// Rounds.
    pub rounds: usize,
    /// Milliseconds of one measurement.
    pub milliseconds: u64,
    /// Before each measurement, for what the last one left: connections that close.
    pub pause: Duration,
}

/// Runs all rounds. Within one, every measure goes over all ways before the next, in an [`order`] of its own.
pub fn rounds(
    tools: &Tools,
    network: &Network,
    lanes: &[Lane],
    chosen: impl Fn(&Measure) -> bool,
    plan: Plan,
) -> Result<Vec<Column>> {
    let mut columns: Vec<Column> = lanes.iter().map(|lane| Column::new(lane.way)).collect();
    let mut turn = 0;
    for round in 0..plan.rounds {
        for (place, measure) in MEASURES.iter().enumerate().filter(|(_, measure)| chosen(measure)) {
            eprintln!("xtask: round {} of {}: {}", round + 1, plan.rounds, measure.title);
            let mut figures = vec![None; lanes.len()];
            for index in order(round, turn, lanes.len()) {
                let lane = &lanes[index];
                if measure.many || lane.way.hosts == Hosts::One {
                    figures[index] = one(tools, network, lane, measure, plan)?;
                }
            }
            turn += 1;
            if measure.is_in_turns() {
                let in_turns = turns::carry(network, lanes, measure, round)?;
                figures = figures
                    .into_iter()
                    .zip(in_turns)
                    .map(|(whole, turns)| Some(turns?.with_times_of(&whole?)))
                    .collect();
            }
            columns.iter_mut().zip(figures).for_each(|(column, figure)| column.figures[place].push(figure));
        }
    }
    Ok(columns)
}

fn one(tools: &Tools, network: &Network, lane: &Lane, measure: &Measure, plan: Plan) -> Result<Option<Figure>> {
    thread::sleep(plan.pause);
    let processes = lane.processes()?;
    let (before, load_before) = (Processor::of(&processes)?, usage::ended_children()?);
    let outcome = match tools::carry(tools, network, lane, measure, plan.milliseconds) {
        Ok(outcome) => outcome,
        Err(error) => {
            eprintln!("xtask: {} on the way {}: {error:#}", measure.title, lane.way.name());
            return Ok(None);
        }
    };
    let figure = Figure {
        outcome,
        processor: Processor::of(&processes)? - before,
        load: usage::ended_children()? - load_before,
    };
    eprintln!(
        "xtask:   {}: {:.0}/s, p99 {:.2} ms, {} failed",
        lane.way.name(),
        outcome.rate(),
        outcome.p99.as_secs_f64() * 1000.0,
        outcome.errors
    );
    Ok(Some(figure))
}

#[cfg(test)]
mod tests {
    use super::super::ways::Router;
    use super::*;

    #[test]
    fn ratios_are_of_the_same_round() {
        let figure = |units| {
            let outcome = Outcome { units, elapsed: Duration::from_secs(1), ..Outcome::default() };
            Some(Figure { outcome, processor: Processor::default(), load: 0.0 })
        };
        let mut peer = Column::new(Way { router: Router::Sluice, hosts: Hosts::One });
        let mut own = Column::new(Way { router: Router::Sluice, hosts: Hosts::Many });
        peer.figures[0] = vec![figure(100), figure(50), figure(80)];
        own.figures[0] = vec![figure(50), figure(25), None];
        let rate = |figure: &Figure| figure.outcome.rate();
        assert_eq!(own.ratios(&peer, 0, rate).median(), Some(0.5));
        assert_eq!(own.ratios(&peer, 0, rate).range(), (0.5, 0.5));
        assert_eq!(peer.middle(0, rate), Some(80.0));
        assert_eq!(own.middle(1, rate), None, "nothing was measured");
    }
}
