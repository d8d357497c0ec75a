//! Requests that parsers interpret differently, one row each: the response, and the requests that reach a backend. A
//! rejected request ends its connection, and nothing after it is parsed as a request.

mod rows;

use std::time::Duration;

use router_proxy::ProxyConfig;
use router_table::policy::forwarded::ForwardedHeaders;
use router_table::policy::{RouterPolicy, Timeouts};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::recorder::{Content, Message, Recorder};
use crate::tables::{PATIENCE, Rig, Route, eventually, table, under};
use crate::{client, pki};
use rows::{Row, Then};

/// The request after each rejected one.
const BEHIND: &str = "GET /behind HTTP/1.1\r\nHost: a.test\r\n\r\n";

struct Stage {
    rig: Rig,
    tls: bool,
    a: Recorder,
    b: Recorder,
}

impl Stage {
    async fn new() -> Stage {
        Stage::over(false).await
    }

    /// Over TLS or in clear text. All hosts share a certificate, so that one connection serves each.
    async fn over(tls: bool) -> Stage {
        let (a, b) = (Recorder::start("A").await, Recorder::start("B").await);
        let route = |host: &str| if tls { Route::new(host, "").edge(None) } else { Route::new(host, "") };
        let routes = [
            route("a.test").to(a.address).forwarded(ForwardedHeaders::Append),
            route("r.a.test").to(a.address).forwarded(ForwardedHeaders::Replace),
            route("b.test").to(b.address),
        ];
        let timeouts =
            Timeouts { head: Duration::from_millis(700), client: Duration::from_millis(700), ..Timeouts::default() };
        let policy = RouterPolicy { timeouts, ..RouterPolicy::default() };
        let certificate = pki::ca().leaf(&["*.test"]);
        let rig = Rig::start(ProxyConfig::default(), under(policy, table(&routes, Some(&certificate)))).await;
        Stage { rig, tls, a, b }
    }

    /// Sends bytes, and reads to the end of the connection: status and content of each response.
    async fn exchange(&self, bytes: &[u8], ends: bool) -> Vec<(u16, String)> {
        if self.tls {
            return exchange(client::tls(self.rig.https, Some("a.test"), &["http/1.1"]).await, bytes, ends).await;
        }
        let stream = TcpStream::connect(self.rig.http).await.unwrap();
        stream.set_nodelay(true).unwrap();
        exchange(stream, bytes, ends).await
    }

    /// Waits until no endpoint has an incomplete message.
    async fn settle(&self) {
        eventually("the end of what was begun", async || !self.a.waits() && !self.b.waits()).await;
    }

    /// The messages that reached the backends; each must be for its backend's host.
    fn reached(&self) -> Vec<(char, Message)> {
        let tagged = |name: char, recorder: &Recorder| recorder.take().into_iter().map(move |message| (name, message));
        let all: Vec<_> = tagged('A', &self.a).chain(tagged('B', &self.b)).collect();
        for (name, message) in &all {
            let owner = if message.host.ends_with("a.test") { 'A' } else { 'B' };
            let is_read = message.request != "unreadable" && message.content != Content::Malformed;
            assert!(*name == owner && is_read, "{name} got {message:?}");
        }
        all
    }
}

/// Sends bytes and reads to the end of the connection; returns status and content of each response. With `ends`, the
/// client half-closes after sending.
pub async fn exchange(stream: impl AsyncRead + AsyncWrite, bytes: &[u8], ends: bool) -> Vec<(u16, String)> {
    let (mut read, mut write) = tokio::io::split(stream);
    let sending = async {
        // A rejected request ends the connection while the rest is still being sent.
        let sent = write.write_all(bytes).await.and(write.flush().await);
        if ends && sent.is_ok() {
            let _ = write.shutdown().await;
        }
    };
    let mut answer = Vec::new();
    let (_, read) = tokio::join!(sending, timeout(PATIENCE, read.read_to_end(&mut answer)));
    let ended = read.unwrap_or_else(|_| panic!("no end to {:?}", String::from_utf8_lossy(bytes)));
    ended.unwrap_or_else(|error| panic!("{error} after {:?}", String::from_utf8_lossy(bytes)));
    responses(&String::from_utf8(answer).unwrap())
}

/// Splits a stream into responses.
fn responses(mut text: &str) -> Vec<(u16, String)> {
    let mut all = Vec::new();
    while !text.is_empty() {
        let (head, rest) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no response: {text:?}"));
        let status: u16 = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status line");
        let length =
            head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        let length: usize = length.unwrap_or(0);
        all.push((status, rest[..length].to_owned()));
        text = &rest[length..];
    }
    all
}

#[tokio::test]
async fn each_row_is_answered_as_is_best() {
    agree(&Stage::new().await).await;
}

#[tokio::test]
async fn each_row_is_answered_as_is_best_over_tls() {
    agree(&Stage::over(true).await).await;
}

async fn agree(stage: &Stage) {
    let mut wrong = Vec::new();
    for Row { name, bytes, statuses, reached, then } in rows::all() {
        let mut sent = bytes.clone();
        if then != Then::Silence {
            sent.extend_from_slice(BEHIND.as_bytes());
        }
        let answers = stage.exchange(&sent, then != Then::Silence).await;
        let got: Vec<u16> = answers.iter().map(|(status, _)| *status).collect();
        let mut expected = statuses.to_vec();
        let mut requests: Vec<String> = reached.iter().map(|request| (*request).to_owned()).collect();
        if then == Then::GoesOn {
            expected.push(200);
            requests.push("A GET /behind".to_owned());
        }
        stage.settle().await;
        let messages = stage.reached();
        let mut seen: Vec<String> =
            messages.iter().map(|(name, message)| format!("{name} {}", message.request)).collect();
        // A request rejected within its content may have been forwarded at most once; the backend sees it incomplete.
        if then == Then::BreaksOff {
            let breaks_off = |(_, message): &(char, Message)| message.content == Content::BrokenOff;
            assert!(messages.len() < 2 && messages.iter().all(breaks_off), "{name}: {messages:?}");
            seen.clear();
        }
        seen.sort();
        requests.sort();
        if (&got, &seen) != (&expected, &requests) {
            wrong.push(format!("{name}: answered {got:?}, not {expected:?}; reached {seen:?}, not {requests:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn rows_are_the_same_byte_by_byte() {
    let stage = Stage::new().await;
    // Rows that take neither many bytes nor much time.
    let rows = rows::all().into_iter().filter(|row| row.bytes.len() < 400 && row.then != Then::Silence);
    for Row { name, bytes, statuses, .. } in rows {
        let mut stream = TcpStream::connect(stage.rig.http).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (mut read, mut write) = stream.split();
        let mut answer = Vec::new();
        let sending = async {
            for byte in bytes {
                if write.write_all(&[byte]).await.is_err() {
                    return;
                }
                tokio::task::yield_now().await;
            }
            let _ = write.shutdown().await;
        };
        let (_, ended) = tokio::join!(sending, timeout(PATIENCE, read.read_to_end(&mut answer)));
        ended.expect("an end").unwrap();
        let got: Vec<u16> = responses(&String::from_utf8(answer).unwrap()).iter().map(|(status, _)| *status).collect();
        assert_eq!(got, statuses, "{name}");
    }
    stage.reached();
}

#[tokio::test]
async fn what_is_forwarded_is_what_was_matched() {
    let stage = Stage::new().await;
    let get =
        |line: &str, fields: &str| format!("{line} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n{fields}\r\n");
    // Neither decoded nor normalized: the backend receives the path that selected the route.
    for path in ["/", "//", "/a/../b", "/a/./b", "/%2e%2e/", "/a%2Fb", "/a;b", "/a\\b", "/?q=%00", "/A", "/a?b?c"] {
        stage.exchange(get(&format!("GET {path}"), "").as_bytes(), true).await;
        let reached = stage.reached();
        assert_eq!(reached.len(), 1, "{path}");
        assert_eq!(reached[0].1.request, format!("GET {path}"));
    }
    stage.exchange(get("GET http://A.test/x?y", "").as_bytes(), true).await;
    assert_eq!(stage.reached()[0].1.request, "GET /x?y");

    let head = |fields: &str| get("GET /", fields);
    let forwarded = async |fields: &str| {
        stage.exchange(head(fields).as_bytes(), true).await;
        stage.reached().remove(0).1.head.to_ascii_lowercase()
    };
    let hop =
        forwarded("Connection: host, X-Forwarded-For, X-Mine\r\nX-Mine: 1\r\nX-Forwarded-For: 192.0.2.1\r\n").await;
    assert!(hop.contains("\r\nhost: a.test\r\n") && hop.contains("x-forwarded-for: 192.0.2.1\r\n"), "{hop}");
    assert!(!hop.contains("x-mine") && hop.contains("x-forwarded-for: 127.0.0.1\r\n"), "{hop}");
    let forged = "Proxy: evil\r\nX-SSL-Client-CN: admin\r\nX_SSL_Client_CN: admin\r\nX_Real_IP: 192.0.2.1\r\n\
                  X_Forwarded_For: 192.0.2.1\r\napi_key: mine\r\n";
    let clean = forwarded(forged).await;
    for gone in ["proxy:", "admin", "192.0.2.1"] {
        assert!(!clean.contains(gone), "{gone} in {clean}");
    }
    assert!(clean.contains("api_key: mine\r\n"), "{clean}");

    let replaced = "GET / HTTP/1.1\r\nHost: r.a.test\r\nConnection: close\r\nX-Forwarded-For: 192.0.2.1\r\n\
                    X-Forwarded-Proto: https\r\nForwarded: for=192.0.2.1\r\n\r\n";
    stage.exchange(replaced.as_bytes(), true).await;
    let head = stage.reached().remove(0).1.head.to_ascii_lowercase();
    assert!(!head.contains("192.0.2.1") && head.contains("x-forwarded-proto: http\r\n"), "{head}");
}

#[tokio::test]
async fn a_stalled_body_ends_in_408() {
    let stage = Stage::new().await;
    let begun = "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 10\r\n\r\n12345";
    let started = std::time::Instant::now();
    let answers = stage.exchange(begun.as_bytes(), false).await;
    assert_eq!(answers.first().map(|answer| answer.0), Some(408), "{answers:?}");
    assert!(started.elapsed() < Duration::from_secs(10));
    stage.settle().await;
    assert!(stage.reached().iter().all(|(_, message)| message.content == Content::BrokenOff));
}

#[tokio::test]
async fn a_client_that_has_gone_is_noticed_while_the_endpoint_is_silent() {
    let (gone, was_gone) = tokio::sync::oneshot::channel();
    let gone = std::sync::Mutex::new(Some(gone));
    let silent = crate::backends::serve(move |mut stream| {
        let gone = gone.lock().unwrap().take();
        async move {
            let _ = stream.read(&mut [0; 4096]).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n").await.unwrap();
            // Until the connection ends.
            while stream.read(&mut [0; 64]).await.is_ok_and(|read| read > 0) {}
            if let Some(gone) = gone {
                let _ = gone.send(());
            }
        }
    })
    .await;
    let rig = Rig::serve(&[Route::new("events.test", "").to(silent)]).await;
    let mut client = TcpStream::connect(rig.http).await.unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nHost: events.test\r\n\r\n").await.unwrap();
    let mut text = Vec::new();
    while !text.ends_with(b"data: 1\n\n\r\n") {
        assert_ne!(timeout(PATIENCE, client.read_buf(&mut text)).await.expect("the event").unwrap(), 0);
    }
    drop(client);
    timeout(Duration::from_secs(10), was_gone).await.expect("the endpoint's connection ends").unwrap();
}
