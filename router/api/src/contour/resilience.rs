//! Retries and health checks, with Contour's defaults.

use std::sync::Arc;
use std::time::Duration;

use router_model::field::Findings;
use router_table::rule::{HealthCheck, HealthRequest, Retry};

use crate::contour::common::timeout;
use crate::contour::types::Violation;
use crate::fields::Fields;

/// Maximum number of retries of a request.
const MAX_RETRIES: i64 = 100;
/// Envoy's `retry_back_off.base_interval`.
const BACKOFF: Duration = Duration::from_millis(25);
/// Default of `retryOn`.
const RETRY_ON: &str = "5xx";
/// Default of `Host` in health checks.
const HOST: &str = "contour-envoy-healthcheck";
const INTERVAL: i64 = 10;
const TIMEOUT: i64 = 2;
const UNHEALTHY: i64 = 3;
const HEALTHY: i64 = 2;
/// Maximum interval and timeout, in seconds, and maximum thresholds.
const MOST: i64 = 86_400;

/// Kind of object that a policy belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// An IngressRoute.
    IngressRoute,
    /// An HTTPProxy.
    HttpProxy,
}

/// Reads `retryPolicy`: the retries, and the timeout of one try.
pub fn retry(
    holder: &mut Fields<'_>,
    of: Of,
    faults: &mut Vec<Violation>,
    findings: &mut Findings,
) -> (Option<Retry>, Option<Duration>) {
    let mut policy = holder.mapping("retryPolicy", findings);
    if !policy.is_present() {
        return (None, None);
    }
    let least = if of == Of::HttpProxy { -1 } else { 0 };
    // 0 means the default, -1 no retries.
    let count = match policy.number("count", least, MAX_RETRIES, findings).unwrap_or_default() {
        0 => 1,
        count => u32::try_from(count).unwrap_or_default(),
    };
    let per_try = timeout(&mut policy, "perTryTimeout", faults, findings).flatten();
    let mut retry = Retry { count, statuses: Vec::new(), unanswered: false, unreachable: false, backoff: BACKOFF };
    let (mut words, mut codes) = (Vec::new(), Vec::new());
    if of == Of::HttpProxy {
        words = policy.texts("retryOn", findings);
        for (path, item) in policy.list("retriableStatusCodes", findings) {
            match item.as_u64().and_then(|code| u16::try_from(code).ok()).filter(|code| (100..600).contains(code)) {
                Some(code) => codes.push(code),
                None => findings.error(path, format!("Invalid value: {item}; write a status from 100 to 599")),
            }
        }
    }
    if words.is_empty() {
        words.push((policy.path("retryOn"), RETRY_ON));
    }
    for (path, word) in words {
        match word {
            "5xx" | "gateway-error" | "reset" => {
                (retry.unanswered, retry.unreachable) = (true, true);
                retry.statuses.extend(match word {
                    "5xx" => Some(500..=599),
                    "gateway-error" => Some(502..=504),
                    _ => None,
                });
            }
            "connect-failure" => retry.unreachable = true,
            "retriable-4xx" => retry.statuses.push(409..=409),
            "retriable-status-codes" => retry.statuses.extend(codes.iter().map(|code| *code..=*code)),
            // The endpoint has not processed such a request; it is always retried.
            "refused-stream" => {}
            _ => {
                let advice = "write 5xx, gateway-error, reset, connect-failure, retriable-4xx, refused-stream or \
                              retriable-status-codes";
                faults.push(Violation::new(
                    "SpecError",
                    "UnsupportedField",
                    format!("{path}: {word} is not supported; {advice}"),
                ));
            }
        }
    }
    policy.finish(findings);
    (Some(retry).filter(|retry| retry.count > 0), per_try)
}

/// Reads `healthCheck` (IngressRoute) or `healthCheckPolicy` of a route (HTTPProxy).
pub fn health_check(
    holder: &mut Fields<'_>,
    name: &'static str,
    of: Of,
    findings: &mut Findings,
) -> Option<Arc<HealthCheck>> {
    let mut check = holder.mapping(name, findings);
    if !check.is_present() {
        return None;
    }
    let path = check.required("path", "the path to ask for, such as /healthz", findings);
    if let Some(path) = path.filter(|path| !path.starts_with('/') || !path.bytes().all(|byte| byte.is_ascii_graphic()))
    {
        let message = format!("Invalid value: {path:?}; write a path that begins with /, in printable ASCII");
        findings.error(check.path("path"), message);
    }
    let host = check.text("host", findings).filter(|host| !host.is_empty()).unwrap_or(HOST);
    if !host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte)) {
        findings
            .error(check.path("host"), format!("Invalid value: {host:?}; write a host name, such as www.example.com"));
    }
    let mut expected = Vec::new();
    if of == Of::HttpProxy {
        for (path, item) in check.list("expectedStatuses", findings) {
            let mut range = Fields::of(Some(item), path.clone(), findings);
            let (start, end) = (range.number("start", 100, 599, findings), range.number("end", 101, 600, findings));
            range.finish(findings);
            // The end is exclusive.
            match start
                .zip(end)
                .and_then(|(start, end)| Some((u16::try_from(start).ok()?, u16::try_from(end - 1).ok()?)))
            {
                Some((start, end)) if start <= end => expected.push((start, end)),
                Some(_) => findings.error(path, "Invalid value: the range is empty; write an end above its start"),
                None => {}
            }
        }
    }
    if expected.is_empty() {
        expected.push((200, 200));
    }
    let request = path.map(|path| HealthRequest { host: host.into(), path: path.into(), expected });
    let times = times(&mut check, findings);
    check.finish(findings);
    Some(Arc::new(HealthCheck { request: Some(request?), ..times }))
}

/// Reads `healthCheckPolicy` of a `tcpproxy`: a successful connect is healthy.
pub fn tcp_health_check(holder: &mut Fields<'_>, findings: &mut Findings) -> Option<Arc<HealthCheck>> {
    let mut check = holder.mapping("healthCheckPolicy", findings);
    if !check.is_present() {
        return None;
    }
    let times = times(&mut check, findings);
    check.finish(findings);
    Some(Arc::new(times))
}

/// Fields of all checks; 0 means the default.
fn times(check: &mut Fields<'_>, findings: &mut Findings) -> HealthCheck {
    let mut number = |name, default| match check.number(name, 0, MOST, findings) {
        None | Some(0) => default,
        Some(number) => number,
    };
    let [interval, timeout, unhealthy, healthy] = [
        number("intervalSeconds", INTERVAL),
        number("timeoutSeconds", TIMEOUT),
        number("unhealthyThresholdCount", UNHEALTHY),
        number("healthyThresholdCount", HEALTHY),
    ]
    .map(|number| u32::try_from(number).unwrap_or(u32::MAX));
    let seconds = |number| Duration::from_secs(u64::from(number));
    HealthCheck { request: None, interval: seconds(interval), timeout: seconds(timeout), unhealthy, healthy }
}
