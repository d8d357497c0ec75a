//! CORS for a rule (Gateway API, HTTPCORSFilter; Fetch, 3.2).

use std::sync::Arc;

use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use router_table::cors::Cors;

use super::pages;

const ANY: &str = "*";
/// <https://wicg.github.io/private-network-access/>.
const REQUEST_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// What a rule grants to a request's origin.
#[derive(Clone, Debug)]
pub struct CorsGrant {
    cors: Arc<Cors>,
    /// `Access-Control-Allow-Origin`; `None`: nothing is granted.
    allowed: Option<HeaderValue>,
}

impl CorsGrant {
    /// What a rule grants to the origin of this request.
    pub fn with(cors: &Arc<Cors>, request: &HeaderMap) -> Self {
        // If the response is the same for all origins, it has the fields even without `Origin`, because caches store it
        // for all (Fetch, 3.2.5).
        let allowed = if is_for_all(cors) {
            Some(HeaderValue::from_static(ANY))
        } else {
            let origin = request.get(ORIGIN).filter(|origin| {
                let text = origin.to_str().unwrap_or_default();
                let is_like = || cors.origins_like.iter().any(|pattern| pattern.is_match(text));
                !text.is_empty() && (cors.origins.iter().any(|pattern| allows(pattern, text)) || is_like())
            });
            origin.cloned()
        };
        CorsGrant { cors: Arc::clone(cors), allowed }
    }

    /// Sets the CORS fields of a response; those of the endpoint are removed.
    pub fn set_fields(&self, response: &mut HeaderMap) {
        for name in [ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_EXPOSE_HEADERS] {
            response.remove(name);
        }
        if !is_for_all(&self.cors) {
            response.append(VARY, HeaderValue::from_static("Origin"));
        }
        if !self.set_origin(response) {
            return;
        }
        // With credentials, browsers treat `*` as a literal name.
        let exposed = self.cors.expose.iter().filter(|name| !(self.cors.credentials && ***name == *ANY));
        if let Some(exposed) = list(exposed) {
            response.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
        }
    }

    /// The response to a preflight request. Its status is always successful; the fields carry the result.
    pub fn preflight(&self, request: &HeaderMap) -> Response<Bytes> {
        let mut response = pages::empty(StatusCode::NO_CONTENT);
        let headers = response.headers_mut();
        let vary = "Origin, Access-Control-Request-Method, Access-Control-Request-Headers";
        headers.insert(VARY, HeaderValue::from_static(vary));
        if !self.set_origin(headers) {
            return response;
        }
        let wanted = |name: HeaderName| request.get(name).cloned();
        if let Some(methods) = self.list_or(&self.cors.methods, || wanted(ACCESS_CONTROL_REQUEST_METHOD)) {
            headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
        }
        if let Some(names) = self.list_or(&self.cors.headers, || wanted(ACCESS_CONTROL_REQUEST_HEADERS)) {
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, names);
        }
        if self.cors.private_network && wanted(REQUEST_PRIVATE_NETWORK).is_some_and(|asked| asked == "true") {
            headers.insert(ALLOW_PRIVATE_NETWORK, HeaderValue::from_static("true"));
        }
        headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from(self.cors.max_age));
        response
    }

    fn set_origin(&self, response: &mut HeaderMap) -> bool {
        let Some(origin) = &self.allowed else { return false };
        response.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        if self.cors.credentials {
            response.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
        }
        true
    }

    /// A list as configured. For `*` the names that the request asks for, which works for `Authorization` and with
    /// credentials, too.
    fn list_or(&self, items: &[Arc<str>], asked: impl FnOnce() -> Option<HeaderValue>) -> Option<HeaderValue> {
        if items.iter().any(|item| **item == *ANY) {
            let any = (!self.cors.credentials).then(|| HeaderValue::from_static(ANY));
            return asked().or(any);
        }
        list(items)
    }
}

/// Whether a response is the same for all origins.
fn is_for_all(cors: &Cors) -> bool {
    !cors.credentials && cors.origins.iter().any(|origin| **origin == *ANY)
}

fn list<'l>(items: impl IntoIterator<Item = &'l Arc<str>>) -> Option<HeaderValue> {
    let items: Vec<&str> = items.into_iter().map(|item| &**item).collect();
    if items.is_empty() { None } else { HeaderValue::try_from(items.join(", ")).ok() }
}

/// Whether a pattern matches an origin: `*`, or scheme, host and port. The scheme's default port may be omitted. The
/// host may be `*`, or begin with `*.` for one or more labels.
fn allows(pattern: &str, origin: &str) -> bool {
    if pattern == ANY {
        return true;
    }
    let (Some((scheme, host, port)), Some((of, asked, at))) = (parts(pattern), parts(origin)) else { return false };
    scheme.eq_ignore_ascii_case(of) && port == at && covers(host, asked)
}

fn covers(pattern: &str, host: &str) -> bool {
    match pattern.strip_prefix('*') {
        Some(end) => host
            .len()
            .checked_sub(end.len())
            .filter(|labels| *labels > 0)
            .and_then(|labels| host.get(labels..))
            .is_some_and(|found| found.eq_ignore_ascii_case(end)),
        None => pattern.eq_ignore_ascii_case(host),
    }
}

/// Scheme, host and port of an origin (RFC 6454 §6.2).
fn parts(origin: &str) -> Option<(&str, &str, u16)> {
    let (scheme, rest) = origin.split_once("://")?;
    let port_from = rest.rfind(']').unwrap_or_default();
    let colon = rest.get(port_from..)?.find(':').map(|colon| port_from + colon);
    let (host, port) = match colon {
        Some(colon) => (rest.get(..colon)?, rest.get(colon + 1..)?.parse().ok()?),
        None if scheme.eq_ignore_ascii_case("https") => (rest, 443),
        None if scheme.eq_ignore_ascii_case("http") => (rest, 80),
        None => return None,
    };
    Some((scheme, host, port))
}

#[cfg(test)]
mod tests;
