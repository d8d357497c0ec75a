//! gRPC: HTTP/2 from end to end with all features that gRPC needs. Client and backends speak in frames.

use std::time::Duration;

use h2::client::SendRequest;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Request, Response, StatusCode};
use hyper::body::Bytes;
use router_proxy::ProxyConfig;
use router_table::policy::{RouterPolicy, Timeouts};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::tables::{PATIENCE, Rig, Route, table, under};
use crate::{backends, client, log, pki};

/// A connection to the router, as a gRPC client makes it.
async fn connect(rig: &Rig, sni: &str) -> SendRequest<Bytes> {
    let stream = client::tls(rig.https, Some(sni), &["h2"]).await;
    let (sender, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(async move { connection.await.ok() });
    sender.ready().await.unwrap()
}

fn call(host: &str, method: &str) -> Request<()> {
    let request = Request::post(format!("https://{host}/shop.Cart/{method}"));
    request.header("content-type", "application/grpc").header("te", "trailers").body(()).unwrap()
}

/// A message with gRPC's prefix.
fn message(text: &str) -> Bytes {
    let mut bytes = vec![0];
    bytes.extend((text.len() as u32).to_be_bytes());
    bytes.extend(text.as_bytes());
    bytes.into()
}

async fn next(body: &mut RecvStream) -> Bytes {
    let data = timeout(PATIENCE, body.data()).await.expect("a frame").expect("data").unwrap();
    body.flow_control().release_capacity(data.len()).unwrap();
    data
}

async fn trailers(body: &mut RecvStream) -> HeaderMap {
    timeout(PATIENCE, body.trailers()).await.expect("trailers").unwrap().expect("trailers")
}

fn status(code: u16) -> HeaderMap {
    HeaderMap::from_iter([("grpc-status".parse().unwrap(), code.into())])
}

fn grpc_response() -> Response<()> {
    Response::builder().header("content-type", "application/grpc").body(()).unwrap()
}

/// Serves each call with `work`.
pub async fn server<F>(
    work: impl Fn(Request<RecvStream>, h2::server::SendResponse<Bytes>) -> F + Clone + Send + Sync + 'static,
) -> std::net::SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    backends::serve(move |stream| {
        let work = work.clone();
        async move {
            let mut connection = h2::server::handshake(stream).await.unwrap();
            while let Some(Ok((request, respond))) = connection.accept().await {
                tokio::spawn(work(request, respond));
            }
        }
    })
    .await
}

/// Echoes every message as it arrives, then sends status OK.
async fn echo(request: Request<RecvStream>, mut respond: h2::server::SendResponse<Bytes>) {
    assert_eq!(request.headers()["te"], "trailers");
    assert_eq!(request.uri().scheme_str(), Some("http"));
    let mut out = respond.send_response(grpc_response(), false).unwrap();
    let mut body = request.into_body();
    while let Some(Ok(data)) = body.data().await {
        body.flow_control().release_capacity(data.len()).unwrap();
        if out.send_data(data, false).is_err() {
            return;
        }
    }
    let _ = out.send_trailers(status(0));
}

async fn rig(host: &str, backend: std::net::SocketAddr) -> Rig {
    let key = pki::ca().leaf(&[host]);
    Rig::serve(&[Route::new(host, "").edge(Some(&key)).to(backend).h2c()]).await
}

async fn start(
    sender: &mut SendRequest<Bytes>,
    request: Request<()>,
) -> (h2::client::ResponseFuture, SendStream<Bytes>) {
    sender.send_request(request, false).unwrap()
}

#[tokio::test]
async fn a_call_has_its_message_and_its_trailers() {
    let rig = rig("unary.grpc.test", server(echo).await).await;
    let mut sender = connect(&rig, "unary.grpc.test").await;
    for text in ["one", "two"] {
        let (response, mut out) = start(&mut sender, call("unary.grpc.test", "Get")).await;
        out.send_data(message(text), true).unwrap();
        let response = timeout(PATIENCE, response).await.expect("an answer").unwrap();
        assert_eq!(
            (response.status(), &response.headers()["content-type"]),
            (StatusCode::OK, &"application/grpc".parse().unwrap())
        );
        let mut body = response.into_body();
        assert_eq!(next(&mut body).await, message(text));
        assert_eq!(trailers(&mut body).await["grpc-status"], "0");
    }
    let line = log::line("host", "unary.grpc.test").await;
    assert_eq!(
        (line["flags"].as_str(), line["bytes_in"].as_u64(), line["bytes_out"].as_u64()),
        (Some("-"), Some(8), Some(8))
    );
}

#[tokio::test]
async fn both_sides_stream_at_once() {
    let rig = rig("bidi.grpc.test", server(echo).await).await;
    let mut sender = connect(&rig, "bidi.grpc.test").await;
    let (response, mut out) = start(&mut sender, call("bidi.grpc.test", "Chat")).await;
    // The response begins before the request has sent a message.
    let mut body = timeout(PATIENCE, response).await.expect("an answer").unwrap().into_body();
    for turn in 0..50 {
        let text = message(&format!("message {turn}"));
        out.send_data(text.clone(), false).unwrap();
        assert_eq!(next(&mut body).await, text);
    }
    out.send_data(Bytes::new(), true).unwrap();
    assert_eq!(trailers(&mut body).await["grpc-status"], "0");
}

#[tokio::test]
async fn an_answer_of_trailers_alone_is_one_frame() {
    let backend = server(async |_, mut respond: h2::server::SendResponse<Bytes>| {
        let mut response = grpc_response();
        response.headers_mut().extend(status(5));
        respond.send_response(response, true).unwrap();
    })
    .await;
    let rig = rig("alone.grpc.test", backend).await;
    let mut sender = connect(&rig, "alone.grpc.test").await;
    let (response, mut out) = start(&mut sender, call("alone.grpc.test", "Get")).await;
    out.send_data(message("x"), true).unwrap();
    let response = timeout(PATIENCE, response).await.expect("an answer").unwrap();
    assert_eq!(response.headers()["grpc-status"], "5");
    assert!(!response.headers().contains_key("content-length") && response.body().is_end_stream());
}

#[tokio::test]
async fn resets_keep_their_reason_both_ways() {
    let (tell, mut told) = mpsc::channel(1);
    let backend = server(move |request: Request<RecvStream>, mut respond: h2::server::SendResponse<Bytes>| {
        let tell = tell.clone();
        async move {
            let mut out = respond.send_response(grpc_response(), false).unwrap();
            out.send_data(message("begun"), false).unwrap();
            if request.uri().path().ends_with("Break") {
                // Wait until the client has received what was sent.
                request.into_body().data().await.unwrap().unwrap();
                return out.send_reset(Reason::ENHANCE_YOUR_CALM);
            }
            let reason = std::future::poll_fn(|cx| out.poll_reset(cx)).await;
            tell.send(reason.unwrap()).await.unwrap();
        }
    })
    .await;
    let rig = rig("reset.grpc.test", backend).await;
    let mut sender = connect(&rig, "reset.grpc.test").await;
    let (response, mut out) = start(&mut sender, call("reset.grpc.test", "Break")).await;
    let mut body = timeout(PATIENCE, response).await.expect("an answer").unwrap().into_body();
    assert_eq!(next(&mut body).await, message("begun"));
    out.send_data(message("break"), false).unwrap();
    let error = timeout(PATIENCE, body.data()).await.expect("an end").expect("no clean end").unwrap_err();
    assert_eq!(error.reason(), Some(Reason::ENHANCE_YOUR_CALM));

    let (response, mut out) = start(&mut sender, call("reset.grpc.test", "Wait")).await;
    let mut body = timeout(PATIENCE, response).await.expect("an answer").unwrap().into_body();
    next(&mut body).await;
    out.send_reset(Reason::CANCEL);
    assert_eq!(timeout(PATIENCE, told.recv()).await.expect("a reset"), Some(Reason::CANCEL));
}

#[tokio::test]
async fn the_routers_own_answers_are_in_grpcs_words() {
    let silent = server(async |mut request: Request<RecvStream>, _respond| {
        while request.body_mut().data().await.is_some_and(|data| data.is_ok()) {}
        std::future::pending().await
    })
    .await;
    let key = pki::ca().leaf(&["*.own.grpc.test"]);
    let routes = [
        Route::new("none.own.grpc.test", "").edge(Some(&key)).service("none", &[]),
        Route::new("dead.own.grpc.test", "").edge(Some(&key)).to(backends::refusing()).h2c(),
        Route::new("late.own.grpc.test", "").edge(Some(&key)).to(silent).h2c(),
        Route::new("closed.own.grpc.test", "").edge(Some(&key)).to(silent).h2c().allow(&["192.0.2.0/24"]),
    ];
    let timeouts = Timeouts { server: Duration::from_millis(300), ..Timeouts::default() };
    let policy = RouterPolicy { timeouts, ..RouterPolicy::default() };
    let rig = Rig::start(ProxyConfig::default(), under(policy, table(&routes, None))).await;
    for (host, code, flag) in [
        ("none.own.grpc.test", "14", "NE"),
        ("dead.own.grpc.test", "14", "UF"),
        ("late.own.grpc.test", "4", "UT"),
        ("closed.own.grpc.test", "7", "SNA"),
    ] {
        let mut sender = connect(&rig, host).await;
        let (response, mut out) = start(&mut sender, call(host, "Get")).await;
        out.send_data(message("x"), true).unwrap();
        let response = timeout(PATIENCE, response).await.expect("an answer").unwrap();
        let headers = response.headers();
        assert_eq!((response.status(), &headers["grpc-status"]), (StatusCode::OK, &code.parse().unwrap()), "{host}");
        assert!(headers["content-type"] == "application/grpc" && response.body().is_end_stream(), "{headers:?}");
        assert_eq!(log::line("host", host).await["flags"], flag);
    }
}
