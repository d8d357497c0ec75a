//! The objects of a cluster as the watches report them: versions in force, and which objects are held.
//!
//! EndpointSlices and Secrets are many, and few of them are used: those are held that an object references.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use router_api::defaults::Defaults;
use router_api::object::Object;
use router_api::parse::parse;
use router_api::resources::Resources;
use router_model::certificate::MaterialCache;
use router_model::field::{FieldError, Findings};
use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef, Origin, Uid};
use serde_json::Value;

use super::referenced::{Referenced, Requests};
use super::scope::Scope;
use super::snapshot::Snapshot;
use super::snapshot::writer::SnapshotWriter;
use super::update::{Update, WatchEvent, WatchFailure};
use crate::kubernetes::version_in;
use crate::source::accepted::{Candidate, Decision, UpdateContext};
use crate::source::diagnostic::{Diagnostic, Severity};
use crate::source::snapshot::SourceSnapshot;

/// A list that lacks more than this many objects of a scope, and more than half of them, is not believed at once; nor is one
/// that lacks all.
const MAX_SHRINK: usize = 100;
/// How long such a list is not believed.
const DOUBT: Duration = Duration::from_secs(30);

/// Number of deletions that are remembered at least.
const MIN_DELETED: usize = 1024;
/// `type` of Secrets with a certificate.
const TLS: &str = "kubernetes.io/tls";
/// Maximum time that reading an object takes.
const READING: Duration = Duration::from_secs(60);

/// State of a watch.
#[derive(Debug, Default)]
struct ScopeState {
    /// The keys of a list that is being read.
    listing: Option<HashSet<ObjectKey>>,
    /// A list was complete, or the kind is not installed.
    listed: bool,
    /// When a list first lacked most objects.
    doubted: Option<Instant>,
    /// Why it does not proceed.
    failure: Option<WatchFailure>,
}

impl ScopeState {
    /// True if there is nothing to wait for. A kind that may not be read holds nothing back.
    fn is_answered(&self) -> bool {
        self.listed || self.is_denied()
    }

    fn is_denied(&self) -> bool {
        matches!(self.failure, Some(WatchFailure::Denied(_)))
    }
}

/// The objects of a cluster.
pub struct ClusterObjects {
    defaults: Defaults,
    materials: MaterialCache,
    resources: Resources,
    scopes: HashMap<Scope, ScopeState>,
    /// The objects held, and their resource versions.
    known: HashMap<Kind, HashMap<ObjectKey, u64>>,
    /// Deleted objects, and when: one that is being read may be older.
    deleted: HashMap<ObjectRef, (u64, Instant)>,
    /// Number of these at which old ones are forgotten.
    most_deleted: usize,
    /// What objects reference.
    referenced: Referenced,
    /// What is wrong with objects.
    flawed: BTreeMap<ObjectRef, Vec<Diagnostic>>,
    /// The same, in order; `None` when it has changed.
    diagnostics: Option<Arc<[Diagnostic]>>,
    /// Lists that are not believed yet, as messages.
    doubts: BTreeMap<Scope, String>,
    /// Writes what is held to the snapshot, if there is to be one.
    writer: Option<SnapshotWriter>,
}

impl ClusterObjects {
    /// No objects yet.
    pub fn new(defaults: Defaults, writer: Option<SnapshotWriter>) -> Self {
        ClusterObjects {
            defaults,
            materials: MaterialCache::new(),
            resources: Resources::default(),
            scopes: HashMap::new(),
            known: HashMap::new(),
            deleted: HashMap::new(),
            most_deleted: MIN_DELETED,
            referenced: Referenced::default(),
            flawed: BTreeMap::new(),
            diagnostics: None,
            doubts: BTreeMap::new(),
            writer,
        }
    }

    /// The writer of the snapshot.
    pub fn writer(&mut self) -> Option<&mut SnapshotWriter> {
        self.writer.as_mut()
    }

    /// Sets the objects of a snapshot of which nothing newer is known. Returns false if it is another cluster's.
    pub fn load(&mut self, snapshot: &Snapshot, requests: &mut Requests) -> bool {
        let identity = ObjectRef { kind: Kind::Namespace, key: ObjectKey::new("", "kube-system") };
        if let (Some(now), Some(then)) =
            (self.resources.object(identity.kind, &identity.key), snapshot.value(&identity))
            && then
                .pointer("/metadata/uid")
                .is_some_and(|uid| now.meta().uid != Uid::from(uid.as_str().unwrap_or_default()))
        {
            return false;
        }
        let listed = self.scopes.iter().filter(|(_, state)| state.listed);
        let listed: Vec<Scope> = listed.map(|(scope, _)| scope.clone()).collect();
        // What is referenced is held, so what references comes first.
        let (last, first): (Vec<_>, Vec<_>) = snapshot.objects().partition(|object| is_selective(object.kind));
        for object in first.into_iter().chain(last) {
            let ObjectRef { kind, key } = object;
            let is_known = self.known.get(kind).is_some_and(|known| known.contains_key(key))
                || listed.iter().any(|scope| scope.kind == *kind && scope.contains(key));
            if !is_known && let Some(value) = snapshot.value(object) {
                self.set(*kind, key.clone(), Some(value), requests);
            }
        }
        if let Some(writer) = &mut self.writer {
            writer.loaded();
        }
        true
    }

    /// True if no watch fails.
    pub fn is_current(&self) -> bool {
        self.scopes.values().all(|state| !matches!(state.failure, Some(WatchFailure::Unreachable(_))))
    }

    /// Expects a list of a scope.
    pub fn expect(&mut self, scope: Scope) {
        self.scopes.entry(scope).or_default();
    }

    /// Removes the objects of a scope that is watched no longer, but for a certificate in use: its kind's watch has it, too.
    pub fn abandon(&mut self, scope: &Scope, requests: &mut Requests) {
        self.scopes.remove(scope);
        self.doubts.remove(scope);
        for key in self.known_of(scope) {
            let object = ObjectRef { kind: scope.kind, key };
            let is_certificate = self.resources.secrets.get(&object.key).is_some_and(|secret| *secret.kind == *TLS);
            if !(object.kind == Kind::Secret && is_certificate && self.referenced.contains(&object)) {
                self.set(object.kind, object.key, None, requests);
            }
        }
    }

    /// True if a scope may not be read.
    pub fn is_denied(&self) -> bool {
        self.scopes.values().any(ScopeState::is_denied)
    }

    /// True when each expected scope was listed, or cannot be.
    pub fn is_complete(&self) -> bool {
        self.scopes.values().all(ScopeState::is_answered)
    }

    /// The scopes that were not listed yet.
    pub fn missing(&self) -> impl Iterator<Item = (&Scope, Option<&WatchFailure>)> {
        let missing = self.scopes.iter().filter(|(_, state)| !state.is_answered());
        missing.map(|(scope, state)| (scope, state.failure.as_ref()))
    }

    /// The objects in force, and what is wrong with objects.
    pub fn snapshot(&mut self) -> SourceSnapshot {
        let flawed = &self.flawed;
        let sorted = || {
            let mut all: Vec<Diagnostic> = flawed.values().flatten().cloned().collect();
            all.sort();
            all.into()
        };
        let diagnostics = Arc::clone(self.diagnostics.get_or_insert_with(sorted));
        let resources = Arc::new(self.resources.clone());
        let doubts = self.doubts.values().cloned().collect();
        SourceSnapshot { resources, diagnostics, doubts, as_of: None }
    }

    /// Applies a report of a watch. Returns true if an object may have changed.
    pub fn apply(&mut self, update: Update, now: Instant, requests: &mut Requests) -> bool {
        let Update { scope, event } = update;
        if let WatchEvent::Fetched { key, value } = event {
            return self.set_fetched(ObjectRef { kind: scope.kind, key }, *value, requests);
        }
        let Some(state) = self.scopes.get_mut(&scope) else { return false };
        // A list that begins may fail like the one before.
        if !matches!(event, WatchEvent::Failed(_) | WatchEvent::Listing | WatchEvent::Restored) {
            state.failure = None;
        }
        match event {
            WatchEvent::Listing => {
                state.listing = Some(HashSet::new());
                false
            }
            WatchEvent::Object { key, value } => {
                if let Some(listing) = &mut state.listing {
                    listing.insert(key.clone());
                }
                self.set(scope.kind, key, Some(*value), requests)
            }
            WatchEvent::Deleted { key, version } => {
                self.note_deleted(ObjectRef { kind: scope.kind, key: key.clone() }, version, now);
                self.set(scope.kind, key, None, requests)
            }
            WatchEvent::Fetched { .. } => false,
            WatchEvent::Listed => {
                let Some(listed) = state.listing.take() else { return false };
                self.finish_list(&scope, &listed, now, requests)
            }
            WatchEvent::Restored => {
                self.forget_versions(&scope);
                false
            }
            WatchEvent::NotInstalled => self.finish_list(&scope, &HashSet::new(), now, requests),
            WatchEvent::Failed(failure) => {
                log_failure(&scope, state.failure.as_ref(), &failure);
                state.failure = Some(failure);
                false
            }
        }
    }

    /// Removes the objects that a list lacks.
    fn finish_list(
        &mut self,
        scope: &Scope,
        listed: &HashSet<ObjectKey>,
        now: Instant,
        requests: &mut Requests,
    ) -> bool {
        let known = self.known_of(scope);
        let gone: Vec<ObjectKey> = known.iter().filter(|key| !listed.contains(*key)).cloned().collect();
        let Some(state) = self.scopes.get_mut(scope) else { return false };
        state.listed = true;
        // What is new in the list is known by now.
        let lacks_all = !gone.is_empty() && gone.len() == known.len() && scope.name.is_none();
        if lacks_all || gone.len() > MAX_SHRINK && gone.len() * 2 > known.len() {
            let since = *state.doubted.get_or_insert(now);
            if now.duration_since(since) < DOUBT {
                tracing::warn!(%scope, missing = gone.len(), known = known.len(),
                    "a list of the API server lacks most objects; it is read again in {} s", DOUBT.as_secs());
                let doubt =
                    format!("{scope}: a list lacks {} of {} objects; they go on serving", gone.len(), known.len());
                let is_first = self.doubts.insert(scope.clone(), doubt).is_none();
                // The list that it begins decides.
                if is_first {
                    requests.relist.insert(scope.clone());
                }
                return is_first;
            }
            tracing::warn!(%scope, removed = gone.len(), "the API server's list still lacks most objects: they are removed");
        }
        state.doubted = None;
        let mut changed = self.doubts.remove(scope).is_some();
        for key in gone {
            changed |= self.set(scope.kind, key, None, requests);
        }
        changed
    }

    /// An object of the next list may have a version that another one had.
    fn forget_versions(&mut self, scope: &Scope) {
        let known = self.known.get_mut(&scope.kind).into_iter().flatten();
        known.filter(|(key, _)| scope.contains(key)).for_each(|(_, version)| *version = 0);
        self.deleted.retain(|object, _| object.kind != scope.kind);
    }

    /// The objects held of a scope, without those that have a scope of their own.
    fn known_of(&self, scope: &Scope) -> Vec<ObjectKey> {
        let is_other = |key: &&ObjectKey| {
            let own = Scope::of(&ObjectRef { kind: scope.kind, key: (*key).clone() });
            scope.name.is_none() && is_selective(scope.kind) && self.scopes.contains_key(&own)
        };
        let known = self.known.get(&scope.kind).into_iter().flat_map(HashMap::keys);
        known.filter(|key| scope.contains(key) && !is_other(key)).cloned().collect()
    }

    /// Sets an object that was read by itself, unless something newer is known of it.
    fn set_fetched(&mut self, object: ObjectRef, value: Value, requests: &mut Requests) -> bool {
        let version = version_in(&value);
        let known = self.known.get(&object.kind).and_then(|known| known.get(&object.key));
        let deleted = self.deleted.get(&object).map(|(version, _)| version);
        let is_old = known.into_iter().chain(deleted).any(|known| *known >= version);
        !is_old && self.set(object.kind, object.key, Some(value), requests)
    }

    /// Remembers a deletion while an object may be read that is older.
    fn note_deleted(&mut self, object: ObjectRef, version: u64, now: Instant) {
        if !is_selective(object.kind) {
            return;
        }
        self.deleted.insert(object, (version, now));
        if self.deleted.len() >= self.most_deleted {
            self.deleted.retain(|_, (_, when)| now.duration_since(*when) < READING);
            self.most_deleted = (2 * self.deleted.len()).max(MIN_DELETED);
        }
    }

    /// Sets or removes an object. Returns true if it may have changed.
    pub fn set(&mut self, kind: Kind, key: ObjectKey, value: Option<Value>, requests: &mut Requests) -> bool {
        let object = ObjectRef { kind, key };
        let value = value.filter(|value| self.is_held(&object, value));
        let old = self.resources.object(kind, &object.key);
        let known = self.known.entry(kind).or_default();
        let new = match value {
            Some(value) => {
                let version = version_in(&value);
                if known.insert(object.key.clone(), version) == Some(version) && version != 0 {
                    return false;
                }
                if let Some(writer) = &mut self.writer {
                    writer.set(&object, Some(&value));
                }
                self.read(&object, value, old.as_ref())
            }
            None if known.remove(&object.key).is_some() => {
                if let Some(writer) = &mut self.writer {
                    writer.set(&object, None);
                }
                self.note_diagnostics(&object, Vec::new());
                None
            }
            None => return false,
        };
        let ObjectRef { kind, key } = &object;
        let (accepted, rejected) = new.map_or((None, None), |decision| (decision.accepted, decision.rejected));
        self.resources.set(key.clone(), *kind, accepted.as_ref(), rejected);
        for object in self.referenced.replace(old.as_ref(), accepted.as_ref(), requests) {
            self.release(&object, requests);
        }
        true
    }

    /// Decides which version of an object is in force; `old` is the one so far.
    fn read(&mut self, object: &ObjectRef, value: Value, old: Option<&Object>) -> Option<Decision> {
        let origin = Origin::default();
        let parsed = parse(value, origin.clone(), &self.defaults, &mut self.materials);
        let (_, candidate, findings) = Candidate::new(parsed, &FieldError::to_string)?;
        let context = UpdateContext { origin, defaults: &self.defaults, materials: &mut self.materials };
        let mut decision = candidate.decide(old.cloned(), context, &FieldError::to_string);
        let diagnostics = diagnostics(object, &decision.revised.take().unwrap_or(findings));
        self.note_diagnostics(object, diagnostics);
        Some(decision)
    }

    fn note_diagnostics(&mut self, object: &ObjectRef, diagnostics: Vec<Diagnostic>) {
        let before = match diagnostics.is_empty() {
            true => self.flawed.remove(object),
            false => self.flawed.insert(object.clone(), diagnostics),
        };
        if before.as_ref() != self.flawed.get(object) {
            self.diagnostics = None;
        }
    }

    /// True if an object is of a kind that is held whole, or is referenced.
    fn is_held(&self, object: &ObjectRef, value: &Value) -> bool {
        match object.kind {
            Kind::EndpointSlice => {
                service_of(&object.key, value).is_some_and(|service| self.referenced.contains(&service))
            }
            Kind::Secret => {
                self.referenced.contains(object)
                    && (self.referenced.is_authority(&object.key) || value.get("type").is_some_and(|it| it == TLS))
            }
            Kind::ConfigMap => self.referenced.contains(object),
            _ => true,
        }
    }

    /// Removes what is no longer referenced.
    fn release(&mut self, object: &ObjectRef, requests: &mut Requests) {
        match object.kind {
            Kind::Service => {
                let slices = self.resources.endpoint_slices.of_namespace(&object.key.namespace);
                let slices = slices.filter(|slice| slice.service.as_ref() == Some(&object.key.name));
                let slices: Vec<ObjectKey> = slices.map(|slice| slice.meta.key.clone()).collect();
                for key in slices {
                    self.set(Kind::EndpointSlice, key, None, requests);
                }
            }
            kind => drop(self.set(kind, object.key.clone(), None, requests)),
        }
    }
}

fn diagnostics(object: &ObjectRef, findings: &Findings) -> Vec<Diagnostic> {
    let errors = findings.errors.iter().map(|error| (error, Severity::Error));
    let warnings = findings.warnings.iter().map(|warning| (warning, Severity::Warning));
    let diagnostic = |(error, severity): (&FieldError, Severity)| Diagnostic {
        object: object.to_string(),
        path: error.path.to_string(),
        ..Diagnostic::of_file(&Arc::from(""), severity, error.message.clone())
    };
    errors.chain(warnings).map(diagnostic).collect()
}

/// True for kinds of which only referenced objects are held.
pub fn is_selective(kind: Kind) -> bool {
    matches!(kind, Kind::EndpointSlice | Kind::Secret | Kind::ConfigMap)
}

/// The Service of an EndpointSlice.
fn service_of(slice: &ObjectKey, value: &Value) -> Option<ObjectRef> {
    let name = value.pointer("/metadata/labels/kubernetes.io~1service-name")?.as_str()?;
    let key = ObjectKey { namespace: slice.namespace.clone(), name: name.into() };
    Some(ObjectRef { kind: Kind::Service, key })
}

/// Logs a failure that is new.
fn log_failure(scope: &Scope, before: Option<&WatchFailure>, failure: &WatchFailure) {
    match (before, failure) {
        (Some(before), _) if std::mem::discriminant(before) == std::mem::discriminant(failure) => {}
        (_, WatchFailure::Denied(message)) => {
            tracing::error!(%scope, message, "the API server denies reading this kind; it is asked again every 30 s");
        }
        (_, WatchFailure::Unreachable(message)) => {
            tracing::warn!(%scope, message, "the API server cannot be read; what was last read goes on serving");
        }
    }
}

#[cfg(test)]
mod tests;
