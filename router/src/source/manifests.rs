//! Parses the text of a file to objects, each with its place.
//!
//! A document whose text and line have not changed since the last read keeps its objects; it is not parsed again.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU32;
use std::sync::Arc;

use router_api::defaults::Defaults;
use router_api::object::Object;
use router_api::parse::{ParseOutcome, parse};
use router_model::certificate::MaterialCache;
use router_model::field::FieldPath;
use router_model::object::Origin;
use router_model::one_or_many::OneOrMany;
use router_model::parallel;
use serde_json::Value;

use super::accepted::{Decision, UpdateContext};
use super::diagnostic::{Diagnostic, Severity};
use super::entry::{EntryPlace, ManifestEntry};
use super::{document, unrendered};
use crate::source::document::tree::{self, Document, DocumentError, Mark, NodePlace, Places, begin, children, member};

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
    parts: OneOrMany<(PartId, ParsedPart)>,
    /// What is wrong with it, except with its objects; most files have nothing.
    flaws: Option<Box<Flaws>>,
}

/// Digest of a part's text, and its first line, from 1.
type PartId = (u64, NonZeroU32);

/// The parsed objects of one part of a file.
#[derive(Clone, Debug, Default)]
struct ParsedPart {
    entries: OneOrMany<Arc<ManifestEntry>>,
    flaws: Option<Arc<Flaws>>,
}

/// What is wrong with a file, or a part of it, except with its objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flaws {
    /// Problems.
    pub diagnostics: Vec<Diagnostic>,
    /// Objects of unknown kinds.
    pub unknown: Vec<Unknown>,
    /// The first syntax error, as `<file>:<line>: <message>`: objects may be missing.
    pub broken: Option<String>,
}

impl FileContent {
    fn new(file: &Arc<str>, text: &str, parts: Vec<(PartId, ParsedPart)>) -> Self {
        let mut flaws = Flaws::default();
        for part in parts.iter().filter_map(|(_, part)| part.flaws.as_ref()) {
            flaws.diagnostics.extend(part.diagnostics.iter().cloned());
            flaws.unknown.extend(part.unknown.iter().cloned());
            flaws.broken = flaws.broken.or_else(|| part.broken.clone());
        }
        let content = FileContent { parts: parts.into(), flaws: None };
        let of_objects = content.entries().flat_map(|entry| entry.diagnostics());
        if flaws.diagnostics.iter().chain(of_objects).any(|noted| noted.severity == Severity::Error) {
            unrendered::explain(file, text, &mut flaws.diagnostics);
        }
        FileContent { flaws: (flaws != Flaws::default()).then(|| Box::new(flaws)), ..content }
    }

    /// Its objects, in order.
    pub fn entries(&self) -> impl Iterator<Item = &Arc<ManifestEntry>> {
        self.parts.iter().flat_map(|(_, part)| &part.entries)
    }

    /// What is wrong with it, except with its objects.
    pub fn flaws(&self) -> Option<&Flaws> {
        self.flaws.as_deref()
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

    /// Parses files and returns their contents in the same order.
    pub fn read<'d>(&mut self, due: &[Due<'d>]) -> Vec<FileContent> {
        let texts = due.iter().enumerate().flat_map(|(at, due)| {
            let parts = document::parts(due.text, due.file.ends_with(".json"));
            parts.into_iter().map(move |(text, lines_before)| (at, text, lines_before))
        });
        let texts: Vec<_> = texts.collect();
        let parts_of = |content: &'d FileContent| content.parts.iter().map(|(id, part)| (*id, part));
        let known: Vec<HashMap<_, _>> =
            due.iter().map(|due| due.previous.into_iter().flat_map(parts_of).collect()).collect();
        let ManifestReader { defaults, hasher, threads } = self;
        let parts = parallel::map(threads, &texts, |materials, (at, text, lines_before)| {
            let id = (hasher.hash_one(text), NonZeroU32::MIN.saturating_add(*lines_before));
            let known = known.get(*at)?.get(&id).map(|part| ParsedPart::clone(part));
            let mut reader = PartReader { file: due.get(*at)?.file, defaults, materials };
            Some((*at, id, known.unwrap_or_else(|| reader.read(text, *lines_before))))
        });
        let mut parts = parts.into_iter().flatten().peekable();
        let contents = due.iter().enumerate().map(|(at, due)| {
            let own = std::iter::from_fn(|| parts.next_if(|(of, ..)| *of == at).map(|(_, id, part)| (id, part)));
            FileContent::new(due.file, due.text, own.collect())
        });
        contents.collect()
    }

    /// Decides which version of an entry's object is in force. `locate` gives the places of its fields.
    pub fn decide(
        &mut self,
        entry: &ManifestEntry,
        last_good: Option<Object>,
        locate: &dyn Fn(&FieldPath) -> Mark,
    ) -> (Decision, Option<Vec<Diagnostic>>) {
        // There is always one.
        let mut none = MaterialCache::new();
        let materials = self.threads.first_mut().unwrap_or(&mut none);
        let context = UpdateContext { origin: entry.origin(), defaults: &self.defaults, materials };
        let place = EntryPlace { file: &entry.file, at: entry.at, locate };
        let decision = entry.candidate().decide(last_good, context, &|error| place.problem(error));
        let diagnostics =
            decision.revised.as_ref().map(|findings| place.diagnostics(&entry.object().to_string(), findings));
        (decision, diagnostics)
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
        let (mut entries, mut flaws) = (Vec::new(), Flaws::default());
        let documents = document::read_part(text, lines_before, is_json);
        for Document { value, places, faults } in documents.good {
            let mut objects = Vec::new();
            expand(value, &places, None, 0, &mut objects);
            let begins: Vec<_> = objects.iter().map(|(_, places)| begin(places)).collect();
            for (i, (value, places)) in objects.into_iter().enumerate() {
                let from = begins.get(i).copied().filter(|_| i > 0);
                let faults = faults_of(&faults, from, begins.get(i + 1).copied());
                entries.extend(self.read_object(value, places, &faults, &mut flaws));
            }
        }
        for fault in documents.broken {
            flaws.broken.get_or_insert_with(|| format!("{file}:{}: {}", fault.at.line, fault.message));
            let place = EntryPlace { file, at: fault.at, locate: &|_| fault.at };
            flaws.diagnostics.push(place.fault("", &fault));
        }
        ParsedPart { entries: entries.into(), flaws: (flaws != Flaws::default()).then(|| Arc::new(flaws)) }
    }

    fn read_object(
        &mut self,
        value: Value,
        places: &Places<'_>,
        faults: &[&DocumentError],
        flaws: &mut Flaws,
    ) -> Option<Arc<ManifestEntry>> {
        let PartReader { file, defaults, .. } = *self;
        let at = begin(places);
        let locate = |path: &FieldPath| tree::locate(places, path);
        let place = EntryPlace { file, at, locate: &locate };
        let garbled = (!faults.is_empty()).then(|| value.clone());
        let parsed = parse(value, origin(file, at), defaults, self.materials);
        match &parsed.outcome {
            ParseOutcome::UnknownKind { api_version, kind } => {
                flaws.unknown.push(Unknown { kind: (api_version.clone(), kind.clone()), at });
                None
            }
            ParseOutcome::Unidentified(errors) => {
                flaws.diagnostics.extend(faults.iter().map(|fault| place.fault("", fault)));
                flaws.diagnostics.extend(errors.iter().map(|error| place.diagnostic("", error, Severity::Error)));
                None
            }
            ParseOutcome::Good(_) | ParseOutcome::Refused { .. } => {
                ManifestEntry::new(&place, parsed, faults, garbled.as_ref()).map(Arc::new)
            }
        }
    }
}

fn origin(file: &Arc<str>, at: Mark) -> Origin {
    Origin { file: file.clone(), line: at.line, column: at.column }
}

/// Places of the objects of a part of a file, by the place where each begins.
pub fn object_places(text: &str, lines_before: u32, is_json: bool) -> HashMap<Mark, Vec<NodePlace<'_>>> {
    let mut found = HashMap::new();
    for document in document::read_part(text, lines_before, is_json).good {
        let mut objects = Vec::new();
        expand(document.value, &document.places, None, 0, &mut objects);
        found.extend(objects.into_iter().map(|(_, places)| (begin(places), places.to_vec())));
    }
    found
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
