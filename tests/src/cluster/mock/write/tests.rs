//! Writes of a kind with a status, and of one without.

use super::*;

fn things() -> (Store, Kind) {
    let (mut store, mut kind) = (Store::new(10), Kind::built_in().collect::<Vec<_>>().swap_remove(0));
    kind.group = "example.test".to_owned();
    kind.name = "Thing".to_owned();
    kind.plural = "things".to_owned();
    kind.has_status = true;
    store.install(kind.clone());
    (store, kind)
}

fn key() -> Key {
    ("a".to_owned(), "one".to_owned())
}

fn thing(spec: u8) -> Value {
    json!({"metadata": {"name": "one"}, "spec": spec, "status": {"is": "dropped"}})
}

fn reason(written: Written) -> Option<String> {
    written.err().map(|failure| failure.reason)
}

#[test]
fn an_object_is_created_once() -> Result<(), Failure> {
    let (mut store, kind) = things();
    let made = create(&mut store, &kind, "a", thing(1))?.value();
    assert_eq!((&made["metadata"]["namespace"], &made["metadata"]["generation"]), (&json!("a"), &json!(1)));
    assert_eq!(made["metadata"]["resourceVersion"], store.version().to_string());
    assert!(made["metadata"]["uid"].is_string() && made["metadata"]["creationTimestamp"].is_string());
    assert!(made.get("status").is_none());
    assert_eq!(reason(create(&mut store, &kind, "a", thing(1))).as_deref(), Some("AlreadyExists"));
    let elsewhere = json!({"metadata": {"name": "one", "namespace": "b"}});
    assert_eq!(reason(create(&mut store, &kind, "a", elsewhere)).as_deref(), Some("BadRequest"));
    assert_eq!(reason(create(&mut store, &kind, "a", json!({}))).as_deref(), Some("Invalid"));
    assert_eq!(reason(create(&mut store, &kind, "a", json!([]))).as_deref(), Some("BadRequest"));
    let named = create(&mut store, &kind, "a", json!({"metadata": {"generateName": "event."}}))?;
    assert!(named.key.1.starts_with("event.") && named.key.1.len() > 6);
    Ok(())
}

#[test]
fn a_write_needs_the_present_version() -> Result<(), Failure> {
    let (mut store, kind) = things();
    let mut value = create(&mut store, &kind, "a", thing(1))?.value();
    value["spec"] = json!(2);
    let made = replace(&mut store, &kind, &key(), value.clone(), false)?;
    assert_eq!(made.value()["metadata"]["generation"], 2);
    assert_eq!(reason(replace(&mut store, &kind, &key(), value.clone(), false)).as_deref(), Some("Conflict"));
    remove(&mut value["metadata"], "resourceVersion");
    assert_eq!(reason(replace(&mut store, &kind, &key(), value, false)).as_deref(), Some("Invalid"));
    let stale = json!({"metadata": {"resourceVersion": "1"}, "status": {}});
    assert_eq!(reason(patch(&mut store, &kind, &key(), &stale, true)).as_deref(), Some("Conflict"));
    let other = ("b".to_owned(), "one".to_owned());
    assert_eq!(reason(patch(&mut store, &kind, &other, &json!({}), true)).as_deref(), Some("NotFound"));
    assert_eq!(reason(patch(&mut store, &kind, &key(), &json!([]), true)).as_deref(), Some("BadRequest"));
    Ok(())
}

#[test]
fn the_status_is_written_apart() -> Result<(), Failure> {
    let (mut store, kind) = things();
    let made = create(&mut store, &kind, "a", thing(1))?;
    let change = json!({"metadata": {"labels": {"not": "written"}}, "spec": 3, "status": {"rows": [1], "gone": null}});
    let written = patch(&mut store, &kind, &key(), &change, true)?;
    let value = written.value();
    assert_eq!(
        (&value["spec"], &value["status"], &value["metadata"]["generation"]),
        (&json!(1), &json!({"rows": [1]}), &json!(1))
    );
    assert!(value["metadata"].get("labels").is_none() && written.version > made.version);
    // A change of nothing makes no version.
    assert_eq!(patch(&mut store, &kind, &key(), &change, true)?.version, written.version);
    let value = patch(&mut store, &kind, &key(), &json!({"spec": 4, "status": null}), false)?.value();
    assert_eq!((&value["spec"], &value["status"]), (&json!(4), &json!({"rows": [1]})));
    Ok(())
}

#[test]
fn finalizers_hold_a_deleted_object() -> Result<(), Failure> {
    let (mut store, kind) = things();
    create(&mut store, &kind, "a", json!({"metadata": {"name": "one", "finalizers": ["f"]}}))?;
    let unmet = json!({"preconditions": {"uid": "other"}});
    assert_eq!(reason(delete(&mut store, &kind, &key(), &unmet)).as_deref(), Some("Conflict"));
    let held = delete(&mut store, &kind, &key(), &Value::Null)?;
    assert!(held.value()["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(delete(&mut store, &kind, &key(), &Value::Null)?.version, held.version);
    patch(&mut store, &kind, &key(), &json!({"metadata": {"finalizers": null}}), false)?;
    assert!(store.get(&kind, &key()).is_none());
    assert_eq!(reason(delete(&mut store, &kind, &key(), &Value::Null)).as_deref(), Some("NotFound"));
    Ok(())
}

#[test]
fn an_applied_object_is_as_it_says() -> Result<(), Failure> {
    let (mut store, kind) = things();
    let given = json!({
        "metadata": {"name": "one", "namespace": "a", "creationTimestamp": "2020-01-01T00:00:00Z", "generation": 7},
        "spec": 1, "status": {"rows": []},
    });
    let begin = store.version();
    let made = apply(&mut store, &kind, given.clone())?.value();
    assert_eq!(store.version(), begin + 1, "one change");
    assert_eq!(made["status"], given["status"]);
    assert_eq!(made["metadata"]["creationTimestamp"], given["metadata"]["creationTimestamp"]);
    assert_eq!(made["metadata"]["generation"], 7);
    let next = json!({"metadata": {"name": "one", "namespace": "a"}, "spec": 2});
    let next = apply(&mut store, &kind, next)?.value();
    assert_eq!((&next["metadata"]["generation"], &next["status"]), (&json!(8), &given["status"]));
    assert_eq!(next["metadata"]["uid"], made["metadata"]["uid"]);
    let elsewhere = apply(&mut store, &kind, json!({"metadata": {"name": "two"}, "spec": 2}))?;
    assert_eq!(elsewhere.key.0, "default");
    Ok(())
}
