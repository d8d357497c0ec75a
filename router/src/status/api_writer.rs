//! Writes statuses to an API server: a merge patch of an object's `status` with its resource version, by the leader.
//!
//! An object's stored status is the writer's memory: nothing is written where only times differ, so neither a restart nor
//! another leader writes anything. Entries of other controllers do not change. A failed write never stops traffic.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use router_api::resources::Resources;
use router_model::object::ObjectRef;
use router_translate::status::merge::same_but_times;
use router_translate::status::report::StatusReport;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{sleep, sleep_until};

use super::merge_patch::merge_patch;
use super::{StatusInput, changed_since};
use crate::causes::with_causes;
use crate::kubernetes::api_object::{ApiObject, resource_of};
use crate::kubernetes::in_time;

/// Mean number of writes a second, and how many may follow one another at once.
const RATE: f64 = 50.0;
const BURST: f64 = 200.0;
/// Delay before a failed write is repeated; it doubles with each failure.
const FIRST_RETRY: Duration = Duration::from_millis(20);
const LONGEST_RETRY: Duration = Duration::from_secs(60);
/// Delay before a status that the API server rejects is written again, if neither it nor the object changes.
const REJECTED_RETRY: Duration = Duration::from_secs(300);
/// The name of the writer in `metadata.managedFields`.
const MANAGER: &str = "sluice";

/// Writes the statuses of a cluster's objects.
pub struct ApiStatusWriter {
    client: Client,
    last: Option<Arc<StatusInput>>,
    /// Objects to look at, the first first; each once.
    queue: VecDeque<ObjectRef>,
    queued: BTreeSet<ObjectRef>,
    /// Objects whose write failed: when to repeat it, and how often it failed.
    failed: HashMap<ObjectRef, (Instant, u32)>,
    tokens: Tokens,
}

/// What came of a write.
enum Written {
    Done,
    /// The object does not exist any more.
    Gone,
    /// The status is to be computed again.
    Again,
    /// The API server rejects it.
    Rejected(String),
    Failed(String),
}

impl ApiStatusWriter {
    /// A writer.
    pub fn new(client: Client) -> Self {
        ApiStatusWriter {
            client,
            last: None,
            queue: VecDeque::new(),
            queued: BTreeSet::new(),
            failed: HashMap::new(),
            tokens: Tokens { left: BURST, at: Instant::now() },
        }
    }

    /// Writes each new input while this agent leads. Dropping the future ends it between requests.
    pub async fn run(mut self, mut inputs: watch::Receiver<Arc<StatusInput>>, mut leads: watch::Receiver<bool>) {
        inputs.mark_changed();
        loop {
            if !*leads.borrow_and_update() {
                (self.last, self.queued) = (None, BTreeSet::new());
                self.queue.clear();
                self.failed.clear();
                if leads.changed().await.is_err() {
                    return;
                }
                continue;
            }
            if self.last.is_none() || inputs.has_changed().unwrap_or(false) {
                let input = inputs.borrow_and_update().clone();
                self.take(input);
            }
            self.take_failed();
            let Some(object) = self.queue.pop_front() else {
                let retry = self.failed.values().map(|(when, _)| *when).min();
                tokio::select! {
                    changed = inputs.changed() => if changed.is_err() { return } else { inputs.mark_changed() },
                    changed = leads.changed() => if changed.is_err() { return } else { leads.mark_changed() },
                    () = at(retry) => {}
                }
                continue;
            };
            self.queued.remove(&object);
            self.write(object, &leads).await;
        }
    }

    /// Queues the objects that differ from the last input.
    fn take(&mut self, input: Arc<StatusInput>) {
        // At first every object: one that is no longer Sluice's may have entries of ours.
        let last = self.last.take().unwrap_or_default();
        for object in changed_since(&last, &input) {
            // A newer version may be accepted.
            self.failed.remove(&object);
            self.enqueue(object);
        }
        self.last = Some(input);
    }

    fn enqueue(&mut self, object: ObjectRef) {
        if self.queued.insert(object.clone()) {
            self.queue.push_back(object);
        }
    }

    fn take_failed(&mut self) {
        let now = Instant::now();
        let due: Vec<ObjectRef> =
            self.failed.iter().filter(|(_, (when, _))| *when <= now).map(|(object, _)| object.clone()).collect();
        for object in due {
            // It is kept with its number of failures until a write succeeds.
            if let Some((when, _)) = self.failed.get_mut(&object) {
                *when = now + LONGEST_RETRY;
            }
            self.enqueue(object);
        }
    }

    /// Writes an object's status if it differs from the stored one.
    async fn write(&mut self, object: ObjectRef, leads: &watch::Receiver<bool>) {
        let Some(input) = self.last.clone() else { return };
        let Some(stored) = stored(&input.resources, &object) else {
            self.failed.remove(&object);
            return;
        };
        let Some(patch) = patch(&input, &object, &stored) else {
            self.failed.remove(&object);
            return;
        };
        self.tokens.take().await;
        if !*leads.borrow() {
            return;
        }
        let mut written = self.send(&object, &patch).await;
        if matches!(written, Written::Again) {
            // Somebody wrote the object, and the watch has not reported it yet.
            written = match self.read(&object).await {
                Ok(Some(newer)) => match patch_of_newer(&input, &object, &newer) {
                    Some(patch) if *leads.borrow() => self.send(&object, &patch).await,
                    _ => Written::Done,
                },
                Ok(None) => Written::Gone,
                Err(error) => Written::Failed(with_causes(&error)),
            };
        }
        let (again, problem) = match written {
            Written::Done | Written::Gone => {
                self.failed.remove(&object);
                return;
            }
            Written::Again => (None, "it changes all the time".to_owned()),
            Written::Failed(problem) => (None, problem),
            Written::Rejected(problem) => (Some(REJECTED_RETRY), problem),
        };
        let (_, failures) = self.failed.get(&object).copied().unwrap_or((Instant::now(), 0));
        let delay = again.unwrap_or_else(|| FIRST_RETRY.saturating_mul(1 << failures.min(12)).min(LONGEST_RETRY));
        if failures == 0 || again.is_some() {
            tracing::warn!(%object, problem, retry = ?delay, "a status was not written");
        }
        self.failed.insert(object, (Instant::now() + delay, failures.saturating_add(1)));
    }

    fn api(&self, object: &ObjectRef, api_version: &str) -> Api<ApiObject> {
        let resource = resource_of(object.kind, api_version);
        match object.kind.is_namespaced() {
            true => Api::namespaced_with(self.client.clone(), &object.key.namespace, &resource),
            false => Api::all_with(self.client.clone(), &resource),
        }
    }

    async fn read(&self, object: &ObjectRef) -> kube::Result<Option<Value>> {
        let api = self.api(object, object.kind.api_version());
        Ok(in_time(api.get_opt(&object.key.name)).await?.map(|object| object.value))
    }

    async fn send(&self, object: &ObjectRef, (api_version, patch): &(String, Value)) -> Written {
        let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let api = self.api(object, api_version);
        match in_time(api.patch_status(&object.key.name, &parameters, &Patch::Merge(patch))).await {
            Ok(_) => Written::Done,
            Err(kube::Error::Api(status)) => match status.code {
                404 => Written::Gone,
                409 => Written::Again,
                400 | 403 | 422 => Written::Rejected(status.message.clone()),
                _ => Written::Failed(status.message.clone()),
            },
            Err(error) => Written::Failed(with_causes(&error)),
        }
    }
}

/// The stored object of a snapshot.
fn stored(resources: &Resources, object: &ObjectRef) -> Option<Value> {
    resources.newest_manifest(object.kind, &object.key).map(|manifest| manifest.value())
}

/// `apiVersion`, and the patch of an object's status; `None` if nothing but times would change.
fn patch(input: &StatusInput, object: &ObjectRef, stored: &Value) -> Option<(String, Value)> {
    let current = stored.get("status").filter(|status| !status.is_null());
    let now = Timestamp::now();
    let merged = input.report.merged(object, current, current, now);
    let merged = merged.or_else(|| Some(StatusReport::released(current?, now)))?;
    // A Route that no router selects has no status, unless other controllers have written entries.
    let is_empty = merged.as_object().is_some_and(serde_json::Map::is_empty);
    let current = current.cloned().unwrap_or_else(|| json!({}));
    if same_but_times(&merged, &current) || (is_empty && current == json!({})) {
        return None;
    }
    let text = |pointer: &str| stored.pointer(pointer).and_then(Value::as_str);
    let api_version = text("/apiVersion").unwrap_or(object.kind.api_version()).to_owned();
    let status = merge_patch(&current, &merged)?;
    let metadata = json!({ "resourceVersion": text("/metadata/resourceVersion") });
    Some((api_version, json!({ "metadata": metadata, "status": status })))
}

/// The patch for a newer version of an object than that of the input; `None` also if the newer version is another object.
fn patch_of_newer(input: &StatusInput, object: &ObjectRef, newer: &Value) -> Option<(String, Value)> {
    let uid = |value: &Value| value.pointer("/metadata/uid").cloned();
    let known = stored(&input.resources, object)?;
    (uid(&known) == uid(newer)).then(|| patch(input, object, newer)).flatten()
}

async fn at(when: Option<Instant>) {
    match when {
        Some(when) => sleep_until(when.into()).await,
        None => std::future::pending().await,
    }
}

/// A token bucket.
struct Tokens {
    left: f64,
    at: Instant,
}

impl Tokens {
    /// Takes a token, and waits for it.
    async fn take(&mut self) {
        let now = Instant::now();
        self.left = (self.left + now.duration_since(self.at).as_secs_f64() * RATE).min(BURST) - 1.0;
        self.at = now;
        if self.left < 0.0 {
            sleep(Duration::from_secs_f64(-self.left / RATE)).await;
        }
    }
}
