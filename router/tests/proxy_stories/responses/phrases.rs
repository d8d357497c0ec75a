//! Reason phrases in other places: interim responses, protocol switches, responses after a retry, and error pages.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use router_proxy::ProxyConfig;
use router_table::policy::error_page::ErrorPage;
use router_table::policy::{ErrorPages, RouterPolicy};
use router_table::rule::{Retry, RulePolicy};
use tokio::io::AsyncWriteExt;

use super::ask;
use crate::tables::{Rig, Route, table, under};
use crate::{backends, client};

/// Gives the responses in turn, over and over, and counts them.
async fn in_turn(answers: &'static [&'static str]) -> SocketAddr {
    let turn = Arc::new(AtomicUsize::new(0));
    backends::serve(move |mut stream| {
        let turn = Arc::clone(&turn);
        async move {
            while backends::read_head(&mut stream).await {
                let answer = answers[turn.fetch_add(1, Ordering::Relaxed) % answers.len()];
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        }
    })
    .await
}

/// The status lines of everything that a client receives.
fn lines(text: &str) -> Vec<&str> {
    text.split("\r\n").filter(|line| line.starts_with("HTTP/")).collect()
}

#[tokio::test]
async fn interim_responses_have_the_endpoints() {
    let answers = &[
        "HTTP/1.1 103 Soon\r\nLink: </a>\r\n\r\nHTTP/1.1 102 \r\n\r\nHTTP/1.1 199 Odd\r\n\r\nHTTP/1.1 198\r\n\r\n\
         HTTP/1.1 200 Done\r\nContent-Length: 0\r\n\r\n",
        // The beginning of an invalid response.
        "HTTP/1.1 103 a\x01b\r\n\r\nHTTP/1.1 200 Done\r\nContent-Length: 0\r\n\r\n",
    ];
    let rig = Rig::serve(&[Route::new("interim.phrase.test", "").to(in_turn(answers).await)]).await;
    let text = ask(rig.http, "GET", "interim.phrase.test").await;
    let expected = ["HTTP/1.1 103 Soon", "HTTP/1.1 102 ", "HTTP/1.1 199 Odd", "HTTP/1.1 198 ", "HTTP/1.1 200 Done"];
    assert_eq!(lines(&text), expected);
    assert_eq!(lines(&ask(rig.http, "GET", "interim.phrase.test").await), ["HTTP/1.1 502 Bad Gateway"]);
}

#[tokio::test]
async fn a_switch_has_the_endpoints() {
    let switch = "HTTP/1.1 101 Have fun\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
    let backend = backends::serve(move |mut stream| async move {
        backends::read_head(&mut stream).await;
        stream.write_all(switch.as_bytes()).await.unwrap();
    })
    .await;
    let rig = Rig::serve(&[Route::new("switch.phrase.test", "").to(backend)]).await;
    let asks = "GET / HTTP/1.1\r\nHost: switch.phrase.test\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
    let answer = client::request(rig.http, asks).await;
    assert_eq!(answer.head.lines().next(), Some("HTTP/1.1 101 Have fun"));
}

#[tokio::test]
async fn what_is_answered_after_a_retry_has_the_phrase_of_the_last_answer() {
    let answers = &[
        "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 Second try\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 503 \r\nContent-Length: 0\r\n\r\n",
    ];
    let retry = Retry {
        count: 1,
        statuses: vec![500..=599],
        unanswered: true,
        unreachable: true,
        backoff: Duration::from_millis(1),
    };
    let rule = RulePolicy { retry: Some(retry), ..RulePolicy::default() };
    let rig = Rig::serve(&[Route::new("retry.phrase.test", "").rule(rule).to(in_turn(answers).await)]).await;
    for expected in ["HTTP/1.1 200 Second try", "HTTP/1.1 503 "] {
        assert_eq!(lines(&ask(rig.http, "GET", "retry.phrase.test").await), [expected]);
    }
}

#[tokio::test]
async fn an_error_page_has_its_own() {
    for (written, expected) in [
        ("HTTP/1.0 503 We are closed", "HTTP/1.1 503 We are closed"),
        ("HTTP/1.0 503 Service Unavailable", "HTTP/1.1 503 Service Unavailable"),
        ("HTTP/1.0 440 ", "HTTP/1.1 440 "),
        ("HTTP/1.1 599 Odd", "HTTP/1.1 599 Odd"),
    ] {
        let page = ErrorPage::parse(&format!("{written}\r\nContent-Type: text/html\r\n\r\n<p>no</p>")).unwrap();
        let pages = ErrorPages { unavailable: Some(Arc::new(page)), ..ErrorPages::default() };
        let policy = RouterPolicy { pages, ..RouterPolicy::default() };
        let rig = Rig::start(ProxyConfig::default(), under(policy, table(&[], None))).await;
        assert_eq!(lines(&ask(rig.http, "GET", "nobody.phrase.test").await), [expected], "{written}");
    }
}
