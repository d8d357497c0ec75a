//! First flights of all kinds on a TLS listener: the backends that they reach, or how they are rejected. Passthrough
//! and terminated hosts behave equally.

mod build;
mod rows;

use std::time::{Duration, Instant};

use router_proxy::ProxyConfig;
use router_table::policy::{RouterPolicy, Timeouts};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::tables::{PATIENCE, Rig, Route, table, under};
use crate::{backends, pki};
use build::{RECORD, named, post_quantum, record, records};
use rows::Row;

/// Time-out for a complete hello.
const LIMIT: Duration = Duration::from_millis(700);
/// Hosts of routes, and their backends; `D` is the router itself.
const HOSTS: [(&str, &str); 3] = [("a.test", "A"), ("b.test", "B"), ("*.w.test", "W")];

/// Fate of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HelloOutcome {
    /// It reached this backend, or received the certificate of this backend's host.
    Served(char),
    /// It was terminated; TLS 1.3 encrypts the certificate.
    Hidden,
    /// A fatal alert, then a FIN.
    Alert(u8),
    /// A FIN without data.
    Closed,
}

/// A router, and the certificates that it may present.
struct Stage {
    rig: Rig,
    certificates: Vec<(char, Vec<u8>)>,
}

impl Stage {
    async fn new(passthrough: bool) -> Stage {
        let leaf = |host| pki::ca().leaf(&[host]);
        let default = leaf("default.test");
        let mut certificates = vec![('D', default.cert[0].to_vec())];
        let mut routes = Vec::new();
        for (host, name) in HOSTS {
            let route = Route::new(host, "");
            routes.push(if passthrough {
                route.passthrough().to(backends::named_echo(name).await)
            } else {
                let key = leaf(host);
                certificates.push((char::from(name.as_bytes()[0]), key.cert[0].to_vec()));
                route.edge(Some(&key)).to(backends::http("app").await)
            });
        }
        let timeouts = Timeouts { hello: LIMIT, ..Timeouts::default() };
        let policy = RouterPolicy { timeouts, ..RouterPolicy::default() };
        let rig = Rig::start(ProxyConfig::default(), under(policy, table(&routes, Some(&default)))).await;
        Stage { rig, certificates }
    }

    async fn outcome(&self, pieces: &[impl AsRef<[u8]>]) -> HelloOutcome {
        let mut stream = TcpStream::connect(self.rig.https).await.unwrap();
        stream.set_nodelay(true).unwrap();
        for piece in pieces {
            // The router may already have decided.
            if stream.write_all(piece.as_ref()).await.is_err() {
                break;
            }
        }
        self.answer(&mut stream).await
    }

    async fn answer(&self, stream: &mut TcpStream) -> HelloOutcome {
        let mut bytes = Vec::new();
        loop {
            let read = timeout(PATIENCE, stream.read_buf(&mut bytes)).await.expect("an answer");
            let ended = read.unwrap_or_else(|error| panic!("{error} after {bytes:?}")) == 0;
            match bytes.as_slice() {
                [name @ (b'A' | b'B' | b'W'), ..] => return HelloOutcome::Served(char::from(*name)),
                [] if ended => return HelloOutcome::Closed,
                [21, 3, 3, 0, 2, 2, code] if ended => return HelloOutcome::Alert(*code),
                // The ServerHello contains supported_versions with TLS 1.3.
                [22, 3, 3, ..] if bytes.windows(6).any(|part| part == [0, 43, 0, 2, 3, 4]) => {
                    return HelloOutcome::Hidden;
                }
                [22, 3, 3, ..] => {
                    let shown = |der: &[u8]| bytes.windows(der.len()).any(|part| part == der);
                    if let Some((name, _)) = self.certificates.iter().find(|(_, der)| shown(der)) {
                        return HelloOutcome::Served(*name);
                    }
                }
                _ => {}
            }
            assert!(!ended, "{bytes:?}");
        }
    }
}

#[tokio::test]
async fn each_row_is_served_as_is_best_where_tls_is_passed_through() {
    let stage = Stage::new(true).await;
    agree(&stage, |row| row.passed).await;
}

#[tokio::test]
async fn each_row_is_served_as_is_best_where_tls_is_terminated() {
    let stage = Stage::new(false).await;
    agree(&stage, |row| row.terminated).await;
}

async fn agree(stage: &Stage, expected: impl Fn(&Row) -> HelloOutcome) {
    let mut wrong = Vec::new();
    for row in rows::all() {
        let (started, expected) = (Instant::now(), expected(&row));
        let fate = stage.outcome(&row.pieces).await;
        if fate != expected {
            wrong.push(format!("{}: {fate:?}, not {expected:?}", row.name));
        }
        // If the outcome is decided early, the router does not wait for more bytes.
        if matches!(expected, HelloOutcome::Closed | HelloOutcome::Alert(_)) {
            assert!(started.elapsed() < LIMIT - Duration::from_millis(100), "{} waited", row.name);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn a_hello_may_be_cut_into_records_and_segments_at_every_byte() {
    let stage = Stage::new(true).await;
    let message = post_quantum("a.test");
    for cut in 1..message.len() {
        let (first, second) = message.split_at(cut);
        let fate = stage.outcome(&[[record(first), record(second)].concat()]).await;
        assert_eq!(fate, HelloOutcome::Served('A'), "two records, cut at {cut}");
        let whole = records(&message, RECORD);
        let (first, second) = whole.split_at(cut);
        assert_eq!(stage.outcome(&[first, second]).await, HelloOutcome::Served('A'), "two segments, cut at {cut}");
    }
}

#[tokio::test]
async fn slow_and_broken_off_hellos_are_closed() {
    for passthrough in [true, false] {
        let stage = Stage::new(passthrough).await;
        let record = records(&named(b"a.test"), RECORD);
        let started = Instant::now();
        assert_eq!(stage.outcome(&[&record[..30]]).await, HelloOutcome::Closed, "stalled");
        assert!(started.elapsed() + Duration::from_millis(100) >= LIMIT, "after {:?}", started.elapsed());
        // The deadline covers the entire hello, not each byte.
        let mut stream = TcpStream::connect(stage.rig.https).await.unwrap();
        let started = Instant::now();
        let trickle = async {
            let (mut read, mut write) = stream.split();
            let mut tick = tokio::time::interval(Duration::from_millis(50));
            let mut sent = record.chunks(1);
            loop {
                tokio::select! {
                    read = read.read_u8() => return read.is_err(),
                    _ = tick.tick() => if let Some(byte) = sent.next() { let _ = write.write_all(byte).await; },
                }
            }
        };
        assert!(timeout(PATIENCE, trickle).await.expect("an end"), "trickled");
        assert!(started.elapsed() < Duration::from_secs(5), "after {:?}", started.elapsed());

        let mut stream = TcpStream::connect(stage.rig.https).await.unwrap();
        stream.write_all(&record[..30]).await.unwrap();
        stream.shutdown().await.unwrap();
        assert_eq!(stage.answer(&mut stream).await, HelloOutcome::Closed, "broken off");
    }
}
