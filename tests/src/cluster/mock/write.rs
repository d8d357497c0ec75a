//! Writes: what an API server does to an object before it keeps it (apiserver's registry/rest).

use std::sync::Arc;

use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::kind::Kind;
use super::object::{Key, Object};
use super::status::Failure;
use super::store::Store;

/// A result of a write.
type Written = Result<Arc<Object>, Failure>;

/// Creates an object.
///
/// # Errors
/// When the object is malformed, or there is one of its name.
pub fn create(store: &mut Store, kind: &Kind, namespace: &str, value: Value) -> Written {
    let (key, mut value) = complete(store, kind, namespace, value)?;
    if kind.has_status {
        remove(&mut value, "status");
    }
    Ok(store.put(kind, key, value))
}

/// A new object with the metadata that the server sets, and its key.
fn complete(store: &Store, kind: &Kind, namespace: &str, mut value: Value) -> Result<(Key, Value), Failure> {
    let next = store.version() + 1;
    let metadata = metadata(&mut value)?;
    if let Some(prefix) = metadata.get("generateName").and_then(Value::as_str)
        && metadata.get("name").is_none_or(|name| name == "")
    {
        let name = format!("{prefix}{next:05x}");
        metadata.insert("name".to_owned(), json!(name));
    }
    let name = metadata.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    if name.is_empty() {
        return Err(invalid(kind, "", "metadata.name: Required value: name or generateName is required"));
    }
    if metadata.get("namespace").and_then(Value::as_str).is_some_and(|given| given != namespace) {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Failure::new(StatusCode::BAD_REQUEST, message));
    }
    let key = (namespace.to_owned(), name);
    if store.get(kind, &key).is_some() {
        return Err(Failure::exists(kind, &key.1));
    }
    if kind.is_namespaced {
        metadata.insert("namespace".to_owned(), json!(namespace));
    }
    metadata.insert("uid".to_owned(), json!(format!("00000000-0000-4000-8000-{next:012x}")));
    metadata.insert("creationTimestamp".to_owned(), json!(now()));
    metadata.insert("generation".to_owned(), json!(1));
    metadata.remove("deletionTimestamp");
    Ok((key, value))
}

/// Replaces an object, or its status.
///
/// # Errors
/// When there is no such object, it has another version than the value says, or the value is malformed.
pub fn replace(store: &mut Store, kind: &Kind, key: &Key, mut value: Value, is_status: bool) -> Written {
    let before = store.get(kind, key).cloned().ok_or_else(|| Failure::not_found(kind, &key.1))?;
    match metadata(&mut value)?.get("resourceVersion").and_then(Value::as_str).unwrap_or_default() {
        "" if kind.group.is_empty() => {}
        "" => {
            let message = "metadata.resourceVersion: Invalid value: 0: must be specified for an update";
            return Err(invalid(kind, &key.1, message));
        }
        version if version == before.version.to_string() => {}
        _ => return Err(Failure::conflict(kind, &key.1)),
    }
    let old = before.value();
    let mut new = if is_status {
        let mut new = old.clone();
        set(&mut new, "status", value.get("status").cloned());
        new
    } else {
        for name in ["name", "namespace", "uid", "creationTimestamp", "generation", "deletionTimestamp"] {
            set(&mut value["metadata"], name, old["metadata"].get(name).cloned());
        }
        if kind.has_status {
            set(&mut value, "status", old.get("status").cloned());
        }
        value
    };
    for name in ["apiVersion", "kind"] {
        remove(&mut new, name);
    }
    new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
    if new == old {
        return Ok(before);
    }
    let has_no_finalizers = new["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty);
    if new["metadata"]["deletionTimestamp"].is_string() && has_no_finalizers {
        let removed = store.remove(kind, key).ok_or_else(|| Failure::not_found(kind, &key.1))?;
        return Ok(Arc::new(Object::new(key.clone(), removed.version, new)));
    }
    if desired(&new) != desired(&old) {
        new["metadata"]["generation"] = json!(old["metadata"]["generation"].as_u64().unwrap_or_default() + 1);
    }
    Ok(store.put(kind, key.clone(), new))
}

/// Changes an object, or its status, by a JSON merge patch (RFC 7396). Only a patch with a resource version can conflict.
///
/// # Errors
/// As [`replace`].
pub fn patch(store: &mut Store, kind: &Kind, key: &Key, patch: &Value, is_status: bool) -> Written {
    let before = store.get(kind, key).ok_or_else(|| Failure::not_found(kind, &key.1))?;
    if !patch.is_object() {
        return Err(Failure::new(StatusCode::BAD_REQUEST, "a merge patch of an object is an object"));
    }
    let mut value = before.value();
    merge(&mut value, patch);
    replace(store, kind, key, value, is_status)
}

/// Deletes an object; one with finalizers stays until they are gone.
///
/// # Errors
/// When there is no such object, or it does not fulfil the preconditions of the DeleteOptions.
pub fn delete(store: &mut Store, kind: &Kind, key: &Key, options: &Value) -> Written {
    let before = store.get(kind, key).ok_or_else(|| Failure::not_found(kind, &key.1))?;
    let mut value = before.value();
    let unmet = |name: &str| {
        let wanted = options["preconditions"].get(name).filter(|wanted| !wanted.is_null());
        wanted.is_some_and(|wanted| *wanted != value["metadata"][name])
    };
    if ["uid", "resourceVersion"].into_iter().any(unmet) {
        return Err(Failure::conflict(kind, &key.1));
    }
    if value["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty) {
        return store.remove(kind, key).ok_or_else(|| Failure::not_found(kind, &key.1));
    }
    if value["metadata"]["deletionTimestamp"].is_string() {
        return Ok(Arc::clone(before));
    }
    value["metadata"]["deletionTimestamp"] = json!(now());
    Ok(store.put(kind, key.clone(), value))
}

/// Creates or replaces an object as it is: times, status and all. What it does not say of these stays.
///
/// # Errors
/// When the object is malformed.
pub fn apply(store: &mut Store, kind: &Kind, mut value: Value) -> Written {
    let metadata = metadata(&mut value)?;
    let text = |name: &str| metadata.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let namespace = match text("namespace") {
        _ if !kind.is_namespaced => String::new(),
        namespace if namespace.is_empty() => "default".to_owned(),
        namespace => namespace,
    };
    let key = (namespace, text("name"));
    let Some(before) = store.get(kind, &key).cloned() else {
        let given = metadata.clone();
        let (key, mut value) = complete(store, kind, &key.0, value)?;
        for name in ["uid", "creationTimestamp", "generation", "deletionTimestamp"] {
            if let Some(given) = given.get(name) {
                value["metadata"][name] = given.clone();
            }
        }
        return Ok(store.put(kind, key, value));
    };
    let old = before.value();
    for name in ["namespace", "uid", "creationTimestamp"] {
        if let (None, Some(kept)) = (metadata.get(name), old["metadata"].get(name)) {
            metadata.insert(name.to_owned(), kept.clone());
        }
    }
    if !metadata.contains_key("generation") {
        let generation = old["metadata"]["generation"].as_u64().unwrap_or_default();
        let is_changed = desired(&value) != desired(&old);
        value["metadata"]["generation"] = json!(generation + u64::from(is_changed));
    }
    if value.get("status").is_none() {
        set(&mut value, "status", old.get("status").cloned());
    }
    Ok(store.put(kind, key, value))
}

/// What the generation counts changes of: all but metadata and status.
fn desired(value: &Value) -> Map<String, Value> {
    let mut members = value.as_object().cloned().unwrap_or_default();
    for name in ["apiVersion", "kind", "metadata", "status"] {
        members.remove(name);
    }
    members
}

fn metadata(value: &mut Value) -> Result<&mut Map<String, Value>, Failure> {
    let members = value.as_object_mut();
    let metadata = members.and_then(|members| members.entry("metadata").or_insert_with(|| json!({})).as_object_mut());
    metadata.ok_or_else(|| Failure::new(StatusCode::BAD_REQUEST, "the body is no object with metadata"))
}

/// Merges a patch into a value (RFC 7396, section 2).
fn merge(value: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else { return *value = patch.clone() };
    if !value.is_object() {
        *value = json!({});
    }
    for (name, patch) in patch {
        if patch.is_null() { remove(value, name) } else { merge(&mut value[name], patch) }
    }
}

fn set(object: &mut Value, name: &str, value: Option<Value>) {
    match value {
        Some(value) => object[name] = value,
        None => remove(object, name),
    }
}

fn remove(object: &mut Value, name: &str) {
    if let Some(members) = object.as_object_mut() {
        members.remove(name);
    }
}

fn invalid(kind: &Kind, name: &str, message: &str) -> Failure {
    Failure::new(StatusCode::UNPROCESSABLE_ENTITY, format!("{} {name:?} is invalid: {message}", kind.name))
}

/// The present time, in whole seconds as API servers write it.
fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests;
