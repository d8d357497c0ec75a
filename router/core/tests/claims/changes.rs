//! Whatever way the objects of a story come, they come to the same.

use router_core::certificate::MaterialCache;
use router_core::engine::Engine;
use router_core::resources::Resources;
use router_core::status::StatusReport;
use router_core::table::RouterTable;
use std::sync::Arc;

use crate::story::{self, Story};
use crate::world::{Read, World};

/// Everything that can be seen of a translation.
pub fn outcome(engine: &mut Engine, resources: &Resources) -> (String, StatusReport) {
    let (table, report) = engine.apply(resources);
    (format!("{table:?}"), report)
}

/// Where two outcomes differ.
pub fn difference(found: &(String, StatusReport), expected: &(String, StatusReport)) -> Option<String> {
    let ((found, report), (expected, expected_report)) = (found, expected);
    if found != expected {
        let at = found.bytes().zip(expected.bytes()).take_while(|(found, expected)| found == expected).count();
        let around = |text: &str| {
            let (from, to) = (at.saturating_sub(300), text.len().min(at + 200));
            String::from_utf8_lossy(&text.as_bytes()[from..to]).into_owned()
        };
        return Some(format!("found …{}…, expected …{}…", around(found), around(expected)));
    }
    (report != expected_report).then(|| format!("found {report:?}, expected {expected_report:?}"))
}

/// A fixed order that has nothing to do with that of the manifests.
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
    // Those of the limits have many objects that are all the same.
    if world.manifests.len() > 60 {
        return;
    }
    let mut cache = MaterialCache::new();
    let reads = reads(&world, &mut cache);
    let mut all = Resources::default();
    reads.iter().for_each(|read| drop(read.put_into(&mut all)));
    let expected = outcome(&mut world.engine(), &all);

    let (mut engine, mut resources) = (world.engine(), Resources::default());
    let order = shuffled(reads.iter().collect());
    for read in &order {
        read.put_into(&mut resources);
        let fresh = outcome(&mut world.engine(), &resources);
        assert_eq!(
            difference(&outcome(&mut engine, &resources), &fresh),
            None,
            "{}: after {} {} came",
            story.name,
            read.kind,
            read.key
        );
    }
    // A document that stands twice in a story has the place of the first.
    if outcome(&mut engine, &resources) != expected {
        reads.iter().for_each(|read| drop(read.put_into(&mut resources)));
    }
    assert_eq!(difference(&outcome(&mut engine, &resources), &expected), None, "{}", story.name);
    for read in shuffled(order) {
        let mut without = resources.clone();
        read.remove_from(&mut without);
        let fresh = outcome(&mut world.engine(), &without);
        assert_eq!(
            difference(&outcome(&mut engine, &without), &fresh),
            None,
            "{}: without {} {}",
            story.name,
            read.kind,
            read.key
        );
        assert_eq!(
            difference(&outcome(&mut engine, &resources), &expected),
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

/// Hosts of sites and routes that are not the same as before.
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
        // The same manifests, read anew: other objects, which say the same.
        let (again, _) = world.resources(&mut cache);
        let (after, _) = engine.apply(&again);
        let anew = made_anew(&before.routers, &after.routers);
        assert!(anew.is_empty(), "{}: {anew:?}", story.name);
        hosts +=
            after.routers.iter().flat_map(|router| router.hosts.iter()).filter(|host| !host.is_of_routes()).count();
    }
    assert!(hosts > 100, "only {hosts} hosts");
}
