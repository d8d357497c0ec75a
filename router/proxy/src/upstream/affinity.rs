//! Session affinity by cookie.
//!
//! A Route's cookie names an endpoint, with the names and attributes of OpenShift
//! (docs/openshift.md#annotations-of-routes). Its name is the route's `router.openshift.io/cookie_name`, else the first
//! 16 bytes of SHA-256("namespace/name") in hex; OpenShift uses another hash of the same kind. Its value is derived
//! likewise from the route and the endpoint's address: it is the same on every node and after every restart, and
//! differs between routes. It is not a secret: a client that guesses the address can verify its guess.
//!
//! A rule's cookie (Contour, `strategy: Cookie`) names the client by a random number. The endpoint is derived from that
//! number by [`hashing`](super::hashing), so all rules of a host can share the cookie, and a client keeps its endpoint
//! in each of them. The endpoint receives the cookie, too, as with Envoy.

use http::header::{CACHE_CONTROL, COOKIE, Entry, SET_COOKIE};
use http::{HeaderMap, HeaderValue};
use router_table::policy::{HashedPart, SameSite};
use router_table::table::{InsecurePolicy, ResolvedRoute, RouteKind};

use super::tag::Tag;

/// An affinity cookie.
#[derive(Debug, PartialEq, Eq)]
pub struct Cookie {
    name: Box<str>,
    attributes: String,
    /// Meaning of its value.
    pub stands_for: StandsFor,
}

/// Meaning of a cookie's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandsFor {
    /// The endpoint of the client.
    Endpoint,
    /// The client.
    Client,
}

impl Cookie {
    /// The cookie of a route; `None` without affinity: passthrough, `disable_cookies`, or a rule without a cookie.
    pub fn of(route: &ResolvedRoute) -> Option<Self> {
        let RouteKind::Http { tls, .. } = &route.kind else { return None };
        let hashed = route.policy.hash.iter().find_map(|of| match &of.part {
            HashedPart::Cookie(name) => Some(name.clone()),
            _ => None,
        });
        if let Some(name) = hashed {
            // Attributes as Envoy's. Not `Secure`, because clear-text routes may need it, too.
            return Some(Cookie { name, attributes: "; Path=/; HttpOnly".to_owned(), stands_for: StandsFor::Client });
        }
        let affinity = &route.policy.affinity;
        if affinity.disabled || route.is_of_rule() {
            return None;
        }
        let name = affinity.cookie.clone().unwrap_or_else(|| Tag::of_text(&route.id.to_string()).to_string().into());
        let mut attributes = "; path=/; HttpOnly".to_owned();
        // A client does not send a `Secure` cookie over clear text, which this route allows.
        if tls.as_ref().is_some_and(|tls| tls.insecure != InsecurePolicy::Allow) {
            attributes.push_str(match affinity.same_site {
                SameSite::Lax => "; Secure; SameSite=Lax",
                SameSite::Strict => "; Secure; SameSite=Strict",
                SameSite::None => "; Secure; SameSite=None",
            });
        }
        Some(Cookie { name, attributes, stands_for: StandsFor::Endpoint })
    }

    /// The first non-empty value of the cookie in a request.
    pub fn find<'h>(&self, headers: &'h HeaderMap) -> Option<&'h [u8]> {
        let pairs = headers.get_all(COOKIE).iter().flat_map(|field| field.as_bytes().split(|byte| *byte == b';'));
        let values = pairs.filter_map(|pair| value(pair.trim_ascii(), &self.name));
        values.map(|value| unquoted(value.trim_ascii())).find(|value| !value.is_empty())
    }

    /// Removes the cookie from a request, because it is for the router alone. Returns the endpoint's tag if the value
    /// is valid.
    pub fn take(&self, headers: &mut HeaderMap) -> Option<Tag> {
        if !headers.get_all(COOKIE).iter().any(|field| self.pairs(field).any(|(ours, _)| ours)) {
            return None;
        }
        let mut tag = None;
        let mut kept = Vec::new();
        for field in headers.get_all(COOKIE) {
            let mut rest = Vec::with_capacity(field.len());
            for (ours, pair) in self.pairs(field) {
                if ours {
                    tag = tag.or_else(|| Tag::parse(value(pair, &self.name)?.trim_ascii()));
                } else {
                    rest.extend_from_slice(if rest.is_empty() { b"" } else { b"; " });
                    rest.extend_from_slice(pair);
                }
            }
            // A part of a valid field value is valid.
            kept.extend(HeaderValue::from_bytes(&rest).ok().filter(|value| !value.is_empty()));
        }
        headers.remove(COOKIE);
        for field in kept {
            headers.append(COOKIE, field);
        }
        tag
    }

    /// The value of `Set-Cookie` for a tag.
    pub fn value(&self, tag: Tag) -> Option<HeaderValue> {
        HeaderValue::try_from(format!("{}={tag}{}", self.name, self.attributes)).ok()
    }

    /// Adds the cookie to a response, if one is due. Removes a cookie of the same name that the endpoint sets, because
    /// the client would send it instead of the router's. Marks the response as not cacheable by shared caches.
    /// (HAProxy's `insert indirect nocache`.)
    pub fn set(&self, headers: &mut HeaderMap, value: Option<HeaderValue>) {
        self.remove_foreign(headers);
        if let Some(value) = value {
            headers.append(SET_COOKIE, value);
            headers.append(CACHE_CONTROL, HeaderValue::from_static("private"));
        }
    }

    fn remove_foreign(&self, headers: &mut HeaderMap) {
        let names_ours = |field: &HeaderValue| value(field.as_bytes().trim_ascii_start(), &self.name).is_some();
        if !headers.get_all(SET_COOKIE).iter().any(names_ours) {
            return;
        }
        if let Entry::Occupied(entry) = headers.entry(SET_COOKIE) {
            let (name, values) = entry.remove_entry_mult();
            let others: Vec<_> = values.filter(|value| !names_ours(value)).collect();
            for value in others {
                headers.append(name.clone(), value);
            }
        }
    }

    /// The `name=value` pairs of a `Cookie` field (RFC 6265 §4.2.1), and whether each is the router's.
    fn pairs<'f>(&'f self, field: &'f HeaderValue) -> impl Iterator<Item = (bool, &'f [u8])> {
        let pairs = field.as_bytes().split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        pairs.filter(|pair| !pair.is_empty()).map(|pair| (value(pair, &self.name).is_some(), pair))
    }
}

/// The value of a pair with this name, which is case-sensitive; `None` for another name.
fn value<'p>(pair: &'p [u8], name: &str) -> Option<&'p [u8]> {
    pair.strip_prefix(name.as_bytes())?.strip_prefix(b"=")
}

/// A value without surrounding quotes (RFC 6265 §4.1.1).
fn unquoted(value: &[u8]) -> &[u8] {
    value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value)
}

#[cfg(test)]
mod tests;
