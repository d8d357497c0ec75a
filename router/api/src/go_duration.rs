//! Go's durations.

use std::time::Duration;

/// Parses a duration as Go's `time.ParseDuration`, without sign: `1h30m`, `1.5s`, `0`.
pub(crate) fn go_duration(text: &str) -> Option<Duration> {
    const UNITS: [(&str, u64); 8] = [
        ("ns", 1),
        ("us", 1000),
        ("µs", 1000),
        ("μs", 1000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ];
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(digits);
        let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        let (_, nanoseconds) = UNITS.iter().find(|(name, _)| *name == unit)?;
        let number: f64 = number.parse().ok()?;
        let part = Duration::try_from_secs_f64(number * *nanoseconds as f64 / 1e9).ok()?;
        total = total.checked_add(part)?;
        rest = after;
    }
    (!text.is_empty()).then_some(total)
}
