//! `logging.access`: destination and content of the access log (docs/openshift.md#fields-of-ingresscontrollers).
//!
//! The agent writes one line per request and relayed connection to its own log, which in a container is what
//! `destination.type: Container` means; with `Syslog` the router's lines go to a server instead.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use router_model::field::{FieldPath, Findings};
use router_table::policy::access_log::{CookieCapture, HeaderCapture, Syslog};
use router_table::policy::format::FormatError;
use router_table::policy::log_format::LogFormat;

use crate::fields::Fields;
use crate::header_names::is_token;

/// Syslog facilities by code (RFC 5424, table 1), with the names of the API and HAProxy.
const FACILITIES: [&str; 24] = [
    "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "auth2", "ftp", "ntp", "audit",
    "alert", "cron2", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7",
];

/// Defaults of OpenShift's router.
const DEFAULT_FACILITY: &str = "local1";
const DEFAULT_MAX_LENGTH: i64 = 1024;

/// Settings of the access log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessLogSettings {
    /// `httpCaptureHeaders.request`.
    pub request_headers: Vec<HeaderCapture>,
    /// `httpCaptureHeaders.response`.
    pub response_headers: Vec<HeaderCapture>,
    /// `httpCaptureCookies`; at most one.
    pub cookie: Option<CookieCapture>,
    /// `logEmptyRequests: Ignore`: connections without a request have no line.
    pub ignore_empty: bool,
    /// `destination.syslog`; `None`: the agent's own log.
    pub syslog: Option<Syslog>,
    /// `httpLogFormat`.
    pub format: Option<LogFormat>,
    /// Fields with unsupported values.
    pub without_effect: Vec<FieldPath>,
    /// `httpLogFormat`, if it has an unsupported field, which has a warning.
    pub format_without_effect: Vec<FieldPath>,
}

/// Reads `logging`.
pub fn parse(mut logging: Fields<'_>, findings: &mut Findings) -> AccessLogSettings {
    let mut log = AccessLogSettings::default();
    let mut access = logging.mapping("access", findings);
    if access.is_present() {
        log.syslog = destination(&mut access, &mut log.without_effect, findings);
        if let Some(text) = access.text("httpLogFormat", findings) {
            format(text, access.path("httpLogFormat"), &mut log, findings);
        }
        let mut captured = access.mapping("httpCaptureHeaders", findings);
        log.request_headers = captured_headers(&mut captured, "request", findings);
        log.response_headers = captured_headers(&mut captured, "response", findings);
        captured.finish(findings);
        log.cookie = captured_cookie(&mut access, findings);
        match access.text("logEmptyRequests", findings) {
            None | Some("Log") => {}
            Some("Ignore") => log.ignore_empty = true,
            Some(other) => {
                let message = format!("Unsupported value: {other:?}; write Log or Ignore");
                findings.error(access.path("logEmptyRequests"), message);
            }
        }
    }
    access.finish(findings);
    logging.finish(findings);
    log
}

/// Reads `httpLogFormat`. A format with an unknown field has no effect.
fn format(text: &str, path: FieldPath, log: &mut AccessLogSettings, findings: &mut Findings) {
    match LogFormat::read(text) {
        Ok(format) => log.format = Some(format),
        Err(FormatError::Malformed(fault)) => findings.error(path, format!("Invalid value: {text:?}: {fault}")),
        Err(FormatError::Unknown(field)) => {
            let message = format!("{field} cannot be written here, so lines have their usual form; leave it out");
            findings.warn(path.clone(), message);
            log.format_without_effect.push(path);
        }
    }
}

fn destination(access: &mut Fields<'_>, not_done: &mut Vec<FieldPath>, findings: &mut Findings) -> Option<Syslog> {
    let mut server = None;
    let mut destination = access.mapping("destination", findings);
    let kind = destination.text("type", findings);
    let mut container = destination.mapping("container", findings);
    if container.number("maxLength", 480, 8192, findings).is_some() {
        not_done.push(container.path("maxLength"));
    }
    container.finish(findings);
    let mut syslog = destination.mapping("syslog", findings);
    match kind {
        Some("Container") => {}
        Some("Syslog") => {
            server = server_of(&mut syslog, findings);
        }
        None => {
            let message = "Required value: write Container, for the agent's own log, or Syslog";
            findings.error(destination.path("type"), message);
        }
        Some(other) => {
            let message = format!("Unsupported value: {other:?}; write Container or Syslog");
            findings.error(destination.path("type"), message);
        }
    }
    syslog.ignore(&["address", "port", "facility", "maxLength"]);
    syslog.finish(findings);
    destination.finish(findings);
    server
}

/// Reads `destination.syslog`; after an error it may be incomplete.
fn server_of(syslog: &mut Fields<'_>, findings: &mut Findings) -> Option<Syslog> {
    let address = syslog.text("address", findings).map(str::to_owned);
    let ip = address.as_deref().and_then(|address| address.parse::<IpAddr>().ok());
    match (address, ip) {
        (_, Some(_)) => {}
        (Some(other), None) => {
            let message = format!("Invalid value: {other:?}; write the server's IP address, such as 10.0.0.7");
            findings.error(syslog.path("address"), message);
        }
        (None, None) => findings.error(syslog.path("address"), "Required value: write the server's IP address"),
    }
    if syslog.value("port").is_none() {
        findings.error(syslog.path("port"), "Required value: write the server's UDP port, such as 514");
    }
    let port = syslog.number("port", 1, 65535, findings);
    let max_length = syslog.number("maxLength", 480, 4096, findings).unwrap_or(DEFAULT_MAX_LENGTH);
    let name = syslog.text("facility", findings).unwrap_or(DEFAULT_FACILITY);
    let facility = FACILITIES.iter().position(|facility| *facility == name);
    if facility.is_none() {
        let message = format!("Unsupported value: {name:?}; write one of {}", FACILITIES.join(", "));
        findings.error(syslog.path("facility"), message);
    }
    Some(Syslog {
        address: SocketAddr::new(ip?, u16::try_from(port?).ok()?),
        facility: u8::try_from(facility?).ok()?,
        max_length: usize::try_from(max_length).ok()?,
    })
}

fn captured_headers(captured: &mut Fields<'_>, list: &'static str, findings: &mut Findings) -> Vec<HeaderCapture> {
    let mut headers = Vec::new();
    for (path, item) in captured.list(list, findings) {
        let mut header = Fields::of(Some(item), path, findings);
        let name = name(&mut header, "name", "header", "X-Request-Id", findings);
        let max_length = max_length(&mut header, i64::from(i32::MAX), findings);
        header.finish(findings);
        headers.extend(name.zip(max_length).map(|(name, max_length)| HeaderCapture { name, max_length }));
    }
    headers
}

fn captured_cookie(access: &mut Fields<'_>, findings: &mut Findings) -> Option<CookieCapture> {
    let cookies = access.list("httpCaptureCookies", findings);
    if cookies.len() > 1 {
        let message = format!("Too many: there are {}; capture at most one cookie", cookies.len());
        findings.error(access.path("httpCaptureCookies"), message);
    }
    let mut captured = None;
    for (path, item) in cookies {
        let mut cookie = Fields::of(Some(item), path, findings);
        let is_prefix = match cookie.text("matchType", findings) {
            Some("Exact") => Some(false),
            Some("Prefix") => Some(true),
            other => {
                let found = other.map_or("Required value".to_owned(), |other| format!("Unsupported value: {other:?}"));
                findings.error(cookie.path("matchType"), format!("{found}; write Exact or Prefix"));
                None
            }
        };
        let name = is_prefix.and_then(|is_prefix| {
            let member = if is_prefix { "namePrefix" } else { "name" };
            name(&mut cookie, member, "cookie", "session", findings)
        });
        let max_length = max_length(&mut cookie, 1024, findings);
        cookie.ignore(&["name", "namePrefix"]);
        cookie.finish(findings);
        if let (Some(name), Some(is_prefix), Some(max_length)) = (name, is_prefix, max_length) {
            captured = Some(CookieCapture { name, is_prefix, max_length });
        }
    }
    captured
}

/// A required name of a header or cookie.
fn name(
    fields: &mut Fields<'_>,
    member: &'static str,
    what: &str,
    example: &str,
    findings: &mut Findings,
) -> Option<Arc<str>> {
    match fields.text(member, findings) {
        Some(name) if is_token(name) => return Some(name.into()),
        Some(other) => {
            let message = format!("Invalid value: {other:?}: is not a valid {what} name; write one such as {example}");
            findings.error(fields.path(member), message);
        }
        None => findings.error(fields.path(member), format!("Required value: write the {what}'s name")),
    }
    None
}

fn max_length(fields: &mut Fields<'_>, most: i64, findings: &mut Findings) -> Option<usize> {
    if fields.value("maxLength").is_none() {
        findings.error(fields.path("maxLength"), "Required value: write how many bytes to log at most, such as 128");
    }
    fields.number("maxLength", 1, most, findings).and_then(|length| usize::try_from(length).ok())
}
