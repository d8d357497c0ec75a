//! Pooled connections: kept, shared, waited for and retired.

use std::collections::HashSet;
use std::net::Ipv4Addr;

use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use router_access_log::Flag;
use rustls::RootCertStore;

use super::*;
use crate::http::upload::RequestBody;
use crate::upstream::http2::{self, MAX_BROKEN_OFF};
use crate::upstream::pool::ConnectionPool;
use crate::upstream::read_activity::ReadActivity;
use crate::upstream::target::TlsPeer;

fn key(port: u16, wire: Wire) -> PoolKey {
    PoolKey { address: (Ipv4Addr::LOCALHOST, port).into(), wire, keep: MAX_AGE }
}

async fn hello(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, std::convert::Infallible> {
    Ok(Response::new(Full::from("hello")))
}

async fn own() -> Http1Connection {
    let (near, far) = tokio::io::duplex(4096);
    let server = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(far), service_fn(hello));
    tokio::spawn(async move { server.await.unwrap() });
    let (sender, driver) = http1::handshake(TokioIo::new(near)).await.unwrap();
    tokio::spawn(async move { driver.await.unwrap() });
    Http1Connection::new(sender, ReadActivity::default())
}

async fn shared(streams: u32) -> Http2Connection {
    let (near, far) = tokio::io::duplex(4096);
    let mut server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    let serving = server.max_concurrent_streams(streams).serve_connection(TokioIo::new(far), service_fn(hello));
    tokio::spawn(async move { serving.await.ok() });
    let shared = http2::open(near, 65_536).await.unwrap();
    // Until the maximum number of streams is known.
    let (told, mut known) = watch::channel(None);
    shared.until_known(told);
    let _ = known.changed().await;
    shared
}

fn opener(taken: Acquired) -> Opener {
    match taken {
        Acquired::Open(opener) => opener,
        other => panic!("{other:?}"),
    }
}

fn ready(taken: Acquired) -> Lease {
    match taken {
        Acquired::Ready(lease) => lease,
        other => panic!("{other:?}"),
    }
}

fn get() -> Request<RequestBody> {
    Request::get("/").header("host", "x").body(RequestBody::default()).unwrap()
}

/// One request and its entire response.
async fn use_once(mut lease: Lease) -> Lease {
    let response = lease.sender.send(get(), None).await.unwrap();
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "hello");
    lease
}

#[tokio::test]
async fn an_idle_connection_is_taken_again_and_a_fresh_one_first() {
    let pool = ConnectionPool::default();
    let bucket = pool.bucket(key(1, Wire::Http1), || true);
    let first = use_once(opener(bucket.take(MAX_AGE, false)).http1(own().await)).await;
    assert!(!first.reused);
    first.give_back(false, None);
    // HTTP/1.1 connections are opened concurrently.
    assert!(ready(bucket.take(MAX_AGE, false)).reused);
    assert!(matches!(bucket.take(MAX_AGE, false), Acquired::Open(_)));
    assert!(
        matches!(pool.bucket(key(2, Wire::Http1), || true).take(MAX_AGE, false), Acquired::Open(_)),
        "another endpoint"
    );
}

#[tokio::test]
async fn what_may_not_be_sent_twice_takes_no_connection_that_was_idle_for_long() {
    let bucket = ConnectionPool::default().bucket(key(1, Wire::Http1), || true);
    use_once(opener(bucket.take(MAX_AGE, false)).http1(own().await)).await.give_back(false, None);
    assert!(matches!(bucket.take(Duration::ZERO, false), Acquired::Open(_)));
    assert!(ready(bucket.take(FRESH, false)).reused, "it is still there");
}

#[tokio::test]
async fn streams_share_a_connection_until_it_is_full() {
    let bucket = ConnectionPool::default().bucket(key(1, Wire::Http2), || true);
    let opening = opener(bucket.take(MAX_AGE, false));
    assert!(matches!(bucket.take(MAX_AGE, false), Acquired::Wait(_)), "one opens it for all");
    let first = opening.http2(shared(2).await).unwrap();
    let second = ready(bucket.take(MAX_AGE, false));
    assert!(matches!(bucket.take(MAX_AGE, false), Acquired::Open(_)), "two are all that it allows");
    use_once(first).await.give_back(false, None);
    assert!(ready(bucket.take(MAX_AGE, false)).reused);
    drop(second);
}

#[tokio::test]
async fn waiters_for_a_pending_connection_share_its_result() {
    let bucket = ConnectionPool::default().bucket(key(1, Wire::Http2), || true);
    let wait = |bucket: &Arc<Bucket>| match bucket.take(MAX_AGE, false) {
        Acquired::Wait(opening) => opening.done(),
        other => panic!("{other:?}"),
    };
    let opening = opener(bucket.take(MAX_AGE, false));
    let waiting = wait(&bucket);
    let error = (StatusCode::SERVICE_UNAVAILABLE, Flag::UpstreamConnectFailure);
    opening.failed(error);
    assert_eq!(waiting.await, Err(error));

    // A failure is not remembered, and if an opener gives up, the next caller opens a connection.
    let opening = opener(bucket.take(MAX_AGE, false));
    let waiting = wait(&bucket);
    drop(opening);
    assert_eq!(waiting.await, Ok(()));
    let opening = opener(bucket.take(MAX_AGE, false));
    let waiting = wait(&bucket);
    let _first = opening.http2(shared(2).await).unwrap();
    assert_eq!(waiting.await, Ok(()));
    assert!(ready(bucket.take(MAX_AGE, false)).reused);
}

#[tokio::test]
async fn a_connection_over_which_nothing_comes_gets_no_new_streams() {
    let bucket = ConnectionPool::default().bucket(key(1, Wire::Http2), || true);
    let first = opener(bucket.take(MAX_AGE, false)).http2(shared(100).await).unwrap();
    let second = use_once(ready(bucket.take(MAX_AGE, false))).await;
    let silent = |lease: &Lease| match &lease.sender {
        RequestSender::Http2(stream) => stream.was_silent(),
        RequestSender::Http1(_) => panic!("HTTP/1.1"),
    };
    silent(&first);
    assert!(ready(bucket.take(MAX_AGE, false)).reused, "another stream had an answer meanwhile");
    drop(second);
    let third = ready(bucket.take(MAX_AGE, false));
    silent(&third);
    assert!(matches!(bucket.take(MAX_AGE, false), Acquired::Open(_)));
}

#[tokio::test]
async fn a_connection_on_which_many_requests_broke_off_gets_no_new_streams() {
    let bucket = ConnectionPool::default().bucket(key(1, Wire::Http2), || true);
    use_once(opener(bucket.take(MAX_AGE, false)).http2(shared(100).await).unwrap()).await.give_back(false, None);
    for _ in 0..2 * MAX_BROKEN_OFF {
        use_once(ready(bucket.take(MAX_AGE, false))).await.give_back(true, None);
    }
    let last = ready(bucket.take(MAX_AGE, false));
    // A lease without a request does not count.
    (0..2 * MAX_BROKEN_OFF).for_each(|_| drop(ready(bucket.take(MAX_AGE, false))));
    for _ in 0..MAX_BROKEN_OFF {
        // The response is not read to its end.
        drop(ready(bucket.take(MAX_AGE, false)).sender.send(get(), None).await.unwrap());
    }
    let next = opener(bucket.take(MAX_AGE, false)).http2(shared(100).await).unwrap();
    // The connection finishes its requests.
    use_once(last).await.give_back(false, None);
    use_once(next).await.give_back(false, None);
    assert!(ready(bucket.take(MAX_AGE, false)).reused);
}

#[tokio::test]
async fn endpoints_that_are_gone_keep_no_connection() {
    let pool = ConnectionPool::default();
    let (gone, stays) = (pool.bucket(key(1, Wire::Http1), || true), pool.bucket(key(2, Wire::Http1), || true));
    let idle = use_once(opener(gone.take(MAX_AGE, false)).http1(own().await)).await;
    let in_use = opener(gone.take(MAX_AGE, false)).http1(own().await);
    idle.give_back(false, None);
    use_once(opener(stays.take(MAX_AGE, false)).http1(own().await)).await.give_back(false, None);
    pool.retire(&HashSet::from([(Ipv4Addr::LOCALHOST, 1).into()]));
    use_once(in_use).await.give_back(false, None);
    assert!(matches!(gone.take(MAX_AGE, false), Acquired::Open(_)));
    assert!(matches!(pool.bucket(key(1, Wire::Http1), || true).take(MAX_AGE, false), Acquired::Open(_)));
    assert!(ready(stays.take(MAX_AGE, false)).reused);
}

#[tokio::test]
async fn a_request_that_knows_an_endpoint_for_longer_than_the_table_leaves_no_connection() {
    let pool = ConnectionPool::default();
    for wire in [Wire::Http1, Wire::Http2] {
        let bucket = pool.bucket(key(1, wire.clone()), || false);
        let opening = opener(bucket.take(MAX_AGE, false));
        let lease = match wire {
            Wire::Http2 => opening.http2(shared(2).await).unwrap(),
            _ => opening.http1(own().await),
        };
        use_once(lease).await.give_back(false, None);
        assert!(matches!(bucket.take(MAX_AGE, false), Acquired::Open(_)));
        assert!(lock(&pool.buckets).is_empty(), "the next one, which may know it again, begins anew");
    }
}

#[tokio::test]
async fn the_sweep_removes_closed_and_unused_connections() {
    let pool = ConnectionPool::default();
    let bucket = pool.bucket(key(1, Wire::Http1), || true);
    let lease = use_once(opener(bucket.take(MAX_AGE, false)).http1(own().await)).await;
    lease.give_back(false, None);
    pool.sweep();
    assert!(ready(bucket.take(MAX_AGE, false)).reused, "it is neither");
    drop(bucket);
    pool.sweep();
    assert!(lock(&pool.buckets).is_empty());
}

#[test]
fn peers_are_distinguished_by_their_authorities_and_names() {
    let ca = Arc::new(RootCertStore::empty());
    let peer = |ca: Option<&Arc<RootCertStore>>, service: &str| {
        Wire::Tls(TlsPeer::Service { ca: ca.cloned(), service: service.into(), namespace: "shop".into() })
    };
    assert_eq!(peer(Some(&ca), "cart"), peer(Some(&ca), "cart"));
    assert_ne!(peer(Some(&ca), "cart"), peer(Some(&Arc::new(RootCertStore::empty())), "cart"));
    assert_ne!(peer(Some(&ca), "cart"), peer(None, "cart"));
    assert_ne!(peer(Some(&ca), "cart"), peer(Some(&ca), "pay"));
}

#[tokio::test]
async fn where_descriptors_are_short_idle_connections_are_closed() {
    let pool = ConnectionPool::default();
    let bucket = pool.bucket(key(1, Wire::Http1), || true);
    let (first, second) = (
        opener(bucket.take(MAX_AGE, false)).http1(own().await),
        opener(bucket.take(MAX_AGE, false)).http1(own().await),
    );
    use_once(first).await.give_back(false, None);
    pool.relieve();
    let first = ready(bucket.take(MAX_AGE, false));
    first.give_back(false, None);
    tokio::time::sleep(crate::dial::DESCRIPTOR_PAUSE).await;
    pool.relieve();
    assert!(matches!(bucket.take(MAX_AGE, false), Acquired::Open(_)), "it is closed");
    // A connection in use stays, and is kept afterwards.
    use_once(second).await.give_back(false, None);
    assert!(ready(bucket.take(MAX_AGE, false)).reused);
}
