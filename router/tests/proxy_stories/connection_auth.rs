//! Endpoints that authenticate connections: an authenticated connection is used for its own client connection only.

use std::time::Duration;

use futures_util::future::join_all;
use http::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use router_proxy::ProxyConfig;
use router_table::policy::{RouterPolicy, Timeouts};
use router_table::rule::{Mirror, Retry, RulePolicy};
use router_table::table::InsecurePolicy;
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use crate::backends_h2::one_worker;
use crate::iis::{Came, Client, Iis, Speaks};
use crate::tables::{PATIENCE, Rig, Route, eventually, table, under};
use crate::{client, log, pki};

const HOST: &str = "who.apps.test";
const ROUNDS: usize = 60;
const ALL: [Speaks; 3] = [Speaks::Http1, Speaks::Tls, Speaks::Http2];

/// Protocols of the endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Endpoints {
    Http1,
    Tls,
    /// TLS, with HTTP/2 if the client selects it.
    TlsHttp2,
    TlsOnlyHttp2,
    H2c,
}

impl Endpoints {
    const ALL: [Endpoints; 5] =
        [Endpoints::Http1, Endpoints::Tls, Endpoints::TlsHttp2, Endpoints::TlsOnlyHttp2, Endpoints::H2c];

    fn speak_http1(self) -> bool {
        !matches!(self, Endpoints::TlsOnlyHttp2 | Endpoints::H2c)
    }
}

/// A router with two endpoints that take turns.
async fn rig(iis: &Iis, endpoints: Endpoints) -> Rig {
    let ca = pki::Ca::new("inside");
    let config = |alpn: &[&str]| pki::server_config_for(ca.leaf(&["x.internal"]), alpn);
    let mut addresses = Vec::new();
    for _ in 0..2 {
        addresses.push(match endpoints {
            Endpoints::Http1 => iis.http().await,
            Endpoints::Tls => iis.https(config(&["http/1.1"])).await,
            Endpoints::TlsHttp2 => iis.https(config(&["h2", "http/1.1"])).await,
            Endpoints::TlsOnlyHttp2 => iis.https(config(&["h2"])).await,
            Endpoints::H2c => iis.h2c().await,
        });
    }
    let route = Route::new(HOST, "").insecure(InsecurePolicy::Allow);
    let route = match endpoints {
        Endpoints::Http1 | Endpoints::H2c => route.edge(None),
        _ => route.reencrypt(Some(ca.roots())),
    };
    let route = route.service("app", &addresses);
    one_worker(&[if endpoints == Endpoints::H2c { route.h2c() } else { route }]).await
}

/// Number of deviations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Wrong {
    /// Requests that were served under another user's identity.
    as_others: usize,
    /// Requests of an authenticated user that were not served.
    as_nobody: usize,
    /// Incomplete authentication handshakes.
    handshakes: usize,
}

/// Two users and two unauthenticated clients send requests in turn.
async fn interleaved(rig: &Rig, iis: &Iis, speaks: Speaks) -> Wrong {
    let mut wrong = Wrong::default();
    let connect = |name| Client::connect(rig, speaks, HOST, name, iis);
    let mut users = [connect("ann").await, connect("bob").await];
    let strangers = [connect("eve").await, connect("mallory").await];
    for user in &users {
        // The first request of a client that does not know the endpoint.
        wrong.as_others += usize::from(user.ask("/", None).await.status == StatusCode::OK);
        let told = user.authenticate("/").await;
        wrong.handshakes += usize::from((told.status, &told.body) != (StatusCode::OK, &user.name));
    }
    for round in 0..ROUNDS {
        for stranger in &strangers {
            wrong.as_others += usize::from(stranger.ask("/", None).await.status == StatusCode::OK);
        }
        for user in &users {
            let told = user.ask("/", None).await;
            wrong.as_others += usize::from(told.status == StatusCode::OK && told.body != user.name);
            wrong.as_nobody += usize::from(told.status != StatusCode::OK);
        }
        if round % 10 == 0 {
            // The client's connection now authenticates as another user, and a new client connects.
            users[1].name = format!("bob{round}");
            let told = users[1].authenticate("/").await;
            wrong.handshakes += usize::from((told.status, &told.body) != (StatusCode::OK, &users[1].name));
            wrong.as_others += usize::from(connect("new").await.ask("/", None).await.status == StatusCode::OK);
        }
    }
    wrong
}

#[tokio::test]
async fn no_client_is_served_as_another_one() {
    let mut found = Vec::new();
    for endpoints in Endpoints::ALL {
        for speaks in ALL {
            for iis in [Iis::new("NTLM"), Iis::new("Negotiate"), Iis::new("NTLM").like_a_proxy()] {
                if !endpoints.speak_http1() && iis.asks.scheme == "NTLM" {
                    // Over HTTP/2, the endpoint can only demand HTTP/1.1.
                    continue;
                }
                let rig = rig(&iis, endpoints).await;
                let wrong = interleaved(&rig, &iis, speaks).await;
                if wrong != Wrong::default() {
                    found.push((endpoints, speaks, iis.asks, wrong));
                }
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// A router with two clear-text endpoints, and an authenticated client.
async fn with_ann(speaks: Speaks, rule: Option<RulePolicy>) -> (Rig, Iis, Client) {
    let iis = Iis::new("NTLM");
    let route = Route::new(HOST, "").edge(None).insecure(InsecurePolicy::Allow);
    let route = if let Some(rule) = rule { route.rule(rule) } else { route };
    let rig = one_worker(&[route.service("app", &[iis.http().await, iis.http().await])]).await;
    let ann = Client::connect(&rig, speaks, HOST, "ann", &iis).await;
    assert_eq!(ann.authenticate("/").await.body, "ann");
    (rig, iis, ann)
}

/// The only authenticated connection.
fn anns(iis: &Iis) -> Came {
    let mut hers = iis.came().into_iter().filter(|came| !came.users.is_empty());
    let first = hers.next().expect("one is hers");
    assert!(hers.next().is_none(), "one alone is hers");
    assert!(first.requests.iter().all(|(name, _)| name == "ann"), "{first:?}");
    first
}

#[tokio::test]
async fn a_connection_that_is_somebodys_ends_with_the_clients() {
    for speaks in ALL {
        let (rig, iis, ann) = with_ann(speaks, None).await;
        for _ in 0..10 {
            assert_eq!(ann.ask("/", None).await.body, "ann");
            // Other clients use other connections meanwhile.
            let eve = Client::connect(&rig, speaks, HOST, "eve", &iis).await;
            assert_eq!(eve.ask("/", None).await.status, StatusCode::UNAUTHORIZED);
        }
        assert!(!anns(&iis).has_ended);
        drop(ann);
        eventually("the end of all connections", async || iis.came().iter().all(|came| came.has_ended)).await;
        anns(&iis);
    }
}

#[tokio::test]
async fn streams_of_a_client_take_turns_on_its_connection() {
    let (rig, iis, ann) = with_ann(Speaks::Http2, None).await;
    let all = join_all((0..20).map(|_| ann.ask("/slow", None)));
    let eve = Client::connect(&rig, Speaks::Http2, HOST, "eve", &iis).await;
    let (answers, stranger) = tokio::join!(all, eve.ask("/", None));
    assert!(answers.iter().all(|told| told.body == "ann"), "{answers:?}");
    assert_eq!(stranger.status, StatusCode::UNAUTHORIZED);
    let hers = anns(&iis);
    assert_eq!((hers.at_once, hers.requests.len()), (1, 22));
}

#[tokio::test]
async fn a_request_that_is_given_up_ends_the_connection_and_not_the_turns() {
    let (_rig, iis, ann) = with_ann(Speaks::Http2, None).await;
    let given_up = timeout(Duration::from_millis(1), ann.ask("/slow", None)).await;
    assert!(given_up.is_err());
    // Whether or not the request was sent: no other client uses the connection, and the next request gets its turn.
    let told = ann.ask("/", None).await;
    assert!(told.body == "ann" || told.status == StatusCode::UNAUTHORIZED, "{told:?}");
    assert_eq!(ann.authenticate("/").await.body, "ann");
    assert!(iis.came().iter().all(|came| came.requests.iter().all(|(name, _)| name == "ann")));
}

#[tokio::test]
async fn a_turn_that_does_not_come_is_waited_for_as_long_as_an_endpoint() {
    const HOST: &str = "turn.apps.test";
    let iis = Iis::new("NTLM");
    let timeouts = Timeouts { server: Duration::from_millis(300), ..Timeouts::default() };
    let policy = RouterPolicy { timeouts, ..RouterPolicy::default() };
    let routes = [Route::new(HOST, "").edge(None).to(iis.http().await)];
    let certificate = pki::ca().leaf(&["*.apps.test"]);
    let rig = Rig::start(ProxyConfig::default(), under(policy, table(&routes, Some(&certificate)))).await;
    let stream = client::tls(rig.https, Some(HOST), &["h2"]).await;
    let (sender, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let request = |path| Request::post(format!("https://{HOST}{path}")).header("x-client", "ann").body(()).unwrap();
    let mut sender = sender.ready().await.unwrap();
    let (first, _) = sender.send_request(request("/"), true).unwrap();
    assert_eq!(first.await.unwrap().status(), StatusCode::UNAUTHORIZED);
    // Its content never arrives; the router waits for it as long as for any client.
    let (_second, _body) = sender.send_request(request("/read"), false).unwrap();
    let mut sender = sender.ready().await.unwrap();
    let (third, _) = sender.send_request(request("/"), true).unwrap();
    assert_eq!(timeout(PATIENCE, third).await.expect("an answer").unwrap().status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(log::line_where("it", |line| line["host"] == HOST && line["status"] == 503).await["flags"], "UO");
    assert_eq!(iis.came().iter().map(|came| came.requests.len()).sum::<usize>(), 1, "it came over no other connection");
}

#[tokio::test]
async fn a_request_that_is_sent_again_stays_on_the_connection() {
    let retry = Retry {
        count: 3,
        statuses: vec![503..=503],
        unanswered: true,
        unreachable: true,
        backoff: Duration::from_millis(1),
    };
    for speaks in ALL {
        let (_rig, iis, ann) =
            with_ann(speaks, Some(RulePolicy { retry: Some(retry.clone()), ..RulePolicy::default() })).await;
        let told = ann.ask("/flaky", None).await;
        assert_eq!((told.status, told.body.as_str()), (StatusCode::SERVICE_UNAVAILABLE, "ann"));
        assert_eq!(anns(&iis).requests.len(), 2 + 4, "all of them are there");
    }
}

#[tokio::test]
async fn a_client_is_unauthenticated_after_its_endpoint_closes() {
    for speaks in ALL {
        let (_rig, iis, ann) = with_ann(speaks, None).await;
        assert_eq!(ann.ask("/bye", None).await.body, "ann");
        assert_eq!(ann.ask("/", None).await.status, StatusCode::UNAUTHORIZED);
        assert_eq!(ann.authenticate("/").await.body, "ann");
        assert_eq!(ann.ask("/", None).await.body, "ann");
        let came = iis.came();
        assert_eq!(came.iter().filter(|came| !came.users.is_empty()).count(), 2);
        assert!(came.iter().all(|came| came.requests.iter().all(|(name, _)| name == "ann")), "{came:?}");
    }
}

#[tokio::test]
async fn an_endpoint_that_is_no_more_leaves_a_client_to_the_others() {
    let (rig, iis, ann) = with_ann(Speaks::Http1, None).await;
    let other = Iis::new("NTLM");
    let route = Route::new(HOST, "").service("app", &[other.http().await]);
    rig.tables.send_replace(table(&[route], None));
    eventually("the end of her connection", async || anns(&iis).has_ended).await;
    assert_eq!(ann.ask("/", None).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(ann.authenticate("/").await.body, "ann");
    anns(&other);
}

#[tokio::test]
async fn an_upgrade_goes_over_the_connection_that_is_the_clients() {
    let (rig, iis, ann) = with_ann(Speaks::Http1, None).await;
    let upgrade = |client: &Client| {
        let mut request = client.request("/ws", None);
        request.headers_mut().insert("connection", "upgrade".parse().unwrap());
        request.headers_mut().insert("upgrade", "chat".parse().unwrap());
        request
    };
    let mut switched = ann.send(upgrade(&ann)).await.unwrap();
    assert_eq!(switched.status(), StatusCode::SWITCHING_PROTOCOLS);
    let mut stream = TokioIo::new(hyper::upgrade::on(&mut switched).await.unwrap());
    let mut text = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut text)).await.expect("the end").unwrap();
    assert_eq!(text, "ann");
    anns(&iis);
    let eve = Client::connect(&rig, Speaks::Http1, HOST, "eve", &iis).await;
    assert_eq!(eve.send(upgrade(&eve)).await.unwrap().status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn copies_of_requests_share_no_connection_that_may_be_somebodys() {
    let (iis, mirror) = (Iis::new("NTLM"), Iis::new("Negotiate"));
    let cluster = Route::new("mirror", "").service("copies", &[mirror.http().await]).cluster();
    let rule = RulePolicy { mirrors: vec![Mirror { cluster, share: (1, 1) }], ..RulePolicy::default() };
    let rig = one_worker(&[Route::new(HOST, "").rule(rule).to(iis.http().await)]).await;
    let ann = Client::connect(&rig, Speaks::Http1, HOST, "ann", &iis).await;
    for copies in 1..=10 {
        assert_eq!(ann.authenticate("/").await.body, "ann");
        eventually("the copies", async || mirror.came().iter().flat_map(|came| &came.requests).count() == 2 * copies)
            .await;
    }
    eventually("their end", async || mirror.came().iter().all(|came| came.has_ended)).await;
    assert!(mirror.came().iter().all(|came| came.requests.len() == 1));
}

#[tokio::test]
async fn a_client_connection_has_connections_of_its_own_with_a_few_endpoints() {
    const HOSTS: usize = 20;
    let iis = Iis::new("Negotiate");
    let mut routes = Vec::new();
    for host in 0..HOSTS {
        routes.push(Route::new(&format!("h{host}.{HOST}"), "").to(iis.http().await));
    }
    let rig = one_worker(&routes).await;
    let ann = Client::connect(&rig, Speaks::Http1, HOST, "ann", &iis).await;
    for host in 0..HOSTS {
        let mut request = ann.request("/", None);
        request.headers_mut().insert("host", format!("h{host}.{HOST}").parse().unwrap());
        assert_eq!(ann.send(request).await.unwrap().status(), StatusCode::UNAUTHORIZED);
    }
    let open = || iis.came().iter().filter(|came| !came.has_ended).count();
    eventually("the end of those beyond eight", async || open() == 8).await;
    assert_eq!(iis.came().len(), HOSTS);
}

#[tokio::test]
async fn a_request_that_an_endpoint_requires_over_http1_is_sent_over_http1() {
    let ca = pki::Ca::new("inside");
    let iis = Iis::new("NTLM").requires_http1();
    let config = pki::server_config_for(ca.leaf(&["x.internal"]), &["h2", "http/1.1"]);
    let rig = one_worker(&[Route::new(HOST, "").reencrypt(Some(ca.roots())).to(iis.https(config).await)]).await;
    for speaks in [Speaks::Tls, Speaks::Http2] {
        let ann = Client::connect(&rig, speaks, HOST, "ann", &iis).await;
        assert_eq!(ann.ask("/", None).await.status, StatusCode::UNAUTHORIZED);
        assert_eq!(ann.authenticate("/").await.body, "ann");
        // By now the endpoint's version is known, also for requests that cannot be repeated.
        let mut post = ann.request("/", None);
        *post.method_mut() = http::Method::POST;
        assert_eq!(ann.send(post).await.unwrap().status(), StatusCode::OK);
    }
    let over_http2 = iis.came().iter().filter(|came| came.is_http2).count();
    assert_eq!(over_http2, 1, "it was asked once");
}
