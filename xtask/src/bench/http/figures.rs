//! Measured figures.

use super::load::outcome::Outcome;
use super::rows::MEASURES;
use super::ways::Way;
use crate::bench::bars::{Ratios, median};
use crate::bench::usage::Processor;

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Results of the client.
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
    pub fn with_times_of(mut self, other: &Figure) -> Figure {
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

    /// The median over all rounds of a value of the figures.
    pub fn middle(&self, measure: usize, read: impl Fn(&Figure) -> f64) -> Option<f64> {
        median(self.figures[measure].iter().flatten().map(read).collect())
    }

    /// The value of a figure relative to that of another way in the same round.
    pub fn ratios(&self, to: &Column, measure: usize, read: impl Fn(&Figure) -> f64) -> Ratios {
        let pairs = self.figures[measure].iter().zip(&to.figures[measure]);
        Ratios(pairs.filter_map(|(own, other)| Some(read(own.as_ref()?) / read(other.as_ref()?))).collect())
    }

    /// Requests and connections that failed.
    pub fn errors(&self) -> u64 {
        self.figures.iter().flatten().flatten().map(|figure| figure.outcome.errors).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::names::Hosts;
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
