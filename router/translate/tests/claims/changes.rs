//! The result does not depend on the order in which the objects of a story arrive.

use std::sync::Arc;

use router_api::resources::Resources;
use router_model::certificate::MaterialCache;
use router_table::table::RouterTable;
use router_translate::engine::Engine;
use router_translate::status::report::StatusReport;

use crate::hosts::Hosts;
use crate::story::{self, Story};
use crate::world::{Read, World};

/// Everything observable in a translation.
#[derive(PartialEq)]
pub struct Seen {
    /// The table, as lines.
    pub table: Vec<String>,
    pub report: StatusReport,
}

pub fn seen(world: &World, engine: &mut Engine, resources: &Resources) -> Seen {
    let (table, report) = engine.apply(resources);
    Seen { table: Hosts(&world.certificates, &table.endpoints).table(&table), report }
}

/// The lines of the first that the second lacks.
pub fn beside<'l>(lines: &'l [String], others: &[String]) -> Vec<&'l str> {
    let mut others: Vec<&String> = others.iter().collect();
    let is_new = |line: &&String| match others.iter().position(|other| other == line) {
        Some(at) => {
            others.remove(at);
            false
        }
        None => true,
    };
    lines.iter().filter(is_new).map(String::as_str).collect()
}

/// The first difference of two results.
pub fn difference(found: &Seen, expected: &Seen) -> Option<String> {
    let (new, old) = (beside(&found.table, &expected.table), beside(&expected.table, &found.table));
    let (report, expected_report) = (&found.report, &expected.report);
    (found != expected).then(|| format!("found {new:#?}, expected {old:#?}, {report:?}, expected {expected_report:?}"))
}

/// A fixed order, unrelated to that of the manifests.
fn shuffled<T>(items: Vec<T>) -> Vec<T> {
    let mut keyed: Vec<(u32, T)> = (1u32..).map(|number| number.wrapping_mul(2_654_435_769)).zip(items).collect();
    keyed.sort_by_key(|(key, _)| *key);
    keyed.into_iter().map(|(_, item)| item).collect()
}

fn reads(world: &World, cache: &mut MaterialCache) -> Vec<Read> {
    world.manifests.iter().filter_map(|value| world.read(value, cache)).collect()
}

fn check(story: &Story) {
    let world = World::new(story);
    // Stories about limits have many equal objects.
    if world.manifests.len() > 60 {
        return;
    }
    let mut cache = MaterialCache::new();
    let reads = reads(&world, &mut cache);
    let mut all = Resources::default();
    reads.iter().for_each(|read| drop(read.put_into(&mut all)));
    let expected = seen(&world, &mut world.engine(), &all);

    let (mut engine, mut resources) = (world.engine(), Resources::default());
    let order = shuffled(reads.iter().collect());
    for read in &order {
        read.put_into(&mut resources);
        let fresh = seen(&world, &mut world.engine(), &resources);
        assert_eq!(
            difference(&seen(&world, &mut engine, &resources), &fresh),
            None,
            "{}: after {} {} came",
            story.name,
            read.kind,
            read.key
        );
    }
    // If a document occurs twice in a story, the first one counts.
    if seen(&world, &mut engine, &resources) != expected {
        reads.iter().for_each(|read| drop(read.put_into(&mut resources)));
    }
    assert_eq!(difference(&seen(&world, &mut engine, &resources), &expected), None, "{}", story.name);
    for read in shuffled(order) {
        let mut without = resources.clone();
        read.remove_from(&mut without);
        let fresh = seen(&world, &mut world.engine(), &without);
        assert_eq!(
            difference(&seen(&world, &mut engine, &without), &fresh),
            None,
            "{}: without {} {}",
            story.name,
            read.kind,
            read.key
        );
        assert_eq!(
            difference(&seen(&world, &mut engine, &resources), &expected),
            None,
            "{}: {} {} is back",
            story.name,
            read.kind,
            read.key
        );
    }
}

#[test]
fn the_way_to_the_objects_of_a_story_leaves_no_trace() {
    story::all().iter().for_each(check);
}

/// Hosts of host rules and routes that are not shared with the previous table.
fn made_anew(before: &[Arc<RouterTable>], after: &[Arc<RouterTable>]) -> Vec<String> {
    let mut anew = Vec::new();
    for (before, after) in before.iter().zip(after) {
        for host in after.hosts.iter().filter(|host| !host.is_of_routes()) {
            if !before.hosts.entry(&host.host).is_some_and(|old| Arc::ptr_eq(old, host)) {
                anew.push(format!("host {} of router {}", host.host, after.name));
            }
        }
    }
    anew
}

#[test]
fn objects_that_say_the_same_leave_hosts_of_other_kinds_as_they_are() {
    let mut hosts = 0;
    for story in story::all() {
        let world = World::new(&story);
        let mut cache = MaterialCache::new();
        let (resources, _) = world.resources(&mut cache);
        let mut engine = world.engine();
        let (before, _) = engine.apply(&resources);
        // The same manifests, parsed again: other objects with equal content.
        let (again, _) = world.resources(&mut cache);
        let (after, _) = engine.apply(&again);
        let anew = made_anew(&before.routers, &after.routers);
        assert!(anew.is_empty(), "{}: {anew:?}", story.name);
        hosts +=
            after.routers.iter().flat_map(|router| router.hosts.iter()).filter(|host| !host.is_of_routes()).count();
    }
    assert!(hosts > 100, "only {hosts} hosts");
}
