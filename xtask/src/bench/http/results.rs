//! Results of a benchmark.

use std::time::Duration;

use super::figures::{Column, Figure};
use super::measure::Plan;
use super::names::Hosts;
use super::rows::{MEASURES, Measure};
use super::ways::Way;

/// Everything that was measured.
pub struct Results {
    /// Which build of Sluice was measured.
    pub build: String,
    /// How often and how long.
    pub plan: Plan,
    /// By way.
    pub columns: Vec<Column>,
    /// Time from start to first answer, and resident bytes then.
    pub loaded: Vec<(Way, Duration, i64)>,
    /// Of the peers.
    pub versions: Vec<String>,
    /// Ways that could not be measured, and why.
    pub left_out: Vec<(Way, String)>,
}

impl Results {
    /// The peer with the highest rate for one host.
    pub fn best_peer(&self, place: usize) -> Option<&Column> {
        let peers = self.columns.iter().filter(|column| column.way.is_peer() && column.way.hosts == Hosts::One);
        let rates = peers.filter_map(|peer| Some((peer, peer.middle(place, rate)?)));
        rates.max_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(peer, _)| peer)
    }

    /// Measures that were taken on some way, with their place among all.
    pub fn measured(&self) -> impl Iterator<Item = (usize, &'static Measure)> {
        MEASURES
            .iter()
            .enumerate()
            .filter(|(place, _)| self.columns.iter().any(|column| !column.figures[*place].is_empty()))
    }

    /// The figures of a way, if it was open.
    pub fn column(&self, way: Way) -> Option<&Column> {
        self.columns.iter().find(|column| column.way == way)
    }
}

/// Units in a second.
pub fn rate(figure: &Figure) -> f64 {
    figure.outcome.rate()
}

/// The 99th percentile, in milliseconds.
pub fn tail(figure: &Figure) -> f64 {
    figure.outcome.p99.as_secs_f64() * 1000.0
}

/// Processor time of the router for each unit, in microseconds.
pub fn work(figure: &Figure) -> f64 {
    figure.each().iter().sum()
}
