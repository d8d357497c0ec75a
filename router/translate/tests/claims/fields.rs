//! A change of any field of an object has the same effect on a running engine as on a new one; `goldens/fields` has the
//! effects.

use std::collections::{BTreeMap, BTreeSet};

use router_model::certificate::MaterialCache;
use serde_json::{Value, json};

use crate::changes::{beside, difference, seen};
use crate::goldens::{compare, state};
use crate::story;
use crate::world::World;

/// JSON pointers to the scalars and lists of a manifest.
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

/// Replacements for a value; `None` removes it.
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

/// Members that identify an object and do not configure it.
const IDENTITY: [&str; 4] = ["/kind", "/apiVersion", "/metadata/name", "/metadata/namespace"];
/// Maximum number of lines for a change.
const LINES: usize = 8;

/// The effect of a change of an object, as lines.
fn effect(before: &[String], after: &[String]) -> Vec<String> {
    let gone = beside(before, after).into_iter().map(|line| format!("    - {}", line.trim()));
    let come = beside(after, before).into_iter().map(|line| format!("    + {}", line.trim()));
    let mut lines: Vec<String> = gone.chain(come).collect();
    let more = lines.len().saturating_sub(LINES);
    lines.truncate(LINES);
    if more > 0 {
        lines.push(format!("    … {more} more"));
    }
    if lines.is_empty() {
        lines.push("    nothing".to_owned());
    }
    lines
}

fn shortened(other: Option<&Value>) -> String {
    let text = other.map_or("left out".to_owned(), Value::to_string);
    // Certificates and keys are generated for each run.
    if text.contains("-----BEGIN ") {
        return "another text of PEM".to_owned();
    }
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// Changes each field of a kind once, in the first story that has it. Returns the effects by kind.
fn changes() -> BTreeMap<String, Vec<String>> {
    let (mut changed, mut goldens) = (BTreeSet::new(), BTreeMap::<String, Vec<String>>::new());
    for story in story::all() {
        let world = World::new(&story);
        // Stories about limits have many equal objects.
        if world.manifests.len() > 60 {
            continue;
        }
        let mut cache = MaterialCache::new();
        let (resources, _) = world.resources(&mut cache);
        let mut engine = world.engine();
        let before = seen(&world, &mut engine, &resources);
        let lines = state(&world, &mut world.engine(), &resources, Vec::new());
        for manifest in &world.manifests {
            let kind = manifest["kind"].as_str().unwrap();
            let mut all = Vec::new();
            places(manifest, "", &mut all);
            for place in all.iter().filter(|place| !IDENTITY.contains(&place.as_str())) {
                let field: String = place.chars().filter(|char| !char.is_ascii_digit()).collect();
                if !changed.insert(format!("{kind}{field}")) {
                    continue;
                }
                for other in instead(manifest.pointer(place).unwrap()) {
                    let Some(value) = with(manifest, place, other.clone()) else { continue };
                    let read = world.read(&value, &mut cache).filter(|read| read.errors.is_empty());
                    let Some(object) = read.and_then(|read| read.good) else { continue };
                    let mut after = resources.clone();
                    after.insert(&object);
                    let fresh = seen(&world, &mut world.engine(), &after);
                    let found = seen(&world, &mut engine, &after);
                    assert_eq!(difference(&found, &fresh), None, "{}: {value}", story.name);
                    let again = seen(&world, &mut engine, &resources);
                    assert_eq!(difference(&again, &before), None, "{}: {value} is as it was", story.name);
                    let changed = state(&world, &mut world.engine(), &after, Vec::new());
                    let golden = goldens.entry(kind.to_owned()).or_default();
                    golden.push(format!("{} {} {place} {}", story.name, object.key(), shortened(other.as_ref())));
                    golden.extend(effect(&lines, &changed));
                }
            }
        }
    }
    goldens
}

#[test]
fn a_change_of_any_field_comes_to_what_its_golden_says() {
    let mut differences = Vec::new();
    for (kind, lines) in changes() {
        differences.extend(compare(&format!("fields/{kind}"), &lines));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
