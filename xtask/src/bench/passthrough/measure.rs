//! The rounds of measurements, and their figures.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::groups::{GROUPS, Group, Measure};
use super::load::client::Amount;
use super::load::protocol::Load;
use super::ways::{Lane, Way};
use crate::bench::bars::{Ratios, median};
use crate::bench::network::Network;
use crate::bench::order::order;
use crate::bench::tools::Tools;
use crate::bench::usage::Processor;

/// Everything on one way.
pub struct Column {
    /// Which.
    pub way: Way,
    /// Rates by group, measure and round, in units a second; `None` where it failed.
    pub rates: [[Vec<Option<f64>>; 3]; 5],
    /// Processor time while bulk data was carried.
    pub bulk: Processor,
    /// How many bytes.
    pub bulk_bytes: u64,
    /// In which time.
    pub bulk_time: Duration,
    /// Processor time of the idle router.
    pub rest: Processor,
    /// In which time.
    pub rest_time: Duration,
    /// Processor time while connections were made.
    pub making: Processor,
    /// How many.
    pub made: u64,
    /// Connections of all measures.
    pub connections: u64,
    /// Connections that failed.
    pub errors: u64,
    /// Longest connection from `connect` to FIN.
    pub slowest: Duration,
}

impl Column {
    fn new(way: Way) -> Column {
        Column {
            way,
            rates: Default::default(),
            bulk: Processor::default(),
            bulk_bytes: 0,
            bulk_time: Duration::ZERO,
            rest: Processor::default(),
            rest_time: Duration::ZERO,
            making: Processor::default(),
            made: 0,
            connections: 0,
            errors: 0,
            slowest: Duration::ZERO,
        }
    }

    /// Whether a group was measured at all.
    pub fn has(&self, group: usize) -> bool {
        self.rates[group].iter().any(|rates| !rates.is_empty())
    }

    /// The middle of the rounds.
    pub fn rate(&self, group: usize, measure: usize) -> Option<f64> {
        median(self.rates[group][measure].iter().copied().flatten().collect())
    }

    /// Seconds in user mode for each GB of bulk data: in total, and what the idle router would have used.
    pub fn user_for_bulk(&self) -> Option<(f64, f64)> {
        let gigabytes = self.bulk_bytes as f64 / 1e9;
        let at_rest = self.rest.user * self.bulk_time.as_secs_f64() / self.rest_time.as_secs_f64();
        (gigabytes > 0.0 && at_rest.is_finite()).then(|| (self.bulk.user / gigabytes, at_rest / gigabytes))
    }

    /// Its rates by another way's in the same round.
    pub fn ratios(&self, to: &Column, group: usize, measure: usize) -> Ratios {
        let pairs = self.rates[group][measure].iter().zip(&to.rates[group][measure]);
        Ratios(pairs.filter_map(|(own, other)| Some((*own)? / (*other)?)).collect())
    }
}

/// How long, and how often.
#[derive(Clone, Copy)]
pub struct Plan {
    /// How often.
    pub rounds: usize,
    /// Of one measurement. The ways take turns with them, so that all have the same time of a machine that others share.
    pub parts: u32,
    /// Of one part.
    pub milliseconds: u32,
    /// Before each round.
    pub pause: Duration,
}

/// Runs all rounds of the groups that are chosen. Within one, every part of a measure goes over all ways before the next,
/// in an [`order`] of its own.
pub fn rounds(
    tools: &Tools,
    network: &Network,
    lanes: &[Lane],
    chosen: impl Fn(&Group) -> bool,
    plan: Plan,
) -> Result<Vec<Column>> {
    let Plan { rounds, parts, milliseconds, pause } = plan;
    let mut columns: Vec<Column> = lanes.iter().map(|lane| Column::new(lane.way)).collect();
    if GROUPS.iter().any(|group| chosen(group) && group.is_bulk()) {
        idle(lanes, plan, &mut columns)?;
    }
    let mut turn = 0;
    for round in 0..rounds {
        if !pause.is_zero() {
            eprintln!("xtask: round {} of {rounds} begins in {} s", round + 1, pause.as_secs());
            thread::sleep(pause);
        }
        for (at, group) in GROUPS.into_iter().enumerate().filter(|(_, group)| chosen(group)) {
            eprintln!("xtask: round {} of {rounds}: {}", round + 1, group.title);
            for (place, measure) in group.measures().into_iter().enumerate() {
                let mut sums = vec![Some(Amount::default()); lanes.len()];
                for _ in 0..parts {
                    for index in order(round, turn, lanes.len()) {
                        let part = one(tools, network, &lanes[index], measure, milliseconds, &mut columns[index])?;
                        sums[index] = sums[index].zip(part).map(|(sum, part)| sum.then(part));
                    }
                    turn += 1;
                }
                for (column, sum) in columns.iter_mut().zip(sums) {
                    column.rates[at][place].push(sum.as_ref().map(Amount::rate));
                }
            }
        }
    }
    Ok(columns)
}

/// Processor time of idle routers, for as long as bulk data is carried in all rounds.
fn idle(lanes: &[Lane], plan: Plan, columns: &mut [Column]) -> Result<()> {
    let bulk: usize = GROUPS.iter().filter(|group| group.is_bulk()).map(|group| group.connections.len()).sum();
    let time = Duration::from_millis(u64::from(plan.milliseconds * plan.parts)) * u32::try_from(plan.rounds * bulk)?;
    thread::sleep(plan.pause);
    eprintln!("xtask: {} s at rest", time.as_secs());
    let begin = Instant::now();
    let processes = lanes.iter().map(Lane::processes).collect::<Result<Vec<_>>>()?;
    let before = processes.iter().map(|of| Processor::of(of)).collect::<Result<Vec<_>>>()?;
    thread::sleep(time);
    for ((column, of), before) in columns.iter_mut().zip(&processes).zip(before) {
        (column.rest, column.rest_time) = (Processor::of(of)? - before, begin.elapsed());
    }
    Ok(())
}

fn one(
    tools: &Tools,
    network: &Network,
    lane: &Lane,
    measure: Measure,
    milliseconds: u32,
    column: &mut Column,
) -> Result<Option<Amount>> {
    let processes = lane.processes()?;
    let (before, begin) = (Processor::of(&processes)?, Instant::now());
    let outcome = match lane.carry(tools, network, measure, milliseconds) {
        Ok(outcome) => outcome,
        Err(error) => {
            eprintln!(
                "xtask: {} with {} connections on the way {}: {error:#}",
                measure.load.name(),
                measure.connections,
                lane.way.name()
            );
            column.errors += 1;
            return Ok(None);
        }
    };
    let used = Processor::of(&processes)? - before;
    column.connections += outcome.connections;
    column.errors += outcome.errors;
    match measure.load {
        Load::Down | Load::Up => {
            column.bulk += used;
            column.bulk_time += begin.elapsed();
            column.bulk_bytes += outcome.units;
        }
        Load::Connect => {
            column.making += used;
            column.made += outcome.units;
            column.slowest = column.slowest.max(outcome.worst);
        }
        Load::Echo | Load::Idle => {}
    }
    Ok(Some(outcome))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_the_same_round() {
        let mut direct = Column::new(Way::Direct);
        let mut other = Column::new(Way::Nginx);
        direct.rates[0][0] = vec![Some(100.0), Some(50.0), Some(80.0)];
        other.rates[0][0] = vec![Some(50.0), Some(25.0), None];
        assert_eq!(other.ratios(&direct, 0, 0).median(), Some(0.5));
        assert_eq!(other.ratios(&direct, 0, 0).range(), (0.5, 0.5));
        assert_eq!(direct.rate(0, 0), Some(80.0));
        assert_eq!(other.rate(0, 1), None, "nothing was measured");
    }

    #[test]
    fn idle_memory_of_a_router_is_reported_separately() {
        let mut column = Column::new(Way::Kernel);
        assert_eq!(column.user_for_bulk(), None, "nothing was measured");
        (column.bulk.user, column.bulk_bytes) = (0.75, 2_000_000_000);
        column.bulk_time = Duration::from_secs(4);
        assert_eq!(column.user_for_bulk(), None, "not known at rest");
        (column.rest.user, column.rest_time) = (0.5, Duration::from_secs(8));
        assert_eq!(column.user_for_bulk(), Some((0.375, 0.125)));
    }
}
