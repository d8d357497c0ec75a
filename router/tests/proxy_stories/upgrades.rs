//! Upgrades: after 101, bytes pass unchanged between client and backend.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use http::{Request, StatusCode};
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::client::conn::http2;
use hyper::ext::Protocol;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::tables::{PATIENCE, Rig, Route};
use crate::{backends, client, log, pki};

const UPGRADE: &str = "GET /chat HTTP/1.1\r\nHost: ws.test\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
                       Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// Switches protocols on request, then echoes; responds with 200 otherwise.
async fn switching() -> std::net::SocketAddr {
    backends::serve(|mut stream| async move {
        let head = read_head(&mut stream).await.to_ascii_lowercase();
        if !(head.contains("\r\nupgrade: websocket\r\n") && head.contains("\r\nconnection: upgrade\r\n")) {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nplain").await;
            return;
        }
        let switch = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                       Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nhello ";
        stream.write_all(switch).await.unwrap();
        let (mut read, mut write) = stream.split();
        let _ = tokio::io::copy(&mut read, &mut write).await;
        let _ = write.write_all(b" bye").await;
    })
    .await
}

async fn read_head(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

/// Upgrades over this stream, echoes, half-closes, and expects the backend's last bytes.
async fn talk(mut stream: impl AsyncReadExt + AsyncWriteExt + Unpin) {
    stream.write_all(UPGRADE.as_bytes()).await.unwrap();
    let head = read_head(&mut stream).await.to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 101 "), "{head}");
    for field in ["connection: upgrade", "upgrade: websocket", "sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="] {
        assert!(head.contains(&format!("\r\n{field}\r\n")), "{field} in {head}");
    }
    stream.write_all(b"\x81\x04ping").await.unwrap();
    let mut echo = [0; 12];
    stream.read_exact(&mut echo).await.unwrap();
    assert_eq!(&echo, b"hello \x81\x04ping");
    stream.shutdown().await.unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b" bye");
}

#[tokio::test]
async fn a_websocket_echoes_over_clear_text_and_tls() {
    let backend = switching().await;
    let key = pki::ca().leaf(&["ws.test"]);
    let plain = Route::new("ws.test", "").to(backend);
    talk(TcpStream::connect(Rig::serve(&[plain]).await.http).await.unwrap()).await;
    // Ports are reused: another story may have had this one before.
    let tunnel = |line: &serde_json::Value| line["endpoint"] == backend.to_string() && line["status"] == 101;
    let line = log::line_where("a line of the tunnel", tunnel).await;
    assert_eq!((line["status"].as_u64(), line["flags"].as_str()), (Some(101), Some("-")));
    assert_eq!((line["bytes_in"].as_u64(), line["bytes_out"].as_u64()), (Some(6), Some(16)));

    let edge = Rig::serve(&[Route::new("ws.test", "").edge(Some(&key)).to(backend)]).await;
    talk(client::tls(edge.https, Some("ws.test"), &["http/1.1"]).await).await;
}

#[tokio::test]
async fn a_route_says_how_long_its_tunnels_may_be_idle() {
    let backend = switching().await;
    let route = Route::new("idle.ws.test", "").to(backend).tunnel_timeout(Duration::from_millis(300));
    let rig = Rig::serve(&[route]).await;
    let mut stream = TcpStream::connect(rig.http).await.unwrap();
    stream.write_all(UPGRADE.replace("ws.test", "idle.ws.test").as_bytes()).await.unwrap();
    let head = read_head(&mut stream).await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    // A FIN or a reset.
    let _ = timeout(PATIENCE, stream.read_to_end(&mut Vec::new())).await.expect("an end");
    assert_eq!(log::line("host", "idle.ws.test").await["flags"], "ID");
}

#[tokio::test]
async fn bytes_behind_the_request_wait_for_the_switch() {
    // The backend does not switch: the bytes after the request are another request.
    let backend = backends::http("app").await;
    let rig = Rig::serve(&[Route::new("ws.test", "").to(backend)]).await;
    let both = format!("{UPGRADE}GET /second HTTP/1.1\r\nHost: ws.test\r\nConnection: close\r\n\r\n");
    let mut stream = TcpStream::connect(rig.http).await.unwrap();
    stream.write_all(both.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 2, "{text}");
    assert!(text.contains("app GET /chat\n") && text.contains("app GET /second\n"), "{text}");
}

#[tokio::test]
async fn a_backend_that_switches_unasked_is_a_bad_gateway() {
    let backend = backends::serve(|mut stream| async move {
        read_head(&mut stream).await;
        let switch = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
        let _ = stream.write_all(switch).await;
        let _ = stream.read_to_end(&mut Vec::new()).await;
    })
    .await;
    let rig = Rig::serve(&[Route::new("unasked.test", "").to(backend)]).await;
    assert_eq!(client::get(rig.http, "unasked.test", "/").await.status, 502);
}

/// An HTTP/2 connection to the router with extended CONNECT enabled.
async fn h2(rig: &Rig, sni: &str) -> http2::SendRequest<Empty<Bytes>> {
    let stream = client::tls(rig.https, Some(sni), &["h2"]).await;
    let (mut sender, driver) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    let mut driver = Box::pin(driver);
    // The settings arrive with the router's first frames.
    timeout(
        PATIENCE,
        poll_fn(|cx| {
            let _ = driver.as_mut().poll(cx);
            if driver.is_extended_connect_protocol_enabled() {
                Poll::Ready(())
            } else {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }),
    )
    .await
    .expect("SETTINGS_ENABLE_CONNECT_PROTOCOL");
    tokio::spawn(driver);
    sender.ready().await.unwrap();
    sender
}

fn extended_connect(host: &str, protocol: &'static str) -> Request<Empty<Bytes>> {
    let request = Request::connect(format!("https://{host}/chat")).header("sec-websocket-version", "13");
    request.extension(Protocol::from_static(protocol)).body(Empty::new()).unwrap()
}

/// Switches with the right response to the key (RFC 6455 §4.2.2) or with a wrong one, then echoes.
async fn checking(right: bool) -> std::net::SocketAddr {
    backends::serve(move |mut stream| async move {
        let head = read_head(&mut stream).await;
        let field = |name: &str| head.lines().find_map(|line| line.to_ascii_lowercase().starts_with(name).then(|| line[name.len()..].trim().to_owned()));
        assert!(head.starts_with("GET /chat HTTP/1.1\r\n"), "{head}");
        let key = field("sec-websocket-key:").expect("a key") + if right { "" } else { "!" };
        let (Some(_), Some(_)) = (field("sec-websocket-version: 13"), field("upgrade: websocket")) else { panic!("{head}") };
        let switch = format!("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: {}\r\nSec-WebSocket-Protocol: chat\r\n\r\n", accept(&key));
        stream.write_all(switch.as_bytes()).await.unwrap();
        let (mut read, mut write) = stream.split();
        let _ = tokio::io::copy(&mut read, &mut write).await;
        let _ = write.write_all(b" bye").await;
    })
    .await
}

fn accept(key: &str) -> String {
    let digest = aws_lc_rs::digest::digest(
        &aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY,
        format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11").as_bytes(),
    );
    base64::Engine::encode(&base64::engine::general_purpose::STANDARD, digest)
}

#[tokio::test]
async fn a_websocket_over_http2_is_an_upgrade_to_the_endpoint() {
    let key = pki::ca().leaf(&["*.h2ws.test"]);
    let rig = Rig::serve(&[
        Route::new("right.h2ws.test", "").edge(Some(&key)).to(checking(true).await),
        Route::new("wrong.h2ws.test", "").edge(Some(&key)).to(checking(false).await),
        Route::new("other.h2ws.test", "").edge(Some(&key)).to(backends::http("app").await),
    ])
    .await;
    let mut sender = h2(&rig, "right.h2ws.test").await;
    for _ in 0..2 {
        let mut response = sender.send_request(extended_connect("right.h2ws.test", "websocket")).await.unwrap();
        assert_eq!(
            (response.status(), &response.headers()["sec-websocket-protocol"]),
            (StatusCode::OK, &"chat".parse().unwrap())
        );
        assert!(!response.headers().contains_key("sec-websocket-accept"), "{:?}", response.headers());
        let mut stream = TokioIo::new(hyper::upgrade::on(&mut response).await.unwrap());
        stream.write_all(b"\x81\x04ping").await.unwrap();
        let mut echo = [0; 6];
        timeout(PATIENCE, stream.read_exact(&mut echo)).await.expect("an echo").unwrap();
        assert_eq!(&echo, b"\x81\x04ping");
        stream.shutdown().await.unwrap();
        let mut rest = Vec::new();
        timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("an end").unwrap();
        assert_eq!(rest, b" bye");
    }
    let line = log::line("host", "right.h2ws.test").await;
    assert_eq!((line["status"].as_u64(), line["flags"].as_str()), (Some(200), Some("-")));
    // An endpoint that does not implement the handshake, or responds as to a plain request, has not switched.
    for host in ["wrong.h2ws.test", "other.h2ws.test"] {
        let response = h2(&rig, host).await.send_request(extended_connect(host, "websocket")).await.unwrap();
        assert_eq!(response.status(), StatusCode::BAD_GATEWAY, "{host}");
    }
    let response = h2(&rig, "right.h2ws.test").await.send_request(extended_connect("right.h2ws.test", "connect-udp"));
    assert_eq!(response.await.unwrap().status(), StatusCode::METHOD_NOT_ALLOWED);
}
