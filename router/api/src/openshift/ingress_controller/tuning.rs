//! `tuningOptions`: limits and timeouts (docs/openshift.md#fields-of-ingresscontrollers).

use std::time::Duration;

use router_model::field::Findings;

use crate::fields::Fields;
use crate::go_duration::go_duration;

/// Limits and timeouts; `None` where the default holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tuning {
    /// Most bytes of a request's or response's headers (32768).
    pub header_buffer_bytes: Option<u32>,
    /// Of these, room that header actions may need (8192).
    pub header_buffer_max_rewrite_bytes: Option<u32>,
    /// How long a client may be silent (30 s).
    pub client: Option<Duration>,
    /// How long a client may take to close (1 s).
    pub client_fin: Option<Duration>,
    /// How long a backend may be silent (30 s).
    pub server: Option<Duration>,
    /// How long a backend may take to close (1 s).
    pub server_fin: Option<Duration>,
    /// How long a tunnel may be silent (1 h).
    pub tunnel: Option<Duration>,
    /// How long a connection to a backend may take (5 s).
    pub connect: Option<Duration>,
    /// How long an idle client connection stays open (300 s).
    pub keep_alive: Option<Duration>,
    /// How long a ClientHello may take (5 s).
    pub tls_inspect_delay: Option<Duration>,
    /// Time between health checks (5 s).
    pub health_check_interval: Option<Duration>,
    /// Most connections (50000).
    pub max_connections: Option<MaxConnections>,
}

impl Tuning {
    /// The fields that are written and that nothing acts on yet.
    pub fn without_effect(&self) -> impl Iterator<Item = &'static str> {
        self.server_fin.is_some().then_some("serverFinTimeout").into_iter()
    }
}

/// `maxConnections`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxConnections {
    /// `-1`: what the process's limits allow.
    Computed,
    /// This many.
    Fixed(u32),
}

/// How OpenShift runs HAProxy; there is no such thing here.
const PROCESS: &[&str] = &["threadCount", "reloadInterval", "configurationManagement"];

/// Reads `tuningOptions`. What is wrong is as if it were not there.
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

/// A duration as Go writes it; zero is the default.
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
