//! Balancing of requests and connections by rule and weight, and around endpoints that do not respond.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use router_table::policy::{Affinity, Balance, RoutePolicy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::tables::{Rig, Route, eventually};
use crate::{backends, client};

/// Without cookies.
fn by(balance: Balance) -> RoutePolicy {
    let affinity = Affinity { disabled: true, ..Affinity::default() };
    RoutePolicy { balance: Some(balance), affinity, ..RoutePolicy::default() }
}

async fn counts(http: SocketAddr, host: &str, requests: usize) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for _ in 0..requests {
        let answer = client::get(http, host, "/").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        *counts.entry(answer.field("x-backend").unwrap().to_owned()).or_default() += 1;
    }
    counts
}

#[tokio::test]
async fn services_get_the_shares_that_their_weights_say_whatever_their_endpoints() {
    let [a, b, c] = [backends::http("a").await, backends::http("b").await, backends::http("c").await];
    let weighted = Route::new("weights.test", "").weighted("big", 30, &[a]).weighted("small", 10, &[b, c]);
    let in_turn = Route::new("turn.test", "").service("app", &[a, b, c]).policy(by(Balance::RoundRobin));
    let by_chance = Route::new("chance.test", "").service("app", &[a, b, c]);
    let rig = Rig::serve(&[weighted, in_turn, by_chance]).await;
    let expected = |counts: [usize; 3]| BTreeMap::from_iter(["a", "b", "c"].map(str::to_owned).into_iter().zip(counts));
    assert_eq!(counts(rig.http, "weights.test", 48).await, expected([36, 6, 6]));
    assert_eq!(counts(rig.http, "turn.test", 30).await, expected([10, 10, 10]));
    // An endpoint gets no request with a probability of less than 10^-17.
    assert_eq!(counts(rig.http, "chance.test", 100).await.len(), 3);
}

#[tokio::test]
async fn requests_that_last_turn_others_to_idle_endpoints() {
    let (release, released) = watch::channel(false);
    let (asked, mut was_asked) = watch::channel(0);
    let asked = Arc::new(asked);
    let slow = backends::serve(move |mut stream| {
        let (mut released, asked) = (released.clone(), Arc::clone(&asked));
        async move {
            let mut buffer = [0; 4096];
            while stream.read(&mut buffer).await.unwrap_or(0) > 0 {
                asked.send_modify(|asked| *asked += 1);
                released.wait_for(|released| *released).await.unwrap();
                let answer = b"HTTP/1.1 200 OK\r\nX-Backend: slow\r\nContent-Length: 0\r\n\r\n";
                let _ = stream.write_all(answer).await;
            }
        }
    })
    .await;
    let quick = backends::http("quick").await;
    let route = Route::new("least.test", "").service("app", &[slow, quick]).policy(by(Balance::LeastConnections));
    let rig = Rig::serve(&[route]).await;
    let mut waiting = Vec::new();
    // Idle endpoints take turns, so one of two requests reaches the slow endpoint, which does not respond.
    while *was_asked.borrow_and_update() == 0 {
        let stream = TcpStream::connect(rig.http).await.unwrap();
        let mut asks =
            tokio::spawn(client::exchange(stream, "GET / HTTP/1.1\r\nHost: least.test\r\nConnection: close\r\n\r\n"));
        tokio::select! {
            answer = &mut asks => assert_eq!(answer.unwrap().field("x-backend"), Some("quick")),
            _ = was_asked.changed() => waiting.push(asks),
        }
    }
    assert_eq!(counts(rig.http, "least.test", 30).await, BTreeMap::from([("quick".to_owned(), 30)]));
    release.send_replace(true);
    for asks in waiting {
        assert_eq!(asks.await.unwrap().field("x-backend"), Some("slow"));
    }
    eventually("a turn of the slow one", async || counts(rig.http, "least.test", 2).await.contains_key("slow")).await;
}

#[tokio::test]
async fn a_client_address_has_one_endpoint_in_http_and_passthrough() {
    let [a, b, c] = [backends::http("a").await, backends::http("b").await, backends::http("c").await];
    let [d, e] = [backends::named_echo("d").await, backends::named_echo("e").await];
    let rig = Rig::serve(&[
        Route::new("source.test", "").service("app", &[a, b, c]).policy(by(Balance::Source)),
        Route::new("source-pass.test", "").passthrough().service("app", &[d, e]).policy(by(Balance::Source)),
    ])
    .await;
    assert_eq!(counts(rig.http, "source.test", 20).await.len(), 1);
    let mut names = BTreeMap::<(u8, [u8; 1]), u32>::new();
    for last in 1..=20 {
        for _ in 0..3 {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.bind(([127, 0, 0, last], 0).into()).unwrap();
            let mut stream = socket.connect(rig.https).await.unwrap();
            stream.write_all(&client::hello("source-pass.test")).await.unwrap();
            let mut name = [0; 1];
            stream.read_exact(&mut name).await.unwrap();
            *names.entry((last, name)).or_default() += 1;
        }
    }
    assert!(names.len() == 20 && names.values().all(|count| *count == 3), "{names:?}");
    assert!([*b"d", *b"e"].iter().all(|name| names.keys().any(|(_, of)| of == name)), "{names:?}");
}

#[tokio::test]
async fn endpoints_that_refuse_cause_no_errors_under_any_rule() {
    let live = backends::http("live").await;
    let pass = backends::named_echo("pass").await;
    let mut routes = Vec::new();
    for balance in [Balance::Random, Balance::RoundRobin, Balance::LeastConnections, Balance::Source] {
        let addresses = [backends::refusing(), live, backends::refusing()];
        routes.push(Route::new(&format!("{balance:?}.dead.test"), "").service("app", &addresses).policy(by(balance)));
        let addresses = [backends::refusing(), pass, backends::refusing()];
        let route = Route::new(&format!("{balance:?}.pass.test"), "").passthrough();
        routes.push(route.service("app", &addresses).policy(by(balance)));
    }
    let rig = Rig::serve(&routes).await;
    for balance in ["random", "roundrobin", "leastconnections", "source"] {
        assert_eq!(
            counts(rig.http, &format!("{balance}.dead.test"), 20).await,
            BTreeMap::from([("live".to_owned(), 20)])
        );
        for _ in 0..10 {
            let mut stream = TcpStream::connect(rig.https).await.unwrap();
            stream.write_all(&client::hello(&format!("{balance}.pass.test"))).await.unwrap();
            let mut name = [0; 4];
            stream.read_exact(&mut name).await.unwrap();
            assert_eq!(&name, b"pass", "{balance}");
        }
    }
}
