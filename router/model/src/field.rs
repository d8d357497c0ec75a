//! Paths of fields in an object, and what is wrong at one.

use std::fmt;
use std::sync::Arc;

/// One step into an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// A member of a mapping.
    Key(Arc<str>),
    /// An item of a list, from 0.
    Index(usize),
}

/// Where a value stands in an object, as Kubernetes writes it: `spec.alternateBackends[0].weight`; keys that have dots
/// or slashes stand in brackets, `metadata.annotations[openshift.io/host.generated]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldPath(Vec<Step>);

impl FieldPath {
    /// The object itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// A path through mappings only, e.g. `FieldPath::of(&["metadata", "name"])`.
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

/// What is wrong at a field, and what to write instead. Never holds key material.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("{path}: {message}")]
pub struct FieldError {
    /// Where.
    pub path: FieldPath,
    /// What is wrong; what to write instead.
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
    /// What makes the object unusable.
    pub errors: Vec<FieldError>,
    /// What is odd, but stops nothing.
    pub warnings: Vec<FieldError>,
}

impl Findings {
    /// Notes an error.
    pub fn error(&mut self, path: FieldPath, message: impl Into<String>) {
        self.errors.push(FieldError::new(path, message));
    }

    /// Notes a warning.
    pub fn warn(&mut self, path: FieldPath, message: impl Into<String>) {
        self.warnings.push(FieldError::new(path, message));
    }
}
