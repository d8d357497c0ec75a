//! Measured durations in a few figures.

use std::time::Duration;

/// The middle of some measurements, and the worst.
#[derive(Clone, Copy)]
pub struct Summary {
    pub rounds: usize,
    pub median: Duration,
    pub worst: Duration,
}

/// `None` for no measurements.
pub fn summary(mut measured: Vec<Duration>) -> Option<Summary> {
    measured.sort();
    Some(Summary { rounds: measured.len(), median: *measured.get(measured.len() / 2)?, worst: *measured.last()? })
}

/// Milliseconds for a table.
pub fn milliseconds(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1000.0)
}
