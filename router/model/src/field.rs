//! Field paths, and errors at fields.

use std::fmt;
use std::sync::Arc;

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// A member of a mapping.
    Key(Arc<str>),
    /// An item of a list, from 0.
    Index(usize),
}

/// Path of a value in an object, in Kubernetes' notation: `spec.alternateBackends[0].weight`; keys with dots or slashes
/// are in brackets, `metadata.annotations[openshift.io/host.generated]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldPath(Vec<Step>);

impl FieldPath {
    /// The object itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// A path of mapping keys, e.g. `FieldPath::of(&["metadata", "name"])`.
    pub fn of(keys: &[&str]) -> Self {
        FieldPath(keys.iter().map(|key| Step::Key((*key).into())).collect())
    }

    /// The member `key` of this mapping.
    pub fn key(&self, key: &str) -> Self {
        self.with(Step::Key(key.into()))
    }

    /// Item `index` of this list.
    pub fn index(&self, index: usize) -> Self {
        self.with(Step::Index(index))
    }

    /// The steps, outermost first.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    fn with(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        FieldPath(steps)
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if key.contains(['.', '/']) => write!(f, "[{key}]")?,
                Step::Key(key) if i == 0 => write!(f, "{key}")?,
                Step::Key(key) => write!(f, ".{key}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// An invalid field: the fault, and what to write instead. Never holds key material.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("{path}: {message}")]
pub struct FieldError {
    /// The field.
    pub path: FieldPath,
    /// The fault, and what to write instead.
    pub message: String,
}

impl FieldError {
    /// An error at a path.
    pub fn new(path: FieldPath, message: impl Into<String>) -> Self {
        FieldError { path, message: message.into() }
    }
}

/// Errors and warnings found while one object is read.
#[derive(Debug, Default)]
pub struct Findings {
    /// Faults for which the object is rejected.
    pub errors: Vec<FieldError>,
    /// Faults that do not reject the object.
    pub warnings: Vec<FieldError>,
}

impl Findings {
    /// Adds an error.
    pub fn error(&mut self, path: FieldPath, message: impl Into<String>) {
        self.errors.push(FieldError::new(path, message));
    }

    /// Adds a warning.
    pub fn warn(&mut self, path: FieldPath, message: impl Into<String>) {
        self.warnings.push(FieldError::new(path, message));
    }
}
