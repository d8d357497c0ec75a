//! Peers that vanish without closing their connections.

use std::net::SocketAddr;
use std::time::Duration;

use http::Response;
use hyper::body::Bytes;
use router_proxy::ProxyConfig;
use router_table::policy::{RouterPolicy, Timeouts};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::tables::{Rig, Route, eventually, table, under};
use crate::{backends, client};

/// True if keepalive is active on a connection between these ports, as seen from the first one: the timer of
/// proc_pid_net(5).
fn has_keepalive(own: Option<SocketAddr>, other: SocketAddr) -> bool {
    let of = |address: SocketAddr| format!(":{:04X}", address.port());
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let established =
        table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).filter(|line| line[3] == "01");
    established
        .filter(|line| own.is_none_or(|own| line[1].ends_with(&of(own))) && line[2].ends_with(&of(other)))
        .any(|line| line[5].starts_with("02:"))
}

#[tokio::test]
async fn the_kernel_probes_silent_peers() {
    let backend = backends::http("app").await;
    let rig = Rig::serve(&[Route::new("asked.test", "").to(backend)]).await;
    let mut stream = TcpStream::connect(rig.http).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: asked.test\r\n\r\n").await.unwrap();
    assert!(stream.read_u8().await.is_ok());
    let client = stream.local_addr().unwrap();
    eventually("the client is asked", async || has_keepalive(Some(rig.http), client)).await;
    eventually("the endpoint is asked", async || has_keepalive(None, backend)).await;
}

/// Responds to one request on a connection, and to nothing after it.
async fn vanishing(http2: bool) -> SocketAddr {
    backends::serve(move |mut stream| async move {
        if http2 {
            let mut connection = h2::server::handshake(stream).await.unwrap();
            let mut unanswered = Vec::new();
            let mut answers = 0;
            while let Some(Ok((_, mut respond))) = connection.accept().await {
                answers += 1;
                if answers == 1 {
                    let mut body = respond.send_response(Response::new(()), false).unwrap();
                    body.send_data(Bytes::from("here"), true).unwrap();
                } else {
                    unanswered.push(respond);
                }
            }
        } else {
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhere").await;
            let _ = stream.read_to_end(&mut Vec::new()).await;
        }
    })
    .await
}

#[tokio::test]
async fn a_kept_connection_whose_endpoint_has_vanished_costs_one_request_its_time_and_no_more() {
    let timeouts = Timeouts { server: Duration::from_millis(300), ..Timeouts::default() };
    let policy = RouterPolicy { timeouts, ..RouterPolicy::default() };
    let routes = [
        Route::new("one.vanished.test", "").to(vanishing(false).await),
        Route::new("two.vanished.test", "").to(vanishing(true).await).h2c(),
    ];
    let config = ProxyConfig { workers: std::num::NonZeroUsize::new(1), ..ProxyConfig::default() };
    let rig = Rig::start(config, under(policy, table(&routes, None))).await;
    for host in ["one.vanished.test", "two.vanished.test"] {
        let statuses = async || client::get(rig.http, host, "/").await.status;
        assert_eq!([statuses().await, statuses().await, statuses().await], [200, 504, 200], "{host}");
    }
}
