//! Copies of requests.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use router_proxy::ProxyConfig;
use router_table::rule::{Mirror, RulePolicy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::tables::{Rig, Route, eventually, table};
use crate::{backends, client};

/// What a mirror received: method and path, `Host`, whether the body was complete, and the body.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    request: String,
    host: String,
    complete: bool,
    body: Vec<u8>,
}

/// Completed requests, and the number of those begun.
#[derive(Debug, Default)]
struct Recorded {
    ended: Mutex<Vec<Seen>>,
    begun: AtomicUsize,
}

type Log = Arc<Recorded>;

/// A mirror that records what it receives.
async fn recorder() -> (SocketAddr, Log) {
    let log = Log::default();
    let seen = Arc::clone(&log);
    let address = backends::serve(move |stream| {
        let seen = Arc::clone(&seen);
        async move {
            let service = service_fn(|request| record(Arc::clone(&seen), request));
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        }
    })
    .await;
    (address, log)
}

async fn record(log: Log, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    log.begun.fetch_add(1, Ordering::Relaxed);
    let (head, mut content) = request.into_parts();
    let (mut body, mut complete) = (Vec::new(), true);
    while let Some(frame) = content.frame().await {
        match frame {
            Ok(frame) => body.extend(frame.into_data().unwrap_or_default()),
            Err(_) => {
                complete = false;
                break;
            }
        }
    }
    let request = format!("{} {}", head.method, head.uri);
    let host = head.headers["host"].to_str().unwrap().to_owned();
    log.ended.lock().unwrap().push(Seen { request, host, complete, body });
    Ok(Response::new(Full::from("what mirrors say is not passed on")))
}

fn mirror(addresses: &[SocketAddr], share: (u32, u32)) -> Mirror {
    let cluster = Route::new("mirror.test", "").service("mirror", addresses).cluster();
    Mirror { cluster, share }
}

fn mirrored(host: &str, mirrors: Vec<Mirror>) -> Route {
    Route::new(host, "").rule(RulePolicy { mirrors, ..RulePolicy::default() })
}

const ALL: (u32, u32) = (1, 1);

async fn seen(log: &Log, count: usize) -> Vec<Seen> {
    eventually("the copies", async || log.ended.lock().unwrap().len() >= count).await;
    log.ended.lock().unwrap().clone()
}

fn post(host: &str, body: &str) -> String {
    let length = body.len();
    format!("POST /x?y HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
}

#[tokio::test]
async fn every_mirror_gets_the_request_and_the_client_the_backends_answer() {
    let backend = backends::http("main").await;
    let ((one, first), (two, second)) = (recorder().await, recorder().await);
    let rig =
        Rig::serve(&[mirrored("two.mirror.test", vec![mirror(&[one], ALL), mirror(&[two], ALL)]).to(backend)]).await;
    let answer = client::request(rig.http, &post("two.mirror.test", "a body")).await;
    assert!(answer.body.starts_with("main POST /x?y\n") && answer.body.ends_with("\n\na body"), "{answer:?}");
    let chunked = "PUT /c HTTP/1.1\r\nHost: two.mirror.test\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n\
                   3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    assert_eq!(client::request(rig.http, chunked).await.status, 200);
    assert_eq!(client::get(rig.http, "two.mirror.test", "/g").await.status, 200);
    for log in [first, second] {
        let copy = |request: &str, body: &[u8]| Seen {
            request: request.to_owned(),
            host: "two.mirror.test".to_owned(),
            complete: true,
            body: body.to_owned(),
        };
        let mut found = seen(&log, 3).await;
        found.sort_by(|a, b| a.request.cmp(&b.request));
        assert_eq!(found, [copy("GET /g", b""), copy("POST /x?y", b"a body"), copy("PUT /c", b"abcde")]);
    }
}

#[tokio::test]
async fn mirrors_get_exact_shares_from_all_workers_and_while_the_route_changes() {
    let backends = [backends::http("one").await, backends::http("two").await];
    let ((fifth, few), (third, some), (none, nothing)) = (recorder().await, recorder().await, recorder().await);
    let version = |number: usize| {
        let mirrors = vec![mirror(&[fifth], (20, 100)), mirror(&[third], (1, 3)), mirror(&[none], (0, 100))];
        table(&[mirrored("share.mirror.test", mirrors).to(backends[number % 2])], None)
    };
    let config = ProxyConfig { workers: NonZeroUsize::new(3), ..ProxyConfig::default() };
    let rig = Rig::start(config, version(0)).await;
    let mut asked = 0;
    let mut ask = async || {
        asked += 1;
        client::get(rig.http, "share.mirror.test", &format!("/{asked}")).await.body
    };
    for number in 1..=50 {
        rig.tables.send_replace(version(number));
        while !ask().await.starts_with(["one", "two"][number % 2]) {}
    }
    // Whole rounds, then the same number again: surplus copies of the first rounds would appear with these.
    let half = 300;
    for number in 50.. {
        let body = ask().await;
        assert!(body.starts_with("one"), "{number}: {body}");
        if body.starts_with(&format!("one GET /{}\n", 2 * half)) {
            break;
        }
    }
    for (log, of) in [(few, 5), (some, 3)] {
        let copies = seen(&log, 2 * half / of).await;
        let number = |copy: &Seen| copy.request.trim_start_matches("GET /").parse::<usize>().unwrap();
        let early = copies.iter().filter(|copy| number(copy) <= half).count();
        assert_eq!((copies.len(), early), (2 * half / of, half / of), "one of {of}");
    }
    assert!(nothing.ended.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_silent_or_missing_mirror_affects_no_request() {
    let backend = backends::http("main").await;
    let silent = backends::serve(|mut stream| async move {
        let _ = stream.read_to_end(&mut Vec::new()).await;
    })
    .await;
    let mirrors = vec![mirror(&[silent], ALL), mirror(&[backends::refusing()], ALL), mirror(&[], ALL)];
    let rig = Rig::serve(&[mirrored("dead.mirror.test", mirrors).to(backend)]).await;
    for _ in 0..3 {
        let answer = client::request(rig.http, &post("dead.mirror.test", "body")).await;
        assert!(answer.status == 200 && answer.body.ends_with("\n\nbody"), "{answer:?}");
    }
}

#[tokio::test]
async fn a_mirror_that_is_too_slow_loses_the_copy_and_the_request_goes_on() {
    const SIZE: usize = 32 << 20;
    let backend = backends::http("main").await;
    // It reads nothing until it is released, so that its buffers and the router's bound are full by then.
    let (release, released) = watch::channel(false);
    let ends = Arc::new(Mutex::new(Vec::new()));
    let taken = Arc::clone(&ends);
    let slow = backends::serve(move |mut stream| {
        let (mut released, taken) = (released.clone(), Arc::clone(&taken));
        async move {
            released.wait_for(|released| *released).await.unwrap();
            let mut bytes = Vec::new();
            // A reset is an end as well.
            let _ = stream.read_to_end(&mut bytes).await;
            taken.lock().unwrap().push(bytes.len());
        }
    })
    .await;
    let rig = Rig::serve(&[mirrored("slow.mirror.test", vec![mirror(&[slow], ALL)]).to(backend)]).await;
    let answer = client::request(rig.http, &post("slow.mirror.test", &"x".repeat(SIZE))).await;
    assert_eq!(answer.status, 200);
    assert!(answer.body.len() >= SIZE, "all of it came to the backend");
    release.send_replace(true);
    eventually("the copy's end", async || !ends.lock().unwrap().is_empty()).await;
    let copied = ends.lock().unwrap()[0];
    assert!(copied < SIZE, "{copied} bytes came to the mirror");
}

#[tokio::test]
async fn copies_under_way_are_bounded() {
    let backend = backends::http("main").await;
    let connections = Arc::new(Mutex::new(0_usize));
    let counted = Arc::clone(&connections);
    let silent = backends::serve(move |mut stream| {
        *counted.lock().unwrap() += 1;
        async move {
            let _ = stream.read_to_end(&mut Vec::new()).await;
        }
    })
    .await;
    let config = ProxyConfig { workers: NonZeroUsize::new(1), ..ProxyConfig::default() };
    let routes = [mirrored("many.mirror.test", vec![mirror(&[silent], ALL)]).to(backend)];
    let rig = Rig::start(config, table(&routes, None)).await;
    let mut stream = TcpStream::connect(rig.http).await.unwrap();
    let mut buffer = vec![0; 4096];
    for _ in 0..300 {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: many.mirror.test\r\n\r\n").await.unwrap();
        let read = stream.read(&mut buffer).await.unwrap();
        assert!(buffer[..read].starts_with(b"HTTP/1.1 200 "));
    }
    eventually("the copies that there may be", async || *connections.lock().unwrap() >= 256).await;
    assert_eq!(*connections.lock().unwrap(), 256);
}

#[tokio::test]
async fn the_end_of_a_request_is_the_end_of_its_copies() {
    let (address, log) = recorder().await;
    let rig =
        Rig::serve(&[mirrored("broken.mirror.test", vec![mirror(&[address], ALL)]).to(backends::http("main").await)])
            .await;
    let mut stream = TcpStream::connect(rig.http).await.unwrap();
    let head = "POST / HTTP/1.1\r\nHost: broken.mirror.test\r\nContent-Length: 100\r\n\r\nsome of it";
    stream.write_all(head.as_bytes()).await.unwrap();
    eventually("the copy's begin", async || log.begun.load(Ordering::Relaxed) > 0).await;
    drop(stream);
    let seen = seen(&log, 1).await;
    assert!(!seen[0].complete && b"some of it".starts_with(&seen[0].body), "{seen:?}");
}
