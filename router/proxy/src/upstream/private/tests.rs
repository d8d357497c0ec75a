//! Conditions that bind a connection to a client, and the limit for a client's connection.

use std::collections::HashSet;

use router_table::policy::RoutePolicy;

use super::*;
use crate::upstream::bucket::{MAX_AGE, Wire};
use crate::upstream::testing::{address, endpoints, route};

fn fields(fields: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(*name, HeaderValue::from_static(value));
    }
    headers
}

#[test]
fn schemes_that_authenticate_a_connection_are_known_however_they_are_written() {
    for value in ["NTLM TlRMTVNTUAAB", "ntlm x", "Negotiate YII=", "NEGOTIATE\tx", "NTLM", "Kerberos x", "CredSSP x"] {
        assert!(offers_credentials(&fields(&[("authorization", value)])), "{value}");
        assert!(
            offers_credentials(&fields(&[("authorization", "Basic eA=="), ("proxy-authorization", value)])),
            "{value}"
        );
    }
    for value in ["Basic TlRMTQ==", "Bearer NTLM", "NTLMv3 x", "Digest username=\"Negotiate\"", "", " "] {
        assert!(!offers_credentials(&fields(&[("authorization", value)])), "{value}");
    }
    assert!(!offers_credentials(&fields(&[("cookie", "NTLM"), ("www-authenticate", "NTLM")])));
}

#[test]
fn challenges_are_found_in_lists_and_where_they_belong() {
    let (unauthorized, proxy) = (StatusCode::UNAUTHORIZED, StatusCode::PROXY_AUTHENTICATION_REQUIRED);
    let requests_them =
        |status, name: &'static str, value| requests_credentials(status, &fields(&[(name, "Basic"), (name, value)]));
    for value in ["NTLM", "negotiate", "Basic realm=\"a, b\", Negotiate, NTLM", "NTLM TlRMTVNTUAAC", " ,Negotiate oYG="]
    {
        assert!(requests_them(unauthorized, "www-authenticate", value), "{value}");
        assert!(requests_them(proxy, "proxy-authenticate", value), "{value}");
        assert!(
            !requests_them(proxy, "www-authenticate", value)
                && !requests_them(StatusCode::OK, "www-authenticate", value),
            "{value}"
        );
    }
    for value in ["Basic realm=\"NTLM\"", "Bearer scope=NTLM", "Digest realm=x, nonce=Negotiate"] {
        assert!(!requests_them(unauthorized, "www-authenticate", value), "{value}");
    }
    assert!(requests_credentials(StatusCode::OK, &fields(&[("persistent-auth", "true")])));
}

#[test]
fn a_client_connection_has_a_few_and_the_one_used_least_recently_gives_way() {
    let (pool, private) = (ConnectionPool::default(), Private::default());
    let key = |port| PoolKey { address: address(port), wire: Wire::Http1, keep: MAX_AGE };
    assert!(private.tied(&key(1)).is_none());
    let first = private.tie(&pool, key(1), || true);
    (2..=8).for_each(|port| drop(private.tie(&pool, key(port), || true)));
    assert!(Arc::ptr_eq(&first, &private.tie(&pool, key(1), || true)));
    drop(first);
    // Of the connections 2 to 8 and 1, that to 2 is the least recently used.
    drop(private.tie(&pool, key(9), || true));
    assert!(private.tied(&key(2)).is_none() && private.tied(&key(1)).is_some());
    let in_use: Vec<_> = [1, 3, 4, 5, 6, 7, 8, 9].map(|port| private.tied(&key(port)).unwrap()).into();
    drop(private.tie(&pool, key(10), || true));
    assert!(private.tied(&key(10)).is_none(), "all are in use");
    drop(in_use);
    drop(private.tie(&pool, key(10), || false));
    assert!(private.tied(&key(10)).is_none(), "the endpoint is gone");
}

#[test]
fn what_is_gone_is_let_go_of() {
    let (pool, private) = (ConnectionPool::default(), Private::default());
    let key = |port| PoolKey { address: address(port), wire: Wire::Http1, keep: MAX_AGE };
    (1..=2).for_each(|port| drop(private.tie(&pool, key(port), || true)));
    let route = route(&[(1, &[5, 2, 1])], RoutePolicy::default());
    let plan = BalancingPlan::new(&route, &endpoints(&route), Arc::default);
    let bound = |private: &Private| private.bound(&plan, &route).map(|bound| (bound.member, bound.is_alive));
    assert_eq!(bound(&private), Some((1, false)), "of two the one used last");
    drop(private.tied(&key(1)));
    assert_eq!(bound(&private), Some((2, false)));
    pool.retire(&HashSet::from([address(1)]));
    pool.sweep();
    assert_eq!(bound(&private), Some((1, false)));
    assert_eq!(bound(&Private::default()), None);
}

#[test]
fn private_buckets_are_not_tied_and_are_removed_when_unused() {
    let (pool, private) = (ConnectionPool::default(), Private::default());
    let key = PoolKey { address: address(5), wire: Wire::Http2, keep: MAX_AGE };
    let (apart, tied) = (private.apart(&pool, key.clone(), || true), private.tie(&pool, key.clone(), || true));
    assert!(!apart.is_tied() && tied.is_tied());
    assert!(Arc::ptr_eq(&apart, &private.apart(&pool, key.clone(), || true)));
    assert!(Arc::ptr_eq(&tied, &private.tie(&pool, key.clone(), || true)));
    let first = Arc::downgrade(&apart);
    drop((apart, tied));
    pool.sweep();
    assert!(first.upgrade().is_none() && private.tied(&key).is_some());
}
