//! Parses the text of a file to objects, each with its place.
//!
//! A document whose text and line have not changed since the last read keeps its objects; it is not parsed again.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use router_api::defaults::Defaults;
use router_api::object::Object;
use router_api::parse::{ParseOutcome, parse};
use router_api::update::{parse_update, reread_good, reread_refused};
use router_model::certificate::MaterialCache;
use router_model::field::FieldPath;
use router_model::kind::Kind;
use router_model::object::{ObjectRef, Origin};
use serde_json::Value;

use super::diagnostic::{Diagnostic, Severity};
use super::entry::{EntryPlace, ManifestEntry};
use super::{document, parallel, unrendered};
use crate::source::document::tree::{self, Document, DocumentError, Mark, Places, begin, children, member};

/// Maximum nesting of lists of objects.
const MAX_LISTS: usize = 4;

/// An object of an unknown kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// `apiVersion` and `kind`.
    pub kind: (String, String),
    /// Where the object begins.
    pub at: Mark,
}

/// Content of a file.
#[derive(Debug, Default)]
pub struct FileContent {
    /// Its objects, in order.
    pub entries: Vec<Arc<ManifestEntry>>,
    /// Those of them that have diagnostics.
    pub noted: Vec<Arc<ManifestEntry>>,
    /// Its diagnostics, except those of its objects.
    pub diagnostics: Vec<Diagnostic>,
    /// Objects of unknown kinds.
    pub unknown: Vec<Unknown>,
    /// The first syntax error, as `<file>:<line>: <message>`: `entries` may lack objects.
    pub broken: Option<String>,
    parts: HashMap<PartId, Arc<ParsedPart>>,
}

/// Text of a part (hash and length) and its first line.
type PartId = (u64, usize, u32);

/// The parsed objects of one part of a file.
#[derive(Debug, Default)]
struct ParsedPart {
    entries: Vec<Arc<ManifestEntry>>,
    diagnostics: Vec<Diagnostic>,
    unknown: Vec<Unknown>,
    broken: Option<String>,
}

impl FileContent {
    fn add(&mut self, id: PartId, part: Arc<ParsedPart>) {
        self.entries.extend(part.entries.iter().cloned());
        self.noted.extend(part.entries.iter().filter(|entry| !entry.diagnostics.is_empty()).cloned());
        self.diagnostics.extend(part.diagnostics.iter().cloned());
        self.unknown.extend(part.unknown.iter().cloned());
        self.broken = self.broken.take().or_else(|| part.broken.clone());
        self.parts.insert(id, part);
    }

    fn has_errors(&self) -> bool {
        let has_errors = |noted: &[Diagnostic]| noted.iter().any(|noted| noted.severity == Severity::Error);
        has_errors(&self.diagnostics) || self.noted.iter().any(|entry| has_errors(&entry.diagnostics))
    }
}

/// A file to parse, and its previous content.
pub struct Due<'d> {
    /// Path relative to the folder.
    pub file: &'d Arc<str>,
    /// Its current text.
    pub text: &'d str,
    /// Its previous content.
    pub previous: Option<&'d FileContent>,
}

/// Parses files, on several threads if there is enough to do. The result does not depend on the number of threads.
#[derive(Debug)]
pub struct ManifestReader {
    defaults: Defaults,
    hasher: RandomState,
    /// State of each thread.
    threads: Vec<MaterialCache>,
}

impl ManifestReader {
    /// A reader with these defaults and this number of threads.
    pub fn new(defaults: Defaults, threads: usize) -> Self {
        let threads = (0..threads.max(1)).map(|_| MaterialCache::new()).collect();
        ManifestReader { defaults, hasher: RandomState::new(), threads }
    }

    /// The result of `work` for each item, in order, computed on the reader's threads.
    pub fn map<T: Sync, R: Send>(&self, items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
        parallel::map(&mut vec![(); self.threads.len()], items, |(), item| work(item))
    }

    /// A digest of a text, equal for equal texts.
    pub fn digest(&self, text: &str) -> (u64, usize) {
        (self.hasher.hash_one(text), text.len())
    }

    /// Parses files and returns their contents in the same order.
    pub fn read(&mut self, due: &[Due<'_>]) -> Vec<FileContent> {
        let texts = due.iter().enumerate().flat_map(|(at, due)| {
            let parts = document::parts(due.text, due.file.ends_with(".json"));
            parts.into_iter().map(move |(text, lines_before)| (at, text, lines_before))
        });
        let texts: Vec<_> = texts.collect();
        let ManifestReader { defaults, hasher, threads } = self;
        let parts = parallel::map(threads, &texts, |materials, (at, text, lines_before)| {
            let Due { file, previous, .. } = due.get(*at)?;
            let id = (hasher.hash_one(text), text.len(), *lines_before);
            let known = previous.and_then(|previous| previous.parts.get(&id)).cloned();
            let read = || {
                let mut reader = PartReader { file, defaults: &*defaults, materials };
                Arc::new(reader.read(text, *lines_before))
            };
            Some((id, known.unwrap_or_else(read)))
        });
        let mut contents: Vec<_> = due.iter().map(|_| FileContent::default()).collect();
        for ((at, ..), part) in texts.iter().zip(parts) {
            if let (Some(content), Some((id, part))) = (contents.get_mut(*at), part) {
                content.add(id, part);
            }
        }
        for (content, Due { file, text, .. }) in contents.iter_mut().zip(due) {
            if content.has_errors() {
                unrendered::explain(file, text, &mut content.diagnostics);
            }
        }
        contents
    }

    /// Parses an entry again as the API server would: as an update of `old`. `None` if the result is the same.
    pub fn revise(&mut self, file: &Arc<str>, entry: &ManifestEntry, old: &Object) -> Option<ManifestEntry> {
        let value = match (&entry.accepted, &entry.rejected) {
            (Some(good), _) => reread_good(good, old, &self.defaults),
            (None, Some(refused)) if !entry.is_garbled() => reread_refused(&refused.manifest, old),
            _ => None,
        }?;
        let materials = self.threads.first_mut()?;
        let parsed = parse_update(value, old, origin(file, entry.at), &self.defaults, materials);
        let locate = |path: &FieldPath| entry.locate(path);
        let revised = ManifestEntry::new(&EntryPlace { file, at: entry.at, locate: &locate }, parsed, &[], None)?;
        match &entry.rejected {
            // Its document has a syntax error, which is the problem to report.
            Some(refused) if entry.is_garbled() => Some(entry.held(revised.accepted, &refused.problem)),
            _ => Some(revised),
        }
    }
}

/// Parses a part of a file.
struct PartReader<'r> {
    file: &'r Arc<str>,
    defaults: &'r Defaults,
    materials: &'r mut MaterialCache,
}

impl PartReader<'_> {
    fn read(&mut self, text: &str, lines_before: u32) -> ParsedPart {
        let PartReader { file, .. } = *self;
        let is_json = file.ends_with(".json");
        let mut part = ParsedPart::default();
        let documents = document::read_part(text, lines_before, is_json);
        for Document { value, places, faults } in documents.good {
            let mut objects = Vec::new();
            expand(value, &places, None, 0, &mut objects);
            let begins: Vec<_> = objects.iter().map(|(_, places)| begin(places)).collect();
            for (i, (value, places)) in objects.into_iter().enumerate() {
                let from = begins.get(i).copied().filter(|_| i > 0);
                let faults = faults_of(&faults, from, begins.get(i + 1).copied());
                self.read_object(value, places, &faults, &mut part);
            }
        }
        for fault in documents.broken {
            part.broken.get_or_insert_with(|| format!("{file}:{}: {}", fault.at.line, fault.message));
            let place = EntryPlace { file, at: fault.at, locate: &|_| fault.at };
            part.diagnostics.push(place.fault("", &fault));
        }
        part
    }

    fn read_object(&mut self, value: Value, places: &Places<'_>, faults: &[&DocumentError], part: &mut ParsedPart) {
        let PartReader { file, defaults, .. } = *self;
        let at = begin(places);
        let locate = |path: &FieldPath| tree::locate(places, path);
        let place = EntryPlace { file, at, locate: &locate };
        let garbled = (!faults.is_empty()).then(|| value.clone());
        let parsed = parse(value, origin(file, at), defaults, self.materials);
        match &parsed.outcome {
            ParseOutcome::UnknownKind { api_version, kind } => {
                part.unknown.push(Unknown { kind: (api_version.clone(), kind.clone()), at });
            }
            ParseOutcome::Unidentified(errors) => {
                part.diagnostics.extend(faults.iter().map(|fault| place.fault("", fault)));
                part.diagnostics.extend(errors.iter().map(|error| place.diagnostic("", error, Severity::Error)));
            }
            ParseOutcome::Good(_) | ParseOutcome::Refused { .. } => {
                part.entries.extend(ManifestEntry::new(&place, parsed, faults, garbled.as_ref()).map(Arc::new));
            }
        }
    }
}

fn origin(file: &Arc<str>, at: Mark) -> Origin {
    Origin { file: file.clone(), line: at.line, column: at.column }
}

/// The current place of a field of an object, if the text still contains the object.
pub fn locate(text: &str, is_json: bool, object: &ObjectRef, path: &FieldPath) -> Option<Mark> {
    document::read(text, is_json).good.into_iter().find_map(|document| {
        let mut objects = Vec::new();
        expand(document.value, &document.places, None, 0, &mut objects);
        objects.iter().find(|(value, _)| is_object(value, object)).map(|(_, places)| tree::locate(places, path))
    })
}

fn is_object(value: &Value, object: &ObjectRef) -> bool {
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let namespace = match (text("/metadata/namespace"), object.kind.is_namespaced()) {
        (_, false) => "",
        ("", true) => router_api::meta::DEFAULT_NAMESPACE,
        (namespace, true) => namespace,
    };
    Kind::of(text("/apiVersion"), text("/kind")) == Some(object.kind)
        && text("/metadata/name") == &*object.key.name
        && namespace == &*object.key.namespace
}

/// Collects the objects of a document, each with its places: the document itself, or the items of a `List`. Items of a
/// typed list, such as a `RouteList`, inherit `apiVersion` and `kind`.
fn expand<'p, 't>(
    mut value: Value,
    places: &'p Places<'t>,
    inherited: Option<(&str, &str)>,
    depth: usize,
    objects: &mut Vec<(Value, &'p Places<'t>)>,
) {
    if let Value::Object(list) = &mut value
        && depth < MAX_LISTS
        && list.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"))
        && let Some(items) = list.get_mut("items").and_then(Value::as_array_mut)
    {
        let items = std::mem::take(items);
        let text = |member: &str| list.get(member).and_then(Value::as_str).unwrap_or_default();
        let (api_version, prefix) = (text("apiVersion"), text("kind").strip_suffix("List").unwrap_or_default());
        let inherited = (!prefix.is_empty()).then_some((api_version, prefix));
        let mut item_places = member(places, "items").into_iter().flat_map(children);
        for item in items {
            expand(item, item_places.next().unwrap_or(places), inherited, depth + 1, objects);
        }
        return;
    }
    if value.is_null() {
        return;
    }
    if let (Some((api_version, kind)), Value::Object(map)) = (inherited, &mut value) {
        map.entry("apiVersion").or_insert_with(|| api_version.into());
        map.entry("kind").or_insert_with(|| kind.into());
    }
    objects.push((value, places));
}

/// The faults of an object: from its beginning (for the first one, the document's) to the beginning of the next.
fn faults_of(faults: &[DocumentError], from: Option<Mark>, to: Option<Mark>) -> Vec<&DocumentError> {
    let is_within = |at: Mark| from.is_none_or(|from| at >= from) && to.is_none_or(|to| at < to);
    faults.iter().filter(|fault| is_within(fault.at)).collect()
}
