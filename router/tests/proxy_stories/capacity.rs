//! More clients than a router admits connections.

use std::num::NonZeroU32;
use std::time::Duration;

use router_proxy::ProxyConfig;
use router_table::policy::{Limits, RouterPolicy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::tables::{PATIENCE, Rig, Route, eventually, table, under};
use crate::{backends, client, pki};

fn at_most(connections: u32) -> RouterPolicy {
    let limits = Limits { connections: NonZeroU32::new(connections), ..Limits::default() };
    RouterPolicy { limits, ..RouterPolicy::default() }
}

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: full.test\r\n\r\n";

/// A kept-alive connection after one request.
async fn kept(rig: &Rig) -> TcpStream {
    let mut stream = TcpStream::connect(rig.http).await.unwrap();
    stream.write_all(REQUEST).await.unwrap();
    assert!(answered(&mut stream).await);
    stream
}

/// True if a response arrives soon.
async fn answered(stream: &mut TcpStream) -> bool {
    timeout(PATIENCE, stream.read(&mut [0; 1024])).await.is_ok_and(|read| read.is_ok_and(|bytes| bytes > 0))
}

#[tokio::test]
async fn who_is_one_too_many_waits_for_a_place() {
    let routes = [
        Route::new("full.test", "").to(backends::http("app").await),
        Route::new("through.test", "").passthrough().to(backends::named_echo("T").await),
    ];
    let rig = Rig::start(ProxyConfig::default(), under(at_most(3), table(&routes, None))).await;
    let (one, mut two) = (kept(&rig).await, kept(&rig).await);
    // Relayed connections count as well.
    let mut through = TcpStream::connect(rig.https).await.unwrap();
    through.write_all(&client::hello("through.test")).await.unwrap();
    assert!(answered(&mut through).await);

    let mut late = TcpStream::connect(rig.http).await.unwrap();
    late.write_all(REQUEST).await.unwrap();
    let mut later = TcpStream::connect(rig.https).await.unwrap();
    later.write_all(&client::hello("through.test")).await.unwrap();
    // Established connections are served meanwhile.
    for _ in 0..20 {
        two.write_all(REQUEST).await.unwrap();
        assert!(answered(&mut two).await);
    }
    assert!(timeout(Duration::from_millis(100), late.read(&mut [0; 1])).await.is_err(), "there is no room");
    assert!(timeout(Duration::from_millis(100), later.read(&mut [0; 1])).await.is_err(), "there is no room");

    drop(one);
    drop(through);
    assert!(answered(&mut late).await);
    assert!(answered(&mut later).await);
}

#[tokio::test]
async fn a_higher_limit_serves_those_who_wait() {
    let routes = [Route::new("full.test", "").to(backends::http("app").await)];
    let rig = Rig::start(ProxyConfig::default(), under(at_most(1), table(&routes, None))).await;
    let _kept = kept(&rig).await;
    let mut late = TcpStream::connect(rig.http).await.unwrap();
    late.write_all(REQUEST).await.unwrap();
    assert!(timeout(Duration::from_millis(100), late.read(&mut [0; 1])).await.is_err(), "there is no room");
    rig.tables.send_replace(under(at_most(2), table(&routes, None)));
    assert!(answered(&mut late).await);
}

#[tokio::test]
async fn a_tunnel_keeps_its_place() {
    let backend = backends::serve(|mut stream| async move {
        let _ = stream.read(&mut [0; 4096]).await;
        let _ =
            stream.write_all(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: own\r\n\r\n").await;
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    let backends = (backend.await, backends::http("app").await);
    let routes = [Route::new("tunnel.test", "").to(backends.0), Route::new("full.test", "").to(backends.1)];
    let rig = Rig::start(ProxyConfig::default(), under(at_most(1), table(&routes, None))).await;
    let mut tunnel = TcpStream::connect(rig.http).await.unwrap();
    let asked = b"GET / HTTP/1.1\r\nHost: tunnel.test\r\nConnection: upgrade\r\nUpgrade: own\r\n\r\n";
    tunnel.write_all(asked).await.unwrap();
    assert!(answered(&mut tunnel).await);
    let mut late = TcpStream::connect(rig.http).await.unwrap();
    late.write_all(REQUEST).await.unwrap();
    assert!(timeout(Duration::from_millis(200), late.read(&mut [0; 1])).await.is_err(), "the tunnel is there");
    drop(tunnel);
    assert!(answered(&mut late).await);
}

#[tokio::test]
async fn refused_and_failed_connections_leave_nothing_behind() {
    let key = pki::ca().leaf(&["full.test"]);
    let routes = [Route::new("full.test", "").edge(Some(&key)).to(backends::http("app").await)];
    let rig = Rig::start(ProxyConfig::default(), under(at_most(2), table(&routes, Some(&key)))).await;
    for bytes in [&b"no hello"[..], b"", &client::hello("full.test")] {
        for _ in 0..3 {
            let mut stream = TcpStream::connect(rig.https).await.unwrap();
            stream.write_all(bytes).await.unwrap();
        }
    }
    eventually("served again", async || {
        let answer = client::get_tls(rig.https, Some("full.test"), "full.test", "/");
        timeout(Duration::from_secs(5), answer).await.is_ok_and(|answer| answer.status == 200)
    })
    .await;
}
