//! Backends of rules: shares, failures, header modifiers.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use router_model::names::Hostname;
use router_table::header_modifier::HeaderModifier;
use router_table::rule::{BackendPolicy, RulePolicy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::tables::{Rig, Route};
use crate::{backends, client, log};

const NOTHING: fn() -> BackendPolicy = BackendPolicy::default;

fn failing() -> BackendPolicy {
    BackendPolicy { failure: Some(500), ..BackendPolicy::default() }
}

fn rule(host: &str) -> Route {
    Route::new(host, "").rule(RulePolicy::default())
}

/// Sets and adds these fields.
fn modifier(set: &[(&str, &str)], add: &[(&str, &str)]) -> HeaderModifier {
    let pairs = |pairs: &[(&str, &str)]| pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    HeaderModifier { set: pairs(set), add: pairs(add), remove: Vec::new() }
}

/// Number of responses by backend, or by status.
async fn outcomes(http: SocketAddr, host: &str, requests: usize) -> BTreeMap<String, usize> {
    let mut outcomes = BTreeMap::new();
    for _ in 0..requests {
        let answer = client::get(http, host, "/").await;
        assert_eq!(answer.field("set-cookie"), None, "rules have no affinity");
        let what = answer.field("x-backend").map_or_else(|| answer.status.to_string(), str::to_owned);
        *outcomes.entry(what).or_default() += 1;
    }
    outcomes
}

fn counted<const N: usize>(counts: [(&str, usize); N]) -> BTreeMap<String, usize> {
    counts.map(|(what, count)| (what.to_owned(), count)).into()
}

#[tokio::test]
async fn backends_get_the_requests_that_their_weights_say() {
    let [a, b, c] = [backends::http("a").await, backends::http("b").await, backends::http("c").await];
    let rig = Rig::serve(&[
        rule("weights.rule.test").backend("a", 7, &[a], NOTHING()).backend("b", 3, &[b], NOTHING()).backend(
            "c",
            0,
            &[c],
            NOTHING(),
        ),
        rule("million.rule.test").backend("a", 750_001, &[a, c], NOTHING()).backend("b", 249_999, &[b], NOTHING()),
    ])
    .await;
    assert_eq!(outcomes(rig.http, "weights.rule.test", 100).await, counted([("a", 70), ("b", 30)]));
    let million = outcomes(rig.http, "million.rule.test", 100).await;
    for (backend, due) in [("a", 38_usize), ("b", 25), ("c", 37)] {
        assert!(million[backend].abs_diff(due) <= 3, "{million:?}");
    }
}

#[tokio::test]
async fn a_backend_that_cannot_be_used_has_its_share_of_failures() {
    let alive = backends::http("alive").await;
    let rig = Rig::serve(&[
        rule("half.rule.test").backend("good", 1, &[alive], NOTHING()).backend("bad", 1, &[], failing()),
        rule("empty.rule.test").backend("good", 3, &[alive], NOTHING()).backend("none", 1, &[], NOTHING()),
        rule("all.rule.test").backend("bad", 1, &[alive], failing()),
        // A Route's other service takes the share of the one without endpoints.
        Route::new("empty.route.test", "").service("good", &[alive]).service("none", &[]),
    ])
    .await;
    assert_eq!(outcomes(rig.http, "half.rule.test", 20).await, counted([("alive", 10), ("500", 10)]));
    assert_eq!(outcomes(rig.http, "empty.rule.test", 20).await, counted([("alive", 15), ("503", 5)]));
    assert_eq!(outcomes(rig.http, "all.rule.test", 4).await, counted([("500", 4)]));
    let of_route = client::get(rig.http, "empty.route.test", "/").await;
    assert_eq!(of_route.field("x-backend"), Some("alive"));
    assert_eq!(log::line("host", "all.rule.test").await["flags"], "IB");
    let empty = |line: &serde_json::Value| line["host"] == "empty.rule.test" && line["status"] == 503;
    assert_eq!(log::line_where("the share of nobody", empty).await["flags"], "NE");
}

#[tokio::test]
async fn connections_have_their_share_of_resets() {
    let echo = backends::named_echo("passed").await;
    let route = rule("pass.rule.test")
        .backend("good", 1, &[echo], NOTHING())
        .backend("bad", 1, &[], failing())
        .backend("none", 1, &[], NOTHING())
        .passthrough();
    let rig = Rig::serve(&[route]).await;
    let mut ends = BTreeMap::new();
    for _ in 0..9 {
        let mut stream = TcpStream::connect(rig.https).await.unwrap();
        stream.write_all(&client::hello("pass.rule.test")).await.unwrap();
        let mut answer = [0; 6];
        let end = match stream.read_exact(&mut answer).await {
            Ok(_) => String::from_utf8_lossy(&answer).into_owned(),
            Err(error) => format!("{:?}", error.kind()),
        };
        *ends.entry(end).or_default() += 1;
    }
    assert_eq!(ends, counted([("passed", 3), ("ConnectionReset", 6)]));
    let with =
        |flag: &'static str| move |line: &serde_json::Value| line["host"] == "pass.rule.test" && line["flags"] == flag;
    log::line_where("a reset for a backend that cannot be used", with("IB")).await;
    log::line_where("a reset for one without endpoints", with("NE")).await;
}

#[tokio::test]
async fn fields_are_worked_on_by_the_rule_first_and_by_the_backend_last_and_answers_the_other_way_round() {
    let backend = backends::http("fields").await;
    let rule = RulePolicy {
        request_headers: vec![modifier(&[("X-A", "rule"), ("x-rule", "1")], &[])],
        response_headers: vec![modifier(&[("x-both", "rule")], &[("x-list", "rule")])],
        rewrite_host: Some(Hostname::parse("inner.test").unwrap()),
        ..RulePolicy::default()
    };
    let own = BackendPolicy {
        request_headers: vec![modifier(&[], &[("x-a", "backend")])],
        response_headers: vec![modifier(&[("x-both", "backend"), ("x-list", "backend")], &[])],
        ..BackendPolicy::default()
    };
    let route = Route::new("fields.rule.test", "").rule(rule).backend("app", 1, &[backend], own);
    let rig = Rig::serve(&[route]).await;
    let text = "GET / HTTP/1.1\r\nHost: fields.rule.test\r\nX-A: client\r\nConnection: close\r\n\r\n";
    let answer = client::request(rig.http, text).await;
    let seen = |name: &str| {
        let fields = answer.body.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        fields.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(seen("x-a"), ["rule", "backend"]);
    assert_eq!(seen("x-rule"), ["1"]);
    assert_eq!(seen("host"), ["inner.test"]);
    assert_eq!(seen("x-forwarded-host"), ["fields.rule.test"]);
    assert_eq!(answer.field("x-both"), Some("rule"));
    let lists: Vec<&str> = answer.head.lines().filter_map(|line| line.strip_prefix("x-list: ")).collect();
    assert_eq!(lists, ["backend", "rule"]);
}

#[tokio::test]
async fn a_backend_that_steps_in_does_not_get_the_fields_of_another() {
    let (alive, h2c) = (backends::http("alive").await, backends::h2c("h2c").await);
    let named = |name: &str| BackendPolicy {
        request_headers: vec![modifier(&[("x-for", name)], &[])],
        ..BackendPolicy::default()
    };
    let routes = [("one.step.test", alive, false), ("two.step.test", h2c, true)].map(|(host, good, is_h2c)| {
        let route = rule(host).backend("bad", 1, &[backends::refusing()], named("bad")).backend(
            "good",
            1,
            &[good],
            named("good"),
        );
        if is_h2c { route.h2c() } else { route }
    });
    let rig = Rig::serve(&routes).await;
    for host in ["one.step.test", "two.step.test"] {
        for _ in 0..4 {
            let answer = client::get(rig.http, host, "/").await;
            let fields: Vec<&str> = answer.body.lines().filter(|line| line.starts_with("x-for: ")).collect();
            assert_eq!(fields, ["x-for: good"], "{answer:?}");
            assert!(answer.body.contains(&format!("{host}\n")), "the host stays: {answer:?}");
        }
    }
}
