//! The 159 requests of http_desync_guardian, by which AWS's load balancers classify requests: severe or ambiguous ones
//! are rejected, or are the last request on the connections of client and endpoint; compliant or acceptable ones are
//! served, except those that `exceptions` lists with a reason.

mod cases;
mod exceptions;

use std::collections::BTreeMap;

use http_desync_guardian::RequestSafetyTier;
use http_desync_guardian::request_analyzer::HttpRequestData;
use router_proxy::ProxyConfig;
use tokio::net::TcpStream;

use crate::http1_corpus::exchange;
use crate::recorder::{Content, Message, Recorder};
use crate::tables::{Rig, Route, eventually, table};
use cases::{Case, Tier};
use exceptions::Exception;

/// The request sent after each case.
const BEHIND: &str = "GET /behind HTTP/1.1\r\nHost: a.test\r\n\r\n";

/// Outcome of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// A response with this status; no endpoint received the request, and its connection was closed.
    Refused(u16),
    /// Served, and then both connections were closed.
    Last,
    /// Served, and so was the request after it.
    Passed,
}

struct Stage {
    rig: Rig,
    endpoint: Recorder,
}

impl Stage {
    async fn new() -> Stage {
        let endpoint = Recorder::start("A").await;
        let routes = [Route::new("a.test", "").to(endpoint.address)];
        Stage { rig: Rig::start(ProxyConfig::default(), table(&routes, None)).await, endpoint }
    }

    /// Sends one encoding of a case, with its content and a request after it. The client does not end its side first,
    /// unless the case is expected to pass.
    async fn send(&self, case: &Case, head: &[u8], passes: bool) -> Result<Outcome, String> {
        let (content, framed) = case.content();
        let bytes = [head, framed.as_bytes(), BEHIND.as_bytes()].concat();
        let stream = TcpStream::connect(self.rig.http).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let answers = exchange(stream, &bytes, passes).await;
        let statuses: Vec<u16> = answers.iter().map(|(status, _)| *status).collect();
        eventually("the end of what was begun", async || !self.endpoint.waits()).await;
        let messages = self.endpoint.take();
        match (&statuses[..], &messages[..]) {
            ([status @ 400..=599], []) => Ok(Outcome::Refused(*status)),
            ([200], [message]) => {
                same(case, head, &content, message)?;
                eventually("the end of the endpoint's connection", async || {
                    self.endpoint.has_ended(message.connection)
                })
                .await;
                let more = self.endpoint.take();
                if more.is_empty() { Ok(Outcome::Last) } else { Err(format!("more came: {more:?}")) }
            }
            ([200, 200], [message, behind]) if behind.request == "GET /behind" => {
                same(case, head, &content, message)?;
                let tier = HttpRequestData::analyze_raw_request(message.head.as_bytes());
                let is_good = tier.tier <= RequestSafetyTier::Acceptable;
                if is_good { Ok(Outcome::Passed) } else { Err(format!("{tier} was forwarded: {}", message.head)) }
            }
            _ => Err(format!("answered {statuses:?}; reached {messages:?}")),
        }
    }

    /// Sends these cases. Returns the number of cases by outcome, and the deviations.
    async fn judge(&self, cases: &[Case]) -> (BTreeMap<(Tier, Outcome), usize>, Vec<String>) {
        let (mut counts, mut wrong) = (BTreeMap::new(), Vec::new());
        for case in cases {
            let exception = Exception::of(case);
            let passes = case.tier() < Tier::Ambiguous && exception.is_none();
            let mut outcomes = Vec::new();
            for head in case.heads("a.test") {
                match self.send(case, &head, passes).await {
                    Ok(outcome) => outcomes.push(outcome),
                    Err(error) => wrong.push(format!("{:?}, {}: {error}", case.tier(), case.name)),
                }
            }
            outcomes.dedup();
            let is_right = match (&outcomes[..], exception) {
                ([Outcome::Refused(status)], Some(exception)) => *status == exception.status,
                ([Outcome::Passed], None) => passes,
                ([Outcome::Refused(_) | Outcome::Last], None) => !passes,
                _ => false,
            };
            if !is_right {
                wrong.push(format!("{:?}, {}: {outcomes:?}", case.tier(), case.name));
            }
            for outcome in outcomes {
                *counts.entry((case.tier(), outcome)).or_default() += 1;
            }
        }
        (counts, wrong)
    }
}

/// Checks that the endpoint received the case: its line, its fields and its content.
fn same(case: &Case, head: &[u8], content: &str, message: &Message) -> Result<(), String> {
    let text = String::from_utf8_lossy(head);
    let own = |line: &str| {
        let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
        matches!(&*name, "connection" | "content-length" | "transfer-encoding" | "upgrade")
    };
    let wanted = text.split("\r\n").skip(1).filter(|line| !line.is_empty() && !own(line)).map(|line| {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        format!("\r\n{}: {}\r\n", name.to_ascii_lowercase(), value.trim_matches([' ', '\t']))
    });
    let missing: Vec<String> = wanted.filter(|line| !message.head.contains(line)).collect();
    let request = format!("{} {}", case.method, case.uri);
    if message.request == request && message.content == Content::Whole(content.to_owned()) && missing.is_empty() {
        return Ok(());
    }
    let length = content.len();
    Err(format!("{request} with {length} bytes of content became {message:?}, without {missing:?}"))
}

/// The cases of these tiers.
fn of(tiers: &[Tier]) -> Vec<Case> {
    cases::all().into_iter().filter(|case| tiers.contains(&case.tier())).collect()
}

#[tokio::test]
async fn what_is_severe_or_ambiguous_is_refused_or_the_last_of_both_connections() {
    let (counts, wrong) = Stage::new().await.judge(&of(&[Tier::Ambiguous, Tier::Severe])).await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let count = |tier: Tier, is: fn(&Outcome) -> bool| -> usize {
        counts.iter().filter(|((of, outcome), _)| *of == tier && is(outcome)).map(|(_, count)| count).sum()
    };
    let refused = |outcome: &Outcome| matches!(outcome, Outcome::Refused(_));
    assert_eq!((count(Tier::Severe, refused), count(Tier::Severe, |_| true)), (58, 58));
    // GET and HEAD with content.
    assert_eq!((count(Tier::Ambiguous, refused), count(Tier::Ambiguous, |o| *o == Outcome::Last)), (52, 6));
}

#[tokio::test]
async fn what_is_compliant_or_acceptable_is_served_but_for_the_exceptions() {
    let cases = of(&[Tier::Compliant, Tier::Acceptable]);
    let (counts, wrong) = Stage::new().await.judge(&cases).await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let passed = |tier: Tier| counts.get(&(tier, Outcome::Passed)).copied().unwrap_or_default();
    assert_eq!((passed(Tier::Compliant), passed(Tier::Acceptable)), (18, 3));
    for exception in exceptions::ALL {
        let cases = cases.iter().filter(|case| case.name == exception.name && case.tier() == exception.tier);
        assert_eq!(cases.count(), 1, "{}", exception.name);
        assert!(!exception.why.is_empty());
    }
    assert_eq!(cases.len() - exceptions::ALL.len(), 21);
}
