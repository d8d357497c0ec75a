//! Connections to endpoints that are one client connection's own.
//!
//! Some endpoints authenticate a connection, and not each request: with NTLM and Negotiate whoever sends on it later is
//! taken for who was authenticated ([MS-NTHT], RFC 4559 §6). So a connection is *tied* to the client's connection from
//! the moment that it may be authenticated: a request offers credentials of such a scheme, or a response asks for them.
//! A tied connection is used for that client connection alone, whose requests for the endpoint all go over it, also
//! those for other routes that have it; it is never pooled, and ends with the client's connection.
//!
//! Over HTTP/1.1 it carries one request at a time, so the streams of an HTTP/2 client take turns. Over TLS it speaks
//! HTTP/1.1, as the schemes do not exist in HTTP/2, unless the endpoint has nothing else; HTTP/2 in clear text stays what
//! it is. When it ends, the next request opens another one, over which nobody is authenticated yet.
//!
//! A client connection that takes back many requests has its requests over HTTP/2 on connections of its own, too, but not
//! for good: endpoints end connections on which much is taken back.

use std::sync::{Arc, OnceLock};

use http::header::{AUTHORIZATION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use router_table::table::ResolvedRoute;

use super::held::Held;
use super::plan::Plan;
use crate::upstream::bucket::{Bucket, PoolKey};
use crate::upstream::pool::Pool;

/// What IIS says of a connection that stays authenticated.
const PERSISTENT_AUTH: HeaderName = HeaderName::from_static("persistent-auth");
/// Schemes that authenticate a connection: those of RFC 4559, and what IIS and WinRM have beside them.
const SCHEMES: [&str; 5] = ["NTLM", "Negotiate", "Nego2", "Kerberos", "CredSSP"];

/// Endpoints that one client connection has connections of its own with. Of more, the one that was used least recently
/// gives way; where all are in use, the connections of another end with their requests.
const MAX_HELD: usize = 8;
/// Whether a request offers credentials for its connection.
pub fn offers_credentials(request: &HeaderMap) -> bool {
    // There is one challenge in a field at most, and its name stands first (RFC 9110 §11.4).
    [AUTHORIZATION, PROXY_AUTHORIZATION].iter().any(|name| request.get_all(name).iter().any(names_scheme))
}

/// Whether a response asks for credentials for its connection, or says that it has been given some.
pub fn asks_for_credentials(status: StatusCode, response: &HeaderMap) -> bool {
    let challenges = match status {
        StatusCode::UNAUTHORIZED => Some(WWW_AUTHENTICATE),
        StatusCode::PROXY_AUTHENTICATION_REQUIRED => Some(PROXY_AUTHENTICATE),
        _ => None,
    };
    challenges.is_some_and(|name| response.get_all(name).iter().any(names_scheme))
        || response.contains_key(PERSISTENT_AUTH)
}

/// Whether an element of a list begins with the name of such a scheme. One inside a quoted text counts too: better one
/// connection that is not shared than one that is.
fn names_scheme(value: &HeaderValue) -> bool {
    value.as_bytes().split(|byte| *byte == b',').any(|element| {
        let name = element.trim_ascii().split(|byte| matches!(byte, b' ' | b'\t')).next().unwrap_or_default();
        SCHEMES.iter().any(|scheme| name.eq_ignore_ascii_case(scheme.as_bytes()))
    })
}

/// What a client's connection has of its own: nearly always nothing.
#[derive(Debug, Default)]
pub struct Private(OnceLock<Arc<Held>>);

/// The endpoint that a client connection has to stay with.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// As a member of the plan.
    pub member: usize,
    /// Whether the connection is still there: then the endpoint is used whatever is known of its health.
    pub is_alive: bool,
}

impl Private {
    /// The connections with this key that are tied to the client's, if there are any.
    pub fn tied(&self, key: &PoolKey) -> Option<Arc<Bucket>> {
        self.0.get()?.find(|bucket| bucket.is_tied() && bucket.key == *key)
    }

    /// The same, made if they are not there. `is_there`: see [`Pool::bucket`].
    pub fn tie(&self, pool: &Pool, key: PoolKey, is_there: impl FnOnce() -> bool) -> Arc<Bucket> {
        self.tied(&key).unwrap_or_else(|| self.add(pool, Bucket::tied(key), is_there))
    }

    /// Connections with this key that no other client has requests on: others would suffer from what this one does.
    pub fn apart(&self, pool: &Pool, key: PoolKey, is_there: impl FnOnce() -> bool) -> Arc<Bucket> {
        let known = self.0.get().and_then(|held| held.find(|bucket| !bucket.is_tied() && bucket.key == key));
        known.unwrap_or_else(|| self.add(pool, Bucket::new(key), is_there))
    }

    fn add(&self, pool: &Pool, bucket: Bucket, is_there: impl FnOnce() -> bool) -> Arc<Bucket> {
        let held = self.0.get_or_init(|| {
            let held = Arc::default();
            pool.add(&held);
            held
        });
        let bucket = Arc::new(bucket);
        let mut buckets = held.lock();
        if buckets.len() >= MAX_HELD
            && let Some(unused) = buckets.iter().position(|bucket| Arc::strong_count(bucket) == 1)
        {
            buckets.remove(unused);
        }
        if buckets.len() < MAX_HELD && is_there() {
            buckets.push(Arc::clone(&bucket));
        } else {
            bucket.retire();
        }
        bucket
    }

    /// The endpoint of the plan, made of this route, that a connection is tied to; of several the one used last.
    pub fn bound(&self, plan: &Plan, route: &ResolvedRoute) -> Option<Bound> {
        let buckets = self.0.get()?.lock();
        buckets.iter().rev().filter(|bucket| bucket.is_tied()).find_map(|bucket| {
            let is_it = |member: &usize| {
                plan.target(*member, &route.cluster).is_some_and(|target| {
                    target.endpoint.address == bucket.key.address
                        && target.peer_for(route).as_ref() == bucket.key.wire.peer()
                })
            };
            let member = plan.members().find(is_it)?;
            Some(Bound { member, is_alive: bucket.is_alive() })
        })
    }
}

#[cfg(test)]
mod tests;
