//! Reads a cluster: starts and ends the watches, and applies what they report.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use router_api::defaults::Defaults;
use router_model::kind::Kind;
use router_model::object::ObjectRef;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use super::fetch::fetch;
use super::objects::{ClusterObjects, is_selective};
use super::referenced::Requests;
use super::revision::Revision;
use super::scope::Scope;
use super::snapshot::writer::SnapshotWriter;
use super::snapshot::{Place, Snapshot};
use super::update::{Update, WatchFailure};
use super::watch::Watch;
use crate::kubernetes::client::ApiServer;
use crate::source::snapshot::SourceSnapshot;

/// A burst of changes has ended if nothing happens for this long.
const QUIET: Duration = Duration::from_millis(5);
/// A burst is applied after this time, ended or not.
const LONGEST_BURST: Duration = Duration::from_millis(50);
/// Maximum number of reports that wait to be applied.
const MAX_WAITING: usize = 4096;
/// Time before a list that lacks most objects is read again.
const RELIST: Duration = Duration::from_secs(31);
/// Maximum number of objects watched by name. The API server allows some 100 requests at a time on a connection.
const MAX_BY_NAME: usize = 40;
/// Interval of log lines about what a start waits for.
const WAITING: Duration = Duration::from_secs(5);

/// A cluster's objects, and the watches that report them.
pub struct ClusterReader {
    server: ApiServer,
    namespaces: Vec<Arc<str>>,
    objects: ClusterObjects,
    sender: mpsc::Sender<Update>,
    updates: mpsc::Receiver<Update>,
    definitions: watch::Sender<()>,
    revision: Arc<Revision>,
    _comparison: JoinSet<()>,
    watches: HashMap<Scope, RunningWatch>,
    /// Objects to watch by name, when others are watched no longer.
    waiting: BTreeSet<ObjectRef>,
    /// Whether EndpointSlices, Secrets and ConfigMaps are watched.
    follows_referenced: bool,
    place: Option<Place>,
}

/// A watch. Dropping it ends the watch.
struct RunningWatch {
    relist: Arc<Notify>,
    task: JoinHandle<()>,
}

impl Drop for RunningWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ClusterReader {
    /// Begins to list every kind, and a snapshot in this place.
    pub fn new(server: ApiServer, namespaces: Vec<Arc<str>>, defaults: Defaults, place: Option<Place>) -> Self {
        let (sender, updates) = mpsc::channel(MAX_WAITING);
        let revision = Arc::<Revision>::default();
        // Its task ends with the set.
        let mut comparison = JoinSet::new();
        comparison.spawn(Arc::clone(&revision).follow(server.client.clone()));
        let mut reader = ClusterReader {
            server,
            namespaces,
            objects: ClusterObjects::new(defaults, place.clone().map(SnapshotWriter::new)),
            sender,
            updates,
            definitions: watch::Sender::default(),
            revision,
            _comparison: comparison,
            watches: HashMap::new(),
            waiting: BTreeSet::new(),
            follows_referenced: false,
            place,
        };
        let first = Kind::ALL.into_iter().filter(|kind| !is_selective(*kind));
        let scopes: Vec<Scope> = first.flat_map(|kind| Scope::all(kind, &reader.namespaces)).collect();
        scopes.into_iter().for_each(|scope| reader.follow(scope));
        reader
    }

    /// Waits until every kind was listed once, or until a time. Returns whether every kind was listed.
    pub async fn complete(&mut self, until: Option<Instant>) -> bool {
        let mut logged = Instant::now();
        while !(self.follows_referenced && self.objects.is_complete()) {
            let left = until.map_or(WAITING, |until| until.saturating_duration_since(Instant::now()).min(WAITING));
            if left.is_zero() {
                return false;
            }
            if let Ok(Some(update)) = timeout(left, self.updates.recv()).await {
                self.apply_burst(update).await;
            }
            if logged.elapsed() >= WAITING {
                logged = Instant::now();
                self.log_missing();
            }
        }
        // Rights that are missing at a start, and were there before, are no reason to serve nothing.
        if until.is_some() && self.objects.is_denied() {
            self.load();
        }
        if let Some(writer) = self.objects.writer() {
            writer.publish();
        }
        true
    }

    /// Sets the objects of the snapshot that an earlier agent left. Returns when they were last known to be current; `None`
    /// if there is none of this cluster.
    pub fn load(&mut self) -> Option<SystemTime> {
        let place = self.place.as_ref()?;
        let opened = Snapshot::open(place).and_then(|snapshot| {
            let Some(snapshot) = snapshot else { return Ok(None) };
            Ok(Some((snapshot.as_of()?, snapshot)))
        });
        let (as_of, snapshot) = match opened {
            Ok(opened) => opened?,
            Err(error) => {
                tracing::error!(path = %place.path.display(), %error, "the snapshot cannot be read");
                return None;
            }
        };
        let mut requests = Requests::default();
        let is_of_cluster = self.objects.load(&snapshot, &mut requests);
        self.fulfil(requests);
        is_of_cluster.then_some(as_of)
    }

    /// Waits for changes, and applies them.
    pub async fn change(&mut self) {
        loop {
            let current = self.objects.is_current();
            let due = self.objects.writer().map(|writer| {
                writer.maintain(current);
                writer.due()
            });
            let update = match due {
                Some(due) => timeout(due, self.updates.recv()).await.ok().flatten(),
                None => self.updates.recv().await,
            };
            if let Some(update) = update
                && self.apply_burst(update).await
            {
                return;
            }
        }
    }

    /// The objects in force, and what is wrong with objects.
    pub fn snapshot(&mut self) -> SourceSnapshot {
        self.objects.snapshot()
    }

    /// Applies a report and those that follow it soon. Returns true if an object may have changed.
    async fn apply_burst(&mut self, first: Update) -> bool {
        let end = Instant::now() + LONGEST_BURST;
        let mut requests = Requests::default();
        let mut changed = self.objects.apply(first, Instant::now(), &mut requests);
        while let Ok(Some(update)) =
            timeout(QUIET.min(end.saturating_duration_since(Instant::now())), self.updates.recv()).await
        {
            changed |= self.objects.apply(update, Instant::now(), &mut requests);
            if Instant::now() >= end {
                break;
            }
        }
        self.fulfil(requests);
        // The lists that begin have what was referenced until now.
        if !self.follows_referenced && self.objects.is_complete() {
            self.follows_referenced = true;
            for kind in [Kind::EndpointSlice, Kind::Secret] {
                Scope::all(kind, &self.namespaces).into_iter().for_each(|scope| self.follow(scope));
            }
        }
        changed
    }

    /// Starts and ends watches, and reads objects.
    fn fulfil(&mut self, mut requests: Requests) {
        for object in std::mem::take(&mut requests.unwatch) {
            let scope = Scope::of(&object);
            self.waiting.remove(&object);
            self.watches.remove(&scope);
            self.objects.abandon(&scope, &mut requests);
        }
        let Requests { referenced, watch, unwatch: _, relist } = requests;
        let is_asked = !watch.is_empty();
        self.waiting.extend(watch);
        self.follow_by_name();
        if let Some(object) = self.waiting.first().filter(|_| is_asked) {
            let others = self.waiting.len() - 1;
            tracing::warn!(%object, others, "not read: at most {MAX_BY_NAME} ConfigMaps and CA Secrets are watched");
        }
        if self.follows_referenced && !referenced.is_empty() {
            tokio::spawn(fetch(self.server.client.clone(), referenced, self.sender.clone()));
        }
        for scope in relist {
            let Some(watch) = self.watches.get(&scope) else { continue };
            let relist = Arc::clone(&watch.relist);
            tokio::spawn(async move {
                tokio::time::sleep(RELIST).await;
                relist.notify_one();
            });
        }
    }

    /// Watches as many of the waiting objects by name as may be.
    fn follow_by_name(&mut self) {
        let by_name = self.watches.keys().filter(|scope| scope.name.is_some()).count();
        for _ in by_name..MAX_BY_NAME {
            let Some(object) = self.waiting.pop_first() else { return };
            self.follow(Scope::of(&object));
        }
    }

    fn follow(&mut self, scope: Scope) {
        let relist = Arc::new(Notify::new());
        let watch = Watch {
            scope: scope.clone(),
            client: self.server.client.clone(),
            reachability: self.server.reachability.clone(),
            updates: self.sender.clone(),
            definitions: self.definitions.clone(),
            relist: Arc::clone(&relist),
            revision: Arc::clone(&self.revision),
        };
        self.objects.expect(scope.clone());
        self.watches.insert(scope, RunningWatch { relist, task: tokio::spawn(watch.run()) });
    }

    fn log_missing(&self) {
        let mut missing: Vec<_> = self.objects.missing().collect();
        missing.sort_by(|one, other| one.0.cmp(other.0));
        let why = missing.iter().find_map(|(_, failure)| match failure {
            Some(WatchFailure::Denied(message) | WatchFailure::Unreachable(message)) => Some(message.as_str()),
            None => None,
        });
        let scopes: Vec<String> = missing.iter().map(|(scope, _)| scope.to_string()).collect();
        let why = why.unwrap_or("no answer yet");
        tracing::warn!(waiting_for = scopes.join(", "), why, "the API server has not listed every kind");
    }
}
