//! Stickiness by cookie.
//!
//! That of a Route names an endpoint, with the names and attributes that OpenShift's users know
//! (docs/openshift.md#annotations-of-routes). Its name is the route's `router.openshift.io/cookie_name`, else the first
//! 16 bytes of SHA-256("namespace/name") in hex; OpenShift takes another hash of the same kind. Its value is made in
//! the same way from the route and the endpoint's address: it is the same on every node and after every restart, and
//! tells two routes' clients nothing in common. It is no secret: whoever guesses the address can tell that he has.
//!
//! That of a rule (Contour, `strategy: Cookie`) names its client, by a number that is made by chance and tells nothing of
//! an endpoint. Which endpoint such a client has is worked out of the number ([`hashing`](super::hashing)): all rules of a
//! host can have the same cookie, and their clients stay in each of them. The endpoint sees it too, as Envoy's do.

use http::header::{CACHE_CONTROL, COOKIE, Entry, SET_COOKIE};
use http::{HeaderMap, HeaderValue};
use router_table::policy::{HashedPart, SameSite};
use router_table::table::{InsecurePolicy, ResolvedRoute, RouteKind};

use super::tag::Tag;

/// The cookie of a route.
#[derive(Debug, PartialEq, Eq)]
pub struct Cookie {
    name: Box<str>,
    attributes: String,
    /// What its value stands for.
    pub stands_for: StandsFor,
}

/// What the value of a cookie stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandsFor {
    /// The endpoint that its client has.
    Endpoint,
    /// The client.
    Client,
}

impl Cookie {
    /// That of a route; `None` where there is no affinity: passthrough, `disable_cookies`, or a rule without.
    pub fn of(route: &ResolvedRoute) -> Option<Self> {
        let RouteKind::Http { tls, .. } = &route.kind else { return None };
        let hashed = route.policy.hash.iter().find_map(|of| match &of.part {
            HashedPart::Cookie(name) => Some(name.clone()),
            _ => None,
        });
        if let Some(name) = hashed {
            // As Envoy writes it. It is not `Secure`: what is routed in clear text beside TLS needs it as well.
            return Some(Cookie { name, attributes: "; Path=/; HttpOnly".to_owned(), stands_for: StandsFor::Client });
        }
        let affinity = &route.policy.affinity;
        if affinity.disabled || route.is_of_rule() {
            return None;
        }
        let name = affinity.cookie.clone().unwrap_or_else(|| Tag::of_text(&route.id.to_string()).to_string().into());
        let mut attributes = "; path=/; HttpOnly".to_owned();
        // A client that may come in clear text would not send a `Secure` cookie there.
        if tls.as_ref().is_some_and(|tls| tls.insecure != InsecurePolicy::Allow) {
            attributes.push_str(match affinity.same_site {
                SameSite::Lax => "; Secure; SameSite=Lax",
                SameSite::Strict => "; Secure; SameSite=Strict",
                SameSite::None => "; Secure; SameSite=None",
            });
        }
        Some(Cookie { name, attributes, stands_for: StandsFor::Endpoint })
    }

    /// Its value in a request, whatever that is: the first that is not empty.
    pub fn find<'h>(&self, headers: &'h HeaderMap) -> Option<&'h [u8]> {
        let pairs = headers.get_all(COOKIE).iter().flat_map(|field| field.as_bytes().split(|byte| *byte == b';'));
        let values = pairs.filter_map(|pair| value(pair.trim_ascii(), &self.name));
        values.map(|value| unquoted(value.trim_ascii())).find(|value| !value.is_empty())
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
                    tag = tag.or_else(|| Tag::parse(value(pair, &self.name)?.trim_ascii()));
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

    /// The value of `Set-Cookie` that names an endpoint, or a client.
    pub fn value(&self, tag: Tag) -> Option<HeaderValue> {
        HeaderValue::try_from(format!("{}={tag}{}", self.name, self.attributes)).ok()
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

    /// The `name=value` pairs of a `Cookie` field (RFC 6265 4.2.1), and whether each is the router's.
    fn pairs<'f>(&'f self, field: &'f HeaderValue) -> impl Iterator<Item = (bool, &'f [u8])> {
        let pairs = field.as_bytes().split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        pairs.filter(|pair| !pair.is_empty()).map(|pair| (value(pair, &self.name).is_some(), pair))
    }
}

/// What stands behind `name=` in a pair; `None` for another name. Names of cookies are told apart by case.
fn value<'p>(pair: &'p [u8], name: &str) -> Option<&'p [u8]> {
    pair.strip_prefix(name.as_bytes())?.strip_prefix(b"=")
}

/// A value without the quotes that it may stand in (RFC 6265 §4.1.1).
fn unquoted(value: &[u8]) -> &[u8] {
    value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value)
}

#[cfg(test)]
mod tests;
