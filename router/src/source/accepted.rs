//! Which version of an object is in force, whatever its source: the newest one, or the last good one if the newest is
//! rejected. A new version of an object in force is an update, read as the API server reads one
//! (docs/openshift.md#updates).

use std::sync::Arc;

use router_api::defaults::Defaults;
use router_api::object::Object;
use router_api::parse::{ParseOutcome, Parsed};
use router_api::resources::RejectedManifest;
use router_api::update::{parse_update, reread_good, reread_refused};
use router_model::certificate::MaterialCache;
use router_model::field::{FieldError, Findings};
use router_model::object::{Manifest, ObjectRef, Origin};

/// The newest version of an object.
#[derive(Clone, Debug, Default)]
pub struct Candidate {
    /// Its parsed form, unless it is invalid.
    pub object: Option<Object>,
    /// Why it is rejected.
    pub rejected: Option<Arc<RejectedManifest>>,
    /// Why a valid object cannot be served: its TLS material is invalid.
    pub unservable: Option<Arc<RejectedManifest>>,
    /// Its text has faults: `object` is what could be read of it earlier, and `rejected` says why.
    pub is_garbled: bool,
}

/// What an update is parsed with.
pub struct UpdateContext<'c> {
    /// Source position of the newest version.
    pub origin: Origin,
    /// Defaults of fields.
    pub defaults: &'c Defaults,
    /// Known certificates and texts.
    pub materials: &'c mut MaterialCache,
}

/// The versions of an object after a decision.
#[derive(Debug)]
pub struct Decision {
    /// The version in force.
    pub accepted: Option<Object>,
    /// The newest version, if it is rejected.
    pub rejected: Option<Arc<RejectedManifest>>,
    /// Errors and warnings of the newest version as an update, if they replace those of it as a new object.
    pub revised: Option<Findings>,
}

impl Candidate {
    /// A version as it was parsed, with its errors and warnings; `problem` is the text of its first error. `None`
    /// without a supported kind or a name.
    pub fn new(parsed: Parsed, problem: &dyn Fn(&FieldError) -> String) -> Option<(ObjectRef, Candidate, Findings)> {
        let Parsed { outcome, warnings } = parsed;
        let (object, candidate, errors) = match outcome {
            ParseOutcome::Good(object) => {
                let errors = object.material_errors().to_vec();
                let unservable = match &object {
                    Object::Route(route) => reject(&errors, problem, route.manifest.clone()),
                    _ => None,
                };
                let name = ObjectRef { kind: object.kind(), key: object.key().clone() };
                (name, Candidate { object: Some(object), unservable, ..Candidate::default() }, errors)
            }
            ParseOutcome::Refused { kind, key, errors, manifest } => {
                let rejected = reject(&errors, problem, manifest);
                (ObjectRef { kind, key }, Candidate { rejected, ..Candidate::default() }, errors)
            }
            ParseOutcome::UnknownKind { .. } | ParseOutcome::Unidentified(_) => return None,
        };
        Some((object, candidate, Findings { errors, warnings }))
    }

    /// Decides which version is in force; `last_good` is the one in force so far, `problem` the text of an error.
    pub fn decide(
        self,
        last_good: Option<Object>,
        context: UpdateContext<'_>,
        problem: &dyn Fn(&FieldError) -> String,
    ) -> Decision {
        let update = last_good.as_ref().and_then(|old| self.as_update(old, context));
        let (newest, revised) = match update.and_then(|parsed| Candidate::new(parsed, problem)) {
            // That the document cannot be read is the problem to report.
            Some((_, update, _)) if self.is_garbled => {
                (Candidate { object: update.object, ..self }, Some(Findings::default()))
            }
            Some((_, update, findings)) => (update, Some(findings)),
            None => (self, None),
        };
        let (accepted, rejected) = match newest {
            // An edit that breaks the certificate is rejected like any other invalid edit, as long as there is a
            // version that serves.
            Candidate { object: Some(_), unservable: Some(unservable), .. }
                if last_good.as_ref().is_some_and(|old| old.material_errors().is_empty()) =>
            {
                (last_good, Some(unservable))
            }
            Candidate { object: Some(object), rejected, .. } => (Some(object), rejected),
            Candidate { object: None, rejected, .. } => (last_good, rejected),
        };
        Decision { accepted, rejected, revised }
    }

    /// This version parsed as an update of `old`; `None` if the result is the same.
    fn as_update(&self, old: &Object, context: UpdateContext<'_>) -> Option<Parsed> {
        let value = match (&self.object, &self.rejected) {
            (Some(good), _) => reread_good(good, old, context.defaults),
            (None, Some(rejected)) if !self.is_garbled => reread_refused(&rejected.manifest, old),
            _ => None,
        }?;
        Some(parse_update(value, old, context.origin, context.defaults, context.materials))
    }
}

/// A rejection with the first problem and the number of others; `None` without an error.
fn reject(
    errors: &[FieldError],
    problem: &dyn Fn(&FieldError) -> String,
    manifest: Manifest,
) -> Option<Arc<RejectedManifest>> {
    let problem = first_of(problem(errors.first()?), errors.len());
    Some(Arc::new(RejectedManifest { problem, manifest }))
}

/// The first of several problems, and the number of others.
pub fn first_of(first: String, count: usize) -> String {
    if count > 1 { format!("{first} (and {} more)", count - 1) } else { first }
}

#[cfg(test)]
mod tests;
