//! Measures admission and compilation of many Routes; `cargo xtask bench admission` runs it and writes what it prints.
//!
//! 100,000 Routes of 5,000 namespaces on one router. In each namespace: a Service with one slice of two endpoints, and
//! twenty Routes: twelve with hosts of their own (clear text, edge and passthrough in turn), four with a subdomain, and
//! four that share a host by path, of which the last wants the first one's path and loses.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a measurement stops at the first surprise"
)]

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use router_api::defaults::Defaults;
use router_api::object::Object;
use router_api::parse::{Outcome, parse};
use router_api::resources::Resources;
use router_model::certificate::MaterialCache;
use router_model::object::Origin;
use router_translate::engine::Engine;
use router_translate::settings::Settings;
use serde_json::{Value, json};

const NAMESPACES: usize = 5_000;
const ROUTES_EACH: usize = 20;
const FULL_ROUNDS: usize = 7;
const CHANGES: usize = 101;

fn main() {
    let mut materials = MaterialCache::new();
    let file: Arc<str> = "routes.yaml".into();
    let mut resources = Resources::default();
    let empty = resident();
    let begin = Instant::now();
    for namespace in 0..NAMESPACES {
        for object in objects(namespace) {
            resources.insert(&read(object, &file, &mut materials));
        }
    }
    let parsed = begin.elapsed();
    let objects_only = resident();
    let mut engine = Engine::new(Settings::default());
    let mut published = engine.apply(&resources);
    let all = resident();

    let routes = NAMESPACES * ROUTES_EACH;
    assert_eq!(resources.routes.len(), routes);
    let admitted: usize = published.0.routers.iter().map(|router| router.routes.len()).sum();
    assert_eq!(admitted, routes - NAMESPACES, "one in each namespace loses");

    let full = (0..FULL_ROUNDS).map(|_| {
        let begin = Instant::now();
        let mut engine = Engine::new(Settings::default());
        let made = engine.apply(&resources);
        let took = begin.elapsed();
        // An agent keeps both; taking them apart is no part of it.
        drop((engine, made));
        took
    });
    let full: Vec<Duration> = full.collect();
    let change = (0..CHANGES).map(|round| {
        let namespace = round * 37 % NAMESPACES;
        let host = json!(format!("moved-{round}.example.test"));
        let mut object = route(namespace, 0);
        object["spec"]["host"] = host;
        resources.insert(&read(object, &file, &mut materials));
        let begin = Instant::now();
        published = engine.apply(&resources);
        begin.elapsed()
    });
    let change: Vec<Duration> = change.collect();

    println!("routes {routes}");
    println!("namespaces {NAMESPACES}");
    println!("parse_us {}", parsed.as_micros());
    println!("full_us {}", list(&full));
    println!("change_us {}", list(&change));
    println!("object_bytes {}", (objects_only - empty) / routes);
    println!("route_bytes {}", (all - empty) / routes);
}

fn list(measured: &[Duration]) -> String {
    measured.iter().map(|took| took.as_micros().to_string()).collect::<Vec<_>>().join(",")
}

/// Bytes of this process that are in memory.
fn resident() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

fn read(value: Value, file: &Arc<str>, materials: &mut MaterialCache) -> Object {
    let origin = Origin { file: Arc::clone(file), line: 1, column: 1 };
    match parse(value, origin, &Defaults::default(), materials).outcome {
        Outcome::Good(object) => object,
        other => panic!("{other:?}"),
    }
}

fn objects(namespace: usize) -> impl Iterator<Item = Value> {
    let name = format!("team-{namespace:04}");
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "namespace": name, "name": "web" },
        "spec": { "ports": [{ "port": 80, "targetPort": 8080 }] },
    });
    let address = |last: u32| format!("10.{}.{}.{last}", namespace / 256, namespace % 256);
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": { "namespace": name, "name": "web-1", "labels": { "kubernetes.io/service-name": "web" } },
        "addressType": "IPv4",
        "endpoints": [{ "addresses": [address(1)] }, { "addresses": [address(2)] }],
        "ports": [{ "name": "http", "port": 8080 }],
    });
    [service, slice].into_iter().chain((0..ROUTES_EACH).map(move |number| route(namespace, number)))
}

fn route(namespace: usize, number: usize) -> Value {
    let age = namespace * ROUTES_EACH + number;
    let mut spec =
        json!({ "to": { "kind": "Service", "name": "web", "weight": 100 }, "port": { "targetPort": "http" } });
    match number {
        0..12 => spec["host"] = json!(format!("app-{number}.team-{namespace:04}.example.test")),
        12..16 => spec["subdomain"] = json!(format!("app-{number}-team-{namespace:04}")),
        _ => {
            spec["host"] = json!(format!("shared.team-{namespace:04}.example.test"));
            spec["path"] = json!(format!("/part-{}", if number == 19 { 16 } else { number }));
        }
    }
    match number % 3 {
        1 => spec["tls"] = json!({ "termination": "edge", "insecureEdgeTerminationPolicy": "Redirect" }),
        2 if number < 16 => spec["tls"] = json!({ "termination": "passthrough" }),
        _ => {}
    }
    json!({
        "apiVersion": "route.openshift.io/v1", "kind": "Route",
        "metadata": {
            "namespace": format!("team-{namespace:04}"), "name": format!("app-{number}"),
            "creationTimestamp": format!("2026-01-{:02}T{:02}:{:02}:{:02}Z",
                1 + age / 86_400, age / 3_600 % 24, age / 60 % 60, age % 60),
            "uid": format!("00000000-0000-4000-8000-{age:012x}"),
            "labels": { "app": format!("app-{number}") },
        },
        "spec": spec,
    })
}
