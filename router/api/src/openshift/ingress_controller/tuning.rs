//! `tuningOptions`: limits and timeouts (docs/openshift.md#fields-of-ingresscontrollers).

use std::time::Duration;

use router_model::field::Findings;

use crate::fields::Fields;
use crate::go_duration::go_duration;

/// Limits and timeouts; `None`: the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tuning {
    /// Maximum size of the headers of a request or response, in bytes (32768).
    pub header_buffer_bytes: Option<u32>,
    /// Part of it that is reserved for header actions (8192).
    pub header_buffer_max_rewrite_bytes: Option<u32>,
    /// Read and write timeout of clients (30 s).
    pub client: Option<Duration>,
    /// Timeout of clients' close (1 s).
    pub client_fin: Option<Duration>,
    /// Response timeout of backends (30 s).
    pub server: Option<Duration>,
    /// Timeout of backends' close (1 s).
    pub server_fin: Option<Duration>,
    /// Idle timeout of tunnels (1 h).
    pub tunnel: Option<Duration>,
    /// Connect timeout of backends (5 s).
    pub connect: Option<Duration>,
    /// Idle timeout between requests (300 s).
    pub keep_alive: Option<Duration>,
    /// Timeout of the ClientHello (5 s).
    pub tls_inspect_delay: Option<Duration>,
    /// Interval of health checks (5 s).
    pub health_check_interval: Option<Duration>,
    /// Maximum number of connections (50000).
    pub max_connections: Option<MaxConnections>,
}

impl Tuning {
    /// Fields that are set and have no effect.
    pub fn without_effect(&self) -> impl Iterator<Item = &'static str> {
        self.server_fin.is_some().then_some("serverFinTimeout").into_iter()
    }
}

/// `maxConnections`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxConnections {
    /// `-1`: limited by the process only.
    Computed,
    /// A fixed number.
    Fixed(u32),
}

/// Settings of the HAProxy process, which have no equivalent.
const PROCESS: &[&str] = &["threadCount", "reloadInterval", "configurationManagement"];

/// Reads `tuningOptions`. An invalid value counts as absent.
pub fn parse(mut fields: Fields<'_>, findings: &mut Findings) -> Tuning {
    let mut bytes = |fields: &mut Fields<'_>, name, least| {
        let number = fields.number(name, least, i64::from(i32::MAX), findings);
        number.and_then(|number| u32::try_from(number).ok())
    };
    let header_buffer_bytes = bytes(&mut fields, "headerBufferBytes", 16_384);
    let header_buffer_max_rewrite_bytes = bytes(&mut fields, "headerBufferMaxRewriteBytes", 4096);
    let buffer = header_buffer_bytes.unwrap_or(32_768);
    if header_buffer_max_rewrite_bytes.unwrap_or(8192) >= buffer {
        let message =
            format!("Invalid value: the room for rewriting is not below headerBufferBytes, {buffer}; lower it");
        findings.error(fields.path("headerBufferMaxRewriteBytes"), message);
    }
    let max_connections = max_connections(&mut fields, findings);
    let mut duration = |name| duration(&mut fields, name, findings);
    let tuning = Tuning {
        header_buffer_bytes,
        header_buffer_max_rewrite_bytes,
        client: duration("clientTimeout"),
        client_fin: duration("clientFinTimeout"),
        server: duration("serverTimeout"),
        server_fin: duration("serverFinTimeout"),
        tunnel: duration("tunnelTimeout"),
        connect: duration("connectTimeout"),
        keep_alive: duration("httpKeepAliveTimeout"),
        tls_inspect_delay: duration("tlsInspectDelay"),
        health_check_interval: duration("healthCheckInterval"),
        max_connections,
    };
    fields.ignore(PROCESS);
    fields.finish(findings);
    tuning
}

fn max_connections(fields: &mut Fields<'_>, findings: &mut Findings) -> Option<MaxConnections> {
    const LEAST: i64 = 2000;
    match fields.number("maxConnections", -1, 2_000_000, findings)? {
        -1 => Some(MaxConnections::Computed),
        0 => None,
        number if number < LEAST => {
            let message = format!("Invalid value: {number}; write -1, 0, or a number from {LEAST} to 2000000");
            findings.error(fields.path("maxConnections"), message);
            None
        }
        number => u32::try_from(number).ok().map(MaxConnections::Fixed),
    }
}

/// A Go duration; zero is the default.
fn duration(fields: &mut Fields<'_>, name: &'static str, findings: &mut Findings) -> Option<Duration> {
    let text = fields.text(name, findings)?;
    let parsed = go_duration(text);
    if parsed.is_none() {
        let message = format!("Invalid value: {text:?}; write a duration such as 30s, 500ms or 1h30m");
        findings.error(fields.path(name), message);
    }
    parsed.filter(|duration| !duration.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_go() {
        let good =
            [("0", 0), ("30s", 30_000), ("1h30m", 5_400_000), ("1.5s", 1500), ("500ms", 500), ("1m1s1ms", 61_001)];
        for (text, milliseconds) in good {
            assert_eq!(go_duration(text), Some(Duration::from_millis(milliseconds)), "{text}");
        }
        for bad in ["", "30", "s", "1d", "-1s", "1 s", "1.2.3s", "99999999999999999999h"] {
            assert_eq!(go_duration(bad), None, "{bad}");
        }
    }
}
