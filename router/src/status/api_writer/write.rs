//! One write of a status: a merge patch with the object's resource version, repeated once after a conflict.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use router_api::resources::Resources;
use router_model::object::ObjectRef;
use router_translate::status::merge::same_but_times;
use router_translate::status::report::StatusReport;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::fights::Intent;
use crate::causes::with_causes;
use crate::kubernetes::api_object::{ApiObject, resource_of};
use crate::kubernetes::{in_time, retry_after, version_in};
use crate::status::StatusInput;
use crate::status::merge_patch::merge_patch;

/// The name of the writer in `metadata.managedFields`.
pub const MANAGER: &str = "sluice";

/// A write of an object's status.
pub struct StatusWrite {
    /// The API server.
    pub client: Client,
    /// What is to be written.
    pub input: Arc<StatusInput>,
    /// Of which object.
    pub object: ObjectRef,
    /// The change of what is stored.
    pub change: StatusChange,
    /// Whether this agent leads.
    pub leads: watch::Receiver<bool>,
}

/// What came of a write.
pub enum Written {
    /// It was written, which made this resource version; `None` if something else was stored: a definition prunes members,
    /// or a webhook changes them.
    Done(Box<StatusChange>, Option<u64>),
    /// There was nothing to write any more.
    Unneeded,
    /// The object does not exist any more.
    Gone,
    /// The API server asks for fewer requests, and perhaps says for how long.
    Throttled(Option<Duration>),
    /// The API server rejects it.
    Rejected(String),
    /// It is to be repeated.
    Failed(String),
}

/// A change of an object's status.
pub struct StatusChange {
    /// The object as it was.
    pub stored: Value,
    /// The new status.
    pub status: Value,
    api_version: String,
    patch: Value,
}

impl StatusChange {
    /// The change of an object's status; `None` if nothing but times would change.
    pub fn new(input: &StatusInput, object: &ObjectRef, stored: Value) -> Option<Self> {
        let current = stored.get("status").filter(|status| !status.is_null());
        let now = Timestamp::now();
        let merged = input.report.merged(object, current, current, now);
        let merged = merged.or_else(|| Some(StatusReport::released(current?, now)))?;
        // A Route that no router selects has no status, unless other controllers have written entries.
        let is_empty = merged.as_object().is_some_and(Map::is_empty);
        let current = current.cloned().unwrap_or_else(|| json!({}));
        if same_but_times(&merged, &current) || (is_empty && current == json!({})) {
            return None;
        }
        let text = |pointer: &str| stored.pointer(pointer).and_then(Value::as_str);
        let api_version = text("/apiVersion").unwrap_or(object.kind.api_version()).to_owned();
        let status = merge_patch(&current, &merged)?;
        let metadata = json!({ "resourceVersion": text("/metadata/resourceVersion") });
        let patch = json!({ "metadata": metadata, "status": status });
        Some(StatusChange { stored, status: merged, api_version, patch })
    }

    /// The same for a newer version of the object than that of the input; `None` also if that is another object.
    fn of_newer(input: &StatusInput, object: &ObjectRef, newer: Value) -> Option<Self> {
        let uid = |value: &Value| value.pointer("/metadata/uid").cloned();
        let known = stored(&input.resources, object)?;
        (uid(&known) == uid(&newer)).then(|| StatusChange::new(input, object, newer)).flatten()
    }

    /// Resource version of the stored object.
    pub fn version(&self) -> u64 {
        version_in(&self.stored)
    }

    /// What is to be in the status.
    pub fn intent(&self, input: &StatusInput, object: &ObjectRef) -> Intent {
        let ours = input.report.merged(object, None, None, Timestamp::UNIX_EPOCH).unwrap_or_default();
        let mut hasher = DefaultHasher::new();
        ours.to_string().hash(&mut hasher);
        let uid = self.stored.pointer("/metadata/uid").and_then(Value::as_str);
        Intent { hash: hasher.finish(), uid: uid.unwrap_or_default().to_owned() }
    }
}

impl StatusWrite {
    /// Writes it, unless this agent leads no longer.
    pub async fn run(self) -> Written {
        let StatusWrite { client, input, object, change, leads } = self;
        if !*leads.borrow() {
            return Written::Unneeded;
        }
        let mut sent = send(&client, &object, &change).await;
        let mut change = change;
        if is_conflict(&sent) {
            // Somebody wrote the object, and the watch has not reported it yet.
            let api = api(&client, &object, object.kind.api_version());
            let newer = match in_time(api.get_opt(&object.key.name)).await {
                Ok(Some(newer)) => newer.value,
                Ok(None) => return Written::Gone,
                Err(error) => return failed(&error),
            };
            match StatusChange::of_newer(&input, &object, newer) {
                Some(newer) if *leads.borrow() => change = newer,
                _ => return Written::Unneeded,
            }
            sent = send(&client, &object, &change).await;
        }
        match sent {
            Ok(version) => Written::Done(Box::new(change), version),
            Err(error) => failed(&error),
        }
    }
}

/// Sends a change. Returns the resource version that it makes, if the status is stored as it was sent.
async fn send(client: &Client, object: &ObjectRef, change: &StatusChange) -> kube::Result<Option<u64>> {
    let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    let api = api(client, object, &change.api_version);
    let sent = in_time(api.patch_status(&object.key.name, &parameters, &Patch::Merge(&change.patch))).await?;
    let is_as_sent = sent.value.get("status").is_some_and(|status| same_but_times(status, &change.status));
    Ok(is_as_sent.then(|| version_in(&sent.value)))
}

fn is_conflict<T>(answer: &kube::Result<T>) -> bool {
    matches!(answer, Err(kube::Error::Api(status)) if status.code == 409)
}

fn failed(error: &kube::Error) -> Written {
    let kube::Error::Api(status) = error else { return Written::Failed(with_causes(error)) };
    let after = retry_after(status);
    match status.code {
        404 => Written::Gone,
        429 => Written::Throttled(after),
        503 if after.is_some() => Written::Throttled(after),
        409 => Written::Failed("it changes all the time".to_owned()),
        400 | 403 | 422 => Written::Rejected(status.message.clone()),
        _ => Written::Failed(status.message.clone()),
    }
}

/// Reads who wrote an object's status last: the field manager, by `metadata.managedFields`.
pub async fn last_writer(client: Client, object: ObjectRef) -> Option<String> {
    let api = api(&client, &object, object.kind.api_version());
    let metadata = in_time(api.get_metadata_opt(&object.key.name)).await.ok()??.metadata;
    let entries = metadata.managed_fields.unwrap_or_default().into_iter();
    let entries = entries.filter(|entry| entry.subresource.as_deref() == Some("status"));
    // Times have whole seconds: of two, the other one's.
    let last =
        entries.max_by_key(|entry| (entry.time.as_ref().map(|time| time.0), entry.manager.as_deref() != Some(MANAGER)));
    last?.manager
}

/// The stored object of a snapshot.
pub fn stored(resources: &Resources, object: &ObjectRef) -> Option<Value> {
    resources.newest_manifest(object.kind, &object.key).map(|manifest| manifest.value())
}

fn api(client: &Client, object: &ObjectRef, api_version: &str) -> Api<ApiObject> {
    let resource = resource_of(object.kind, api_version);
    match object.kind.is_namespaced() {
        true => Api::namespaced_with(client.clone(), &object.key.namespace, &resource),
        false => Api::all_with(client.clone(), &resource),
    }
}
