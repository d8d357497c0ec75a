//! `retry` of rules, and the health checks of their backends.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use router_table::rule::{BackendPolicy, HealthCheck, HealthRequest, Retry, RulePolicy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::tables::{Rig, Route, eventually};
use crate::{backends, client, log};

const BACKOFF: Duration = Duration::from_millis(1);

/// Behaviour of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Answers(u16),
    Ends,
    Waits,
}

/// An endpoint that behaves as `first` for a number of requests, and then as `then`. Counts the requests.
async fn endpoint(first: Does, times: usize, then: Does) -> (SocketAddr, Arc<AtomicUsize>) {
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    let address = backends::serve(move |mut stream| {
        let count = Arc::clone(&count);
        async move {
            while stream.read(&mut [0; 4096]).await.unwrap_or(0) > 0 {
                let before = count.fetch_add(1, Ordering::Relaxed);
                match if before < times { first } else { then } {
                    Does::Answers(status) => {
                        let answer = format!("HTTP/1.1 {status} Said\r\nContent-Length: 4\r\n\r\nbody");
                        let _ = stream.write_all(answer.as_bytes()).await;
                    }
                    Does::Ends => return,
                    // Until the router closes the connection.
                    Does::Waits => drop(stream.read(&mut [0; 1]).await),
                }
            }
        }
    })
    .await;
    (address, seen)
}

fn on_500s(count: u32) -> Retry {
    Retry { count, statuses: vec![500..=599], unanswered: true, unreachable: true, backoff: BACKOFF }
}

fn route(host: &str, retry: Retry) -> Route {
    Route::new(host, "").rule(RulePolicy { retry: Some(retry), ..RulePolicy::default() })
}

async fn ask(rig: &Rig, host: &str, method: &str, body: &str) -> (u16, String) {
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let text = format!("{method} / HTTP/1.1\r\nHost: {host}\r\n{length}Connection: close\r\n\r\n{body}");
    let answer = client::request(rig.http, &text).await;
    (answer.status, answer.body)
}

#[tokio::test]
async fn an_endpoint_that_fails_is_passed_over_for_the_next_one() {
    let (bad, at_bad) = endpoint(Does::Answers(503), usize::MAX, Does::Ends).await;
    let (good, at_good) = endpoint(Does::Answers(200), usize::MAX, Does::Ends).await;
    let rig = Rig::serve(&[route("next.retry.test", on_500s(1)).service("app", &[bad, good])]).await;
    for _ in 0..20 {
        assert_eq!(ask(&rig, "next.retry.test", "GET", "").await.0, 200);
    }
    assert_eq!(at_good.load(Ordering::Relaxed), 20);
    assert!(at_bad.load(Ordering::Relaxed) > 0);
}

#[tokio::test]
async fn the_last_response_is_forwarded_when_no_try_is_left() {
    for (count, status) in [(0, 503), (1, 500), (3, 502), (2, 404)] {
        let (bad, seen) = endpoint(Does::Answers(status), usize::MAX, Does::Ends).await;
        let host = format!("last{count}.retry.test");
        let rig = Rig::serve(&[route(&host, on_500s(count)).to(bad)]).await;
        assert_eq!(ask(&rig, &host, "GET", "").await, (status, "body".to_owned()));
        let tries = if status < 500 { 1 } else { 1 + count as usize };
        assert_eq!(seen.load(Ordering::Relaxed), tries, "{status} with {count} retries");
    }
}

#[tokio::test]
async fn requests_that_do_something_are_sent_once() {
    for (method, body, tries) in
        [("GET", "", 3), ("HEAD", "", 3), ("DELETE", "", 3), ("POST", "", 1), ("POST", "x", 1), ("PUT", "x", 1)]
    {
        let (bad, seen) = endpoint(Does::Answers(503), usize::MAX, Does::Ends).await;
        let rig = Rig::serve(&[route("once.retry.test", on_500s(2)).to(bad)]).await;
        assert_eq!(ask(&rig, "once.retry.test", method, body).await.0, 503);
        assert_eq!(seen.load(Ordering::Relaxed), tries, "{method} {body:?}");
    }
}

#[tokio::test]
async fn a_request_is_retried_when_the_endpoint_closes_or_stalls() {
    for does in [Does::Ends, Does::Waits] {
        for (unanswered, status, tries) in [(true, 200, 3), (false, if does == Does::Ends { 502 } else { 504 }, 1)] {
            let (endpoint, seen) = endpoint(does, 2, Does::Answers(200)).await;
            let retry = Retry { unanswered, ..on_500s(2) };
            let backend_timeout = Some(Duration::from_millis(200));
            let rule = RulePolicy { retry: Some(retry), backend_timeout, ..RulePolicy::default() };
            let rig = Rig::serve(&[Route::new("silent.retry.test", "").rule(rule).to(endpoint)]).await;
            assert_eq!(ask(&rig, "silent.retry.test", "GET", "").await.0, status, "{does:?}, {unanswered}");
            assert_eq!(seen.load(Ordering::Relaxed), tries, "{does:?}, {unanswered}");
        }
    }
}

#[tokio::test]
async fn tries_end_with_the_requests_time() {
    let (silent, seen) = endpoint(Does::Waits, usize::MAX, Does::Ends).await;
    let rule = RulePolicy {
        retry: Some(on_500s(100)),
        request_timeout: Some(Duration::from_millis(500)),
        backend_timeout: Some(Duration::from_millis(100)),
        ..RulePolicy::default()
    };
    let rig = Rig::serve(&[Route::new("time.retry.test", "").rule(rule).to(silent)]).await;
    let begun = Instant::now();
    assert_eq!(ask(&rig, "time.retry.test", "GET", "").await.0, 504);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert!((2..=5).contains(&seen.load(Ordering::Relaxed)), "{seen:?}");
}

#[tokio::test]
async fn unreachable_backends_are_tried_as_often_as_the_rule_says() {
    let rig = Rig::serve(&[route("nobody.retry.test", on_500s(2)).to(backends::refusing())]).await;
    assert_eq!(ask(&rig, "nobody.retry.test", "GET", "").await.0, 503);
    let line = log::line("host", "nobody.retry.test").await;
    assert_eq!((&line["flags"], &line["retries"]), (&"UF".into(), &2.into()));
}

#[tokio::test]
async fn a_share_of_a_backend_stays_its_own() {
    let (bad, at_bad) = endpoint(Does::Answers(503), usize::MAX, Does::Ends).await;
    let (other, at_other) = endpoint(Does::Answers(200), usize::MAX, Does::Ends).await;
    let route = route("share.retry.test", on_500s(1)).backend("one", 1, &[bad], BackendPolicy::default()).backend(
        "two",
        1,
        &[other],
        BackendPolicy::default(),
    );
    let rig = Rig::serve(&[route]).await;
    let mut statuses = Vec::new();
    for _ in 0..10 {
        statuses.push(ask(&rig, "share.retry.test", "GET", "").await.0);
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [[200; 5], [503; 5]].concat());
    assert_eq!((at_bad.load(Ordering::Relaxed), at_other.load(Ordering::Relaxed)), (10, 5));
}

/// Responds to health checks with `status`, and to other requests with its name.
async fn patient(name: &'static str, status: Arc<AtomicU16>) -> SocketAddr {
    backends::serve(move |mut stream| {
        let status = Arc::clone(&status);
        async move {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = stream.read(&mut buffer).await {
                let request = String::from_utf8_lossy(&buffer[..read]).to_ascii_lowercase();
                let status = if request.starts_with("get /healthz ") {
                    assert!(request.contains("\r\nhost: clinic.test\r\n"), "{request}");
                    status.load(Ordering::Relaxed)
                } else {
                    200
                };
                let answer = format!("HTTP/1.1 {status} Said\r\nContent-Length: {}\r\n\r\n{name}", name.len());
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        }
    })
    .await
}

fn checked(expected: &[(u16, u16)]) -> BackendPolicy {
    let short = Duration::from_millis(20);
    let request = HealthRequest { host: "clinic.test".into(), path: "/healthz".into(), expected: expected.to_vec() };
    let check = HealthCheck {
        request: Some(request),
        interval: short,
        timeout: Duration::from_secs(5),
        unhealthy: 3,
        healthy: 2,
    };
    BackendPolicy { health_check: Some(Arc::new(check)), ..BackendPolicy::default() }
}

/// The endpoints that respond to a few requests, each once.
async fn who(rig: &Rig, host: &str) -> Vec<String> {
    let mut names = Vec::new();
    for _ in 0..12 {
        let (status, name) = ask(rig, host, "GET", "").await;
        assert_eq!(status, 200);
        names.push(name);
    }
    names.sort_unstable();
    names.dedup();
    names
}

#[tokio::test]
async fn an_endpoint_that_says_that_it_is_ill_gets_nothing_until_it_is_well() {
    for sick in [503, 500, 404] {
        let (a, b) = (Arc::new(AtomicU16::new(204)), Arc::new(AtomicU16::new(204)));
        let endpoints = [patient("a", Arc::clone(&a)).await, patient("b", Arc::clone(&b)).await];
        let route = Route::new("clinic.retry.test", "").rule(RulePolicy::default()).backend(
            "app",
            1,
            &endpoints,
            checked(&[(200, 200), (204, 206)]),
        );
        let rig = Rig::serve(&[route]).await;
        let answers = async |names: &[&str]| {
            let what = format!("{names:?} answer after {sick}");
            eventually(&what, async || who(&rig, "clinic.retry.test").await == names).await;
        };
        answers(&["a", "b"]).await;
        a.store(sick, Ordering::Relaxed);
        answers(&["b"]).await;
        // If no endpoint is healthy, all are used.
        b.store(sick, Ordering::Relaxed);
        answers(&["a", "b"]).await;
        a.store(200, Ordering::Relaxed);
        answers(&["a"]).await;
        b.store(206, Ordering::Relaxed);
        answers(&["a", "b"]).await;
    }
}

#[tokio::test]
async fn what_one_backend_finds_out_is_not_anothers_affair() {
    let status = Arc::new(AtomicU16::new(503));
    let (a, b) = (patient("a", Arc::clone(&status)).await, patient("b", Arc::new(AtomicU16::new(200))).await);
    let asks = Route::new("asks.retry.test", "").rule(RulePolicy::default()).backend(
        "app",
        1,
        &[a, b],
        checked(&[(200, 200)]),
    );
    let does_not = Route::new("asks-not.retry.test", "").rule(RulePolicy::default()).service("app", &[a, b]);
    let rig = Rig::serve(&[asks, does_not]).await;
    eventually("only the other is left", async || who(&rig, "asks.retry.test").await == ["b"]).await;
    assert_eq!(who(&rig, "asks-not.retry.test").await, ["a", "b"]);
}

#[tokio::test]
async fn endpoints_that_speak_http2_get_http2() {
    let well = backends::h2c("well").await;
    let (ill, _) = endpoint(Does::Ends, usize::MAX, Does::Ends).await;
    let retry = on_500s(0);
    let route = route("h2c.retry.test", retry).backend("app", 1, &[ill, well], checked(&[(200, 200)])).h2c();
    let rig = Rig::serve(&[route]).await;
    eventually("the one that ends connections gets nothing", async || {
        for _ in 0..12 {
            if ask(&rig, "h2c.retry.test", "GET", "").await.0 != 200 {
                return false;
            }
        }
        true
    })
    .await;
}
