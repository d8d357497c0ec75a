//! An object of a file, read as a new object, with its place and its problems.

use std::sync::Arc;

use router_api::object::Object;
use router_api::parse::Parsed;
use router_api::resources::RejectedManifest;
use router_model::field::{FieldError, FieldPath, Findings};
use router_model::kind::Kind;
use router_model::object::{Manifest, ObjectKey, ObjectRef, Origin};
use serde_json::Value;

use super::accepted::{Candidate, first_of};
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
        let (object, mut candidate, findings) = Candidate::new(parsed, &|error| place.problem(error))?;
        let subject = object.to_string();
        let mut diagnostics: Vec<Diagnostic> = faults.iter().map(|fault| place.fault(&subject, fault)).collect();
        diagnostics.extend(place.diagnostics(&subject, &findings));
        if let (Some(value), Some(first)) = (garbled, faults.first()) {
            let (manifest, errors) = match &candidate.rejected {
                Some(rejected) => (rejected.manifest.clone(), findings.errors.len()),
                None => (Manifest::new(value), 0),
            };
            let first = format!("{}:{}: {}", place.file, first.at.line, first.message);
            let rejected = RejectedManifest { problem: first_of(first, faults.len() + errors), manifest };
            candidate = Candidate { rejected: Some(Arc::new(rejected)), is_garbled: true, ..Candidate::default() };
        }
        let Candidate { object: accepted, rejected, unservable, is_garbled } = candidate;
        let is_flawed = rejected.is_some() || unservable.is_some() || !diagnostics.is_empty();
        Some(ManifestEntry {
            object: Version::new(accepted, object),
            file: place.file.clone(),
            at: place.at,
            flaws: is_flawed.then(|| Box::new(Flaws { rejected, unservable, diagnostics, is_garbled })),
        })
    }

    /// The same object while its document cannot be read; `accepted` is its last parsed form.
    pub fn held(&self, accepted: Option<Object>, problem: &str) -> ManifestEntry {
        let rejected = self.flaws.as_ref().and_then(|flaws| flaws.rejected.as_ref());
        let manifest = rejected.map_or_else(Manifest::none, |rejected| rejected.manifest.clone());
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

    /// The object as a candidate for the version in force.
    pub fn candidate(&self) -> Candidate {
        let object = self.accepted().cloned();
        match &self.flaws {
            Some(flaws) => Candidate {
                object,
                rejected: flaws.rejected.clone(),
                unservable: flaws.unservable.clone(),
                is_garbled: flaws.is_garbled,
            },
            None => Candidate { object, ..Candidate::default() },
        }
    }

    /// Its file, and where it begins there.
    pub fn place(&self) -> (&Arc<str>, Mark) {
        (&self.file, self.at)
    }

    /// Its source position.
    pub fn origin(&self) -> Origin {
        let Mark { line, column } = self.at;
        Origin { file: self.file.clone(), line, column }
    }

    /// Its problems, in order of place.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        self.flaws.as_ref().map_or(&[], |flaws| &flaws.diagnostics)
    }
}

impl EntryPlace<'_> {
    /// The diagnostics of an object for its errors and warnings.
    pub fn diagnostics(&self, object: &str, findings: &Findings) -> Vec<Diagnostic> {
        let Findings { errors, warnings } = findings;
        let errors = errors.iter().map(|error| self.diagnostic(object, error, Severity::Error));
        errors.chain(warnings.iter().map(|warning| self.diagnostic(object, warning, Severity::Warning))).collect()
    }

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

    /// A field error for statuses.
    pub fn problem(&self, error: &FieldError) -> String {
        format!("{}:{}: {error}", self.file, (self.locate)(&error.path).line)
    }
}
