//! Formats a request's line according to a controller's `httpLogFormat` (HAProxy 2.8 configuration manual, 8.2.6).

use std::fmt::{Display, Write};

use http::Version;
use jiff::tz::TimeZone;
use router_table::policy::log_format::{LogField, LogFormat, LogPart};

use super::httplog::encoded;
use super::line::{Line, millis};

/// HAProxy's text for a request that could not be parsed.
const BAD_REQUEST: &str = "<BADREQ>";

impl Line {
    /// The line.
    pub fn formatted(&self, format: &LogFormat) -> String {
        let mut out = String::with_capacity(256);
        for part in format.0.iter() {
            match part {
                LogPart::Text(text) => {
                    // Around an empty field, blanks are not doubled.
                    let is_double = text.starts_with(' ') && (out.is_empty() || out.ends_with(' '));
                    out.push_str(if is_double { text.trim_start_matches(' ') } else { text });
                }
                LogPart::Field { what, quoted } => self.field(*what, *quoted, &mut out),
            }
        }
        out
    }

    fn field(&self, what: LogField, quoted: bool, out: &mut String) {
        let began = || jiff::Timestamp::try_from(self.began).unwrap_or_default().to_zoned(TimeZone::UTC);
        let captured = self.captured.as_deref();
        let total = millis(self.duration);
        let answered = self.answered.map(millis);
        let unknown = |known: Option<u64>| known.map_or_else(|| "-1".to_owned(), |known| known.to_string());
        let mut text = |text: Option<String>| match text {
            Some(text) if quoted => drop(write!(out, "\"{text}\"")),
            Some(text) => out.push_str(&text),
            None => out.push_str(if quoted { "\"\"" } else { "-" }),
        };
        match what {
            LogField::ClientAddress => text(Some(self.client.ip().to_string())),
            LogField::FrontendAddress => text(Some(self.listener.ip().to_string())),
            LogField::Frontend => text(Some(self.router.to_string())),
            LogField::FrontendTransport => text(Some(self.frontend())),
            LogField::Backend => text(Some(self.backend())),
            LogField::Server => text(Some(self.endpoint.map_or("<NOSRV>".to_owned(), |to| to.to_string()))),
            LogField::ServerAddress => text(self.endpoint.map(|to| to.ip().to_string())),
            LogField::ServerPort => number(out, self.endpoint.map_or("-".to_owned(), |to| to.port().to_string())),
            LogField::ClientPort => number(out, self.client.port()),
            LogField::FrontendPort => number(out, self.listener.port()),
            LogField::Date => number(out, began().strftime("%d/%b/%Y:%H:%M:%S%.3f")),
            LogField::DateWithZone => number(out, began().strftime("%d/%b/%Y:%H:%M:%S %z")),
            LogField::Timestamp => number(out, began().timestamp().as_second()),
            LogField::Milliseconds => number(out, format_args!("{:03}", began().millisecond())),
            LogField::TotalTime => number(out, total),
            LogField::ResponseTime => number(out, unknown(answered)),
            LogField::DataTime => number(out, unknown(answered.map(|answered| total.saturating_sub(answered)))),
            LogField::UnknownTime => number(out, -1),
            LogField::Status => number(out, unknown(self.status.map(|status| u64::from(status.as_u16())))),
            LogField::BytesOut => number(out, self.bytes_out),
            LogField::BytesIn => number(out, self.bytes_in),
            LogField::Method => text(self.method.as_ref().map(|(method, _)| method.to_string())),
            LogField::Path => text(Some(self.path.as_deref().map_or(BAD_REQUEST.to_owned(), encoded))),
            LogField::Version => text(self.method.as_ref().map(|(_, version)| version_name(*version))),
            LogField::RequestLine => text(Some(self.request_line())),
            LogField::Termination => number(out, self.flag.termination()),
            LogField::TerminationAndCookie => number(out, format_args!("{}--", self.flag.termination())),
            LogField::Retries => number(out, self.retries),
            LogField::UnknownCount => number(out, 0),
            LogField::RequestCookie => {
                text(captured.and_then(|captured| captured.request_cookie.as_deref().map(encoded)))
            }
            LogField::ResponseCookie => {
                text(captured.and_then(|captured| captured.response_cookie.as_deref().map(encoded)));
            }
            LogField::RequestHeaders => fields(out, captured.map_or(&[], |captured| &captured.request), quoted),
            LogField::ResponseHeaders => fields(out, captured.map_or(&[], |captured| &captured.response), quoted),
            LogField::Host => text(super::syslog::host_name()),
            LogField::Process => number(out, std::process::id()),
        }
    }

    /// The router, followed by `~` if TLS was terminated.
    pub(super) fn frontend(&self) -> String {
        format!("{}{}", self.router, if self.tls { "~" } else { "" })
    }

    /// The route's backend name in OpenShift's router; without a route, the frontend.
    pub(super) fn backend(&self) -> String {
        self.route.as_ref().map_or_else(|| self.frontend(), |route| route.backend())
    }

    /// Method, path without query, and version.
    pub(super) fn request_line(&self) -> String {
        match (&self.method, &self.path) {
            (Some((method, version)), Some(path)) => format!("{method} {} {}", encoded(path), version_name(*version)),
            _ => BAD_REQUEST.to_owned(),
        }
    }
}

fn version_name(version: Version) -> String {
    if version == Version::HTTP_2 { "HTTP/2.0".to_owned() } else { format!("{version:?}") }
}

/// Values that are never quoted.
fn number(out: &mut String, number: impl Display) {
    // Writing to a String cannot fail.
    let _ = write!(out, "{number}");
}

/// Captured fields; nothing if none are configured.
fn fields(out: &mut String, fields: &[(std::sync::Arc<str>, Option<String>)], quoted: bool) {
    if fields.is_empty() {
        return out.push_str(if quoted { "\"\"" } else { "" });
    }
    let values: Vec<String> =
        fields.iter().map(|(_, value)| value.as_deref().map(encoded).unwrap_or_default()).collect();
    let quote = if quoted { "\"" } else { "" };
    number(out, format_args!("{quote}{{{}}}{quote}", values.join("|")));
}
