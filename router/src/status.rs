//! Writes statuses below the state folder: one YAML file per object, as a cluster would show the object's status.
//!
//! A file is written only when something but times differs, whole or not at all (a temporary file that is renamed),
//! and removed when its object is gone. What was written before a restart is read back, so that the time of a
//! condition's last transition outlives the process. A write that fails is tried again; it never stops traffic.

mod files;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use router_api::resources::Resources;
use router_model::for_kinds;
use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};
use router_translate::status::controller::ControllerStatus;
use router_translate::status::ingress::IngressEntry;
use router_translate::status::merge::{merge_controller, merge_route, same_but_times};
use router_translate::status::others::merge_other;
use router_translate::status::report::StatusReport;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

/// How long after a failed write it is tried again.
const RETRY: Duration = Duration::from_secs(5);

/// What statuses are written from: one translation and the objects it was made of.
#[derive(Clone, Debug, Default)]
pub struct StatusInput {
    /// What to say.
    pub report: StatusReport,
    /// The objects, for the parts of their status that are others'.
    pub resources: Arc<Resources>,
}

/// What one round of writing did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Files written.
    pub written: usize,
    /// Files removed.
    pub removed: usize,
    /// Files that could not be written or removed.
    pub failed: usize,
}

/// Writes the status files of one state folder.
#[derive(Debug)]
pub struct StatusWriter {
    folder: PathBuf,
    stored: BTreeMap<ObjectRef, Value>,
    /// What the files say, when the last round had no failure: objects of which the next input says the same are
    /// passed over.
    last: Option<Arc<StatusInput>>,
}

impl StatusWriter {
    /// A writer for `state/status`, which knows what an earlier process wrote there. Files that cannot be read count
    /// as absent, and are written anew.
    pub fn open(state: &Path) -> Self {
        let folder = state.join("status");
        let stored = files::read_all(&folder);
        StatusWriter { folder, stored, last: None }
    }

    /// Makes the files say what the report says. `now` becomes the time of conditions that flip.
    pub fn write(&mut self, input: &Arc<StatusInput>, now: Timestamp) -> Round {
        let mut round = Round::default();
        let last = self.last.take();
        for object in self.affected(last.as_deref(), input) {
            match self.status_of(&object, input, now) {
                Some(status) => self.store(&object, status, &mut round),
                None => self.remove(&object, &mut round),
            }
        }
        self.last = (round.failed == 0).then(|| input.clone());
        round
    }

    /// The objects whose file may have to change.
    fn affected(&self, last: Option<&StatusInput>, input: &StatusInput) -> BTreeSet<ObjectRef> {
        let route = |key: &ObjectKey| ObjectRef { kind: Kind::Route, key: key.clone() };
        let controllers = input.report.ingress_controllers.keys();
        let mut affected: BTreeSet<ObjectRef> =
            controllers.map(|key| ObjectRef { kind: Kind::IngressController, key: key.clone() }).collect();
        match last.filter(|last| last.report.routers == input.report.routers) {
            Some(last) => {
                let reports = input.report.routes.changes_since(&last.report.routes);
                affected.extend(reports.map(|changed| route(changed.key)));
                let manifests = input.resources.routes.changes_since(&last.resources.routes);
                affected.extend(manifests.map(|changed| route(changed.key)));
                affected.extend(self.stored.keys().filter(|object| object.kind == Kind::IngressController).cloned());
                affected.extend(others_since(last, input));
            }
            None => {
                affected.extend(input.report.routes.entries().map(|(key, _)| route(key)));
                affected.extend(input.report.others.entries().map(|(object, _)| object.clone()));
                affected.extend(self.stored.keys().cloned());
            }
        }
        affected
    }

    /// What an object's file is to say; `None` for an object that is to have none.
    fn status_of(&self, object: &ObjectRef, input: &StatusInput, now: Timestamp) -> Option<Value> {
        if object.kind == Kind::Route {
            let entries = input.report.routes.get(&object.key)?;
            return Some(self.route_status(object, &entries.to_vec(), input, now))
                .filter(|s| s.get("ingress").is_some());
        }
        if object.kind == Kind::IngressController {
            let report = input.report.ingress_controllers.get(&object.key)?;
            return Some(self.controller_status(object, report, input, now));
        }
        let told = input.report.others.get(object)?;
        let others = manifest_status(object, input);
        Some(merge_other(others.as_ref(), self.stored.get(object), &told.status, now).status)
    }

    fn remove(&mut self, object: &ObjectRef, round: &mut Round) {
        if !self.stored.contains_key(object) {
            return;
        }
        match files::remove(&self.folder, object) {
            Ok(()) => {
                self.stored.remove(object);
                round.removed += 1;
            }
            Err(error) => {
                tracing::warn!(%object, %error, "a status file cannot be removed; it is tried again");
                round.failed += 1;
            }
        }
    }

    fn store(&mut self, object: &ObjectRef, status: Value, round: &mut Round) {
        if self.stored.get(object).is_some_and(|stored| same_but_times(stored, &status)) {
            return;
        }
        match files::write(&self.folder, object, &status) {
            Ok(()) => {
                self.stored.insert(object.clone(), status);
                round.written += 1;
            }
            Err(error) => {
                tracing::warn!(%object, %error, "a status file cannot be written; it is tried again");
                round.failed += 1;
            }
        }
    }

    /// Writes every new input until the sender is gone. Rounds with failures are repeated after a few seconds.
    pub async fn run(mut self, mut inputs: watch::Receiver<Arc<StatusInput>>) {
        inputs.mark_changed();
        let mut retry = false;
        loop {
            tokio::select! {
                changed = inputs.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(RETRY), if retry => {}
            }
            let input = inputs.borrow_and_update().clone();
            let written = tokio::task::spawn_blocking(move || {
                let round = self.write(&input, Timestamp::now());
                (self, round)
            });
            let Ok((writer, round)) = written.await else {
                tracing::error!("writing statuses was aborted; they are no longer written");
                return;
            };
            self = writer;
            retry = round.failed > 0;
        }
    }

    /// Entries of other routers come from the manifest, our own from what we wrote last.
    fn route_status(&self, object: &ObjectRef, entries: &[IngressEntry], input: &StatusInput, now: Timestamp) -> Value {
        let is_ours = |name: &str| input.report.routers.iter().any(|router| &*router.0 == name);
        let is_our_entry =
            |entry: &&Value| is_ours(entry.get("routerName").and_then(Value::as_str).unwrap_or_default());
        let manifest = manifest_status(object, input);
        let mut previous = object_of(manifest.as_ref());
        let foreign = items(manifest.as_ref(), "ingress").filter(|entry| !is_our_entry(entry));
        let ours = items(self.stored.get(object), "ingress").filter(is_our_entry);
        let ingress: Vec<Value> = foreign.chain(ours).cloned().collect();
        previous.remove("ingress");
        if !ingress.is_empty() {
            previous.insert("ingress".to_owned(), Value::Array(ingress));
        }
        let mut status = merge_route(Some(&Value::Object(previous)), entries, &is_ours, now).status;
        if let Some(map) = status.as_object_mut()
            && map.get("ingress").and_then(Value::as_array).is_some_and(Vec::is_empty)
        {
            map.remove("ingress");
        }
        status
    }

    /// Conditions of other types come from the manifest, the times of ours from what we wrote last.
    fn controller_status(
        &self,
        object: &ObjectRef,
        report: &ControllerStatus,
        input: &StatusInput,
        now: Timestamp,
    ) -> Value {
        let is_ours = |condition: &&Value| {
            let kind = condition.get("type").and_then(Value::as_str);
            report.conditions.iter().any(|ours| Some(ours.kind) == kind)
        };
        let manifest = manifest_status(object, input);
        let mut previous = object_of(manifest.as_ref());
        let ours = items(self.stored.get(object), "conditions").filter(is_ours);
        let foreign = items(manifest.as_ref(), "conditions").filter(|condition| !is_ours(condition));
        let conditions: Vec<Value> = ours.chain(foreign).cloned().collect();
        previous.insert("conditions".to_owned(), json!(conditions));
        merge_controller(Some(&Value::Object(previous)), report, now).status
    }
}

/// Objects of other kinds that are told something else, or whose manifest has changed: others may have written into it.
fn others_since(last: &StatusInput, input: &StatusInput) -> Vec<ObjectRef> {
    let told = input.report.others.changes_since(&last.report.others);
    let mut changed: Vec<ObjectRef> = told.map(|changed| changed.key.clone()).collect();
    macro_rules! manifests {
        ($($(#[$about:meta])* $kind:ident $name:literal $versions:tt
            $scope:ident, $type:ident in $collection:ident, $status:ident;)*) => {
            $(manifests!(@$status $kind $collection);)*
        };
        (@conditions $kind:ident $collection:ident) => {
            let slots = input.resources.$collection.changes_since(&last.resources.$collection);
            changed.extend(slots.map(|slot| ObjectRef { kind: Kind::$kind, key: slot.key.clone() }));
        };
        (@$other:ident $kind:ident $collection:ident) => {};
    }
    for_kinds!(manifests);
    changed
}

fn manifest_status(object: &ObjectRef, input: &StatusInput) -> Option<Value> {
    input.resources.manifest(object.kind, &object.key).and_then(|manifest| manifest.status())
}

fn object_of(status: Option<&Value>) -> Map<String, Value> {
    status.and_then(Value::as_object).cloned().unwrap_or_default()
}

fn items<'v>(status: Option<&'v Value>, member: &str) -> impl Iterator<Item = &'v Value> {
    status.and_then(|status| status.get(member)).and_then(Value::as_array).into_iter().flatten()
}

#[cfg(test)]
mod tests;
