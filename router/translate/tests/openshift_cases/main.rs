//! Cases of OpenShift's own tests, and of a restatement of its rules, run against this engine.
//!
//! `fixtures/openshift_cases.json` has one case per line: its `suite`, its `src` (the place upstream), a policy,
//! objects or steps, and the expectation. Every case of every suite in it runs. Two suites of the originals are left
//! out because nothing here corresponds to them: `router_header_env` (how the operator writes headers into its router's
//! environment) and `status_consumer` (what a client library reads from a status). [`exceptions::EXCEPTIONS`] lists
//! where Sluice deliberately differs, with the number of differing facts of each case; the list is exact, so a case
//! fails if it starts to agree, or differs elsewhere.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

mod api;
mod certificates;
mod claims;
mod exceptions;
mod hosts;
mod maps;
mod routers;
mod status;
mod traffic;
mod world;

use exceptions::{EXCEPTIONS, Ground};
use serde_json::Value;

/// Compares one case with the engine; returns the differences as text.
type Runner = fn(&Value, &[Value]) -> Vec<String>;

/// Every suite with its number of cases.
const SUITES: &[(&str, usize, Runner)] = &[
    ("route_ordering", 1, hosts::ordering),
    ("wildcard_domain_of_host", 4, hosts::wildcard_domain),
    ("host_assignment", 27, hosts::assignment),
    ("router_host_validation", 2, hosts::router_validation),
    ("router_host_resolution", 4, hosts::resolution),
    ("host_index", 8, claims::host_index),
    ("host_activation", 5, claims::host_activation),
    ("unique_host", 1, claims::unique_host),
    ("host_admitter", 5, claims::host_admitter),
    ("wildcard_conflicts_internamespace", 36, claims::wildcard_conflicts),
    ("admission_chain_derived", 23, claims::admission_chain),
    ("defaulting", 4, api::defaulting),
    ("route_validation", 25, api::validation),
    ("tls_validation", 15, api::validation),
    ("header_action_validation", 7, api::validation),
    ("header_value_syntax", 38, api::header_value),
    ("api_create_pass_fail", 9, api::validation),
    ("crd_schema", 7, api::validation),
    ("router_tls_extended_validation", 25, certificates::extended_validation),
    ("status_write", 9, status::write),
    ("status_contention", 3, status::contention),
    ("status_clearing_derived", 1, status::clearing),
    ("sharding_derived", 2, routers::sharding),
    ("endpoint_ip_filter", 13, routers::endpoint_filter),
    ("service_weights", 7, traffic::service_weights),
    ("ip_allowlist", 7, traffic::ip_allowlist),
    ("timeout_values", 9, traffic::timeout_values),
    ("rewrite_target", 7, traffic::rewrite_target),
    ("hsts_annotation", 2, traffic::hsts),
    ("app_protocol", 1, traffic::app_protocol),
    ("request_match", 2, traffic::request_match),
    ("request_routing_derived", 5, traffic::request_routing),
    ("sni_cert_name", 2, maps::certificate_name),
    ("backend_prefix", 1, maps::backend_prefix),
    ("match_precedence", 2, maps::precedence),
    ("map_files", 13, maps::entries),
    ("forwarded_headers", 1, traffic::forwarded_headers),
];

fn all_cases() -> Vec<Value> {
    serde_json::from_str(include_str!("../fixtures/openshift_cases.json")).unwrap()
}

/// Runs one suite; `EXCEPTIONS` must give the number of differing facts of each case.
fn run(name: &str) {
    let (_, expected_count, runner) = SUITES.iter().find(|(suite, ..)| *suite == name).unwrap();
    let cases: Vec<Value> = all_cases().into_iter().filter(|case| case["suite"] == name).collect();
    let mut surprises = Vec::new();
    for case in &cases {
        let id = case["id"].as_str().unwrap();
        let allowed = EXCEPTIONS.iter().find(|exception| exception.id == id).map_or(0, |exception| exception.facts);
        let differences = runner(case, &cases);
        if differences.len() != allowed {
            surprises.push(format!("{id} ({}): {allowed} facts may differ, found {differences:#?}", case["name"]));
        }
    }
    println!("{name}: {} cases", cases.len());
    assert_eq!(cases.len(), *expected_count, "cases of {name}");
    assert!(surprises.is_empty(), "{}", surprises.join("\n"));
}

macro_rules! suites {
    ($($name:ident),* $(,)?) => {
        $(#[test]
        fn $name() {
            run(stringify!($name));
        })*

        #[test]
        fn every_suite_and_case_has_a_test() {
            let tests = [$(stringify!($name)),*];
            assert_eq!(tests.len(), SUITES.len());
            let all = all_cases();
            assert!(all.iter().all(|case| tests.iter().any(|suite| case["suite"] == *suite)));
            assert_eq!(SUITES.iter().map(|(_, count, _)| count).sum::<usize>(), all.len());
            for exception in EXCEPTIONS {
                assert!(all.iter().any(|case| case["id"] == exception.id), "no case {}", exception.id);
                assert!(exception.facts > 0 && !exception.why.is_empty(), "{}", exception.id);
                if let Ground::Decision(number) = exception.ground {
                    assert!((1..=11).contains(&number), "{}", exception.id);
                }
            }
        }
    };
}

suites!(
    route_ordering,
    wildcard_domain_of_host,
    host_assignment,
    router_host_validation,
    router_host_resolution,
    host_index,
    host_activation,
    unique_host,
    host_admitter,
    wildcard_conflicts_internamespace,
    admission_chain_derived,
    defaulting,
    route_validation,
    tls_validation,
    header_action_validation,
    header_value_syntax,
    api_create_pass_fail,
    crd_schema,
    router_tls_extended_validation,
    status_write,
    status_contention,
    status_clearing_derived,
    sharding_derived,
    endpoint_ip_filter,
    service_weights,
    ip_allowlist,
    timeout_values,
    rewrite_target,
    hsts_annotation,
    app_protocol,
    request_match,
    request_routing_derived,
    sni_cert_name,
    backend_prefix,
    match_precedence,
    map_files,
    forwarded_headers,
);

/// The difference of two values; empty if they are equal.
fn differ<T: PartialEq + std::fmt::Debug>(what: impl std::fmt::Display, found: T, expected: T) -> Vec<String> {
    if found == expected { Vec::new() } else { vec![format!("{what}: found {found:?}, expected {expected:?}")] }
}
