//! Writes statuses to an API server: a merge patch of an object's `status` with its resource version, by the leader.
//!
//! An object's stored status is the writer's memory: nothing is written where only times differ, so neither a restart nor
//! another leader writes anything. Entries of other controllers do not change. A failed write never stops traffic.

mod fights;
mod queue;
mod write;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use k8s_openapi::api::core::v1::ObjectReference;
use router_model::object::ObjectRef;
use tokio::sync::watch;
use tokio::task::coop::consume_budget;
use tokio::time::sleep_until;

use super::events::{Events, Notice, reference, transitions};
use super::{StatusInput, changed_since, newly_rejected};
use crate::kubernetes::client::ApiServer;
use fights::{Fights, Intent, Verdict};
use queue::Queue;
use write::{StatusChange, StatusWrite, Written, last_writer, stored};

/// Delay before a status that the API server rejects is written again, if neither it nor the object changes.
const REJECTED_RETRY: Duration = Duration::from_secs(300);

/// Writes the statuses of a cluster's objects.
pub struct ApiStatusWriter {
    server: ApiServer,
    events: Events,
    /// What Events are about that are of no single object.
    lease: ObjectReference,
    last: Option<Arc<StatusInput>>,
    queue: Queue,
    fights: Fights,
    jobs: FuturesUnordered<BoxFuture<'static, Ended>>,
}

/// A request that ended.
enum Ended {
    Write(ObjectRef, Intent, Written),
    /// Who fights for the status of an object, and that all writes stop, if so.
    Fight(ObjectRef, Option<String>, bool),
}

impl ApiStatusWriter {
    /// A writer. Events that are of no single object are about this Lease.
    pub fn new(server: ApiServer, lease: &str, events: Events) -> Self {
        let lease = ObjectReference {
            api_version: Some("coordination.k8s.io/v1".to_owned()),
            kind: Some("Lease".to_owned()),
            namespace: Some(server.client.default_namespace().to_owned()),
            name: Some(lease.to_owned()),
            ..ObjectReference::default()
        };
        ApiStatusWriter {
            server,
            events,
            lease,
            last: None,
            queue: Queue::new(Instant::now()),
            fights: Fights::default(),
            jobs: FuturesUnordered::new(),
        }
    }

    /// Writes each new input while this agent leads. Dropping the future cancels requests.
    pub async fn run(mut self, mut inputs: watch::Receiver<Arc<StatusInput>>, mut leads: watch::Receiver<bool>) {
        inputs.mark_changed();
        loop {
            if !*leads.borrow_and_update() {
                self.last = None;
                (self.queue, self.fights) = (Queue::new(Instant::now()), Fights::default());
                self.jobs.clear();
                if leads.changed().await.is_err() {
                    return;
                }
                continue;
            }
            if self.last.is_none() || inputs.has_changed().unwrap_or(false) {
                let input = inputs.borrow_and_update().clone();
                self.take(input);
            }
            let now = Instant::now();
            if let Some(object) = self.queue.next(now) {
                self.begin(object, now, &leads);
                consume_budget().await;
                continue;
            }
            let wake = self.queue.wakes_at(now);
            tokio::select! {
                changed = inputs.changed() => if changed.is_err() { return } else { inputs.mark_changed() },
                changed = leads.changed() => if changed.is_err() { return } else { leads.mark_changed() },
                Some(ended) = self.jobs.next(), if !self.jobs.is_empty() => self.finish(ended),
                () = at(wake) => {}
            }
        }
    }

    /// Queues the objects that differ from the last input.
    fn take(&mut self, input: Arc<StatusInput>) {
        if let Some(last) = &self.last {
            // At first, it is not known since when.
            for (object, problem) in newly_rejected(last, &input) {
                let regarding = reference(&object);
                self.notify(regarding, "InvalidManifest", "Read", problem);
            }
        }
        // At first every object: one that is no longer Sluice's may have entries of ours.
        let last = self.last.take().unwrap_or_default();
        if input.doubts.iter().any(|doubt| !last.doubts.contains(doubt)) {
            self.notify(self.lease.clone(), "SourceShrunk", "List", input.doubts.join("; "));
        }
        for object in changed_since(&last, &input) {
            self.queue.add(object);
        }
        self.last = Some(input);
    }

    /// Begins to write an object's status, if it differs from the stored one.
    fn begin(&mut self, object: ObjectRef, now: Instant, leads: &watch::Receiver<bool>) {
        let Some(input) = self.last.clone() else { return };
        let Some(stored) = stored(&input.resources, &object) else {
            self.queue.settle(&object);
            self.fights.forget(&object);
            return;
        };
        let Some(change) = StatusChange::new(&input, &object, stored) else {
            self.queue.settle(&object);
            return;
        };
        let intent = change.intent(&input, &object);
        let client = self.server.client.clone();
        match self.fights.judge(&object, change.version(), &intent, now) {
            Verdict::Write => {
                self.queue.begin(object.clone(), now);
                let write = StatusWrite { client, input, object: object.clone(), change, leads: leads.clone() };
                self.jobs.push(Box::pin(async move { Ended::Write(object, intent, write.run().await) }));
            }
            Verdict::Silent(until) => self.queue.defer(object, until),
            Verdict::Contended(until, all) => {
                self.queue.defer(object.clone(), until);
                if let Some(until) = all {
                    self.queue.pause(until);
                }
                self.jobs.push(Box::pin(async move {
                    let rival = last_writer(client, object.clone()).await;
                    Ended::Fight(object, rival, all.is_some())
                }));
            }
        }
    }

    fn finish(&mut self, ended: Ended) {
        match ended {
            Ended::Write(object, intent, written) => self.finish_write(object, intent, written, Instant::now()),
            Ended::Fight(object, rival, stops_all) => {
                let manager = rival.unwrap_or_else(|| "unknown".to_owned());
                tracing::warn!(%object, manager, "another writer changes this status again and again: not written for 10 min");
                if stops_all {
                    tracing::error!(
                        manager,
                        "another writer changes many statuses: none is written for 6 min. \
                         Do two installations have the same controllerName or routerName?"
                    );
                }
                let stored = self.last.as_ref().and_then(|input| stored(&input.resources, &object));
                let note =
                    format!("field manager {manager:?} changes this status; Sluice does not write it for 10 min");
                if let Some(stored) = stored {
                    self.notify(reference(&stored), "StatusContended", "WriteStatus", note);
                }
            }
        }
    }

    fn finish_write(&mut self, object: ObjectRef, intent: Intent, written: Written, now: Instant) {
        let (delay, problem) = match written {
            Written::Done(change, version) => {
                self.queue.done(&object);
                for (reason, note) in transitions(change.stored.get("status"), &change.status) {
                    self.notify(reference(&change.stored), &reason, "WriteStatus", note);
                }
                match version {
                    Some(version) => self.fights.wrote(object, version, intent),
                    // Nobody can tell who makes a later difference.
                    None => self.fights.forget(&object),
                }
                return;
            }
            Written::Unneeded => return self.queue.done(&object),
            Written::Gone => {
                self.queue.done(&object);
                self.fights.forget(&object);
                return;
            }
            Written::Throttled(after) => {
                let pause = self.queue.throttle(object, after, now);
                tracing::debug!(?pause, "the API server asks for fewer requests: no status is written meanwhile");
                return;
            }
            // No other write would have an answer either.
            Written::Failed(problem) if !self.server.reachability.answers() => {
                if self.queue.unanswered(object, now) {
                    tracing::warn!(problem, "the API server does not answer: no status is written until it does");
                }
                return;
            }
            Written::Rejected(problem) => (Some(REJECTED_RETRY), problem),
            Written::Failed(problem) => (None, problem),
        };
        let (retry, failures) = self.queue.fail(object.clone(), delay, now);
        if failures == 0 {
            tracing::warn!(%object, problem, ?retry, "a status was not written");
        }
    }

    fn notify(&self, regarding: ObjectReference, reason: &str, action: &'static str, note: String) {
        self.events.send(Notice { regarding, reason: reason.to_owned(), action, note });
    }
}

async fn at(when: Option<Instant>) {
    match when {
        Some(when) => sleep_until(when.into()).await,
        None => std::future::pending().await,
    }
}
