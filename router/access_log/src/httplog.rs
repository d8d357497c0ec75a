//! Formats a line as HAProxy's `option httplog` and `option tcplog` (HAProxy 2.8 configuration manual, 8.2.2 and
//! 8.2.3), for existing parsers. Unavailable values are written as HAProxy writes unknown ones: `-1` for a time, `0`
//! for a count.

use std::fmt::Write;

use http::StatusCode;
use jiff::tz::TimeZone;

use super::line::{Captured, Line, millis};

impl Line {
    /// The line. The frontend is the router, followed by `~` if TLS was terminated.
    pub fn httplog(&self) -> String {
        let mut text = String::with_capacity(256);
        // Writing to a String cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let began = jiff::Timestamp::try_from(self.began).unwrap_or_default().to_zoned(TimeZone::UTC);
        let (frontend, backend) = (self.frontend(), self.backend());
        write!(out, "{}:{} [", self.client.ip(), self.client.port())?;
        write!(out, "{}] {frontend} {backend}/", began.strftime("%d/%b/%Y:%H:%M:%S%.3f"))?;
        match self.endpoint {
            Some(endpoint) => write!(out, "{endpoint} ")?,
            None => out.write_str("<NOSRV> ")?,
        }
        let total = millis(self.duration);
        if self.method.is_none() {
            return write!(
                out,
                "-1/-1/{total} {} {} 0/0/0/0/{} 0/0",
                self.bytes_out,
                self.flag.termination(),
                self.retries
            );
        }
        let answered = self.answered.map_or(-1, |answered| i64::try_from(millis(answered)).unwrap_or(i64::MAX));
        let status = self.status.map_or_else(|| "-1".to_owned(), |status: StatusCode| status.as_u16().to_string());
        write!(out, "-1/-1/-1/{answered}/{total} {status} {} ", self.bytes_out)?;
        let captured = self.captured.as_deref();
        let cookie = |cookie: Option<&String>| cookie.map_or_else(|| "-".to_owned(), |cookie| encoded(cookie));
        let (sent, set) = captured
            .map_or((None, None), |captured| (captured.request_cookie.as_ref(), captured.response_cookie.as_ref()));
        write!(out, "{} {} {}-- 0/0/0/0/{} 0/0 ", cookie(sent), cookie(set), self.flag.termination(), self.retries)?;
        if let Some(Captured { request, response, .. }) = captured {
            for fields in [request, response].into_iter().filter(|fields| !fields.is_empty()) {
                let values = fields.iter().map(|(_, value)| value.as_deref().map(encoded).unwrap_or_default());
                write!(out, "{{{}}} ", values.collect::<Vec<_>>().join("|"))?;
            }
        }
        write!(out, "\"{}\"", self.request_line())
    }
}

/// Encodes delimiters and special characters as `#` and two hexadecimal digits.
pub(super) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'"' | b'#' | b'{' | b'|' | b'}' | 0..=31 | 127.. => {
                let _ = write!(out, "#{byte:02X}");
            }
            _ => out.push(char::from(byte)),
        }
    }
    out
}
