//! Results of consecutive checks.

use super::*;

fn check(unhealthy: u32, healthy: u32) -> HealthCheck {
    let second = Duration::from_secs(1);
    HealthCheck { request: None, interval: second, timeout: second, unhealthy, healthy }
}

/// `w`: success, `f`: failure, `a`: unreachable; the decision after each: `+` healthy, `-` unhealthy, `.` none.
fn decided(check: &HealthCheck, answers: &str) -> String {
    let mut streak = Streak::default();
    let after = |answer| match answer {
        'w' => ProbeResult::Well,
        'f' => ProbeResult::Failed,
        _ => ProbeResult::Away,
    };
    let decided = answers.chars().map(|answer| match streak.after(after(answer), check) {
        Some(true) => '-',
        Some(false) => '+',
        None => '.',
    });
    decided.collect()
}

#[test]
fn so_many_in_a_row_decide() {
    assert_eq!(decided(&check(3, 2), "ffwffffwfwwf"), ".....--...+.");
    assert_eq!(decided(&check(1, 1), "fwf"), "-+-");
}

#[test]
fn a_503_decides_at_once() {
    assert_eq!(decided(&check(3, 2), "wawaww"), ".-.-.+");
    // And counts as one of the consecutive failures.
    assert_eq!(decided(&check(3, 2), "aff"), "-.-");
}
