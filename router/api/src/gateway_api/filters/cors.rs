//! `cors`.

use std::sync::Arc;

use router_model::field::Findings;
use router_table::cors::Cors;
use serde_json::Value;

use crate::fields::{Fields, describe};
use crate::gateway_api::read;
use crate::header_names::is_token;

/// Maximum number of entries of each list except `allowMethods`.
const MAX_CORS: usize = 64;

/// Reads `cors`.
pub fn cors(fields: &mut Fields<'_>, findings: &mut Findings) -> Cors {
    const METHODS: [&str; 10] = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "*"];
    let origins = cors_list(fields, "allowOrigins", MAX_CORS, findings, |text| {
        (!is_origin(text)).then(|| {
            "write *, or a scheme and a host, such as https://www.example.com or https://*.example.com".to_owned()
        })
    });
    let methods = cors_list(fields, "allowMethods", 9, findings, |text| {
        (!METHODS.contains(&text)).then(|| format!("write {}", read::one_of(&METHODS)))
    });
    let token = |text: &str| (!is_token(text)).then(|| "write a header name (RFC 9110 5.6.2)".to_owned());
    let headers = cors_list(fields, "allowHeaders", MAX_CORS, findings, token);
    let expose = cors_list(fields, "exposeHeaders", MAX_CORS, findings, token);
    for (name, list) in [("allowOrigins", &origins), ("allowMethods", &methods), ("allowHeaders", &headers)] {
        if list.len() > 1 && list.iter().any(|text| &**text == "*") {
            findings.error(fields.path(name), "Invalid value: * stands beside others; keep * alone, or remove it");
        }
    }
    let credentials = fields.truth("allowCredentials", findings).unwrap_or(false);
    let max_age = fields.number("maxAge", 1, i64::from(i32::MAX), findings).unwrap_or(5);
    let max_age = u32::try_from(max_age).unwrap_or(5);
    Cors { origins, credentials, methods, headers, expose, max_age, ..Cors::default() }
}

/// A list of valid strings without duplicates.
fn cors_list(
    fields: &mut Fields<'_>,
    name: &'static str,
    most: usize,
    findings: &mut Findings,
    fault: impl Fn(&str) -> Option<String>,
) -> Vec<Arc<str>> {
    let mut texts: Vec<Arc<str>> = Vec::new();
    for (path, item) in read::list(fields, name, 0, most, findings) {
        match item {
            Value::String(text) if texts.iter().any(|known| **known == **text) => {
                findings.error(path, format!("Duplicate value: {text:?}; keep one of them"));
            }
            Value::String(text) => match fault(text) {
                Some(advice) => findings.error(path, format!("Invalid value: {text:?}; {advice}")),
                None => texts.push(text.as_str().into()),
            },
            other => findings.error(path, format!("is {}; write a text", describe(other))),
        }
    }
    texts
}

/// `*`, or `http` or `https` with a host, whose first label or whole may be `*`, and an optional port.
fn is_origin(text: &str) -> bool {
    if text == "*" {
        return true;
    }
    let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else { return false };
    let (host, port) = rest.split_once(':').map_or((rest, None), |(host, port)| (host, Some(port)));
    let is_label = |label: &str| !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let is_host = host == "*" || host.strip_prefix("*.").unwrap_or(host).split('.').all(is_label);
    text.len() <= read::MAX_TEXT && is_host && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::is_origin;

    #[test]
    fn origins_are_those_of_the_api() {
        for good in ["*", "http://a", "https://a.b:80", "https://*.b.c", "https://*", "http://*:8080"] {
            assert!(is_origin(good), "{good}");
        }
        for bad in ["", "a.b", "ftp://a", "https://", "https://a/", "https://a.*.b", "https://a:x", "https://a..b"] {
            assert!(!is_origin(bad), "{bad}");
        }
    }
}
