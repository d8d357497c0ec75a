//! Waits for conditions, never for time to pass.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Polling interval.
const PERIOD: Duration = Duration::from_millis(5);

/// Time-out for everything that should be quick, on a busy machine and with lost segments: after a lost SYN-ACK, TCP
/// estimates round trips of a second, and its next timers run for 3, 6, 12 and 23 s.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Polls `condition` until it returns a value, and returns that with the time it took.
///
/// # Errors
/// The deadline passes; `what` describes the condition.
pub fn wait_for<T>(what: &str, within: Duration, mut condition: impl FnMut() -> Option<T>) -> Result<(T, Duration)> {
    let start = Instant::now();
    loop {
        if let Some(value) = condition() {
            return Ok((value, start.elapsed()));
        }
        if start.elapsed() > within {
            bail!("not within {within:?}: {what}");
        }
        thread::sleep(PERIOD);
    }
}

/// Polls until `condition` holds; returns the elapsed time.
///
/// # Errors
/// When the deadline passes.
pub fn wait_until(what: &str, within: Duration, mut condition: impl FnMut() -> bool) -> Result<Duration> {
    wait_for(what, within, || condition().then_some(())).map(|((), took)| took)
}

/// Repeats a check while time passes: for events that must *not* happen.
///
/// # Errors
/// The first error of `check`.
pub fn hold(during: Duration, mut check: impl FnMut() -> Result<()>) -> Result<()> {
    let start = Instant::now();
    while start.elapsed() < during {
        check()?;
        thread::sleep(PERIOD * 10);
    }
    Ok(())
}
