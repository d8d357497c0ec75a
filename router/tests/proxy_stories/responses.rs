//! Responses of endpoints, one row each: forwarded ones, and for the rest the client's response and the log line.

mod http2;
mod phrases;
mod rows;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use router_proxy::ProxyConfig;
use router_table::flag::Flag;
use router_table::policy::{RouterPolicy, Timeouts};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::tables::{PATIENCE, Rig, Route, table, under};
use crate::{backends, log};
use rows::{Row, Then};

/// An endpoint that responds with the row's bytes, and counts the connections that the router ends.
async fn endpoint(row: &Row) -> (SocketAddr, Arc<Semaphore>) {
    let ended = Arc::new(Semaphore::new(0));
    let (bytes, closes, count) = (row.bytes.clone(), row.closes, Arc::clone(&ended));
    let address = backends::serve(move |mut stream| {
        let (bytes, count) = (bytes.clone(), Arc::clone(&count));
        async move {
            if !backends::read_head(&mut stream).await {
                return;
            }
            // The router may have closed the connection.
            let _ = stream.write_all(&bytes).await;
            if !closes {
                let _ = stream.read_to_end(&mut Vec::new()).await;
                count.add_permits(1);
            }
        }
    })
    .await;
    (address, ended)
}

/// Everything that a client receives for a request, until its connection ends.
async fn ask(to: SocketAddr, method: &str, host: &str) -> String {
    let mut stream = TcpStream::connect(to).await.unwrap();
    let request = format!("{method} / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    // An incomplete response may end with a reset.
    let _ = timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("an end");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The deviation of a row's outcome; `None` if it is as expected.
async fn fault(row: &Row, text: &str, host: &str, ended: &Semaphore) -> Option<String> {
    let text = text.strip_prefix("HTTP/1.1 103 Early Hints\r\n\r\n").unwrap_or(text);
    let Some((head, content)) = text.split_once("\r\n\r\n") else { return Some(format!("{text:?}")) };
    let line = head.lines().next().unwrap_or_default();
    let told = head.lines().find_map(|line| line.strip_prefix("x-sluice-cause: "));
    let is_whole = content.ends_with("0\r\n\r\n") || !head.contains("\r\ntransfer-encoding: chunked");
    let logged = log::line("host", host).await;
    let flag = Flag::ALL.iter().find(|flag| logged["cause"] == flag.cause()).unwrap_or(&Flag::Fine);
    let is_right = match row.then {
        Then::Passes(expected, of) => {
            let content = if head.contains("\r\ntransfer-encoding: chunked") { unchunked(content) } else { content };
            line == expected && content == of && *flag == Flag::Fine && is_whole
        }
        Then::Refused(cause) => line == "HTTP/1.1 502 Bad Gateway" && told == Some(cause) && flag.cause() == cause,
        Then::BreaksOff(cause) => line.contains(" 200 ") && content.contains("hi") && flag.cause() == cause,
    };
    if !is_right {
        return Some(format!("{line:?} {content:?}, told {told:?}, logged {flag:?}"));
    }
    if !row.closes && !matches!(row.then, Then::Passes(..)) {
        // The rest of that connection is not reused.
        return timeout(PATIENCE, ended.acquire())
            .await
            .is_err()
            .then(|| "the endpoint's connection goes on".to_owned());
    }
    None
}

/// The content of a response with one chunk.
fn unchunked(content: &str) -> &str {
    content.split("\r\n").nth(1).unwrap_or_default()
}

#[tokio::test]
async fn each_row_of_an_endpoint_is_answered_as_is_best() {
    let rows = rows::rows();
    let (mut routes, mut endpoints) = (Vec::new(), Vec::new());
    for (number, row) in rows.iter().enumerate() {
        let (address, ended) = endpoint(row).await;
        routes.push(Route::new(&format!("r{number}.answers.test"), "").to(address));
        endpoints.push(ended);
    }
    let config = ProxyConfig { show_cause: true, ..ProxyConfig::default() };
    let timeouts = Timeouts { server: Duration::from_secs(2), ..Timeouts::default() };
    let policy = RouterPolicy { timeouts, ..RouterPolicy::default() };
    let rig = Rig::start(config, under(policy, table(&routes, None))).await;
    let mut faults = Vec::new();
    for (number, (row, ended)) in rows.iter().zip(&endpoints).enumerate() {
        let host = format!("r{number}.answers.test");
        let text = ask(rig.http, row.method, &host).await;
        faults.extend(
            fault(row, &text, &host, ended).await.map(|fault| format!("{} ({:?}): {fault}", row.name, row.then)),
        );
    }
    assert!(faults.is_empty(), "{} of {}:\n{}", faults.len(), rows.len(), faults.join("\n"));
}
