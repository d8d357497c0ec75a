//! One golden file for each story.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use jiff::Timestamp;
use router_api::resources::Resources;
use router_model::certificate::MaterialCache;
use router_table::live_state::Trust;
use router_table::table::RoutingTable;
use router_translate::advice::advice;
use router_translate::engine::Engine;
use router_translate::explain::explain;
use router_translate::explain::explanation::ExplanationStep as ObjectStatus;
use router_translate::explain::facts::Facts;
use router_translate::explain::query::Query;

use crate::hosts::Hosts;
use crate::queries::{Step, steps};
use crate::statuses::statuses;
use crate::story::{self, Story};
use crate::world::World;

/// Time at which certificates are validated and statuses written.
const NOW: &str = "2026-01-01T00:00:00Z";

/// All results of a story.
fn results(story: &Story) -> Vec<String> {
    let world = World::new(story);
    let mut engine = world.engine();
    let mut cache = MaterialCache::new();
    let (mut resources, said) = world.resources(&mut cache);
    let mut lines = vec![format!("# {}", story.title)];
    lines.extend(state(&world, &mut engine, &resources, said));
    for step in steps(story) {
        match step {
            Step::Ask(query) => {
                lines.push(String::new());
                lines.extend(explained(&world, &mut engine, &resources, &query));
            }
            Step::Apply(name) => {
                let (_, manifests) = world.later.iter().find(|(known, _)| *known == name).unwrap();
                let reads: Vec<_> = manifests.iter().filter_map(|value| world.read(value, &mut cache)).collect();
                let said = reads.iter().flat_map(|read| read.put_into(&mut resources)).collect();
                lines.extend([String::new(), format!("# {name} is applied")]);
                lines.extend(state(&world, &mut engine, &resources, said));
            }
        }
    }
    lines
}

/// The results for the objects.
pub fn state(world: &World, engine: &mut Engine, resources: &Resources, said: Vec<String>) -> Vec<String> {
    let now: Timestamp = NOW.parse().unwrap();
    let (table, report) = engine.apply(resources);
    let mut lines = said;
    lines.extend(Hosts(&world.certificates, &table.endpoints).table(&table));
    lines.extend([String::new(), "statuses".to_owned()]);
    lines.extend(statuses(resources, &report, now).into_iter().map(|line| format!("  {line}")));
    lines.extend([String::new(), "warnings".to_owned()]);
    let facts = Facts::of(&table, &report, resources, trust(world));
    lines.extend(
        advice(facts, now).iter().map(|warning| format!("  {}: {}: {}", warning.object, warning.path, warning.message)),
    );
    lines.extend([String::new(), "each host".to_owned()]);
    for query in of_hosts(&table) {
        let explanation = explain(facts, &query);
        let served = if explanation.served { "served" } else { "not served" };
        lines.push(format!("  {query}: {served}: {}", explanation.verdict));
    }
    lines
}

fn trust(world: &World) -> Trust<'_> {
    Trust { service_ca: world.service_ca.as_ref(), system: None }
}

/// A request for each host in clear text and over TLS, and its name in a ClientHello, on the ports of its router.
fn of_hosts(table: &RoutingTable) -> Vec<Query> {
    let mut queries = BTreeSet::new();
    for router in &table.routers {
        for host in router.hosts.iter() {
            let name = host.host.to_string();
            // A wildcard is tried with one label; one that covers several labels, with two.
            let name = match format!("{:?}", host.host).split('(').next() {
                Some("Wildcard") => name.replacen('*', "any", 1),
                Some("Suffix") => name.replacen('*', "any.other", 1),
                Some("Any") => "any.other".to_owned(),
                _ => name,
            };
            for (scheme, port) in [("http", router.http_port), ("https", router.https_port)] {
                queries.extend(port.map(|port| format!("{scheme}://{name}:{port}/")));
            }
            queries.extend(router.https_port.map(|port| format!("{name}:{port}")));
        }
    }
    queries.iter().map(|text| Query::parse(text).unwrap()).collect()
}

/// The output of `explain`, with non-default settings only.
fn explained(world: &World, engine: &mut Engine, resources: &Resources, query: &Query) -> Vec<String> {
    let (table, report) = engine.apply(resources);
    let mut explanation = explain(Facts::of(&table, &report, resources, trust(world)), query);
    for step in &mut explanation.steps {
        if let ObjectStatus::Settings { settings } = step {
            settings.retain(|setting| setting.non_default);
        }
    }
    format!("explain {explanation}").lines().map(str::to_owned).collect()
}

/// Compares a result with a golden, or writes it; returns the first difference.
pub fn compare(name: &str, found: &[String]) -> Option<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/claims/goldens").join(format!("{name}.txt"));
    let found: String = found.iter().map(|line| format!("{}\n", line.trim_end())).collect();
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, &found).unwrap();
        return None;
    }
    let expected = fs::read_to_string(&file).unwrap_or_default();
    let mut lines = (1..).zip(expected.lines().zip(found.lines()));
    let first = lines.find(|(_, (expected, found))| expected != found);
    (expected != found).then(|| format!("{name}: {first:?} (line, expected, found)"))
}

#[test]
fn every_story_comes_to_what_its_golden_says() {
    let differences: Vec<String> =
        story::all().iter().filter_map(|story| compare(&story.name, &results(story))).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
