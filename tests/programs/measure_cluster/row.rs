//! Rows of the table.

use std::time::Duration;

use serde_json::json;

/// Prints a row.
pub fn print(what: &str, measured: &str, bar: &str, met: bool) {
    println!("{}", json!({"what": what, "measured": measured, "bar": bar, "met": met}));
}

/// Prints the row of times of which the median has a maximum.
pub fn print_median(what: &str, times: Vec<Duration>, most: Duration) {
    let (median, worst, rounds) = summary(times);
    let measured = format!("{} (worst of {rounds}: {})", text(median), text(worst));
    print(what, &measured, &format!("≤ {}, median", text(most)), median <= most);
}

/// Median, maximum and number of times.
pub fn summary(mut times: Vec<Duration>) -> (Duration, Duration, usize) {
    times.sort();
    let at = |index: usize| times.get(index).copied().unwrap_or(Duration::MAX);
    (at(times.len() / 2), at(times.len().saturating_sub(1)), times.len())
}

/// Milliseconds, or seconds from 2 s.
pub fn text(time: Duration) -> String {
    if time < Duration::from_secs(2) {
        format!("{:.1} ms", time.as_secs_f64() * 1000.0)
    } else {
        format!("{:.1} s", time.as_secs_f64())
    }
}
