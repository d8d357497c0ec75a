//! Values of annotations: the texts that OpenShift's router takes, and what they mean.

use std::num::NonZeroU32;
use std::time::Duration;

use router_table::policy::forwarded::ForwardedHeaders;
use router_table::policy::{Balance, SameSite};

/// Reads `[1-9][0-9]*(us|ms|s|m|h|d)?`, milliseconds without a unit; what is longer than [`MAX_TIMEOUT`] becomes that.
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

/// The spellings of Go's `strconv.ParseBool`.
pub fn truth(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

/// A limit: digits alone, at least 1; what is larger than a `u32` becomes the largest.
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

/// `hsts_header`: `max-age=N`, N perhaps in quotes, with any number of `includeSubDomains` and `preload` before and
/// after it; without regard to case, with blanks around `;` and `=` alone. The header is the text as it stands.
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
