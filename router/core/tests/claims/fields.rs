//! A change of any field of an object reaches the table of an engine that is at work, as it reaches a new one's.

use std::collections::BTreeMap;

use router_core::certificate::MaterialCache;
use serde_json::{Value, json};

use crate::changes::{difference, outcome};
use crate::story;
use crate::world::World;

/// Places of scalars and lists in a manifest, as JSON pointers.
fn places(value: &Value, at: &str, places: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                self::places(value, &format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), places);
            }
        }
        Value::Array(items) => {
            places.push(at.to_owned());
            items.iter().enumerate().for_each(|(index, value)| self::places(value, &format!("{at}/{index}"), places));
        }
        _ => places.push(at.to_owned()),
    }
}

/// Other values in the place of one; `None`: it is left out.
fn instead(value: &Value) -> Vec<Option<Value>> {
    let mut others = vec![None];
    match value {
        Value::Number(number) => {
            let number = number.as_i64().unwrap_or_default();
            others.extend([Some(json!(number + 1)), Some(json!((number - 1).max(0)))]);
        }
        Value::Bool(value) => others.push(Some(json!(!value))),
        Value::String(text) => {
            others.extend([format!("{text}x"), format!("1{text}")].map(|it| Some(json!(it))));
        }
        Value::Array(items) => others.push(Some(items.iter().rev().cloned().collect())),
        _ => {}
    }
    others
}

fn with(manifest: &Value, place: &str, other: Option<Value>) -> Option<Value> {
    let mut changed = manifest.clone();
    match other {
        Some(other) => *changed.pointer_mut(place)? = other,
        None => {
            let (parent, name) = place.rsplit_once('/')?;
            let name = name.replace("~1", "/").replace("~0", "~");
            match changed.pointer_mut(parent)? {
                Value::Object(members) => drop(members.shift_remove(&name)),
                Value::Array(items) => drop(items.remove(name.parse().ok()?)),
                _ => return None,
            }
        }
    }
    Some(changed)
}

/// How often a field of a kind is changed.
const TIMES: usize = 1;

#[test]
fn a_change_of_any_field_is_seen() {
    let mut changed: BTreeMap<String, usize> = BTreeMap::new();
    let mut seen = 0;
    for story in story::all() {
        let world = World::new(&story);
        // Those of the limits have many objects that are all the same.
        if world.manifests.len() > 60 {
            continue;
        }
        let mut cache = MaterialCache::new();
        let (resources, _) = world.resources(&mut cache);
        let mut engine = world.engine();
        let before = outcome(&mut engine, &resources);
        for manifest in &world.manifests {
            let kind = manifest["kind"].as_str().unwrap();
            let mut all = Vec::new();
            places(manifest, "", &mut all);
            for place in all.iter().filter(|place| {
                !["/kind", "/apiVersion", "/metadata/name", "/metadata/namespace"].contains(&place.as_str())
            }) {
                let field: String = place.chars().filter(|char| !char.is_ascii_digit()).collect();
                let times = changed.entry(format!("{kind}{field}")).or_default();
                if *times == TIMES {
                    continue;
                }
                *times += 1;
                for other in instead(manifest.pointer(place).unwrap()) {
                    let Some(value) = with(manifest, place, other) else { continue };
                    let read = world.read(&value, &mut cache).filter(|read| read.errors.is_empty());
                    let Some(object) = read.and_then(|read| read.good) else { continue };
                    let mut after = resources.clone();
                    after.insert(&object);
                    let fresh = outcome(&mut world.engine(), &after);
                    assert_eq!(difference(&outcome(&mut engine, &after), &fresh), None, "{}: {value}", story.name);
                    assert_eq!(
                        difference(&outcome(&mut engine, &resources), &before),
                        None,
                        "{}: {value} is as it was",
                        story.name
                    );
                    seen += usize::from(fresh != before);
                }
            }
        }
    }
    assert!(seen > 500, "only {seen} changes are seen");
}
