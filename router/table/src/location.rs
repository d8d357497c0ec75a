//! `Location` of redirects, and path replacement (Gateway API: HTTPPathModifier, HTTPRequestRedirectFilter;
//! docs/openshift.md#insecure-policy).

use router_common::hostname::normalise_authority;

use crate::rule::{PathChange, RedirectPort, RedirectTo};

/// The changed path. A prefix is replaced by whole path elements, and the rest follows; an empty result is `/`.
pub fn changed(change: &PathChange, prefix: &str, path: &str) -> String {
    let path = match change {
        PathChange::Full(path) => path.to_string(),
        PathChange::Prefix(replacement) => {
            let without_slash = |text| str::strip_suffix(text, "/").unwrap_or(text);
            let rest = path.strip_prefix(without_slash(prefix)).unwrap_or(path);
            [without_slash(replacement), rest].concat()
        }
    };
    if path.starts_with('/') { path } else { format!("/{path}") }
}

/// The properties of a request that determine a redirect.
#[derive(Clone, Copy, Debug)]
pub struct RedirectFrom<'r> {
    /// Whether the request arrived over TLS.
    pub tls: bool,
    /// Port of the listener.
    pub port: u16,
    /// The router's port for HTTPS.
    pub https_port: Option<u16>,
    /// Host and port as sent by the client.
    pub authority: &'r str,
    /// The request's path.
    pub path: &'r str,
    /// The request's query.
    pub query: Option<&'r str>,
}

/// `Location` of a rule's redirect; `prefix` is the rule's. The port is the rule's; else the scheme's default port if
/// the rule has a scheme; else the listener's. A scheme's default port is omitted.
pub fn of_rule(to: &RedirectTo, prefix: &str, from: &RedirectFrom<'_>) -> String {
    let scheme = to.scheme.as_deref().unwrap_or(if from.tls { "https" } else { "http" });
    let host = match &to.hostname {
        Some(hostname) => hostname.as_str(),
        None => without_port(from.authority),
    };
    let own_port = if scheme.eq_ignore_ascii_case("https") { 443 } else { 80 };
    let port = match to.port {
        Some(RedirectPort::Number(port)) => port,
        Some(RedirectPort::RouterHttps) => mapped_port(from.authority, from.port, from.https_port).unwrap_or(443),
        None if to.scheme.is_some() => own_port,
        None => from.port,
    };
    let port = if port == own_port { String::new() } else { format!(":{port}") };
    let path = match &to.path {
        Some(change) => changed(change, prefix, from.path),
        None => from.path.to_owned(),
    };
    let query = from.query.map(|query| format!("?{query}")).unwrap_or_default();
    format!("{scheme}://{host}{port}{path}{query}")
}

/// `Location` of a Route's redirect to https; `https_port`: the port to include, if it is not 443.
pub fn to_https(host: &str, https_port: Option<u16>, path_and_query: &str) -> String {
    let port = https_port.filter(|port| *port != 443).map(|port| format!(":{port}")).unwrap_or_default();
    format!("https://{host}{port}{path_and_query}")
}

/// The router's port for HTTPS, if the client connected to `listener` and wrote that port in `authority`: then no load
/// balancer maps ports in between, so the port for HTTPS can be reached directly, too. Otherwise a redirect has no
/// port, as in OpenShift (docs/openshift.md#insecure-policy).
pub fn mapped_port(authority: &str, listener: u16, https_port: Option<u16>) -> Option<u16> {
    let written = normalise_authority(authority.as_bytes()).ok().and_then(|(written, _)| written.port());
    https_port.filter(|_| written == Some(listener))
}

/// The host of a valid authority.
fn without_port(authority: &str) -> &str {
    let port_from = authority.rfind(']').unwrap_or_default();
    match authority.get(port_from..).and_then(|rest| rest.find(':')) {
        Some(colon) => authority.get(..port_from + colon).unwrap_or(authority),
        None => authority,
    }
}

#[cfg(test)]
mod tests;
