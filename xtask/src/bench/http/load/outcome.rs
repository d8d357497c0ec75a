//! Results of a client of the load tools.

use std::time::Duration;

use anyhow::{Context, Result, bail};

/// Results of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Requests, connections or messages that were answered in time.
    pub units: u64,
    /// That time.
    pub elapsed: Duration,
    /// Those that failed.
    pub errors: u64,
    /// The middle of their times.
    pub p50: Duration,
    /// The 99th percentile.
    pub p99: Duration,
}

impl Outcome {
    /// Of the times of all that were answered.
    pub fn of(mut times: Vec<Duration>, elapsed: Duration, errors: u64) -> Outcome {
        times.sort_unstable();
        let at = |part: usize| times.get((times.len() * part / 100).min(times.len().saturating_sub(1))).copied();
        let [p50, p99] = [50, 99].map(|part| at(part).unwrap_or_default());
        Outcome { units: times.len() as u64, elapsed, errors, p50, p99 }
    }

    /// Units in a second.
    pub fn rate(&self) -> f64 {
        self.units as f64 / self.elapsed.as_secs_f64()
    }

    /// One line of numbers, times in nanoseconds.
    pub fn line(&self) -> String {
        let [elapsed, p50, p99] = [self.elapsed, self.p50, self.p99].map(|time| time.as_nanos());
        format!("{} {elapsed} {} {p50} {p99}", self.units, self.errors)
    }

    /// [`Outcome::line`] back.
    pub fn read(line: &str) -> Result<Outcome> {
        let numbers: Vec<u64> =
            line.split_whitespace().map(str::parse).collect::<Result<_, _>>().context("numbers of a client")?;
        let [units, elapsed, errors, p50, p99] = numbers[..] else { bail!("a client printed `{line}`") };
        let [elapsed, p50, p99] = [elapsed, p50, p99].map(Duration::from_nanos);
        Ok(Outcome { units, elapsed, errors, p50, p99 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_all_times_in_order() {
        let times = (1..=200).rev().map(Duration::from_millis).collect();
        let outcome = Outcome::of(times, Duration::from_secs(2), 3);
        assert_eq!([outcome.p50, outcome.p99], [101, 199].map(Duration::from_millis));
        assert_eq!((outcome.units, outcome.errors, outcome.rate()), (200, 3, 100.0));
        assert_eq!(Outcome::read(&outcome.line()).unwrap(), outcome);
    }

    #[test]
    fn nothing_has_no_percentiles() {
        assert_eq!(Outcome::of(Vec::new(), Duration::from_secs(1), 1).p99, Duration::ZERO);
        assert!(Outcome::read("1 2 3").is_err());
    }
}
