//! First flights of every kind on a TLS listener: whom they reach, or how they are turned away.

use std::sync::Arc;
use std::time::{Duration, Instant};

use router::proxy::ProxyConfig;
use router_core::policy::{RouterPolicy, Timeouts};
use rustls::ClientConnection;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::tables::{PATIENCE, Rig, Route, table, under};
use crate::{backends, client};

/// What becomes of a connection.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    /// It reached the backend of this name.
    Backend(char),
    /// It was terminated here: the answer is a ServerHello.
    Terminated,
    /// A fatal alert, then a FIN.
    Alert(u8),
    /// A FIN without a word.
    Closed,
}

async fn rig() -> Rig {
    let timeouts = Timeouts { hello: Duration::from_millis(700), ..Timeouts::default() };
    let routes = [
        Route::new("a.test", "").passthrough().to(backends::named_echo("A").await),
        Route::new("b.test", "").passthrough().to(backends::named_echo("B").await),
        Route::new("*.w.test", "").passthrough().to(backends::named_echo("W").await),
    ];
    let policy = RouterPolicy { timeouts, ..RouterPolicy::default() };
    Rig::start(ProxyConfig::default(), under(policy, table(&routes, None))).await
}

async fn fate(rig: &Rig, pieces: &[&[u8]]) -> Fate {
    let mut stream = TcpStream::connect(rig.https).await.unwrap();
    stream.set_nodelay(true).unwrap();
    for piece in pieces {
        // The router may have heard enough already.
        if stream.write_all(piece).await.is_err() {
            break;
        }
    }
    answer(&mut stream).await
}

async fn answer(stream: &mut TcpStream) -> Fate {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    while bytes.len() < 7 {
        match timeout(PATIENCE, stream.read(&mut buffer)).await.expect("an answer") {
            Ok(0) => break,
            Ok(read) => bytes.extend_from_slice(&buffer[..read]),
            Err(error) => panic!("{error} after {bytes:?}"),
        }
        if matches!(bytes[0], b'A' | b'B' | b'W') {
            return Fate::Backend(bytes[0] as char);
        }
    }
    match bytes.as_slice() {
        [] => Fate::Closed,
        [22, 3, 3, ..] => Fate::Terminated,
        [21, 3, 3, 0, 2, 2, code] => {
            assert_eq!(timeout(PATIENCE, stream.read(&mut buffer)).await.expect("an end").unwrap(), 0);
            Fate::Alert(*code)
        }
        other => panic!("{other:?}"),
    }
}

/// A real client's handshake message, without server_name.
fn bare_hello() -> Vec<u8> {
    let mut config = client::config(&["h2", "http/1.1"]);
    config.enable_sni = false;
    let name = ServerName::try_from("unnamed.test").unwrap();
    let mut connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut record = Vec::new();
    connection.write_tls(&mut record).unwrap();
    record.split_off(5)
}

/// The bare hello with these extensions in front of its own.
fn hello(extensions: &[Vec<u8>]) -> Vec<u8> {
    let mut message = bare_hello();
    let mut at = 4 + 2 + 32;
    at += 1 + usize::from(message[at]);
    at += 2 + usize::from(u16::from_be_bytes([message[at], message[at + 1]]));
    at += 1 + usize::from(message[at]);
    let old = usize::from(u16::from_be_bytes([message[at], message[at + 1]]));
    let added = extensions.concat();
    message.splice(at..at + 2, u16::try_from(old + added.len()).unwrap().to_be_bytes());
    message.splice(at + 2..at + 2, added);
    let length = u32::try_from(message.len() - 4).unwrap().to_be_bytes();
    message.splice(1..4, length[1..].iter().copied());
    message
}

fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes(), &u16::try_from(content.len()).unwrap().to_be_bytes(), content].concat()
}

/// server_name with these entries of (type, name).
fn sni(entries: &[(u8, &[u8])]) -> Vec<u8> {
    let entry =
        |(kind, name): &(u8, &[u8])| [&[*kind][..], &u16::try_from(name.len()).unwrap().to_be_bytes(), name].concat();
    let list = entries.iter().map(entry).collect::<Vec<_>>().concat();
    extension(0, &[&u16::try_from(list.len()).unwrap().to_be_bytes(), &list[..]].concat())
}

fn named(name: &[u8]) -> Vec<u8> {
    hello(&[sni(&[(0, name)])])
}

/// Records of at most `size` bytes of the message.
fn records(message: &[u8], size: usize) -> Vec<u8> {
    let record = |part: &[u8]| [&[22, 3, 1], &u16::try_from(part.len()).unwrap().to_be_bytes()[..], part].concat();
    message.chunks(size).map(record).collect::<Vec<_>>().concat()
}

fn padding(length: usize) -> Vec<u8> {
    extension(21, &vec![0; length])
}

#[tokio::test]
async fn names_reach_their_backends() {
    let rig = rig().await;
    let cases: [(&str, &[u8], char); 6] = [
        ("plain", b"a.test", 'A'),
        ("other", b"b.test", 'B'),
        ("upper case", b"A.TEST", 'A'),
        ("trailing dot", b"a.test.", 'A'),
        ("wildcard", b"x.w.test", 'W'),
        ("upper-case wildcard", b"X.W.test", 'W'),
    ];
    for (what, name, backend) in cases {
        assert_eq!(fate(&rig, &[&records(&named(name), 16384)]).await, Fate::Backend(backend), "{what}");
    }
}

#[tokio::test]
async fn framing_does_not_matter() {
    let rig = rig().await;
    let message = named(b"a.test");
    let whole = records(&message, 16384);
    let bytes: Vec<&[u8]> = whole.chunks(1).collect();
    assert_eq!(fate(&rig, &bytes).await, Fate::Backend('A'), "one byte per segment");
    assert_eq!(fate(&rig, &[&records(&message, 1)]).await, Fate::Backend('A'), "one byte per record");
    assert_eq!(fate(&rig, &[&records(&message, message.len() / 2 + 1)]).await, Fate::Backend('A'), "two records");
    for version in [[3, 0], [3, 4]] {
        let mut changed = whole.clone();
        changed.splice(1..3, version);
        assert_eq!(fate(&rig, &[&changed]).await, Fate::Backend('A'), "record version {version:?}");
    }
    let large = hello(&[padding(14_000), sni(&[(0, b"b.test")])]);
    assert_eq!(fate(&rig, &[&records(&large, 16384)]).await, Fate::Backend('B'), "16 KB, one record");
    let huge = hello(&[padding(60_000), sni(&[(0, b"b.test")])]);
    assert_eq!(fate(&rig, &[&records(&huge, 16384)]).await, Fate::Backend('B'), "62 KB, several records");
}

#[tokio::test]
async fn hellos_without_a_usable_name_are_terminated_here() {
    let rig = rig().await;
    assert_eq!(fate(&rig, &[&records(&bare_hello(), 16384)]).await, Fate::Terminated, "no SNI");
    assert_eq!(fate(&rig, &[&records(&named(b"unknown.test"), 16384)]).await, Fate::Terminated, "unknown");
    assert_eq!(fate(&rig, &[&records(&named(b"deep.er.w.test"), 16384)]).await, Fate::Terminated, "two labels");
    assert_eq!(fate(&rig, &[&records(&named(b"127.0.0.1"), 16384)]).await, Fate::Terminated, "address");
}

#[tokio::test]
async fn malformed_hellos_get_an_alert() {
    let rig = rig().await;
    let long = vec![b'a'; 300];
    let a: &[u8] = b"a.test";
    let mut too_long_list = named(a);
    let at = too_long_list.windows(6).position(|window| window == a).unwrap();
    too_long_list[at - 4] += 1;
    let mut garbage = sni(&[(0, a)]);
    garbage.extend_from_slice(b"xx");
    garbage[3] += 2;
    let mut overrun = named(a);
    overrun[at - 6] = 0xff;
    let mut beyond = vec![22, 3, 1, 0x40, 0, 1, 1, 0, 0];
    beyond.resize(9 + 16_380, 0);
    let cases: Vec<(&str, Vec<u8>, u8)> = vec![
        ("two SNI extensions", records(&hello(&[sni(&[(0, a)]), sni(&[(0, b"b.test")])]), 16384), 47),
        ("two host names", records(&hello(&[sni(&[(0, a), (0, b"b.test")])]), 16384), 47),
        ("empty name", records(&named(b""), 16384), 50),
        ("empty list", records(&hello(&[sni(&[])]), 16384), 50),
        ("NUL", records(&named(b"a.test\0.b.test"), 16384), 50),
        ("non-ASCII", records(&named("ä.test".as_bytes()), 16384), 50),
        ("300 bytes", records(&named(&long), 16384), 50),
        ("wildcard as a name", records(&named(b"*.w.test"), 16384), 50),
        ("list length", records(&too_long_list, 16384), 50),
        ("garbage behind the list", records(&hello(&[garbage]), 16384), 50),
        ("extension overruns", records(&overrun, 16384), 50),
        ("record version", [&[22, 5, 5], &records(&named(a), 16384)[3..]].concat(), 70),
        ("empty record", [&[22, 3, 1, 0, 0], &records(&named(a), 16384)[..]].concat(), 10),
        ("record length", vec![22, 3, 1, 0x42, 0x68, 1, 0, 0, 0], 22),
        ("above 64 KiB", beyond, 50),
    ];
    for (what, bytes, code) in cases {
        assert_eq!(fate(&rig, &[&bytes]).await, Fate::Alert(code), "{what}");
    }
}

#[tokio::test]
async fn what_is_no_hello_is_closed_without_a_word() {
    let rig = rig().await;
    let cases: [(&str, &[u8]); 5] = [
        ("alert", &[21, 3, 3, 0, 2, 1, 0]),
        ("change_cipher_spec", &[20, 3, 3, 0, 1, 1]),
        ("SSLv2", &[0x80, 0x2e, 1, 0, 2, 0, 0x15, 0, 0, 0, 0x10]),
        ("HTTP", b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"),
        ("noise", &[0xde, 0xad, 0xbe, 0xef, 0, 1, 2, 3]),
    ];
    for (what, bytes) in cases {
        let started = Instant::now();
        assert_eq!(fate(&rig, &[bytes]).await, Fate::Closed, "{what}");
        assert!(started.elapsed() < Duration::from_millis(600), "{what} waited");
    }
}

#[tokio::test]
async fn slow_and_broken_off_hellos_are_closed() {
    let rig = rig().await;
    let record = records(&named(b"a.test"), 16384);
    let started = Instant::now();
    assert_eq!(fate(&rig, &[&record[..30]]).await, Fate::Closed, "stalled");
    assert!(started.elapsed() >= Duration::from_millis(600), "after {:?}", started.elapsed());
    // The deadline is for the whole hello, not for each byte.
    let mut stream = TcpStream::connect(rig.https).await.unwrap();
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

    let mut stream = TcpStream::connect(rig.https).await.unwrap();
    stream.write_all(&record[..30]).await.unwrap();
    stream.shutdown().await.unwrap();
    assert_eq!(answer(&mut stream).await, Fate::Closed, "broken off");
}
