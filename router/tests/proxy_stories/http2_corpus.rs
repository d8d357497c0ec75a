//! HTTP/2 requests that could become two requests, or another one, when converted to HTTP/1.1 for an endpoint; one row
//! each: the response, and the requests that reach endpoints.

mod rows;

use router_proxy::ProxyConfig;
use tokio::io::AsyncWriteExt;

use crate::frames::{
    DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PREFACE, RST_STREAM, SETTINGS, field, frame, next_or_end, status,
};
use crate::recorder::{Content, Recorder};
use crate::tables::{Rig, Route, eventually, table};
use crate::{client, pki};
use rows::{Outcome, Row};

struct Stage {
    rig: Rig,
    a: Recorder,
    b: Recorder,
}

impl Stage {
    /// Both hosts share a certificate, so that one connection serves both.
    async fn new() -> Stage {
        let (a, b) = (Recorder::start("A").await, Recorder::start("B").await);
        let routes =
            [Route::new("a.test", "").edge(None).to(a.address), Route::new("b.test", "").edge(None).to(b.address)];
        let certificate = pki::ca().leaf(&["*.test"]);
        Stage { rig: Rig::start(ProxyConfig::default(), table(&routes, Some(&certificate))).await, a, b }
    }

    /// Sends a row's request and another one after it; returns both outcomes.
    async fn send(&self, row: &Row) -> [Outcome; 2] {
        let mut stream = client::tls(self.rig.https, Some("a.test"), &["h2"]).await;
        // Without a dynamic table, each status is self-contained.
        let mut bytes = [PREFACE, &frame(SETTINGS, 0, 0, &[0, 1, 0, 0, 0, 0])].concat();
        let ends = if row.content.is_empty() && row.trailers.is_empty() { END_STREAM } else { 0 };
        bytes.extend(frame(HEADERS, END_HEADERS | ends, 1, &row.fields));
        let last = if row.trailers.is_empty() { END_STREAM } else { 0 };
        if !row.content.is_empty() {
            bytes.extend(frame(DATA, last, 1, row.content));
        }
        if !row.trailers.is_empty() {
            bytes.extend(frame(HEADERS, END_HEADERS | END_STREAM, 1, &row.trailers));
        }
        let behind = rows::request("GET", "a.test", "/behind", &[]);
        bytes.extend(frame(HEADERS, END_HEADERS | END_STREAM, 3, &behind));
        stream.write_all(&bytes).await.unwrap();
        let mut outcomes = [None, None];
        while outcomes.contains(&None) {
            let Some((kind, _, id, payload)) = next_or_end(&mut stream).await else {
                return outcomes.map(|outcome| outcome.unwrap_or(Outcome::Ended));
            };
            let code = |at: usize| u32::from_be_bytes(payload[at..at + 4].try_into().unwrap());
            let outcome = match kind {
                HEADERS => Outcome::Answered(status(&payload)),
                RST_STREAM => Outcome::Reset(code(0)),
                GOAWAY if code(4) != 0 => return outcomes.map(|outcome| outcome.unwrap_or(Outcome::Ended)),
                _ => continue,
            };
            let slot = if id == 1 { 0 } else { 1 };
            outcomes[slot].get_or_insert(outcome);
        }
        outcomes.map(|outcome| outcome.unwrap_or(Outcome::Ended))
    }
}

#[tokio::test]
async fn each_row_is_answered_as_is_best() {
    let stage = Stage::new().await;
    let mut wrong = Vec::new();
    for row in rows::all() {
        let outcomes = stage.send(&row).await;
        eventually("the end of what was begun", async || !stage.a.waits() && !stage.b.waits()).await;
        let mut reached = Vec::new();
        for (name, recorder) in [("A", &stage.a), ("B", &stage.b)] {
            for message in recorder.take() {
                let owner = if message.host == "b.test" { "B" } else { "A" };
                let is_read = message.request != "unreadable" && message.content != Content::Malformed;
                assert!(name == owner && is_read, "{}: {name} got {message:?}", row.name);
                // A request rejected within its content may have been forwarded in part; it is then incomplete.
                let begun = row.reached.is_none() && message.content == Content::BrokenOff;
                if !begun && !message.request.ends_with("/behind") {
                    reached.push(format!("{name} {}", message.request));
                }
                let told = [message.head.clone(), message.trailers.join("\r\n")].concat().to_ascii_lowercase();
                assert!(!row.gone.iter().any(|gone| told.contains(gone)), "{}: {told}", row.name);
            }
        }
        let expected: Vec<&str> = row.reached.into_iter().collect();
        let behind = if row.outcome == Outcome::Ended { Outcome::Ended } else { Outcome::Answered(200) };
        if outcomes != [row.outcome, behind] || reached != expected {
            wrong.push(format!("{}: {outcomes:?}, not {:?}; reached {reached:?}", row.name, row.outcome));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn content_of_a_get_is_the_last_of_its_endpoints_connection() {
    let stage = Stage::new().await;
    let outcomes = stage.send(&rows::content_of_a_get()).await;
    // Streams are separate: the client's connection stays open.
    assert_eq!(outcomes, [Outcome::Answered(200), Outcome::Answered(200)]);
    eventually("the content", async || !stage.a.waits()).await;
    let messages = stage.a.take();
    let odd = messages.iter().find(|message| message.request == "GET /").expect("the request");
    assert_eq!(odd.content, Content::Whole("hello".to_owned()));
    assert!(messages.iter().all(|message| message.request == "GET /" || message.connection != odd.connection));
    eventually("the end of the endpoint's connection", async || stage.a.has_ended(odd.connection)).await;
}
