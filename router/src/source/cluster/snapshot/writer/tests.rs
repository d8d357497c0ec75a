//! Damage, errors of writes, copies, and files of other agents.

use std::os::unix::fs::PermissionsExt;

use router_model::kind::Kind;
use router_model::object::ObjectKey;
use serde_json::json;
use tempfile::TempDir;

use super::*;

fn place(folder: &TempDir) -> Place {
    let path = folder.path().join("objects");
    Place { path, server: "https://192.0.2.1:6443/".to_owned(), namespaces: "shop".to_owned() }
}

fn route(name: &str) -> ObjectRef {
    ObjectRef { kind: Kind::Route, key: ObjectKey::new("shop", name) }
}

/// A writer of an object whose value is a number, for each name and number.
fn written(folder: &TempDir, values: &[(&str, u32)]) -> SnapshotWriter {
    let mut writer = SnapshotWriter::new(place(folder));
    for (name, value) in values {
        writer.set(&route(name), Some(&json!({ "n\n": value })));
    }
    writer.publish();
    writer
}

/// The names and numbers of a snapshot.
fn read(place: &Place) -> Option<Vec<(String, u64)>> {
    let snapshot = Snapshot::open(place).unwrap()?;
    let values = snapshot.objects().map(|object| {
        let value = snapshot.value(object).unwrap();
        (object.key.name.to_string(), value["n\n"].as_u64().unwrap())
    });
    Some(values.collect())
}

fn owned(values: &[(&str, u64)]) -> Option<Vec<(String, u64)>> {
    Some(values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect())
}

/// Makes everything due.
fn maintain(writer: &mut SnapshotWriter) {
    let long_ago = Instant::now().checked_sub(STAMP).unwrap();
    (writer.written, writer.stamped) = (long_ago, long_ago);
    writer.maintain(true);
}

#[test]
fn the_newest_version_of_what_was_not_removed_is_read() {
    let folder = TempDir::new().unwrap();
    let mut writer = SnapshotWriter::new(place(&folder));
    assert_eq!(read(&place(&folder)), None);
    writer.set(&route("a"), Some(&json!({ "n\n": 1 })));
    writer.set(&route("b"), Some(&json!({ "n\n": 2 })));
    writer.publish();
    writer.set(&route("a"), Some(&json!({ "n\n": 3 })));
    writer.set(&route("b"), None);
    assert_eq!(read(&place(&folder)), owned(&[("a", 1), ("b", 2)]));
    drop(writer);
    assert_eq!(read(&place(&folder)), owned(&[("a", 3)]));
    let mode = fs::metadata(place(&folder).path).unwrap().permissions().mode();
    assert_eq!((mode & 0o777, fs::read_dir(folder.path()).unwrap().count()), (0o600, 1));
}

#[test]
fn a_snapshot_stays_until_the_next_one_is_complete() {
    let folder = TempDir::new().unwrap();
    drop(written(&folder, &[("a", 1)]));
    let mut writer = SnapshotWriter::new(place(&folder));
    writer.set(&route("b"), Some(&json!({ "n\n": 2 })));
    drop(writer);
    assert_eq!(read(&place(&folder)), owned(&[("a", 1)]));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn another_clusters_snapshot_is_not_used() {
    let folder = TempDir::new().unwrap();
    drop(written(&folder, &[("a", 1)]));
    let other = "other".to_owned();
    assert_eq!(read(&Place { server: other.clone(), ..place(&folder) }), None);
    assert_eq!(read(&Place { namespaces: other, ..place(&folder) }), None);
}

#[test]
fn what_precedes_damage_is_read() {
    let folder = TempDir::new().unwrap();
    let names: Vec<String> = (0..20).map(|number| format!("{number:02}")).collect();
    drop(written(&folder, &names.iter().map(|name| (&**name, 7)).collect::<Vec<_>>()));
    let path = place(&folder).path;
    let intact = fs::read(&path).unwrap();
    for place_of_damage in (0..60).map(|number| number * intact.len() / 60) {
        let mut flipped = intact.clone();
        flipped[place_of_damage] ^= 1;
        for text in [&flipped, &intact[..place_of_damage]] {
            fs::write(&path, text).unwrap();
            let lines_before = intact[..place_of_damage].iter().filter(|byte| **byte == b'\n').count();
            let found =
                read(&place(&folder)).map(|values| values.into_iter().map(|(name, _)| name).collect::<Vec<_>>());
            // The first line is the header.
            assert_eq!(found.as_deref(), (lines_before > 0).then(|| &names[..lines_before - 1]), "{place_of_damage}");
        }
    }
}

#[test]
fn a_file_of_mostly_superseded_lines_is_copied() {
    let folder = TempDir::new().unwrap();
    let mut writer = written(&folder, &[("a", 1), ("b", 2)]);
    let long = json!({ "n\n": 3, "text": "x".repeat(100_000) });
    for _ in 0..15 {
        writer.set(&route("a"), Some(&long));
    }
    maintain(&mut writer);
    let length = fs::metadata(place(&folder).path).unwrap().len();
    assert!((100_000..200_000).contains(&length), "{length}");
    writer.set(&route("c"), Some(&json!({ "n\n": 4 })));
    drop(writer);
    assert_eq!(read(&place(&folder)), owned(&[("a", 3), ("b", 2), ("c", 4)]));
}

#[test]
fn the_first_error_of_a_write_ends_writing() {
    let folder = TempDir::new().unwrap();
    let mut writer = written(&folder, &[("a", 1)]);
    writer.file = Some(OpenOptions::new().append(true).open("/dev/full").unwrap());
    writer.set(&route("b"), Some(&json!({ "n\n": 2 })));
    maintain(&mut writer);
    assert!(writer.file.is_none() && writer.due() > STAMP, "{:?}", writer.due());
    writer.set(&route("c"), Some(&json!({ "n\n": 3 })));
    assert!(writer.waiting.is_empty());
    assert_eq!(read(&place(&folder)), owned(&[("a", 1)]));
}

#[test]
fn a_file_of_another_agent_is_replaced_only_when_it_is_abandoned() {
    let folder = TempDir::new().unwrap();
    let mut old = written(&folder, &[("a", 1)]);
    let successor = written(&folder, &[("b", 2)]);
    maintain(&mut old);
    assert_eq!(read(&place(&folder)), owned(&[("b", 2)]));
    let long_ago = SystemTime::now().checked_sub(2 * ABANDONED).unwrap();
    successor.file.as_ref().unwrap().set_modified(long_ago).unwrap();
    maintain(&mut old);
    assert_eq!(read(&place(&folder)), owned(&[("a", 1)]));
}

#[test]
fn the_time_of_the_last_contact_is_kept() {
    let folder = TempDir::new().unwrap();
    let mut writer = written(&folder, &[("a", 1)]);
    let hour = Duration::from_secs(3600);
    writer.file.as_ref().unwrap().set_modified(SystemTime::now().checked_sub(hour).unwrap()).unwrap();
    let age = || Snapshot::open(&place(&folder)).unwrap().unwrap().as_of().unwrap().elapsed().unwrap();
    writer.copy().unwrap();
    assert!(age() >= hour, "a copy is not newer: {:?}", age());
    maintain(&mut writer);
    assert!(age() < hour / 2, "{:?}", age());
}
