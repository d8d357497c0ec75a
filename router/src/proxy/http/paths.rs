//! Paths that rules change, and where they send clients (Gateway API: HTTPPathModifier, HTTPRequestRedirectFilter).

use bytes::Bytes;
use http::header::LOCATION;
use http::uri::PathAndQuery;
use http::{HeaderValue, Response, StatusCode, Uri};
use router_core::rule::{PathChange, RedirectTo, Rule};

use super::pages;

/// What a path becomes. Of a prefix whole elements are replaced, and the rest follows; what would be empty is `/`.
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

/// The URI with its path changed; the query stays. `None` when no URI comes of it.
pub fn rewritten(uri: &Uri, path: String) -> Option<Uri> {
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(with_query(path, uri)).ok()?);
    Uri::from_parts(parts).ok()
}

fn with_query(mut path: String, uri: &Uri) -> String {
    if let Some(query) = uri.query() {
        path.push('?');
        path.push_str(query);
    }
    path
}

/// What a redirect needs to know of its request.
#[derive(Clone, Copy, Debug)]
pub struct RedirectFrom<'r> {
    /// Whether it came over TLS.
    pub tls: bool,
    /// The port that was connected to.
    pub port: u16,
    /// Host and port as the client wrote them.
    pub authority: &'r HeaderValue,
    /// Its target.
    pub uri: &'r Uri,
}

/// A rule's redirect. The port is the one that the rule names, else the scheme's own where the rule names a scheme, else
/// that of the listener; a scheme's own port is not written. `None` when no location comes of it.
pub fn redirect(rule: &Rule, to: &RedirectTo, from: &RedirectFrom<'_>) -> Option<Response<Bytes>> {
    let scheme = to.scheme.as_deref().unwrap_or(if from.tls { "https" } else { "http" });
    let host = match &to.hostname {
        Some(hostname) => hostname.as_str(),
        None => without_port(from.authority.to_str().ok()?),
    };
    let own_port = if scheme.eq_ignore_ascii_case("https") { 443 } else { 80 };
    let port = to.port.unwrap_or(if to.scheme.is_some() { own_port } else { from.port });
    let port = if port == own_port { String::new() } else { format!(":{port}") };
    let path = match &to.path {
        Some(change) => changed(change, &rule.prefix, from.uri.path()),
        None => from.uri.path().to_owned(),
    };
    let location = format!("{scheme}://{host}{port}{}", with_query(path, from.uri));
    let mut response = pages::empty(StatusCode::from_u16(to.status).ok()?);
    response.headers_mut().insert(LOCATION, HeaderValue::try_from(location).ok()?);
    Some(response)
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
