//! Annotations in, values and warnings out.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;

use router_model::field::FieldError;
use router_model::names::PathMatch;
use router_table::policy::{Balance, SameSite, SourceLimits};

use super::allowlist::{ALLOWLIST, WHITELIST};
use super::values::{hsts, limit};
use super::*;
use crate::openshift::route::annotations::values::MAX_TIMEOUT;
use crate::openshift::route::traffic::{CertificateSource, RouteTls, TlsMaterial};

const HTTP: fn() -> Traffic = || Traffic::Http { path: PathMatch::any(), tls: None };
const EDGE: fn(InsecurePolicy) -> Traffic = |insecure| {
    let material = Ok(TlsMaterial { certificate: CertificateSource::Controller, reencrypt: None });
    Traffic::Http { path: PathMatch::any(), tls: Some(Arc::new(RouteTls { insecure, material })) }
};
const PASSTHROUGH: fn() -> Traffic = || Traffic::Passthrough { redirect: false };

fn path(annotation: &str) -> FieldPath {
    FieldPath::of(&["metadata", "annotations", annotation])
}

/// The values of a route with these annotations, and the warnings.
fn read(traffic: &Traffic, annotations: &[(&str, &str)]) -> (RouteAnnotations, Vec<FieldError>) {
    let texts = annotations.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    let mut findings = Findings::default();
    let parsed = RouteAnnotations::parse(&texts, traffic, &mut findings);
    assert_eq!(findings.errors, []);
    (parsed.unwrap_or_default(), findings.warnings)
}

/// The message of the only warning; the values must be the defaults.
fn warning(traffic: &Traffic, annotation: &str, text: &str) -> String {
    let (parsed, warnings) = read(traffic, &[(annotation, text)]);
    assert_eq!(parsed, RouteAnnotations::default(), "{annotation}: {text}");
    let [only] = warnings.as_slice() else { panic!("{annotation}: {text}: {warnings:?}") };
    assert_eq!(only.path, path(annotation));
    only.message.clone()
}

#[test]
fn every_annotation_has_a_value_or_a_warning_and_the_default_costs_nothing() {
    let rows = [
        (PROXY_PROTOCOL, "v2", "v1"),
        (TIMEOUT, "5s", "5x"),
        (TIMEOUT_TUNNEL, "5s", "5x"),
        (SET_FORWARDED_HEADERS, "never", "Never"),
        (BALANCE, "source", "Source"),
        (DISABLE_COOKIES, "true", "yes"),
        (COOKIE_NAME, "name", "a b"),
        (COOKIE_SAME_SITE, "Lax", "lax"),
        (HSTS, "max-age=1", "max-age"),
        (REWRITE_TARGET, "/new", "new"),
        (ADJUST_CASE, "T", "on"),
        (ENDPOINT_CONNECTIONS, "7", "many"),
        (HEALTH_CHECK, "1m", "0"),
    ];
    for (name, good, bad) in rows {
        let traffic = match name {
            PROXY_PROTOCOL => PASSTHROUGH(),
            COOKIE_SAME_SITE | HSTS => EDGE(InsecurePolicy::None),
            _ => HTTP(),
        };
        let (parsed, warnings) = read(&traffic, &[(name, good)]);
        assert!(parsed != RouteAnnotations::default() && warnings.is_empty(), "{name}: {parsed:?} {warnings:?}");
        let message = warning(&traffic, name, bad);
        assert!(message.contains("ignored") && message.contains(bad), "{name}: {message}");
    }
    for (name, text) in [(ALLOWLIST, "192.0.2.1"), (WHITELIST, "192.0.2.1")] {
        for traffic in [HTTP(), EDGE(InsecurePolicy::Allow), PASSTHROUGH()] {
            let (parsed, warnings) = read(&traffic, &[(name, text)]);
            assert!(parsed.allow.is_some_and(|list| list.annotation == name) && warnings.is_empty(), "{name}");
        }
    }
    // The limits per client depend on each other, and the pool size has no effect: other tests cover them.
    let others = [ALLOWLIST, WHITELIST, RATE_LIMIT, CONCURRENT_TCP, RATE_TCP, RATE_HTTP, POOL_SIZE];
    let tested: BTreeSet<&str> = rows.iter().map(|(name, ..)| *name).chain(others).collect();
    assert_eq!(tested, ANNOTATIONS.into());
    let (traffic, mut findings) = (HTTP(), Findings::default());
    let defaults = [("note".to_owned(), "x".to_owned()), (DISABLE_COOKIES.to_owned(), "false".to_owned())].into();
    assert_eq!(RouteAnnotations::parse(&defaults, &traffic, &mut findings), None);
}

#[test]
fn equal_policies_are_shared() {
    let policy = |text| read(&HTTP(), &[(COOKIE_NAME, text)]).0.policy;
    let (one, equal, other) = (policy("equal-policies"), policy("equal-policies"), policy("another-policy"));
    assert!(Arc::ptr_eq(&one, &equal) && !Arc::ptr_eq(&one, &other));
    assert!(Arc::ptr_eq(&RouteAnnotations::default().policy, &RoutePolicy::shared_default()));
}

#[test]
fn the_tunnel_timeout_of_passthrough_is_the_first_good_of_two() {
    let found = |traffic: Traffic, annotations: &[(&str, &str)]| read(&traffic, annotations).0.tunnel_timeout;
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    assert_eq!(found(PASSTHROUGH(), &[(TIMEOUT, "5s")]), seconds(5));
    assert_eq!(found(PASSTHROUGH(), &[(TIMEOUT, "5s"), (TIMEOUT_TUNNEL, "9s")]), seconds(9));
    assert_eq!(found(PASSTHROUGH(), &[(TIMEOUT, "5s"), (TIMEOUT_TUNNEL, "nine")]), seconds(5));
    // Without passthrough, `timeout` limits responses.
    assert_eq!(found(HTTP(), &[(TIMEOUT, "5s")]), None);
    assert_eq!(found(HTTP(), &[(TIMEOUT, "5s"), (TIMEOUT_TUNNEL, "9s")]), seconds(9));
    let message = "Invalid value: \"1.5s\", ignored; write a whole number and us, ms, s, m, h or d, such as 30s";
    assert_eq!(warning(&HTTP(), TIMEOUT, "1.5s"), message);
    assert_eq!(warning(&PASSTHROUGH(), TIMEOUT_TUNNEL, "1.5s"), message);
}

#[test]
fn the_proxy_header_is_for_passthrough_alone() {
    let (parsed, warnings) = read(&PASSTHROUGH(), &[(PROXY_PROTOCOL, "v2")]);
    assert!(parsed.proxy_protocol && warnings.is_empty());
    for bad in ["v1", "", "V2", "true"] {
        let message = format!("Unsupported value: {bad:?}, ignored; write v2, or remove it");
        assert_eq!(warning(&PASSTHROUGH(), PROXY_PROTOCOL, bad), message);
    }
    assert!(
        warning(&HTTP(), PROXY_PROTOCOL, "v2").starts_with("is only for passthrough routes, ignored; remove it, or ")
    );
}

#[test]
fn forwarding_headers_have_four_policies() {
    let policies = [
        ("append", ForwardedHeaders::Append),
        ("replace", ForwardedHeaders::Replace),
        ("if-none", ForwardedHeaders::IfNone),
        ("never", ForwardedHeaders::Never),
    ];
    for (text, policy) in policies {
        assert_eq!(read(&HTTP(), &[(SET_FORWARDED_HEADERS, text)]).0.forwarded, Some(policy));
    }
    let message = "Unsupported value: \"Never\", ignored; write append, replace, if-none or never";
    assert_eq!(warning(&HTTP(), SET_FORWARDED_HEADERS, "Never"), message);
    assert!(warning(&PASSTHROUGH(), SET_FORWARDED_HEADERS, "never").contains("requests are not read"));
}

/// The policy of a route with these annotations, which must have no warning.
fn policy(traffic: &Traffic, annotations: &[(&str, &str)]) -> Arc<RoutePolicy> {
    let (parsed, warnings) = read(traffic, annotations);
    assert_eq!(warnings, [], "{annotations:?}");
    parsed.policy
}

fn number(number: u32) -> Option<NonZeroU32> {
    NonZeroU32::new(number)
}

#[test]
fn endpoints_are_chosen_in_four_ways() {
    let ways = [
        ("roundrobin", Balance::RoundRobin, false),
        ("leastconn", Balance::LeastConnections, true),
        ("source", Balance::Source, true),
        ("random", Balance::Random, false),
    ];
    for (text, balance, needs_relay) in ways {
        for traffic in [HTTP(), PASSTHROUGH()] {
            let policy = policy(&traffic, &[(BALANCE, text)]);
            assert_eq!(policy.balance, Some(balance));
            assert_eq!(policy.needs_relay(), needs_relay, "{text}");
        }
    }
    let message = "Unsupported value: \"Random\", ignored; write roundrobin, leastconn, source or random";
    assert_eq!(warning(&PASSTHROUGH(), BALANCE, "Random"), message);
}

#[test]
fn the_timeout_of_answers_is_that_of_routes_with_requests() {
    let policy = policy(&HTTP(), &[(TIMEOUT, "5s")]);
    assert_eq!(policy.server_timeout, Some(Duration::from_secs(5)));
    assert!(policy.reads_requests());
    assert_eq!(*read(&PASSTHROUGH(), &[(TIMEOUT, "5s")]).0.policy, RoutePolicy::default());
}

#[test]
fn limits_hold_where_they_are_switched_on() {
    let all = |on: &'static str| [(RATE_LIMIT, on), (CONCURRENT_TCP, "10"), (RATE_TCP, "20"), (RATE_HTTP, "30")];
    for on in ["true", "1", "t", "T", "TRUE", "True"] {
        let limits = SourceLimits { concurrent: number(10), connections: number(20), requests: number(30) };
        let policy = policy(&HTTP(), &all(on));
        assert_eq!(policy.source_limits, limits);
        assert!(policy.needs_relay());
    }
    let (parsed, warnings) = read(&PASSTHROUGH(), &all("true"));
    assert_eq!((parsed.policy.source_limits.connections, parsed.policy.source_limits.requests), (number(20), None));
    let [only] = warnings.as_slice() else { panic!("{warnings:?}") };
    assert!(only.path == path(RATE_HTTP) && only.message.contains("requests are not read"));

    for off in ["false", "0"] {
        let (parsed, warnings) = read(&HTTP(), &all(off));
        assert_eq!(parsed, RouteAnnotations::default());
        assert_eq!(warnings.len(), 3);
        assert!(
            warnings.iter().all(|warning| warning.message.starts_with("has no effect without haproxy.")),
            "{warnings:?}"
        );
    }
    assert!(warning(&HTTP(), RATE_LIMIT, "true").starts_with("limits nothing by itself; write "));
    assert_eq!(warning(&HTTP(), RATE_LIMIT, "yes"), "Unsupported value: \"yes\", ignored; write true or false");
    assert!(warning(&HTTP(), RATE_TCP, "9").starts_with("has no effect without haproxy."));
    let (parsed, warnings) = read(&HTTP(), &[(RATE_LIMIT, "true"), (RATE_TCP, "0"), (RATE_HTTP, "7")]);
    assert_eq!(parsed.policy.source_limits, SourceLimits { requests: number(7), ..SourceLimits::default() });
    assert_eq!(warnings[0].message, "Invalid value: \"0\", ignored; write a whole number of at least 1");

    for (text, expected) in [("1", number(1)), ("007", number(7)), ("99999999999999999999", number(u32::MAX))] {
        assert_eq!(limit(text), expected);
    }
    for bad in ["", "0", "-1", "+1", "1.5", " 1", "1k", "٣"] {
        assert_eq!(limit(bad), None, "{bad:?}");
    }
}

#[test]
fn connections_to_one_endpoint_are_limited_on_every_kind_of_route() {
    for traffic in [HTTP(), EDGE(InsecurePolicy::None), PASSTHROUGH()] {
        let policy = policy(&traffic, &[(ENDPOINT_CONNECTIONS, "100")]);
        assert_eq!(policy.endpoint_connections, number(100));
        assert!(policy.needs_relay());
    }
    assert_eq!(*policy(&HTTP(), &[(ENDPOINT_CONNECTIONS, "0")]), RoutePolicy::default());
    let message = "Invalid value: \"many\", ignored; write a whole number, such as 100; 0 for no limit";
    assert_eq!(warning(&HTTP(), ENDPOINT_CONNECTIONS, "many"), message);
}

#[test]
fn affinity_is_the_default_and_can_be_named_and_switched_off() {
    assert!(RoutePolicy::default().reads_requests());
    assert!(!policy(&HTTP(), &[(DISABLE_COOKIES, "true")]).reads_requests());
    assert_eq!(*policy(&HTTP(), &[(DISABLE_COOKIES, "false")]), RoutePolicy::default());
    assert!(warning(&HTTP(), DISABLE_COOKIES, "yes").starts_with("Unsupported value"));

    assert_eq!(policy(&HTTP(), &[(COOKIE_NAME, "se_ss-1")]).affinity.cookie.as_deref(), Some("se_ss-1"));
    for bad in ["", "a b", "a;b", "a=b", "ä", "a\n"] {
        assert!(warning(&HTTP(), COOKIE_NAME, bad).ends_with("write a name of letters, digits, '-' and '_'"), "{bad}");
    }
    for (text, same_site) in [("Lax", SameSite::Lax), ("Strict", SameSite::Strict), ("None", SameSite::None)] {
        for insecure in [InsecurePolicy::None, InsecurePolicy::Redirect] {
            assert_eq!(policy(&EDGE(insecure), &[(COOKIE_SAME_SITE, text)]).affinity.same_site, same_site);
        }
    }
    assert!(warning(&EDGE(InsecurePolicy::None), COOKIE_SAME_SITE, "lax").contains("write Lax, Strict or None"));
    for traffic in [HTTP(), EDGE(InsecurePolicy::Allow)] {
        assert!(warning(&traffic, COOKIE_SAME_SITE, "Lax").starts_with("is only for edge and reencrypt routes that"));
    }
    let (parsed, warnings) = read(&HTTP(), &[(DISABLE_COOKIES, "true"), (COOKIE_NAME, "x")]);
    assert_eq!(parsed.policy.affinity.cookie, None);
    assert!(warnings[0].path == path(COOKIE_NAME) && warnings[0].message.contains("is true; remove one of the two"));
}

#[test]
fn strict_transport_security_is_what_openshift_takes() {
    let good = [
        "max-age=0",
        "max-age=31536000;includeSubDomains;preload",
        "preload;max-age=1",
        "includeSubDomains ; preload;  max-age = \"99\" ; preload",
        "max-age=99999 ;  includesubdomains;  PREload",
        "MAX-AGE=1",
    ];
    for text in good {
        assert_eq!(hsts(text).as_deref(), Some(text));
        assert_eq!(policy(&EDGE(InsecurePolicy::None), &[(HSTS, text)]).hsts.as_deref(), Some(text));
    }
    let bad = [
        "",
        "min-age=99999",
        "max-age",
        "max-age=",
        "max-age=x",
        "max-age=-1",
        "max-age=\"1",
        "max-age=1;",
        ";max-age=1",
        "max-age=1;max-age=2",
        "max-age=1;other",
        "preload",
        " max-age=1",
        "max-age=1 ",
        "max-age=1\r\nX: y",
        "max-age=1;\npreload",
    ];
    for text in bad {
        assert_eq!(hsts(text), None, "{text:?}");
    }
    let message = "Invalid value: \"min-age=9\", ignored; write for example max-age=31536000;includeSubDomains;preload";
    assert_eq!(warning(&EDGE(InsecurePolicy::Allow), HSTS, "min-age=9"), message);
    assert!(warning(&HTTP(), HSTS, "max-age=1").starts_with("has no meaning for a route without spec.tls"));
}

#[test]
fn the_rest_is_read_where_it_has_a_meaning() {
    let target = policy(&HTTP(), &[(REWRITE_TARGET, "/new")]).rewrite_target.clone().unwrap();
    assert_eq!(target.rewrite("/old", "/old/x"), "/new/x");
    assert!(warning(&HTTP(), REWRITE_TARGET, "new").ends_with("ignored: must begin with /; write a path such as /"));
    assert!(policy(&HTTP(), &[(ADJUST_CASE, "true")]).adjust_case);
    assert!(warning(&HTTP(), ADJUST_CASE, "on").contains("write true or false"));
    for traffic in [HTTP(), PASSTHROUGH()] {
        let health_check = policy(&traffic, &[(HEALTH_CHECK, "5000d")]).health_check;
        assert_eq!(health_check, Some(MAX_TIMEOUT));
        assert!(warning(&traffic, HEALTH_CHECK, "0").contains("such as 30s"));
    }
    for name in [DISABLE_COOKIES, COOKIE_NAME, COOKIE_SAME_SITE, HSTS, REWRITE_TARGET, ADJUST_CASE] {
        assert!(warning(&PASSTHROUGH(), name, "true").contains("requests are not read"), "{name}");
    }
}

#[test]
fn unknown_annotations_of_routers_are_warned_of() {
    for name in ["haproxy.router.openshift.io/balence", "router.openshift.io/x", "router.sluice.dev/proxy"] {
        let (parsed, warnings) = read(&HTTP(), &[(name, "true")]);
        assert_eq!(parsed, RouteAnnotations::default());
        assert_eq!(warnings[0].path, path(name));
    }
    assert!(warning(&HTTP(), POOL_SIZE, "3").starts_with("has no effect"));
    for name in ["openshift.io/host.generated", "example.test/rewrite-target", "haproxy.org/balance"] {
        assert_eq!(read(&HTTP(), &[(name, "true")]), (RouteAnnotations::default(), Vec::new()), "{name}");
    }
}
