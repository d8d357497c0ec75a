//! Outcomes that are retried, how often, and after which delay.

use std::sync::Arc;

use http::Method;
use router_table::rule::RulePolicy;

use super::*;
use crate::upstream::testing;

const BACKOFF: Duration = Duration::from_millis(100);

fn route(retry: Retry) -> ResolvedRoute {
    let rule = RulePolicy { retry: Some(retry), ..RulePolicy::default() };
    ResolvedRoute { rule: Some(Arc::new(rule)), ..testing::route(&[(1, &[1])], Default::default()) }
}

fn retry(count: u32) -> Retry {
    Retry { count, statuses: vec![500..=599, 409..=409], unanswered: false, unreachable: true, backoff: BACKOFF }
}

fn request(method: Method) -> Request<RequestBody> {
    let mut request = Request::new(RequestBody::default());
    *request.method_mut() = method;
    request
}

#[test]
fn what_the_rule_names_counts_as_often_as_it_says() {
    let route = route(retry(2));
    let answered = |status| AttemptOutcome::Answered(StatusCode::from_u16(status).unwrap());
    for (outcome, counts) in [
        (answered(500), true),
        (answered(599), true),
        (answered(409), true),
        (answered(200), false),
        (answered(404), false),
        (AttemptOutcome::Unreachable, true),
        (AttemptOutcome::Unanswered, false),
        (AttemptOutcome::Other, false),
    ] {
        let mut retries = Retries::of(&route, &request(Method::GET)).unwrap();
        for time in 0..4 {
            assert_eq!(retries.after(outcome).is_some(), counts && time < 2, "{outcome:?}, the {time}th time");
        }
        assert_eq!(retries.are_left(), !counts);
    }
}

#[test]
fn only_what_may_be_repeated_is() {
    let route = route(retry(1));
    for (method, may) in [
        (Method::GET, true),
        (Method::HEAD, true),
        (Method::PUT, true),
        (Method::DELETE, true),
        (Method::OPTIONS, true),
        (Method::POST, false),
        (Method::PATCH, false),
    ] {
        assert_eq!(Retries::of(&route, &request(method.clone())).is_some(), may, "{method}");
    }
    let plain = ResolvedRoute { rule: None, ..route };
    assert!(Retries::of(&plain, &request(Method::GET)).is_none());
}

#[test]
fn pauses_are_left_to_chance_within_bounds_that_double() {
    let route = Arc::new(route(retry(100)));
    let mut longest = [Duration::ZERO; 100];
    for _ in 0..200 {
        let mut retries = Retries::of(&route, &request(Method::GET)).unwrap();
        for longest in &mut longest {
            *longest = retries.after(AttemptOutcome::Unreachable).unwrap().max(*longest);
        }
    }
    for (time, longest) in longest.into_iter().enumerate() {
        let most = BACKOFF * [1, 2, 4, 8].get(time).copied().unwrap_or(10);
        assert!(longest <= most && longest > most / 2, "the {time}th pause was {longest:?} at most");
    }
}

#[test]
fn attempt_errors_are_distinguished() {
    let trouble = |flag, unseen| {
        AttemptOutcome::from(AttemptError { status: StatusCode::BAD_GATEWAY, flag, unseen, connecting: Duration::ZERO })
    };
    assert_eq!(trouble(Flag::UpstreamConnectFailure, true), AttemptOutcome::Unreachable);
    assert_eq!(trouble(Flag::UpstreamConnectTimeout, true), AttemptOutcome::Unreachable);
    assert_eq!(trouble(Flag::UpstreamTimeout, false), AttemptOutcome::Unanswered);
    assert_eq!(trouble(Flag::UpstreamHungUp, false), AttemptOutcome::Unanswered);
    assert_eq!(trouble(Flag::ClientTimeout, false), AttemptOutcome::Other);
    assert_eq!(trouble(Flag::BadRequest, false), AttemptOutcome::Other);
}
