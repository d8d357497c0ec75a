//! An object of a file: read as a new object, and again as an update of the version in force.

use std::sync::Arc;

use router_api::object::Object;
use router_api::parse::{ParseOutcome, Parsed};
use router_api::resources::RejectedManifest;
use router_model::field::{FieldError, FieldPath};
use router_model::kind::Kind;
use router_model::object::{Manifest, ObjectKey, ObjectRef};
use serde_json::Value;

use super::diagnostic::{Diagnostic, Severity};
use crate::source::document::tree::{DocumentError, Mark};

/// An object of a file.
#[derive(Debug)]
pub struct ManifestEntry {
    /// The file, relative to the folder.
    pub file: Arc<str>,
    /// Where it begins.
    pub at: Mark,
    object: Version,
    /// What is wrong with it; most have nothing.
    flaws: Option<Box<Flaws>>,
}

/// An object as it was read.
#[derive(Debug)]
enum Version {
    Good(Object),
    /// It was rejected, or its text has faults.
    Bad(Box<ObjectRef>),
}

impl Version {
    fn new(accepted: Option<Object>, object: ObjectRef) -> Self {
        accepted.map_or_else(|| Version::Bad(Box::new(object)), Version::Good)
    }
}

/// What is wrong with an object.
#[derive(Debug, Default)]
struct Flaws {
    /// Why its newest version was rejected.
    rejected: Option<Arc<RejectedManifest>>,
    /// Why a valid object cannot be served: its TLS material is invalid.
    unservable: Option<Arc<RejectedManifest>>,
    /// Its problems, in order of place.
    diagnostics: Vec<Diagnostic>,
    /// Its text has faults, so the parsed form may not be what was meant.
    is_garbled: bool,
}

/// Place of an entry.
pub struct EntryPlace<'p> {
    /// The file, relative to the folder.
    pub file: &'p Arc<str>,
    /// Where the object begins.
    pub at: Mark,
    /// Resolves the place of a field.
    pub locate: &'p dyn Fn(&FieldPath) -> Mark,
}

impl ManifestEntry {
    /// The result of parsing an object, accepted or rejected. `faults` are those in its text; it was then read from
    /// `garbled`.
    pub fn new(
        place: &EntryPlace<'_>,
        parsed: Parsed,
        faults: &[&DocumentError],
        garbled: Option<&Value>,
    ) -> Option<ManifestEntry> {
        let Parsed { outcome, warnings } = parsed;
        let (object, accepted, errors, manifest) = match outcome {
            ParseOutcome::Good(accepted) => {
                let object = ObjectRef { kind: accepted.kind(), key: accepted.key().clone() };
                let errors = accepted.material_errors().to_vec();
                (object, Some(accepted), errors, None)
            }
            ParseOutcome::Refused { kind, key, errors, manifest } => {
                (ObjectRef { kind, key }, None, errors, Some(manifest))
            }
            ParseOutcome::UnknownKind { .. } | ParseOutcome::Unidentified(_) => return None,
        };
        let subject = object.to_string();
        let note = |error: &FieldError, severity| place.diagnostic(&subject, error, severity);
        let mut diagnostics: Vec<Diagnostic> = faults.iter().map(|fault| place.fault(&subject, fault)).collect();
        diagnostics.extend(errors.iter().map(|error| note(error, Severity::Error)));
        diagnostics.extend(warnings.iter().map(|warning| note(warning, Severity::Warning)));
        let (mut rejected, mut unservable) = (None, None);
        match (manifest, &accepted, garbled) {
            (Some(manifest), ..) => rejected = Some(place.rejection(&errors, faults, manifest)),
            (None, _, Some(value)) => rejected = Some(place.rejection(&[], faults, Manifest::new(value))),
            (None, Some(Object::Route(route)), None) if !errors.is_empty() => {
                unservable = Some(place.rejection(&errors, &[], route.manifest.clone()));
            }
            _ => {}
        }
        let is_flawed = rejected.is_some() || unservable.is_some() || !diagnostics.is_empty() || garbled.is_some();
        Some(ManifestEntry {
            object: Version::new(accepted.filter(|_| garbled.is_none()), object),
            file: place.file.clone(),
            at: place.at,
            flaws: is_flawed
                .then(|| Box::new(Flaws { rejected, unservable, diagnostics, is_garbled: garbled.is_some() })),
        })
    }

    /// The same object while its document cannot be read; `accepted` is its last parsed form.
    pub fn held(&self, accepted: Option<Object>, problem: &str) -> ManifestEntry {
        let manifest = self.rejection().map_or_else(Manifest::none, |rejected| rejected.manifest.clone());
        let rejected = Some(Arc::new(RejectedManifest { problem: problem.to_owned(), manifest }));
        ManifestEntry {
            object: Version::new(accepted, self.object()),
            file: self.file.clone(),
            at: self.at,
            flaws: Some(Box::new(Flaws { rejected, is_garbled: true, ..Flaws::default() })),
        }
    }

    /// The object's kind and key.
    pub fn name(&self) -> (Kind, &ObjectKey) {
        match &self.object {
            Version::Good(accepted) => (accepted.kind(), accepted.key()),
            Version::Bad(object) => (object.kind, &object.key),
        }
    }

    /// Which object.
    pub fn object(&self) -> ObjectRef {
        let (kind, key) = self.name();
        ObjectRef { kind, key: key.clone() }
    }

    /// Its parsed form, unless it was rejected.
    pub fn accepted(&self) -> Option<&Object> {
        match &self.object {
            Version::Good(accepted) => Some(accepted),
            Version::Bad(_) => None,
        }
    }

    /// Why its newest version was rejected.
    pub fn rejection(&self) -> Option<&Arc<RejectedManifest>> {
        self.flaws.as_ref()?.rejected.as_ref()
    }

    /// Why a valid object cannot be served: its TLS material is invalid.
    pub fn unservable(&self) -> Option<&Arc<RejectedManifest>> {
        self.flaws.as_ref()?.unservable.as_ref()
    }

    /// Its problems, in order of place.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        self.flaws.as_ref().map_or(&[], |flaws| &flaws.diagnostics)
    }

    /// True if the parsed form may not be what was meant.
    pub fn is_garbled(&self) -> bool {
        self.flaws.as_ref().is_some_and(|flaws| flaws.is_garbled)
    }
}

impl EntryPlace<'_> {
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
    pub fn fault(&self, object: &str, fault: &DocumentError) -> Diagnostic {
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
    fn rejection(&self, errors: &[FieldError], faults: &[&DocumentError], manifest: Manifest) -> Arc<RejectedManifest> {
        let first = match (faults, errors) {
            ([fault, ..], _) => format!("{}:{}: {}", self.file, fault.at.line, fault.message),
            ([], [error, ..]) => format!("{}:{}: {error}", self.file, (self.locate)(&error.path).line),
            ([], []) => format!("{}:{}", self.file, self.at.line),
        };
        let more = match (errors.len() + faults.len()).saturating_sub(1) {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        Arc::new(RejectedManifest { problem: format!("{first}{more}"), manifest })
    }
}
