//! Values of annotations, in the syntax of OpenShift's router.

use std::num::NonZeroU32;
use std::time::Duration;

use router_table::policy::forwarded::ForwardedHeaders;
use router_table::policy::{Balance, SameSite};

/// Parses `[1-9][0-9]*(us|ms|s|m|h|d)?`, by default in milliseconds; at most [`MAX_TIMEOUT`].
pub fn timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    if digits.is_empty() || digits.starts_with('0') {
        return None;
    }
    let microseconds: u64 = match unit {
        "us" => 1,
        "" | "ms" => 1000,
        "s" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        _ => return None,
    };
    // Digits alone fail to parse only by being too many.
    let total = digits.parse::<u64>().unwrap_or(u64::MAX).saturating_mul(microseconds);
    Some(Duration::from_micros(total).min(MAX_TIMEOUT))
}

/// A boolean, as Go's `strconv.ParseBool` accepts it.
pub fn truth(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

/// A limit: digits only, at least 1, saturating at `u32::MAX`.
pub fn limit(text: &str) -> Option<NonZeroU32> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u32::MAX)).and_then(NonZeroU32::new)
}

/// `balance`.
pub fn balance(text: &str) -> Option<Balance> {
    Some(match text {
        "roundrobin" => Balance::RoundRobin,
        "leastconn" => Balance::LeastConnections,
        "source" => Balance::Source,
        "random" => Balance::Random,
        _ => return None,
    })
}

/// `set-forwarded-headers`.
pub fn forwarded(text: &str) -> Option<ForwardedHeaders> {
    Some(match text {
        "append" => ForwardedHeaders::Append,
        "replace" => ForwardedHeaders::Replace,
        "if-none" => ForwardedHeaders::IfNone,
        "never" => ForwardedHeaders::Never,
        _ => return None,
    })
}

/// `cookie-same-site`.
pub fn same_site(text: &str) -> Option<SameSite> {
    Some(match text {
        "Lax" => SameSite::Lax,
        "Strict" => SameSite::Strict,
        "None" => SameSite::None,
        _ => return None,
    })
}

/// `cookie_name`: `[a-zA-Z0-9_-]+`.
pub fn cookie_name(text: &str) -> Option<Box<str>> {
    let is_name = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    is_name.then(|| text.into())
}

/// `hsts_header`: `max-age=N`, where N may be quoted, and any number of `includeSubDomains` and `preload` before and
/// after it; case-insensitive, with blanks around `;` and `=` only. The header value is the text as written.
pub fn hsts(text: &str) -> Option<Box<str>> {
    const BLANK: [char; 2] = [' ', '\t'];
    if text.starts_with(BLANK) || text.ends_with(BLANK) {
        return None;
    }
    let mut ages = 0;
    for part in text.split(';') {
        let part = part.trim_matches(BLANK);
        if ["includeSubDomains", "preload"].iter().any(|token| part.eq_ignore_ascii_case(token)) {
            continue;
        }
        let (name, number) = part.split_once('=')?;
        let number = number.trim_matches(BLANK);
        let digits = number.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(number);
        let is_age = name.trim_end_matches(BLANK).eq_ignore_ascii_case("max-age");
        if !is_age || digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        ages += 1;
    }
    (ages == 1).then(|| text.into())
}

/// Longest timeout: HAProxy's limit of 2^31 − 1 ms, about 24.8 days.
pub const MAX_TIMEOUT: Duration = Duration::from_millis(i32::MAX as u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_haproxys() {
        const MINUTE: u64 = 60_000_000;
        let good = [
            ("1us", 1),
            ("999", 999_000),
            ("10", 10_000),
            ("250ms", 250_000),
            ("5s", 5_000_000),
            ("100m", 100 * MINUTE),
            ("7h", 7 * 60 * MINUTE),
            ("24d", 24 * 24 * 60 * MINUTE),
        ];
        for (text, microseconds) in good {
            assert_eq!(timeout(text), Some(Duration::from_micros(microseconds)), "{text}");
        }
        for long in ["25d", "1000h", "2147483648", "9223372036854776us", "9223372036854775807", &"9".repeat(400)] {
            assert_eq!(timeout(long), Some(MAX_TIMEOUT), "{long}");
        }
        assert_eq!(timeout("2147483646ms"), Some(MAX_TIMEOUT - Duration::from_millis(1)));
        for bad in ["", "0", "0s", "05s", "1.5s", "1d12h", "s", "-1s", "+1s", " 1s", "1s ", "1S", "1ns", "1 s", "٣s"] {
            assert_eq!(timeout(bad), None, "{bad:?}");
        }
    }
}
