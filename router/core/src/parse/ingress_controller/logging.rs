//! `logging.access`: where the access log goes, and what is in it (openshift.md e).
//!
//! The agent writes one line for each request and relayed connection to its own log. In a container that is what
//! `destination.type: Container` asks for; everything beyond it is named as having no effect.

use crate::field::{FieldPath, Findings};
use crate::parse::fields::Fields;
use crate::parse::headers;

/// Syslog facilities, as the API lists them.
const FACILITIES: [&str; 24] = [
    "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "auth2", "ftp", "ntp", "audit",
    "alert", "cron2", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7",
];

/// Reads `logging`. Gives the paths of what is asked for and not done.
pub fn parse(mut logging: Fields<'_>, findings: &mut Findings) -> Vec<FieldPath> {
    let mut not_done = Vec::new();
    let mut access = logging.mapping("access", findings);
    if access.is_present() {
        destination(&mut access, &mut not_done, findings);
        if access.text("httpLogFormat", findings).is_some() {
            not_done.push(access.path("httpLogFormat"));
        }
        captured_headers(&mut access, &mut not_done, findings);
        captured_cookies(&mut access, &mut not_done, findings);
        match access.text("logEmptyRequests", findings) {
            None | Some("Log") => {}
            Some("Ignore") => not_done.push(access.path("logEmptyRequests")),
            Some(other) => {
                let message = format!("Unsupported value: {other:?}; write Log or Ignore");
                findings.error(access.path("logEmptyRequests"), message);
            }
        }
    }
    access.finish(findings);
    logging.finish(findings);
    not_done
}

fn destination(access: &mut Fields<'_>, not_done: &mut Vec<FieldPath>, findings: &mut Findings) {
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
            check_syslog(&mut syslog, findings);
            not_done.push(destination.path("syslog"));
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
}

fn check_syslog(syslog: &mut Fields<'_>, findings: &mut Findings) {
    match syslog.text("address", findings) {
        Some(address) if address.parse::<std::net::IpAddr>().is_ok() => {}
        Some(other) => {
            let message = format!("Invalid value: {other:?}; write the server's IP address, such as 10.0.0.7");
            findings.error(syslog.path("address"), message);
        }
        None => findings.error(syslog.path("address"), "Required value: write the server's IP address"),
    }
    if syslog.value("port").is_none() {
        findings.error(syslog.path("port"), "Required value: write the server's UDP port, such as 514");
    }
    syslog.number("port", 1, 65535, findings);
    syslog.number("maxLength", 480, 4096, findings);
    if let Some(other) = syslog.text("facility", findings).filter(|facility| !FACILITIES.contains(facility)) {
        let message = format!("Unsupported value: {other:?}; write one of {}", FACILITIES.join(", "));
        findings.error(syslog.path("facility"), message);
    }
}

fn captured_headers(access: &mut Fields<'_>, not_done: &mut Vec<FieldPath>, findings: &mut Findings) {
    let mut captured = access.mapping("httpCaptureHeaders", findings);
    let mut is_asked = false;
    for list in ["request", "response"] {
        for (path, item) in captured.list(list, findings) {
            is_asked = true;
            let mut header = Fields::of(Some(item), path, findings);
            name(&mut header, "name", "header", "X-Request-Id", findings);
            max_length(&mut header, i64::from(i32::MAX), findings);
            header.finish(findings);
        }
    }
    captured.finish(findings);
    if is_asked {
        not_done.push(access.path("httpCaptureHeaders"));
    }
}

fn captured_cookies(access: &mut Fields<'_>, not_done: &mut Vec<FieldPath>, findings: &mut Findings) {
    let cookies = access.list("httpCaptureCookies", findings);
    if cookies.len() > 1 {
        let message = format!("Too many: there are {}; capture at most one cookie", cookies.len());
        findings.error(access.path("httpCaptureCookies"), message);
    }
    if !cookies.is_empty() {
        not_done.push(access.path("httpCaptureCookies"));
    }
    for (path, item) in cookies {
        let mut cookie = Fields::of(Some(item), path, findings);
        match cookie.text("matchType", findings) {
            Some("Exact") => name(&mut cookie, "name", "cookie", "session", findings),
            Some("Prefix") => name(&mut cookie, "namePrefix", "cookie", "session", findings),
            other => {
                let found = other.map_or("Required value".to_owned(), |other| format!("Unsupported value: {other:?}"));
                findings.error(cookie.path("matchType"), format!("{found}; write Exact or Prefix"));
            }
        }
        max_length(&mut cookie, 1024, findings);
        cookie.ignore(&["name", "namePrefix"]);
        cookie.finish(findings);
    }
}

/// A required name of a header or cookie.
fn name(fields: &mut Fields<'_>, member: &'static str, what: &str, example: &str, findings: &mut Findings) {
    match fields.text(member, findings) {
        Some(name) if headers::is_token(name) => {}
        Some(other) => {
            let message = format!("Invalid value: {other:?}: is no {what} name; write one such as {example}");
            findings.error(fields.path(member), message);
        }
        None => findings.error(fields.path(member), format!("Required value: write the {what}'s name")),
    }
}

fn max_length(fields: &mut Fields<'_>, most: i64, findings: &mut Findings) {
    if fields.value("maxLength").is_none() {
        findings.error(fields.path("maxLength"), "Required value: write how many bytes to log at most, such as 128");
    }
    fields.number("maxLength", 1, most, findings);
}
