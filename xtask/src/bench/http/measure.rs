//! The rounds of measurements.

use std::thread;
use std::time::Duration;

use anyhow::Result;

use super::figures::{Column, Figure};
use super::lane::Lane;
use super::names::Hosts;
use super::rows::{MEASURES, Measure};
use super::{tools, turns};
use crate::bench::network::Network;
use crate::bench::order::order;
use crate::bench::tools::Tools;
use crate::bench::usage::{self, Processor};

/// How often and how long.
#[derive(Clone, Copy)]
pub struct Plan {
    /// Rounds.
    pub rounds: usize,
    /// Milliseconds of one measurement.
    pub milliseconds: u64,
    /// Pause before each measurement, for closing connections of the previous one.
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
