//! Stickiness by cookie, with the names and attributes that OpenShift's users know (openshift.md d).
//!
//! The cookie's name is the route's `router.openshift.io/cookie_name`, else the first 16 bytes of
//! SHA-256("namespace/name") in hex; OpenShift takes another hash of the same kind. Its value is made in the same way
//! from the route and the endpoint's address: it is the same on every node and after every restart, and tells two
//! routes' clients nothing in common. It is no secret: whoever guesses the address can tell that he has.

use std::net::SocketAddr;

use aws_lc_rs::digest::{SHA256, digest as hash};
use http::header::{CACHE_CONTROL, COOKIE, Entry, SET_COOKIE};
use http::{HeaderMap, HeaderValue};
use router_core::model::RouteId;
use router_core::policy::SameSite;
use router_core::table::{InsecurePolicy, ResolvedRoute, RouteKind};

/// What stands for an endpoint in a cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tag(pub u128);

impl Tag {
    /// The tag of an address of a route.
    pub fn of(route: &RouteId, address: SocketAddr) -> Self {
        Tag(digest(&format!("{route}\0{address}")))
    }

    /// Reads a cookie's value; `None` unless it is one that this module writes.
    fn parse(value: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(value).ok().filter(|text| text.len() == 32)?;
        let is_hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        is_hex.then(|| u128::from_str_radix(text, 16).ok().map(Tag)).flatten()
    }
}

/// The cookie of a route.
#[derive(Debug, PartialEq, Eq)]
pub struct Cookie {
    name: Box<str>,
    attributes: String,
}

impl Cookie {
    /// That of a route; `None` where there is no affinity: passthrough, `disable_cookies`, or a rule.
    pub fn of(route: &ResolvedRoute) -> Option<Self> {
        let RouteKind::Http { tls, .. } = &route.kind else { return None };
        let affinity = &route.policy.affinity;
        if affinity.disabled || route.is_of_rule() {
            return None;
        }
        let name = affinity.cookie.clone().unwrap_or_else(|| format!("{:032x}", digest(&route.id.to_string())).into());
        let mut attributes = "; path=/; HttpOnly".to_owned();
        // A client that may come in clear text would not send a `Secure` cookie there.
        if tls.as_ref().is_some_and(|tls| tls.insecure != InsecurePolicy::Allow) {
            attributes.push_str(match affinity.same_site {
                SameSite::Lax => "; Secure; SameSite=Lax",
                SameSite::Strict => "; Secure; SameSite=Strict",
                SameSite::None => "; Secure; SameSite=None",
            });
        }
        Some(Cookie { name, attributes })
    }

    /// Takes the cookie out of a request, as nobody but the router has use for it: the endpoint that it names, if
    /// there was one and it reads well.
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
                    tag = tag.or_else(|| Tag::parse(pair.get(self.name.len() + 1..)?.trim_ascii()));
                } else {
                    rest.extend_from_slice(if rest.is_empty() { b"" } else { b"; " });
                    rest.extend_from_slice(pair);
                }
            }
            // It was part of a field value, so it is one.
            kept.extend(HeaderValue::from_bytes(&rest).ok().filter(|value| !value.is_empty()));
        }
        headers.remove(COOKIE);
        for field in kept {
            headers.append(COOKIE, field);
        }
        tag
    }

    /// The value of `Set-Cookie` that names an endpoint.
    pub fn value(&self, tag: Tag) -> Option<HeaderValue> {
        HeaderValue::try_from(format!("{}={:032x}{}", self.name, tag.0, self.attributes)).ok()
    }

    /// Puts the cookie into a response, if one is due. A cookie of the same name that the endpoint sets goes, as a
    /// client would send it back in the place of the router's; and what sets a cookie for one client is not for a
    /// shared cache. (HAProxy's `insert indirect nocache`.)
    pub fn set(&self, headers: &mut HeaderMap, value: Option<HeaderValue>) {
        self.remove_foreign(headers);
        if let Some(value) = value {
            headers.append(SET_COOKIE, value);
            headers.append(CACHE_CONTROL, HeaderValue::from_static("private"));
        }
    }

    fn remove_foreign(&self, headers: &mut HeaderMap) {
        let names_ours = |value: &HeaderValue| is_named(value.as_bytes().trim_ascii_start(), &self.name);
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

    /// The `name=value` pairs of a `Cookie` field (RFC 6265 4.2.1), and whether each is the router's.
    fn pairs<'f>(&'f self, field: &'f HeaderValue) -> impl Iterator<Item = (bool, &'f [u8])> {
        let pairs = field.as_bytes().split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        pairs.filter(|pair| !pair.is_empty()).map(|pair| (is_named(pair, &self.name), pair))
    }
}

/// Whether a pair begins with `name=`; names of cookies are told apart by case.
fn is_named(pair: &[u8], name: &str) -> bool {
    pair.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&b'='))
}

/// The first 16 bytes of SHA-256.
fn digest(text: &str) -> u128 {
    let hash = hash(&SHA256, text.as_bytes());
    hash.as_ref().iter().take(16).fold(0, |number, byte| (number << 8) | u128::from(*byte))
}

#[cfg(test)]
mod tests;
