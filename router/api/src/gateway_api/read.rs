//! Common field types of the API's schemas: bounded lists, enumerations, names, durations.

use std::sync::Arc;
use std::time::Duration;

use router_model::dns_names;
use router_model::field::{FieldError, FieldPath, Findings};
use router_model::names::Hostname;
use router_table::host_pattern::HostPattern;
use serde_json::Value;

use crate::fields::{Fields, describe};
use crate::header_names::is_token;

/// Maximum length of most strings, in bytes.
pub const MAX_TEXT: usize = 253;
/// Maximum length of a header value, in bytes.
pub const MAX_HEADER: usize = 4096;

/// Valid values that Sluice does not support, each with its field and what to write instead.
#[derive(Debug, Default)]
pub struct Unsupported(Vec<String>);

impl Unsupported {
    /// Adds a field.
    pub fn add(&mut self, path: FieldPath, message: impl Into<String>) {
        self.0.push(FieldError::new(path, message).to_string());
    }

    /// The messages, in order.
    pub fn into_texts(self) -> Vec<String> {
        self.0
    }
}

/// A list of `least` to `most` items; further items are not read.
pub fn list<'v>(
    fields: &mut Fields<'v>,
    name: &'static str,
    least: usize,
    most: usize,
    findings: &mut Findings,
) -> Vec<(FieldPath, &'v Value)> {
    let before = findings.errors.len();
    let mut items = fields.list(name, findings);
    if items.len() > most {
        findings.error(fields.path(name), format!("has {} items; use at most {most}", items.len()));
        items.truncate(most);
    }
    if items.len() < least && findings.errors.len() == before {
        let items = if least == 1 { "one item".to_owned() } else { format!("{least} items") };
        findings.error(fields.path(name), format!("Required value: write at least {items}"));
    }
    items
}

/// A required string of at most [`MAX_TEXT`] bytes; `what` says what to write.
pub fn required<'v>(
    fields: &mut Fields<'v>,
    name: &'static str,
    what: &str,
    findings: &mut Findings,
) -> Option<&'v str> {
    required_within(fields, name, what, MAX_TEXT, findings)
}

/// A required string of at most `most` bytes.
pub fn required_within<'v>(
    fields: &mut Fields<'v>,
    name: &'static str,
    what: &str,
    most: usize,
    findings: &mut Findings,
) -> Option<&'v str> {
    fields.required(name, what, findings).filter(|text| fits(text, most, fields.path(name), findings))
}

/// Whether a string has at most `most` bytes; reports an error if not.
pub fn fits(text: &str, most: usize, path: FieldPath, findings: &mut Findings) -> bool {
    let fits = text.len() <= most;
    if !fits {
        findings.error(path, format!("Too long: has {} bytes; use at most {most}", text.len()));
    }
    fits
}

/// An optional value of an enumeration.
pub fn word(
    fields: &mut Fields<'_>,
    name: &'static str,
    words: &[&'static str],
    findings: &mut Findings,
) -> Option<&'static str> {
    let text = fields.text(name, findings)?;
    let known = words.iter().find(|word| **word == text);
    if known.is_none() {
        findings.error(fields.path(name), format!("Unsupported value: {text:?}; write {}", one_of(words)));
    }
    known.copied()
}

/// A required value of an enumeration.
pub fn required_word(
    fields: &mut Fields<'_>,
    name: &'static str,
    words: &[&'static str],
    findings: &mut Findings,
) -> Option<&'static str> {
    if fields.value(name).is_none_or(|value| value == "") {
        findings.error(fields.path(name), format!("Required value: write {}", one_of(words)));
        return None;
    }
    word(fields, name, words, findings)
}

/// `a, b or c`.
pub fn one_of(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

/// A string; empty does not count as absent.
pub fn maybe_empty<'v>(fields: &mut Fields<'v>, name: &'static str, findings: &mut Findings) -> Option<&'v str> {
    match fields.value(name)? {
        Value::String(text) => Some(text),
        other => {
            findings.error(fields.path(name), format!("is {}; write a text", describe(other)));
            None
        }
    }
}

/// `name` of a header or query parameter: a token of at most 256 bytes.
pub fn token<'v>(entry: &mut Fields<'v>, findings: &mut Findings) -> Option<&'v str> {
    let name = required_within(entry, "name", "a name", 256, findings)?;
    if !is_token(name) {
        let message = format!("Invalid value: {name:?}; use letters, digits and !#$%&'*+-.^_`|~ (RFC 9110 5.6.2)");
        findings.error(entry.path("name"), message);
        return None;
    }
    Some(name)
}

/// `value` of a header: at most [`MAX_HEADER`] bytes.
pub fn header_value<'v>(entry: &mut Fields<'v>, findings: &mut Findings) -> Option<&'v str> {
    required_within(entry, "value", "a value, in quotes", MAX_HEADER, findings)
}

/// A port.
pub fn port(fields: &mut Fields<'_>, name: &'static str, findings: &mut Findings) -> Option<u16> {
    fields.number(name, 1, 65_535, findings).and_then(|number| u16::try_from(number).ok())
}

/// `SectionName`: the name of a listener, rule or port.
pub fn section(fields: &mut Fields<'_>, name: &'static str, findings: &mut Findings) -> Option<Arc<str>> {
    let text = fields.text(name, findings)?;
    match dns_names::subdomain_fault(text) {
        None => Some(text.into()),
        Some(fault) => {
            findings.error(fields.path(name), format!("Invalid value: {text:?}: {fault}"));
            None
        }
    }
}

/// The API's `Hostname`: a name, or `*.` and a name for all names below it.
pub fn host_pattern(text: &str, path: &FieldPath, findings: &mut Findings) -> Option<HostPattern> {
    let (domain, wrap): (_, fn(Hostname) -> HostPattern) = match text.strip_prefix("*.") {
        Some(domain) => (domain, HostPattern::Suffix),
        None => (text, HostPattern::Exact),
    };
    if domain.contains('*') {
        let advice = "a star may stand only as the first label, before a dot; for every name, remove the field";
        findings.error(path.clone(), format!("Invalid value: {text:?}: {advice}"));
        return None;
    }
    precise_host(domain, text, path, findings).map(wrap)
}

/// The API's `PreciseHostname`, which is a part of `written`.
pub fn precise_host(text: &str, written: &str, path: &FieldPath, findings: &mut Findings) -> Option<Hostname> {
    let name = Hostname::parse(text);
    let fault = if text.parse::<std::net::IpAddr>().is_ok() {
        "is an address; write a host name".to_owned()
    } else if let Some(fault) = dns_names::subdomain_fault(text) {
        fault
    } else {
        match name {
            Ok(name) => return Some(name),
            Err(error) => format!("{}; write a host name such as www.example.com", error.describe()),
        }
    };
    findings.error(path.clone(), format!("Invalid value: {written:?}: {fault}"));
    None
}

/// A `PreciseHostname` in a field.
pub fn host(fields: &mut Fields<'_>, name: &'static str, findings: &mut Findings) -> Option<Hostname> {
    let text = fields.text(name, findings)?;
    precise_host(text, text, &fields.path(name), findings)
}

/// A `Duration` (GEP-2257): up to four numbers of at most five digits, each with `h`, `m`, `s` or `ms`.
pub fn duration(fields: &mut Fields<'_>, name: &'static str, findings: &mut Findings) -> Option<Duration> {
    let text = fields.text(name, findings)?;
    let duration = read_duration(text);
    if duration.is_none() {
        let advice = "write for example 500ms, 10s or 1h30m";
        findings.error(fields.path(name), format!("Invalid value: {text:?}; {advice}"));
    }
    duration
}

fn read_duration(text: &str) -> Option<Duration> {
    let (mut rest, mut total, mut parts) = (text, Duration::ZERO, 0);
    while !rest.is_empty() {
        let (digits, after) = rest.split_at_checked(rest.find(|c: char| !c.is_ascii_digit())?)?;
        let number: u64 = digits.parse().ok().filter(|_| digits.len() <= 5)?;
        // `ms` first, because `m` is its prefix.
        let (unit, after) = [("ms", 1), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)]
            .into_iter()
            .find_map(|(unit, milliseconds)| Some((milliseconds, after.strip_prefix(unit)?)))?;
        total += Duration::from_millis(number * unit);
        parts += 1;
        rest = after;
    }
    (1..=4).contains(&parts).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::read_duration;

    #[test]
    fn durations_are_those_of_gep_2257() {
        for (text, milliseconds) in
            [("0s", 0), ("10ms", 10), ("1h30m", 5_400_000), ("1s1ms1s1m", 62_001), ("99999s", 99_999_000)]
        {
            assert_eq!(read_duration(text).map(|it| it.as_millis()), Some(milliseconds), "{text}");
        }
        for bad in ["", "5", "s", "1d", "-1s", "1.5s", "100000s", "1s1s1s1s1s", "1s ", "1µs"] {
            assert_eq!(read_duration(bad), None, "{bad}");
        }
    }
}
