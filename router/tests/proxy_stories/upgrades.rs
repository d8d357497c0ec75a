//! Upgrades: after 101 the bytes are the client's and the backend's own.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::tables::{PATIENCE, Rig, Route};
use crate::{backends, client, log, pki};

const UPGRADE: &str = "GET /chat HTTP/1.1\r\nHost: ws.test\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
                       Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// Switches when asked to, then echoes; answers 200 otherwise.
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

/// Upgrades over this stream, echoes, half-closes, and expects the backend's last word.
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
    let line = log::line("endpoint", &backend.to_string()).await;
    assert_eq!((line["status"].as_u64(), line["flags"].as_str()), (Some(101), Some("-")));
    assert_eq!((line["bytes_in"].as_u64(), line["bytes_out"].as_u64()), (Some(6), Some(16)));

    let edge = Rig::serve(&[Route::new("ws.test", "").edge(Some(&key)).to(backend)]).await;
    talk(client::tls(edge.https, Some("ws.test"), &["http/1.1"]).await).await;
}

#[tokio::test]
async fn a_route_says_how_long_its_tunnels_may_be_idle() {
    let backend = switching().await;
    let route = Route::new("ws.test", "").to(backend).tunnel_timeout(Duration::from_millis(300));
    let rig = Rig::serve(&[route]).await;
    let mut stream = TcpStream::connect(rig.http).await.unwrap();
    stream.write_all(UPGRADE.as_bytes()).await.unwrap();
    let head = read_head(&mut stream).await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    // Whether it ends with a FIN or a reset, it ends.
    let _ = timeout(PATIENCE, stream.read_to_end(&mut Vec::new())).await.expect("an end");
    assert_eq!(log::line("endpoint", &backend.to_string()).await["flags"], "ID");
}

#[tokio::test]
async fn bytes_behind_the_request_wait_for_the_switch() {
    // The backend refuses to switch: what came behind the request is a request of its own.
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
