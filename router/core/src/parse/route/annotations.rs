//! Annotations of a Route that say how its traffic is carried (openshift.md d, and one of Sluice's own). They are read
//! from the stored texts when a route is resolved, so that the many routes without any cost nothing.

use std::time::Duration;

use super::Traffic;
use crate::object::TextMap;
use crate::parse::ForwardedHeaders;

/// `v2`: connections to the endpoints of a passthrough route begin with a PROXY protocol header.
pub const PROXY_PROTOCOL: &str = "router.sluice.dev/proxy-protocol";
/// How long an endpoint may be silent; of a passthrough route without [`TIMEOUT_TUNNEL`], how long a tunnel may.
pub const TIMEOUT: &str = "haproxy.router.openshift.io/timeout";
/// How long a passthrough connection, or one after an upgrade, may be silent.
pub const TIMEOUT_TUNNEL: &str = "haproxy.router.openshift.io/timeout-tunnel";
/// What happens to `X-Forwarded-*` and `Forwarded`.
pub const SET_FORWARDED_HEADERS: &str = "haproxy.router.openshift.io/set-forwarded-headers";

/// Longest timeout: HAProxy's limit of 2^31 − 1 ms, about 24.8 days.
pub const MAX_TIMEOUT: Duration = Duration::from_millis(i32::MAX as u64);

/// Annotations that are about single requests or about limits. Those that nothing acts on yet count too, whatever
/// their value: who asks for them must not get a data path that never will. `disable_cookies` is no condition, as
/// there is no affinity by cookie; an annotation that configures it is.
const REQUEST_WORK: [&str; 10] = [
    "haproxy.router.openshift.io/h1-adjust-case",
    "haproxy.router.openshift.io/hsts_header",
    "haproxy.router.openshift.io/pod-concurrent-connections",
    "haproxy.router.openshift.io/rate-limit-connections",
    "haproxy.router.openshift.io/rate-limit-connections.concurrent-tcp",
    "haproxy.router.openshift.io/rate-limit-connections.rate-http",
    "haproxy.router.openshift.io/rate-limit-connections.rate-tcp",
    "haproxy.router.openshift.io/rewrite-target",
    "router.openshift.io/cookie-same-site",
    "router.openshift.io/cookie_name",
];

/// What a route's annotations ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrafficOptions {
    /// Passthrough: a PROXY v2 header goes first.
    pub proxy_protocol: bool,
    /// How long a tunnel may be silent, at most [`MAX_TIMEOUT`]; `None`: as the router says.
    pub tunnel_timeout: Option<Duration>,
    /// What happens to forwarding headers; `None`: as the router says.
    pub forwarded: Option<ForwardedHeaders>,
    /// Something is asked for that takes reading every request.
    pub request_work: bool,
}

/// An annotation that has no effect as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnotationFault {
    /// Its name.
    pub annotation: &'static str,
    /// What is wrong, and what to write instead.
    pub message: String,
}

impl TrafficOptions {
    /// Reads the annotations of a route of this kind. A bad value counts as absent, and is told.
    pub fn read(annotations: &TextMap, traffic: &Traffic) -> (Self, Vec<AnnotationFault>) {
        let (mut options, mut faults) = (TrafficOptions::default(), Vec::new());
        let is_passthrough = traffic.is_passthrough();
        let mut fault = |annotation, message: String| faults.push(AnnotationFault { annotation, message });
        let mut silent = None;
        for (name, text) in annotations.iter() {
            match name {
                PROXY_PROTOCOL if !is_passthrough => fault(PROXY_PROTOCOL, ONLY_PASSTHROUGH.to_owned()),
                PROXY_PROTOCOL if text == "v2" => options.proxy_protocol = true,
                PROXY_PROTOCOL => {
                    fault(PROXY_PROTOCOL, format!("Unsupported value: {text:?}, ignored; write v2, or remove it"));
                }
                TIMEOUT_TUNNEL => match timeout(text) {
                    Some(timeout) => options.tunnel_timeout = Some(timeout),
                    None => fault(TIMEOUT_TUNNEL, bad_timeout(text)),
                },
                TIMEOUT => match timeout(text) {
                    Some(timeout) => silent = Some(timeout),
                    None => fault(TIMEOUT, bad_timeout(text)),
                },
                SET_FORWARDED_HEADERS if is_passthrough => fault(SET_FORWARDED_HEADERS, NO_HEADERS.to_owned()),
                SET_FORWARDED_HEADERS => match forwarded(text) {
                    Some(policy) => options.forwarded = Some(policy),
                    None => {
                        let message =
                            format!("Unsupported value: {text:?}, ignored; write append, replace, if-none or never");
                        fault(SET_FORWARDED_HEADERS, message);
                    }
                },
                other => options.request_work |= REQUEST_WORK.contains(&other),
            }
        }
        if is_passthrough {
            options.tunnel_timeout = options.tunnel_timeout.or(silent);
        }
        (options, faults)
    }
}

const ONLY_PASSTHROUGH: &str = "is only for passthrough routes, ignored; remove it, or write spec.tls.termination: \
                                passthrough; endpoints of other routes learn the client's address from X-Forwarded-For";
const NO_HEADERS: &str = "has no meaning for a passthrough route, whose requests are not read, ignored; remove it, or \
                          write router.sluice.dev/proxy-protocol: v2 to tell endpoints the client's address";

fn forwarded(text: &str) -> Option<ForwardedHeaders> {
    Some(match text {
        "append" => ForwardedHeaders::Append,
        "replace" => ForwardedHeaders::Replace,
        "if-none" => ForwardedHeaders::IfNone,
        "never" => ForwardedHeaders::Never,
        _ => return None,
    })
}

fn bad_timeout(text: &str) -> String {
    format!("Invalid value: {text:?}, ignored; write a whole number and us, ms, s, m, h or d, such as 30s")
}

/// Reads `[1-9][0-9]*(us|ms|s|m|h|d)?`, milliseconds without a unit; what is longer than [`MAX_TIMEOUT`] becomes that.
fn timeout(text: &str) -> Option<Duration> {
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

#[cfg(test)]
mod tests;
