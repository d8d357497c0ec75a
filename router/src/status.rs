//! Writes statuses below the state folder: one YAML file per object, as a cluster would show the object's status.
//!
//! A file is written only if something except times differs, atomically (a temporary file that is renamed), and removed
//! with its object. The files are the writer's memory: it reads an object's file before writing it, so that transition
//! times survive changes, restarts and failed writes, and the process keeps no statuses in memory. A file removed by
//! hand is written again when its object changes, with new times. A failed write is retried; it never stops traffic.

pub mod api_writer;
pub mod events;
pub mod expiry;
mod files;
mod merge_patch;
mod tokens;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use router_api::resources::Resources;
use router_model::for_kinds;
use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};
use router_sys::heap;
use router_translate::status::merge::same_but_times;
use router_translate::status::report::StatusReport;
use serde_json::Value;
use tokio::sync::watch;

/// Delay before failed writes are retried.
const RETRY: Duration = Duration::from_secs(5);

/// Input of the writer: one translation and its objects.
#[derive(Clone, Debug, Default)]
pub struct StatusInput {
    /// The statuses.
    pub report: StatusReport,
    /// The objects, for the parts of their status that other writers own.
    pub resources: Arc<Resources>,
    /// Lists of an API server that are not believed yet, as messages.
    pub doubts: Arc<[String]>,
}

/// Result of one round of writing.
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
    /// The input of the last round: objects that are equal in the next one are skipped.
    last: Option<Arc<StatusInput>>,
    /// Objects whose file could not be written or removed.
    failed: BTreeSet<ObjectRef>,
}

/// Number of files after which memory is returned to the system: there were many changes.
const MANY: usize = 1024;

impl StatusWriter {
    /// A writer for `state/status`. Unreadable files count as absent and are written anew.
    pub fn new(state: &Path) -> Self {
        StatusWriter { folder: state.join("status"), last: None, failed: BTreeSet::new() }
    }

    /// Updates the files to the report. `now` becomes the time of conditions that change.
    pub fn write(&mut self, input: &Arc<StatusInput>, now: Timestamp) -> Round {
        let mut affected = std::mem::take(&mut self.failed);
        match self.last.replace(input.clone()) {
            Some(last) => affected.extend(changed_since(&last, input)),
            None => {
                affected.extend(reported(&input.report));
                affected.extend(files::others(&self.folder, &affected));
            }
        }
        let mut round = Round::default();
        for object in affected {
            if let Err(error) = self.update(&object, input, now, &mut round) {
                tracing::warn!(%object, %error, "a status file cannot be written or removed; it is tried again");
                round.failed += 1;
                self.failed.insert(object);
            }
        }
        if round.written + round.removed >= MANY {
            heap::trim();
        }
        round
    }

    /// Writes or removes an object's file if it differs from the intended status.
    fn update(&self, object: &ObjectRef, input: &StatusInput, now: Timestamp, round: &mut Round) -> io::Result<()> {
        let current = input.resources.manifest(object.kind, &object.key).and_then(|manifest| manifest.status());
        let written = files::read(&self.folder, object);
        let merged = input.report.merged(object, current.as_ref(), written.as_ref(), now);
        // A Route that no router selects has no file, unless other controllers have written entries.
        let has_file = |status: &Value| object.kind != Kind::Route || status.get("ingress").is_some();
        match merged.filter(has_file) {
            Some(status) if written.is_some_and(|written| same_but_times(&status, &written)) => {}
            Some(status) => {
                files::write(&self.folder, object, &status)?;
                round.written += 1;
            }
            None => round.removed += usize::from(files::remove(&self.folder, object)?),
        }
        Ok(())
    }

    /// Writes every new input until the sender is dropped. Rounds with failures are repeated after a few seconds.
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
}

/// The objects with a status.
fn reported(report: &StatusReport) -> impl Iterator<Item = ObjectRef> {
    let controllers = report.ingress_controllers.keys().map(|key| reference(Kind::IngressController, key));
    controllers.chain(routes(report)).chain(report.others.entries().map(|(object, _)| object.clone()))
}

fn routes(report: &StatusReport) -> impl Iterator<Item = ObjectRef> {
    report.routes.entries().map(|(key, _)| reference(Kind::Route, key))
}

fn reference(kind: Kind, key: &ObjectKey) -> ObjectRef {
    ObjectRef { kind, key: key.clone() }
}

/// The objects whose status or manifest has changed: other controllers may have written into the manifest.
fn changed_since(last: &StatusInput, input: &StatusInput) -> Vec<ObjectRef> {
    let (old, new) = (&last.report, &input.report);
    let mut changed = Vec::new();
    // An entry that was decided anew may be equal, and each object costs a read of its file.
    let entries = new.routes.changes_since(&old.routes).filter(|changed| changed.old != changed.new);
    changed.extend(entries.map(|changed| reference(Kind::Route, changed.key)));
    let others = new.others.changes_since(&old.others).filter(|changed| changed.old != changed.new);
    changed.extend(others.map(|changed| changed.key.clone()));
    let (old_controllers, new_controllers) = (&old.ingress_controllers, &new.ingress_controllers);
    let controllers = old_controllers.keys().chain(new_controllers.keys());
    let controllers = controllers.filter(|key| old_controllers.get(*key) != new_controllers.get(*key));
    changed.extend(controllers.map(|key| reference(Kind::IngressController, key)));
    if old.routers != new.routers {
        // The set of Routes' entries that are ours has changed.
        changed.extend(routes(new));
    }
    macro_rules! manifests {
        ($($(#[$about:meta])* $kind:ident $name:literal $versions:tt
            $scope:ident, $type:ident in $collection:ident, $status:ident;)*) => {
            $(manifests!(@$status $kind $collection);)*
        };
        (@none $kind:ident $collection:ident) => {};
        (@$status:ident $kind:ident $collection:ident) => {
            let slots = input.resources.$collection.changes_since(&last.resources.$collection);
            changed.extend(slots.map(|slot| reference(Kind::$kind, slot.key)));
        };
    }
    for_kinds!(manifests);
    changed
}

/// Objects without a status whose newest version is rejected since the last input: as they are stored, and why.
fn newly_rejected(last: &StatusInput, input: &StatusInput) -> Vec<(Value, String)> {
    let mut rejected = Vec::new();
    macro_rules! versions {
        ($($(#[$about:meta])* $kind:ident $name:literal $versions:tt
            $scope:ident, $type:ident in $collection:ident, $status:ident;)*) => {
            $(versions!(@$status $collection);)*
        };
        (@none $collection:ident) => {
            for slot in input.resources.$collection.changes_since(&last.resources.$collection) {
                let was_rejected = slot.old.is_some_and(|old| old.rejected.is_some());
                let now = slot.new.and_then(|new| new.rejected.as_ref()).filter(|_| !was_rejected);
                rejected.extend(now.map(|now| (now.manifest.value(), now.problem.clone())));
            }
        };
        (@$status:ident $collection:ident) => {};
    }
    for_kinds!(versions);
    rejected
}

#[cfg(test)]
mod tests;
