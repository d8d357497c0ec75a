//! The text of one file to parsed objects, each with its place.
//!
//! A document whose text and line have not changed since the file was last read keeps its objects as they are: nothing
//! of it is parsed again.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use router_core::certificate::MaterialCache;
use router_core::field::{FieldError, FieldPath};
use router_core::object::{Kind, Manifest, ObjectRef, Origin};
use router_core::parse::{Defaults, Object, Outcome, Parsed, parse};
use router_core::resources::Refused;
use serde_json::Value;

use super::diagnostic::{Diagnostic, Severity};
use super::document::{self, Content, Document, Fault, Mark, Node};

/// Deepest nesting of lists of objects.
const MAX_LISTS: usize = 4;

/// An object of a file.
#[derive(Debug)]
pub struct Entry {
    /// Which object.
    pub object: ObjectRef,
    /// Where it begins.
    pub at: Mark,
    /// Its parsed form, unless it was refused.
    pub good: Option<Object>,
    /// Why its newest version is refused.
    pub refused: Option<Arc<Refused>>,
    /// Why a good object cannot be served: its TLS material is no good.
    pub unservable: Option<Arc<Refused>>,
}

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
    /// What it says that is wrong.
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

    /// A short stand-in for a text, equal for equal texts.
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
            content.diagnostics.extend(part.diagnostics.iter().cloned());
            content.unknown.extend(part.unknown.iter().cloned());
            content.broken = content.broken.take().or_else(|| part.broken.clone());
            content.parts.insert(id, part);
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
            let Fault { at, message } = fault;
            part.broken.get_or_insert(format!("{file}:{}: {message}", at.line));
            part.diagnostics.push(diagnostic(file, at, "", None, message, Severity::Error));
        }
        part
    }

    fn read_object(&mut self, file: &Arc<str>, node: &Node, value: Value, faults: &[&Fault], part: &mut Part) {
        let origin = Origin { file: file.clone(), line: node.at.line, column: node.at.column };
        let as_written = (!faults.is_empty()).then(|| value.clone());
        let Parsed { outcome, warnings } = parse(value, origin, &self.defaults, &mut self.materials);
        let mut notes = Notes { file, node, subject: String::new(), part };
        match outcome {
            Outcome::UnknownKind { api_version, kind } => {
                notes.part.unknown.push(Unknown { kind: (api_version, kind), at: node.at });
            }
            Outcome::Unidentified(errors) => {
                notes.faults(faults);
                errors.iter().for_each(|error| notes.note(error, Severity::Error));
            }
            Outcome::Refused { kind, key, errors, manifest } => {
                let object = ObjectRef { kind, key };
                notes.subject = object.to_string();
                notes.faults(faults);
                errors.iter().for_each(|error| notes.note(error, Severity::Error));
                warnings.iter().for_each(|warning| notes.note(warning, Severity::Warning));
                let refused = notes.refused(&errors, faults, manifest);
                let entry = Entry { object, at: node.at, good: None, refused: Some(refused), unservable: None };
                part.entries.push(Arc::new(entry));
            }
            Outcome::Good(good) => {
                let object = ObjectRef { kind: good.kind(), key: good.key().clone() };
                notes.subject = object.to_string();
                notes.faults(faults);
                good.material_errors().iter().for_each(|error| notes.note(error, Severity::Error));
                warnings.iter().for_each(|warning| notes.note(warning, Severity::Warning));
                let mut entry = Entry { object, at: node.at, good: None, refused: None, unservable: None };
                if let Some(value) = as_written {
                    entry.refused = Some(notes.refused(&[], faults, Manifest::new(&value)));
                } else {
                    let errors = good.material_errors();
                    if let (false, Object::Route(route)) = (errors.is_empty(), &good) {
                        entry.unservable = Some(notes.refused(errors, &[], route.manifest.clone()));
                    }
                    entry.good = Some(good);
                }
                part.entries.push(Arc::new(entry));
            }
        }
    }
}

/// Where the value at a path of an object stands now, if the text still has the object.
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
        ("", true) => router_core::parse::DEFAULT_NAMESPACE,
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

struct Notes<'a> {
    file: &'a Arc<str>,
    node: &'a Node,
    subject: String,
    part: &'a mut Part,
}

impl Notes<'_> {
    fn note(&mut self, error: &FieldError, severity: Severity) {
        let at = self.node.locate(&error.path);
        let message = error.message.clone();
        let diagnostic = diagnostic(self.file, at, &self.subject, Some(&error.path), message, severity);
        self.part.diagnostics.push(diagnostic);
    }

    fn faults(&mut self, faults: &[&Fault]) {
        for fault in faults {
            let message = fault.message.clone();
            let diagnostic = diagnostic(self.file, fault.at, &self.subject, None, message, Severity::Error);
            self.part.diagnostics.push(diagnostic);
        }
    }

    /// The refusal that statuses tell of: the first problem, and how many follow.
    fn refused(&self, errors: &[FieldError], faults: &[&Fault], manifest: Manifest) -> Arc<Refused> {
        let first = match (faults, errors) {
            ([fault, ..], _) => format!("{}:{}: {}", self.file, fault.at.line, fault.message),
            ([], [error, ..]) => format!("{}:{}: {error}", self.file, self.node.locate(&error.path).line),
            ([], []) => format!("{}:{}", self.file, self.node.at.line),
        };
        let more = match (errors.len() + faults.len()).saturating_sub(1) {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        Arc::new(Refused { problem: format!("{first}{more}"), manifest })
    }
}

fn diagnostic(
    file: &Arc<str>,
    at: Mark,
    object: &str,
    path: Option<&FieldPath>,
    message: String,
    severity: Severity,
) -> Diagnostic {
    Diagnostic {
        file: file.clone(),
        line: at.line,
        column: at.column,
        object: object.to_owned(),
        path: path.map(ToString::to_string).unwrap_or_default(),
        message,
        severity,
    }
}
