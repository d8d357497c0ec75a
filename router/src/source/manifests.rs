//! Parses the text of a file to objects, each with its place.
//!
//! A document whose text and line have not changed since the last read keeps its objects; it is not parsed again.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use router_api::defaults::Defaults;
use router_api::object::Object;
use router_api::parse::{Outcome, parse};
use router_api::update::{parse_update, reread_good, reread_refused};
use router_model::certificate::MaterialCache;
use router_model::field::FieldPath;
use router_model::kind::Kind;
use router_model::object::{ObjectRef, Origin};
use serde_json::Value;

use super::diagnostic::{Diagnostic, Severity};
use super::entry::{Entry, Place};
use super::{document, unrendered};
use crate::source::document::tree::{Content, Document, Fault, Mark, Node};

/// Deepest nesting of lists of objects.
const MAX_LISTS: usize = 4;

/// A kind that is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// `apiVersion` and `kind`.
    pub kind: (String, String),
    /// Where the object begins.
    pub at: Mark,
}

/// What a file holds.
#[derive(Debug, Default)]
pub struct FileContent {
    /// Its objects, in order.
    pub entries: Vec<Arc<Entry>>,
    /// Those of them that have diagnostics.
    pub noted: Vec<Arc<Entry>>,
    /// What is wrong with it beside its objects.
    pub diagnostics: Vec<Diagnostic>,
    /// Objects of kinds that are not read.
    pub unknown: Vec<Unknown>,
    /// The first syntax error, as `<file>:<line>: <what>`: objects may be missing from `entries`.
    pub broken: Option<String>,
    parts: HashMap<PartId, Arc<Part>>,
}

/// Text of a part (hashed, with its length) and the line it begins at.
type PartId = (u64, usize, u32);

/// What came of one part of a file.
#[derive(Debug, Default)]
struct Part {
    entries: Vec<Arc<Entry>>,
    diagnostics: Vec<Diagnostic>,
    unknown: Vec<Unknown>,
    broken: Option<String>,
}

/// Reads files. Holds what their reading shares.
#[derive(Debug, Default)]
pub struct Reader {
    defaults: Defaults,
    materials: MaterialCache,
    hasher: RandomState,
}

impl Reader {
    /// A reader that fills in these defaults.
    pub fn new(defaults: Defaults) -> Self {
        Reader { defaults, ..Reader::default() }
    }

    /// A digest of a text, equal for equal texts.
    pub fn digest(&self, text: &str) -> (u64, usize) {
        (self.hasher.hash_one(text), text.len())
    }

    /// Reads a file; `previous` is what it held before.
    pub fn read(&mut self, file: &Arc<str>, text: &str, previous: Option<&FileContent>) -> FileContent {
        let mut content = FileContent::default();
        let is_json = file.ends_with(".json");
        for (text, lines_before) in document::parts(text, is_json) {
            let (hash, len) = self.digest(text);
            let id = (hash, len, lines_before);
            let known = previous.and_then(|previous| previous.parts.get(&id)).cloned();
            let part = known.unwrap_or_else(|| Arc::new(self.read_part(file, text, lines_before, is_json)));
            content.entries.extend(part.entries.iter().cloned());
            content.noted.extend(part.entries.iter().filter(|entry| !entry.diagnostics.is_empty()).cloned());
            content.diagnostics.extend(part.diagnostics.iter().cloned());
            content.unknown.extend(part.unknown.iter().cloned());
            content.broken = content.broken.take().or_else(|| part.broken.clone());
            content.parts.insert(id, part);
        }
        let has_errors = |noted: &[Diagnostic]| noted.iter().any(|noted| noted.severity == Severity::Error);
        if has_errors(&content.diagnostics) || content.noted.iter().any(|entry| has_errors(&entry.diagnostics)) {
            unrendered::explain(file, text, &mut content.diagnostics);
        }
        content
    }

    fn read_part(&mut self, file: &Arc<str>, text: &str, lines_before: u32, is_json: bool) -> Part {
        let mut part = Part::default();
        let documents = document::read_part(text, lines_before, is_json);
        for document in &documents.good {
            let mut objects = Vec::new();
            expand(&document.root, None, 0, &mut objects);
            for (i, (node, value)) in objects.iter().enumerate() {
                let next = objects.get(i + 1).map(|(node, _)| node.at);
                let faults = faults_of(document, (i > 0).then_some(node.at), next);
                self.read_object(file, node, value.clone(), &faults, &mut part);
            }
        }
        for fault in documents.broken {
            part.broken.get_or_insert_with(|| format!("{file}:{}: {}", fault.at.line, fault.message));
            let place = Place { file, at: fault.at, locate: &|_| fault.at };
            part.diagnostics.push(place.fault("", &fault));
        }
        part
    }

    fn read_object(&mut self, file: &Arc<str>, node: &Node, value: Value, faults: &[&Fault], part: &mut Part) {
        let locate = |path: &FieldPath| node.locate(path);
        let place = Place { file, at: node.at, locate: &locate };
        let garbled = (!faults.is_empty()).then(|| value.clone());
        let parsed = parse(value, origin(file, node.at), &self.defaults, &mut self.materials);
        match &parsed.outcome {
            Outcome::UnknownKind { api_version, kind } => {
                part.unknown.push(Unknown { kind: (api_version.clone(), kind.clone()), at: node.at });
            }
            Outcome::Unidentified(errors) => {
                part.diagnostics.extend(faults.iter().map(|fault| place.fault("", fault)));
                part.diagnostics.extend(errors.iter().map(|error| place.diagnostic("", error, Severity::Error)));
            }
            Outcome::Good(_) | Outcome::Refused { .. } => {
                part.entries.extend(Entry::new(&place, parsed, faults, garbled.as_ref()).map(Arc::new));
            }
        }
    }

    /// Reads an entry again, as the API server would: as an update of `old`. `None`: that makes no difference.
    pub fn revise(&mut self, file: &Arc<str>, entry: &Entry, old: &Object) -> Option<Entry> {
        let value = match (&entry.good, &entry.refused) {
            (Some(good), _) => reread_good(good, old, &self.defaults),
            (None, Some(refused)) if !entry.is_garbled() => reread_refused(&refused.manifest, old),
            _ => None,
        }?;
        let parsed = parse_update(value, old, origin(file, entry.at), &self.defaults, &mut self.materials);
        let locate = |path: &FieldPath| entry.locate(path);
        let revised = Entry::new(&Place { file, at: entry.at, locate: &locate }, parsed, &[], None)?;
        match &entry.refused {
            // Its document is broken, and that is what there is to say.
            Some(refused) if entry.is_garbled() => Some(entry.held(revised.good, &refused.problem)),
            _ => Some(revised),
        }
    }
}

fn origin(file: &Arc<str>, at: Mark) -> Origin {
    Origin { file: file.clone(), line: at.line, column: at.column }
}

/// The current place of a field of an object, if the text still has the object.
pub fn locate(text: &str, is_json: bool, object: &ObjectRef, path: &FieldPath) -> Option<Mark> {
    document::read(text, is_json).good.iter().find_map(|document| {
        let mut objects = Vec::new();
        expand(&document.root, None, 0, &mut objects);
        objects.iter().find(|(_, value)| is_object(value, object)).map(|(node, _)| node.locate(path))
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

/// Collects the objects of a document: itself, or the items of a `List`. Items of a typed list, such as a `RouteList`,
/// may leave out what the list says.
fn expand<'n>(node: &'n Node, inherited: Option<(&str, &str)>, depth: usize, objects: &mut Vec<(&'n Node, Value)>) {
    let text = |key: &str| match node.member(key).map(|member| &member.value.content) {
        Some(Content::Scalar(Value::String(text))) => Some(text.as_str()),
        _ => None,
    };
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let items = node.member("items").map(|member| &member.value.content);
    if let (Some(prefix), Some(Content::List(items)), true) =
        (kind.and_then(|kind| kind.strip_suffix("List")), items, depth < MAX_LISTS)
    {
        let inherited = (!prefix.is_empty()).then(|| (api_version.unwrap_or_default(), prefix));
        items.iter().for_each(|item| expand(item, inherited, depth + 1, objects));
        return;
    }
    let mut value = node.to_value();
    if value.is_null() {
        return;
    }
    if let (Some((api_version, kind)), Value::Object(map)) = (inherited, &mut value) {
        map.entry("apiVersion").or_insert_with(|| api_version.into());
        map.entry("kind").or_insert_with(|| kind.into());
    }
    objects.push((node, value));
}

/// The faults that stand in an object: from its beginning (the document's, for the first) to that of the next one.
fn faults_of(document: &Document, from: Option<Mark>, to: Option<Mark>) -> Vec<&Fault> {
    let is_within = |at: Mark| from.is_none_or(|from| at >= from) && to.is_none_or(|to| at < to);
    document.faults.iter().filter(|fault| is_within(fault.at)).collect()
}
