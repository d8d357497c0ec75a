//! Folders of manifests, and the output of the command line for them.
//!
//! Each folder `tests/manifests/API/NAME` is a story: its `*.yaml` files are the input, and these files the expected
//! output:
//!
//! | file | what |
//! |---|---|
//! | `validate.txt` | `sluice validate` |
//! | `status.txt` | the status of each object, from `sluice translate -o yaml` |
//! | `status.txt` | the status of each object, as `sluice translate -o yaml` has it |
//! | `explain.txt` | `sluice explain --manifests` for each question: the lines that begin with `$ sluice explain` |
//! | `maps.txt` | the kernel maps of an agent that serves the folder: `tests/stories/manifests.rs` compares it |
//!
//! After an intended change, `UPDATE_GOLDENS=1 cargo test -p router --test manifest_stories` rewrites all but `maps.txt`;
//! review the difference. To add a question, add its line to `explain.txt` and rewrite.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

mod golden;

use std::cell::Cell;
use std::fs;

use clap::Parser;
use jiff::Timestamp;
use router::cli::explain::{ExplainArgs, offline};
use router::cli::translate::{objects, text};
use router::cli::validate::{ValidationReport, validate};
use router::source::{Directory, SourceOptions};
use router_api::defaults::Defaults;
use router_proxy::UpstreamTls;
use router_translate::explain::query::Query;
use router_translate::settings::Settings;
use router_translate::translate::translate;

use golden::{Story, expect_of_all};

/// The prompt before the arguments of a question.
const QUESTION: &str = "$ sluice ";

/// Time of the validation of certificates, and of new conditions.
fn now() -> Timestamp {
    "2026-06-01T00:00:00Z".parse().unwrap()
}

/// The report of `validate` on a story.
fn validated(story: &Story) -> ValidationReport {
    validate(&source(story), &Settings::default(), &UpstreamTls::new(None, None), now()).unwrap()
}

fn source(story: &Story) -> SourceOptions {
    SourceOptions::Folder(story.folder.clone())
}

/// `explain` and its arguments, parsed as the command line does.
#[derive(Parser)]
enum Question {
    Explain(ExplainArgs),
}

impl Question {
    fn query(command: &str) -> Query {
        let arguments = shlex::split(command).unwrap_or_else(|| panic!("{command}: no command"));
        let Question::Explain(arguments) = Question::parse_from([vec!["sluice".to_owned()], arguments].concat());
        arguments.question().unwrap()
    }
}

#[test]
fn validate_says_where_what_and_what_to_write() {
    expect_of_all("validate.txt", |story| {
        let findings = validated(story);
        let problems: String = findings.problems.iter().map(|problem| format!("{problem}\n")).collect();
        format!("{problems}{}\n", findings.summary())
    });
}

#[test]
fn translate_says_what_becomes_of_every_object() {
    expect_of_all("translate.txt", |story| {
        let (_, snapshot) = Directory::open(&story.folder, Defaults::default()).unwrap();
        text(&translate(&snapshot.resources, &Settings::default()))
    });
}

#[test]
fn translate_lists_what_the_gate_does_on_each_router() {
    let folder = tempfile::tempdir().unwrap();
    let manifests = "apiVersion: operator.openshift.io/v1
kind: IngressController
metadata:
  name: default
  namespace: openshift-ingress-operator
  annotations:
    gate.sluice.dev/deny: 192.0.2.0/24
    gate.sluice.dev/route-allow-lists: drop
spec: {domain: apps.test}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: sluice}
spec: {controllerName: sluice.dev/gateway-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web, namespace: shop, annotations: {gate.sluice.dev/syn-rate: 20/s}}
spec: {gatewayClassName: sluice, listeners: [{name: http, port: 8081, protocol: HTTP}]}
";
    std::fs::write(folder.path().join("all.yaml"), manifests).unwrap();
    let (_, snapshot) = Directory::open(folder.path(), Defaults::default()).unwrap();
    let text = text(&translate(&snapshot.resources, &Settings::default()));
    let expected = "Gate of router default
  malformed packets are dropped
  denied: 192.0.2.0/24
  allow-lists of routes stay with the routes: not all routes have the same one
Gate of router gateway-8081
  malformed packets are dropped
  SYNs of all sources: one in 50ms, 20 at once
";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn every_object_gets_its_status() {
    expect_of_all("status.txt", |story| {
        let (_, snapshot) = Directory::open(&story.folder, Defaults::default()).unwrap();
        let report = translate(&snapshot.resources, &Settings::default()).report;
        let all = objects(&snapshot.resources, &report, now());
        let mut found = String::new();
        for object in all["objects"].as_array().unwrap() {
            let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
            let [namespace, name] = ["namespace", "name"].map(|part| text(&object["metadata"][part]));
            let separator = if namespace.is_empty() { "" } else { "/" };
            let status = serde_saphyr::to_string(&object["status"]).unwrap();
            found.push_str(&format!("{} {namespace}{separator}{name}\n", text(&object["kind"])));
            status.lines().for_each(|line| found.push_str(&format!("  {line}\n")));
        }
        found
    });
}

#[test]
fn explain_tells_every_decision_about_the_stories() {
    let (asked, trust) = (Cell::new(0), UpstreamTls::new(None, None));
    expect_of_all("explain.txt", |story| {
        let mut found = String::new();
        for command in story.golden("explain.txt").lines().filter_map(|line| line.strip_prefix(QUESTION)) {
            asked.set(asked.get() + 1);
            let query = Question::query(command);
            let explanation = offline(&source(story), &Settings::default(), &trust, &query).unwrap();
            found.push_str(&format!("{QUESTION}{command}\n{explanation}\n"));
            let json = serde_json::to_value(&explanation).unwrap();
            assert_eq!(json["served"], explanation.served, "the JSON form says the same");
        }
        found
    });
    assert!(asked.get() >= 100, "questions are missing: {}", asked.get());
}

#[test]
fn one_object_in_full_is_what_the_api_server_would_store() {
    let story = Story::named("openshift/shards");
    let (_, snapshot) = Directory::open(&story.folder, Defaults::default()).unwrap();
    let report = translate(&snapshot.resources, &Settings::default()).report;
    let now: Timestamp = "2024-05-01T12:00:00Z".parse().unwrap();
    let all = objects(&snapshot.resources, &report, now);
    let cart = all["objects"].as_array().unwrap().iter().find(|object| object["metadata"]["name"] == "cart").unwrap();
    let entry = |router: &str, domain: &str| {
        serde_json::json!({
            "conditions": [{ "lastTransitionTime": "2024-05-01T12:00:00Z", "status": "True", "type": "Admitted" }],
            "host": format!("cart.{domain}"),
            "routerCanonicalHostname": format!("router-{router}.{domain}"),
            "routerName": router,
            "wildcardPolicy": "None",
        })
    };
    let expected = serde_json::json!({
        "apiVersion": "route.openshift.io/v1",
        "kind": "Route",
        "metadata": { "name": "cart", "namespace": "shop" },
        "spec": {
            "subdomain": "cart",
            "to": { "kind": "Service", "name": "web", "weight": 100 },
            "wildcardPolicy": "None",
        },
        "status": {
            "ingress": [entry("default", "apps.example.test"), entry("internal", "internal.example.test")],
        },
    });
    assert_eq!(*cart, expected);
}

#[test]
fn the_refused_folder_has_an_error_for_every_file_and_no_secret() {
    let story = Story::named("openshift/refused");
    let findings = validated(&story);
    let mut files: Vec<_> = findings.problems.iter().map(|problem| problem.file.to_string()).collect();
    files.dedup();
    let written = fs::read_dir(&story.folder).unwrap().flatten().filter(|entry| {
        let name = entry.file_name().into_string().unwrap();
        name.ends_with(".yaml") && name != "service.yaml"
    });
    assert_eq!(files.len(), written.count());
}
