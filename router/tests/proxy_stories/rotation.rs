//! Certificates that change while clients connect and send.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustls::sign::CertifiedKey;
use rustls_pki_types::CertificateDer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::tables::{PATIENCE, Rig, Route, eventually, table};
use crate::{backends, client, pki};

const HOST: &str = "rotate.test";
const ROTATIONS: usize = 100;

/// A request on a kept-alive connection, read to the end of its response.
async fn ask(stream: &mut (impl AsyncReadExt + AsyncWriteExt + Unpin)) -> std::io::Result<()> {
    stream.write_all(format!("GET / HTTP/1.1\r\nHost: {HOST}\r\n\r\n").as_bytes()).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 200 "), "{head}");
    let length: usize = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap().parse().unwrap();
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.map(drop)
}

fn position(keys: &[Arc<CertifiedKey>], shown: &CertificateDer<'_>) -> usize {
    keys.iter().position(|key| key.cert[0] == *shown).expect("one of the route's certificates")
}

#[tokio::test]
async fn certificates_are_rotated_under_load() {
    let backend = backends::http("app").await;
    let keys: Arc<Vec<_>> = Arc::new((0..=ROTATIONS).map(|_| pki::ca().leaf(&[HOST])).collect());
    let with = |key: &Arc<CertifiedKey>| table(&[Route::new(HOST, "").edge(Some(key)).to(backend)], None);
    let rig = Rig::start(router_proxy::ProxyConfig::default(), with(&keys[0])).await;
    let (over, handshakes, requests) =
        (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let mut clients = Vec::new();
    for _ in 0..4 {
        // New connections: none fails, and none gets an older certificate than an earlier connection did.
        let (to, keys, handshakes) = (rig.https, Arc::clone(&keys), Arc::clone(&handshakes));
        let end = Arc::clone(&over);
        clients.push(tokio::spawn(async move {
            let mut newest = 0;
            while !end.load(Ordering::Relaxed) {
                let mut stream = client::tls(to, Some(HOST), &["http/1.1"]).await;
                let shown = position(&keys, &client::shown(&stream));
                assert!(shown >= newest, "{shown} after {newest}");
                newest = shown;
                timeout(PATIENCE, ask(&mut stream)).await.expect("an answer").expect("the connection");
                handshakes.fetch_add(1, Ordering::Relaxed);
            }
        }));
        // One connection that survives all rotations.
        let (end, requests) = (Arc::clone(&over), Arc::clone(&requests));
        let mut stream = client::tls(rig.https, Some(HOST), &["http/1.1"]).await;
        clients.push(tokio::spawn(async move {
            while !end.load(Ordering::Relaxed) {
                timeout(PATIENCE, ask(&mut stream)).await.expect("an answer").expect("the connection");
                requests.fetch_add(1, Ordering::Relaxed);
            }
        }));
    }
    for key in &keys[1..] {
        let before = handshakes.load(Ordering::Relaxed);
        rig.tables.send_replace(with(key));
        eventually("the new certificate", async || {
            client::shown(&client::tls(rig.https, Some(HOST), &[]).await) == key.cert[0]
        })
        .await;
        eventually("more handshakes", async || handshakes.load(Ordering::Relaxed) > before).await;
    }
    over.store(true, Ordering::Relaxed);
    for client in clients {
        timeout(PATIENCE, client).await.expect("an end").expect("no failure");
    }
    assert!(handshakes.load(Ordering::Relaxed) >= ROTATIONS && requests.load(Ordering::Relaxed) >= ROTATIONS);
}
