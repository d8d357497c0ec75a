//! Annotations of IngressControllers and Gateways that configure the XDP gate (docs/gate.md).

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use router_common::maps::MAX_GATE_CONNECTIONS;
use router_model::field::{FieldPath, Findings};
use router_table::policy::gate::{GatePolicy, SynRate, aggregated};

use crate::meta::Annotations;
use crate::openshift::route::annotations::allowlist::net;

const PREFIX: &str = "gate.sluice.dev/";
const MODE: &str = "gate.sluice.dev/mode";
const DENY: &str = "gate.sluice.dev/deny";
const ALLOW: &str = "gate.sluice.dev/allow";
const ROUTES: &str = "gate.sluice.dev/route-allow-lists";
const SOURCE_RATE: &str = "gate.sluice.dev/syn-rate-per-source";
const LISTENER_RATE: &str = "gate.sluice.dev/syn-rate";
const CONNECTIONS: &str = "gate.sluice.dev/connections-per-source";
const SOURCE_PREFIX: &str = "gate.sluice.dev/source-prefix";
const FRAGMENTS: &str = "gate.sluice.dev/fragments";
const OPTIONS: &str = "gate.sluice.dev/ip-options";
const COOKIES: &str = "gate.sluice.dev/syn-cookies";
const ALL: [&str; 11] =
    [MODE, DENY, ALLOW, ROUTES, SOURCE_RATE, LISTENER_RATE, CONNECTIONS, SOURCE_PREFIX, FRAGMENTS, OPTIONS, COOKIES];

/// Most connections of a source: as many as the kernel counts of all.
const MOST_CONNECTIONS: u32 = MAX_GATE_CONNECTIONS as u32;

/// Longest time in which a token bucket fills.
const LONGEST: Duration = Duration::from_secs(3600);
/// Longest time between two SYNs: the kernel has 32 bits for it, in units of 256 ns.
const SLOWEST: Duration = Duration::from_secs(1000);
/// Most SYNs a second of one source, and of a listener: what the units of their times distinguish.
const FASTEST_SOURCE: u32 = 100_000;
const FASTEST_LISTENER: u32 = 10_000_000;

/// Parses them; `None` if there are none. An invalid value is an error: a typing error must neither open what was closed nor
/// lock anybody out.
pub fn gate_policy(annotations: &Annotations, findings: &mut Findings) -> Option<GatePolicy> {
    let mut policy = None;
    for (name, text) in annotations.iter().filter(|(name, _)| name.starts_with(PREFIX)) {
        let path = FieldPath::of(&["metadata", "annotations", name]);
        if !ALL.contains(&name.as_str()) {
            findings.warn(path, format!("unknown annotation, ignored; known are {}", ALL.join(", ")));
            continue;
        }
        let policy = policy.get_or_insert_with(|| GatePolicy { rejects: false, ..GatePolicy::default() });
        policy.rejects |= name != COOKIES;
        if let Err(what) = set(policy, name, text) {
            findings.error(path, format!("Invalid value: {text:?}: {what}"));
        }
    }
    policy
}

/// Sets what an annotation says; the error says what to write.
fn set(policy: &mut GatePolicy, name: &str, text: &str) -> Result<(), String> {
    match name {
        MODE => policy.observes = one_of(text, ["enforce", "observe"])?,
        FRAGMENTS => policy.rejects_fragments = one_of(text, ["pass", "drop"])?,
        OPTIONS => policy.rejects_options = one_of(text, ["pass", "drop"])?,
        DENY => policy.deny = nets(text)?,
        ALLOW => policy.allow = Some(nets(text)?),
        ROUTES => policy.rejects_unlisted = one_of(text, ["pass", "drop"])?,
        SOURCE_RATE => policy.source_rate = Some(rate(text, FASTEST_SOURCE)?),
        COOKIES => policy.cookies_above = cookies(text)?,
        LISTENER_RATE => policy.listener_rate = Some(rate(text, FASTEST_LISTENER)?),
        CONNECTIONS => policy.source_connections = Some(connections(text)?),
        _ => (policy.v4_bits, policy.v6_bits) = source_prefix(text)?,
    }
    Ok(())
}

/// Whether a text is the second of two words.
fn one_of(text: &str, [first, second]: [&str; 2]) -> Result<bool, String> {
    if text == first || text == second { Ok(text == second) } else { Err(format!("write {first} or {second}")) }
}

fn nets(text: &str) -> Result<Arc<[IpNet]>, String> {
    let items = text.split([',', ' ', '\t', '\n']).filter(|item| !item.is_empty());
    let nets: Vec<IpNet> = items
        .map(|item| {
            net(item)
                .ok_or_else(|| format!("{item:?} is no network; write IP addresses or networks, such as 10.0.0.0/8"))
        })
        .collect::<Result<_, _>>()?;
    let nets = aggregated(&nets);
    if nets.is_empty() { Err("write at least one network, or remove it".to_owned()) } else { Ok(nets) }
}

/// `N/s`, `N/m` or `N/h`, at most so many a second, and optionally `burst M`; a burst that is not written is N.
fn rate(text: &str, fastest: u32) -> Result<SynRate, String> {
    let syntax = || "write a number for each second, minute or hour, such as 20/s or 20/s burst 100".to_owned();
    let mut words = text.split_ascii_whitespace();
    let (number, unit) = words.next().and_then(|word| word.split_once('/')).ok_or_else(syntax)?;
    let unit = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(syntax()),
    };
    let number: NonZeroU32 = number.parse().map_err(|_| syntax())?;
    let burst: NonZeroU32 = match (words.next(), words.next(), words.next()) {
        (None, ..) => number,
        (Some("burst"), Some(burst), None) => burst.parse().map_err(|_| syntax())?,
        _ => return Err(syntax()),
    };
    let interval = Duration::from_secs(unit) / number.get();
    if interval > SLOWEST || interval < Duration::from_secs(1) / fastest {
        return Err(format!("write at least 4/h and at most {fastest}/s"));
    }
    if interval.saturating_mul(burst.get()) > LONGEST {
        let most = LONGEST.as_nanos() / interval.as_nanos();
        return Err(format!("a burst of {burst} takes more than an hour to be allowed again; write at most {most}"));
    }
    Ok(SynRate { interval, burst: burst.get() })
}

fn connections(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (1..=MOST_CONNECTIONS).contains(number));
    number.ok_or_else(|| format!("write a number of connections, at least 1 and at most {MOST_CONNECTIONS}"))
}

/// `off`, which is 0, or `N/s`.
fn cookies(text: &str) -> Result<u32, String> {
    if text == "off" {
        return Ok(0);
    }
    let number = text.strip_suffix("/s").and_then(|number| number.parse().ok());
    let is_bounded = |number: &u32| (1..=FASTEST_LISTENER).contains(number);
    number.filter(is_bounded).ok_or_else(|| {
        format!("write off, or the SYNs a second above which they are answered, such as 5000/s; at most {FASTEST_LISTENER}/s")
    })
}

/// Two numbers of bits: of an IPv4 and an IPv6 address.
///
/// # Errors
/// What to write.
pub fn source_prefix(text: &str) -> Result<(u8, u8), String> {
    let syntax = || "write bits of IPv4 and IPv6 addresses, such as 24,64; at most 32 and 128, at least 1".to_owned();
    let (v4, v6) = text.split_once(',').ok_or_else(syntax)?;
    let bits =
        |text: &str, most: u8| text.trim().parse().ok().filter(|bits| (1..=most).contains(bits)).ok_or_else(syntax);
    Ok((bits(v4, 32)?, bits(v6, 128)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(annotations: &[(&str, &str)]) -> Result<Option<GatePolicy>, Vec<String>> {
        let texts = annotations.iter().map(|(name, text)| (format!("{PREFIX}{name}"), (*text).to_owned())).collect();
        let mut findings = Findings::default();
        let policy = gate_policy(&texts, &mut findings);
        let all = findings.errors.iter().chain(&findings.warnings);
        let told: Vec<String> = all.map(|finding| finding.to_string().replace("metadata.annotations", "")).collect();
        if told.is_empty() { Ok(policy) } else { Err(told) }
    }

    #[test]
    fn annotations_are_typed() {
        assert_eq!(read(&[]), Ok(None));
        let policy = |annotations: &[(&str, &str)]| read(annotations).unwrap().unwrap();
        assert_eq!(policy(&[("mode", "enforce")]), GatePolicy::default());
        let all = policy(&[
            ("mode", "observe"),
            ("deny", "10.0.0.0/8,10.1.0.0/16 2001:db8::1"),
            ("allow", "192.0.2.7"),
            ("route-allow-lists", "drop"),
            ("syn-rate-per-source", "20/s"),
            ("syn-rate", "6/m burst 100"),
            ("connections-per-source", "50"),
            ("source-prefix", "24, 56"),
            ("fragments", "drop"),
            ("ip-options", "drop"),
            ("syn-cookies", "700/s"),
        ]);
        let nets = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<IpNet>>();
        assert_eq!(all.deny[..], nets(&["10.0.0.0/8", "2001:db8::1/128"]));
        assert_eq!(all.allow.as_deref(), Some(&nets(&["192.0.2.7/32"])[..]));
        assert_eq!(all.source_rate, Some(SynRate { interval: Duration::from_millis(50), burst: 20 }));
        assert_eq!(all.listener_rate, Some(SynRate { interval: Duration::from_secs(10), burst: 100 }));
        assert_eq!(all.source_connections, Some(50));
        assert_eq!((all.v4_bits, all.v6_bits), (24, 56));
        assert!(all.cookies_above == 700 && all.rejects);
        let off = policy(&[("syn-cookies", "off")]);
        assert_eq!((off.cookies_above, off.rejects), (0, false));
        assert!(all.observes && all.rejects_unlisted && all.rejects_fragments && all.rejects_options);
    }

    #[test]
    fn invalid_values_say_what_to_write() {
        let cases = [
            ("mode", "on", "write enforce or observe"),
            ("deny", "10.0.0.0/8 ten", "\"ten\" is no network; write IP addresses or networks, such as 10.0.0.0/8"),
            ("allow", "", "write at least one network, or remove it"),
            ("syn-rate", "20", "write a number for each second, minute or hour, such as 20/s or 20/s burst 100"),
            ("syn-rate", "0/s", "write a number for each second, minute or hour, such as 20/s or 20/s burst 100"),
            (
                "syn-rate",
                "20/s burst",
                "write a number for each second, minute or hour, such as 20/s or 20/s burst 100",
            ),
            ("syn-rate-per-source", "200000/s", "write at least 4/h and at most 100000/s"),
            ("syn-rate-per-source", "3/h", "write at least 4/h and at most 100000/s"),
            ("syn-rate", "1/m burst 61", "a burst of 61 takes more than an hour to be allowed again; write at most 60"),
            ("connections-per-source", "0", "write a number of connections, at least 1 and at most 262144"),
            ("connections-per-source", "50/s", "write a number of connections, at least 1 and at most 262144"),
            (
                "syn-cookies",
                "0/s",
                "write off, or the SYNs a second above which they are answered, such as 5000/s; at most 10000000/s",
            ),
            (
                "source-prefix",
                "24",
                "write bits of IPv4 and IPv6 addresses, such as 24,64; at most 32 and 128, at least 1",
            ),
            (
                "source-prefix",
                "33,64",
                "write bits of IPv4 and IPv6 addresses, such as 24,64; at most 32 and 128, at least 1",
            ),
        ];
        for (name, text, what) in cases {
            assert_eq!(read(&[(name, text)]), Err(vec![format!("[{PREFIX}{name}]: Invalid value: {text:?}: {what}")]));
        }
        let unknown = read(&[("denied", "10.0.0.0/8")]).unwrap_err();
        assert!(
            unknown[0].starts_with("[gate.sluice.dev/denied]: unknown annotation, ignored; known are "),
            "{unknown:?}"
        );
    }
}
