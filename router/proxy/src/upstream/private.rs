//! Connections to endpoints that belong to one client connection.
//!
//! Some endpoints authenticate a connection instead of each request: with NTLM and Negotiate, later requests on the
//! connection are treated as authenticated ([MS-NTHT], RFC 4559 §6). A connection is therefore *tied* to the client's
//! connection as soon as it may be authenticated: when a request offers credentials of such a scheme, or a response
//! asks for them. A tied connection carries requests of that client connection alone, including those for other routes
//! with the same endpoint. It is never pooled, and closes with the client's connection.
//!
//! Over HTTP/1.1 a tied connection carries one request at a time, so the streams of an HTTP/2 client take turns. Over
//! TLS it uses HTTP/1.1, because HTTP/2 does not support these schemes, unless the endpoint offers HTTP/2 alone.
//! Clear-text HTTP/2 remains HTTP/2. When a tied connection ends, the next request opens an unauthenticated one.
//!
//! A client connection that resets many streams gets its own HTTP/2 connections, too, because endpoints end connections
//! with many resets. These are not kept for its whole lifetime.

use std::sync::{Arc, OnceLock};

use http::header::{AUTHORIZATION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use router_table::table::ResolvedRoute;

use super::plan::BalancingPlan;
use super::private_buckets::PrivateBuckets;
use crate::upstream::bucket::{Bucket, PoolKey};
use crate::upstream::pool::ConnectionPool;

/// IIS announces with this field that a connection stays authenticated.
const PERSISTENT_AUTH: HeaderName = HeaderName::from_static("persistent-auth");
/// Schemes that authenticate a connection: those of RFC 4559, and others of IIS and WinRM.
const SCHEMES: [&str; 5] = ["NTLM", "Negotiate", "Nego2", "Kerberos", "CredSSP"];

/// Most endpoints with which a client connection has connections of its own. Beyond it the least recently used one is
/// replaced; if all are in use, a further connection is closed after its request.
const MAX_HELD: usize = 8;
/// Whether a request offers credentials that authenticate its connection.
pub fn offers_credentials(request: &HeaderMap) -> bool {
    // A field has at most one challenge, which begins with the scheme (RFC 9110 §11.4).
    [AUTHORIZATION, PROXY_AUTHORIZATION].iter().any(|name| request.get_all(name).iter().any(names_scheme))
}

/// Whether a response asks for such credentials, or states that the connection is authenticated.
pub fn requests_credentials(status: StatusCode, response: &HeaderMap) -> bool {
    let challenges = match status {
        StatusCode::UNAUTHORIZED => Some(WWW_AUTHENTICATE),
        StatusCode::PROXY_AUTHENTICATION_REQUIRED => Some(PROXY_AUTHENTICATE),
        _ => None,
    };
    challenges.is_some_and(|name| response.get_all(name).iter().any(names_scheme))
        || response.contains_key(PERSISTENT_AUTH)
}

/// Whether an element of a list begins with such a scheme. A match within a quoted string counts, too: an unnecessarily
/// tied connection is harmless.
fn names_scheme(value: &HeaderValue) -> bool {
    value.as_bytes().split(|byte| *byte == b',').any(|element| {
        let name = element.trim_ascii().split(|byte| matches!(byte, b' ' | b'\t')).next().unwrap_or_default();
        SCHEMES.iter().any(|scheme| name.eq_ignore_ascii_case(scheme.as_bytes()))
    })
}

/// Connections that belong to a client connection; rarely any.
#[derive(Debug, Default)]
pub struct Private(OnceLock<Arc<PrivateBuckets>>);

/// The endpoint that a client connection is bound to.
#[derive(Clone, Copy, Debug)]
pub struct BoundMember {
    /// Index in the plan.
    pub member: usize,
    /// Whether the connection still exists; if so, the endpoint is used whatever its health.
    pub is_alive: bool,
}

impl Private {
    /// The tied connections with this key, if any.
    pub fn tied(&self, key: &PoolKey) -> Option<Arc<Bucket>> {
        self.0.get()?.find(|bucket| bucket.is_tied() && bucket.key == *key)
    }

    /// The tied connections with this key; creates the bucket if necessary. `is_there`: see [`ConnectionPool::bucket`].
    pub fn tie(&self, pool: &ConnectionPool, key: PoolKey, is_there: impl FnOnce() -> bool) -> Arc<Bucket> {
        self.tied(&key).unwrap_or_else(|| self.add(pool, Bucket::tied(key), is_there))
    }

    /// Connections with this key that carry no other client's requests, so that this client's resets do not affect
    /// others.
    pub fn apart(&self, pool: &ConnectionPool, key: PoolKey, is_there: impl FnOnce() -> bool) -> Arc<Bucket> {
        let known = self.0.get().and_then(|held| held.find(|bucket| !bucket.is_tied() && bucket.key == key));
        known.unwrap_or_else(|| self.add(pool, Bucket::new(key), is_there))
    }

    fn add(&self, pool: &ConnectionPool, bucket: Bucket, is_there: impl FnOnce() -> bool) -> Arc<Bucket> {
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

    /// The endpoint in the plan of this route with a tied connection; the most recently used one of several.
    pub fn bound(&self, plan: &BalancingPlan, route: &ResolvedRoute) -> Option<BoundMember> {
        let buckets = self.0.get()?.lock();
        buckets.iter().rev().filter(|bucket| bucket.is_tied()).find_map(|bucket| {
            let is_it = |member: &usize| {
                plan.target(*member, &route.cluster).is_some_and(|target| {
                    target.endpoint.address == bucket.key.address
                        && target.peer_for(route).as_ref() == bucket.key.wire.peer()
                })
            };
            let member = plan.members().find(is_it)?;
            Some(BoundMember { member, is_alive: bucket.is_alive() })
        })
    }
}

#[cfg(test)]
mod tests;
