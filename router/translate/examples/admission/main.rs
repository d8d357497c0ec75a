//! Measures the engine on one of the worlds of `worlds.rs`; `cargo xtask bench admission` runs it and writes what it
//! prints. The argument names the world.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a measurement stops at the first surprise"
)]

mod objects;
mod worlds;

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mimalloc::MiMalloc;
use router_api::defaults::Defaults;
use router_api::object::Object;
use router_api::parse::{ParseOutcome, parse};
use router_api::resources::Resources;
use router_model::certificate::MaterialCache;
use router_model::object::Origin;
use router_sys::allocator::ThreadCache;
use router_sys::heap;
use router_translate::engine::Engine;
use router_translate::settings::Settings;
use serde_json::Value;
use worlds::World;

/// The agent's.
#[global_allocator]
static ALLOCATOR: ThreadCache<MiMalloc> = ThreadCache(MiMalloc);

const FULL_ROUNDS: usize = 7;
const CHANGES: usize = 101;
/// EndpointSlice changes of the churn: 200 a second for 30 s.
const CHURN: usize = 6_000;
/// A series of measurements that has taken this long ends.
const LONGEST: Duration = Duration::from_secs(10);

fn main() {
    let name = std::env::args().nth(1).unwrap_or_else(|| "routes".to_owned());
    let World { objects, counted, served, changes, churn } = worlds::named(&name).unwrap();
    let file: Arc<str> = "objects.yaml".into();
    let mut materials = MaterialCache::new();
    let mut read = |value| read(value, &file, &mut materials);
    let mut resources = Resources::default();
    let empty = resident();
    let begin = Instant::now();
    for object in objects {
        resources.insert(&read(object));
    }
    let parsed = begin.elapsed();
    let objects_only = resident();
    let mut engine = Engine::new(Settings::default());
    let mut published = engine.apply(&resources);
    let all = resident();
    let routes: usize = published.0.routers.iter().map(|router| router.routes.len()).sum();
    assert_eq!(routes, served, "served routes and rules");

    println!("objects {counted}");
    println!("parse_us {}", parsed.as_micros());
    let full = series(FULL_ROUNDS, |_| {
        let begin = Instant::now();
        let mut engine = Engine::new(Settings::default());
        let made = engine.apply(&resources);
        let took = begin.elapsed();
        // An agent keeps both; taking them apart is no part of it.
        drop((engine, made));
        took
    });
    println!("full_us {}", list(&full));
    for (change, object) in &changes {
        let took = series(CHANGES, |round| {
            resources.insert(&read(object(round)));
            let begin = Instant::now();
            published = engine.apply(&resources);
            begin.elapsed()
        });
        println!("{change}_us {}", list(&took));
    }
    let (mut done, begin) = (0, processor_time());
    let mut spent = Duration::ZERO;
    while done < CHURN && spent < LONGEST {
        let object = read(churn(done));
        let before = processor_time();
        resources.insert(&object);
        published = engine.apply(&resources);
        spent += processor_time() - before;
        done += 1;
    }
    assert!(processor_time() > begin, "the clock of the thread stands still");
    drop(published);
    println!("churn_us {}", spent.as_micros() / done as u128);
    println!("object_bytes {}", (objects_only - empty) / counted);
    println!("route_bytes {}", (all - empty) / counted);
}

/// Rounds of a measurement, fewer if they take long.
fn series(rounds: usize, mut measure: impl FnMut(usize) -> Duration) -> Vec<Duration> {
    let begin = Instant::now();
    let mut measured = Vec::new();
    while measured.len() < rounds && (measured.len() < 3 || begin.elapsed() < LONGEST) {
        measured.push(measure(measured.len()));
    }
    measured
}

fn list(measured: &[Duration]) -> String {
    measured.iter().map(|took| took.as_micros().to_string()).collect::<Vec<_>>().join(",")
}

/// Bytes of this process that are in memory. As the agent does once all is loaded, returns freed memory before.
fn resident() -> usize {
    heap::trim();
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// How long this thread has run on a processor.
fn processor_time() -> Duration {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(stat.split(' ').next().unwrap().parse().unwrap())
}

fn read(value: Value, file: &Arc<str>, materials: &mut MaterialCache) -> Object {
    let origin = Origin { file: Arc::clone(file), line: 1, column: 1 };
    match parse(value, origin, &Defaults::default(), materials).outcome {
        ParseOutcome::Good(object) => object,
        other => panic!("{other:?}"),
    }
}
