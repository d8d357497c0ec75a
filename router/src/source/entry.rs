//! An object of a file: read as a new object, and again as an update of the version in force.

use std::sync::Arc;

use router_api::object::Object;
use router_api::parse::{Outcome, Parsed};
use router_api::resources::Refused;
use router_api::update::COMPARED;
use router_model::field::{FieldError, FieldPath};
use router_model::object::{Manifest, ObjectRef};
use serde_json::Value;

use super::diagnostic::{Diagnostic, Severity};
use crate::source::document::tree::{Fault, Mark};

/// An object of a file.
#[derive(Debug)]
pub struct Entry {
    /// Which object.
    pub object: ObjectRef,
    /// Where it begins.
    pub at: Mark,
    /// Its parsed form, unless it was rejected.
    pub good: Option<Object>,
    /// Why its newest version was rejected.
    pub refused: Option<Arc<Refused>>,
    /// Why a valid object cannot be served: its TLS material is invalid.
    pub unservable: Option<Arc<Refused>>,
    /// Its problems, in order of place.
    pub diagnostics: Vec<Diagnostic>,
    /// Its text has faults, so the parsed form may not be what was meant.
    is_garbled: bool,
    /// Places of the fields in [`COMPARED`].
    compared: [Mark; COMPARED.len()],
}

/// Place of an entry.
pub struct Place<'p> {
    /// The file, relative to the folder.
    pub file: &'p Arc<str>,
    /// Where the object begins.
    pub at: Mark,
    /// Resolves the place of a field.
    pub locate: &'p dyn Fn(&FieldPath) -> Mark,
}

impl Entry {
    /// The result of parsing an object, accepted or rejected. `faults` are those in its text; it was then read from
    /// `garbled`.
    pub fn new(place: &Place<'_>, parsed: Parsed, faults: &[&Fault], garbled: Option<&Value>) -> Option<Entry> {
        let Parsed { outcome, warnings } = parsed;
        let (object, good, errors, manifest) = match outcome {
            Outcome::Good(good) => {
                let object = ObjectRef { kind: good.kind(), key: good.key().clone() };
                let errors = good.material_errors().to_vec();
                (object, Some(good), errors, None)
            }
            Outcome::Refused { kind, key, errors, manifest } => (ObjectRef { kind, key }, None, errors, Some(manifest)),
            Outcome::UnknownKind { .. } | Outcome::Unidentified(_) => return None,
        };
        let subject = object.to_string();
        let note = |error: &FieldError, severity| place.diagnostic(&subject, error, severity);
        let mut diagnostics: Vec<Diagnostic> = faults.iter().map(|fault| place.fault(&subject, fault)).collect();
        diagnostics.extend(errors.iter().map(|error| note(error, Severity::Error)));
        diagnostics.extend(warnings.iter().map(|warning| note(warning, Severity::Warning)));
        let (mut refused, mut unservable) = (None, None);
        match (manifest, &good, garbled) {
            (Some(manifest), ..) => refused = Some(place.refused(&errors, faults, manifest)),
            (None, _, Some(value)) => refused = Some(place.refused(&[], faults, Manifest::new(value))),
            (None, Some(Object::Route(route)), None) if !errors.is_empty() => {
                unservable = Some(place.refused(&errors, &[], route.manifest.clone()));
            }
            _ => {}
        }
        Some(Entry {
            object,
            at: place.at,
            good: good.filter(|_| garbled.is_none()),
            refused,
            unservable,
            diagnostics,
            is_garbled: garbled.is_some(),
            compared: COMPARED.map(|path| (place.locate)(&FieldPath::of(path))),
        })
    }

    /// The same object while its document cannot be read; `good` is its last parsed form.
    pub fn held(&self, good: Option<Object>, problem: &str) -> Entry {
        let manifest = self.refused.as_ref().map(|refused| refused.manifest.clone());
        let manifest = manifest.unwrap_or_else(Manifest::none);
        Entry {
            object: self.object.clone(),
            at: self.at,
            good,
            refused: Some(Arc::new(Refused { problem: problem.to_owned(), manifest })),
            unservable: None,
            diagnostics: Vec::new(),
            is_garbled: true,
            compared: self.compared,
        }
    }

    /// True if the parsed form may not be what was meant.
    pub fn is_garbled(&self) -> bool {
        self.is_garbled
    }

    /// Place of a field, as far as it is known without the file's text.
    pub fn locate(&self, path: &FieldPath) -> Mark {
        let text = path.to_string();
        let noted = self.diagnostics.iter().find(|noted| noted.path == text);
        let noted = noted.map(|noted| Mark { line: noted.line, column: noted.column });
        let compared = COMPARED.iter().zip(self.compared).find(|(known, _)| FieldPath::of(known) == *path);
        noted.or(compared.map(|(_, mark)| mark)).unwrap_or(self.at)
    }
}

impl Place<'_> {
    /// The diagnostic for a field error.
    pub fn diagnostic(&self, object: &str, error: &FieldError, severity: Severity) -> Diagnostic {
        let Mark { line, column } = (self.locate)(&error.path);
        Diagnostic {
            file: self.file.clone(),
            line,
            column,
            object: object.to_owned(),
            path: error.path.to_string(),
            message: error.message.clone(),
            severity,
        }
    }

    /// The diagnostic for a fault of the text.
    pub fn fault(&self, object: &str, fault: &Fault) -> Diagnostic {
        Diagnostic {
            file: self.file.clone(),
            line: fault.at.line,
            column: fault.at.column,
            object: object.to_owned(),
            path: String::new(),
            message: fault.message.clone(),
            severity: Severity::Error,
        }
    }

    /// The rejection for statuses: the first problem, and the number of others.
    fn refused(&self, errors: &[FieldError], faults: &[&Fault], manifest: Manifest) -> Arc<Refused> {
        let first = match (faults, errors) {
            ([fault, ..], _) => format!("{}:{}: {}", self.file, fault.at.line, fault.message),
            ([], [error, ..]) => format!("{}:{}: {error}", self.file, (self.locate)(&error.path).line),
            ([], []) => format!("{}:{}", self.file, self.at.line),
        };
        let more = match (errors.len() + faults.len()).saturating_sub(1) {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        Arc::new(Refused { problem: format!("{first}{more}"), manifest })
    }
}
