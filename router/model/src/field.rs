//! Field paths, and errors at fields.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PathStep {
    /// A member of a mapping.
    Key(Cow<'static, str>),
    /// An item of a list, from 0.
    Index(usize),
}

/// Where a value stands in an object, as Kubernetes writes it: `spec.alternateBackends[0].weight`; keys that have dots
/// or slashes stand in brackets, `metadata.annotations[openshift.io/host.generated]`. Paths share what they have in
/// common: a step more is one allocation.
#[derive(Clone, Default)]
pub struct FieldPath(Option<Arc<Link>>);

/// The last step of a path, and the path before it.
struct Link {
    before: FieldPath,
    step: PathStep,
}

impl FieldPath {
    /// The object itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// A path of mapping keys, e.g. `FieldPath::of(&["metadata", "name"])`.
    pub fn of(keys: &[&str]) -> Self {
        keys.iter().fold(Self::root(), |path, key| path.key(key))
    }

    /// The member `key` of this mapping.
    pub fn key(&self, key: &str) -> Self {
        self.with(PathStep::Key(Cow::Owned(key.to_owned())))
    }

    /// The member of this mapping that the API names `field`.
    pub fn field(&self, field: &'static str) -> Self {
        self.with(PathStep::Key(Cow::Borrowed(field)))
    }

    /// Item `index` of this list.
    pub fn index(&self, index: usize) -> Self {
        self.with(PathStep::Index(index))
    }

    /// The steps, outermost first.
    pub fn steps(&self) -> Vec<&PathStep> {
        let links = std::iter::successors(self.0.as_ref(), |link| link.before.0.as_ref());
        let mut steps: Vec<_> = links.map(|link| &link.step).collect();
        steps.reverse();
        steps
    }

    fn with(&self, step: PathStep) -> Self {
        FieldPath(Some(Arc::new(Link { before: self.clone(), step })))
    }
}

impl PartialEq for FieldPath {
    fn eq(&self, other: &Self) -> bool {
        self.steps() == other.steps()
    }
}

impl Eq for FieldPath {}

impl Hash for FieldPath {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.steps().hash(state);
    }
}

impl Ord for FieldPath {
    fn cmp(&self, other: &Self) -> Ordering {
        self.steps().cmp(&other.steps())
    }
}

impl PartialOrd for FieldPath {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FieldPath({self})")
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.steps().into_iter().enumerate() {
            match step {
                PathStep::Key(key) if key.contains(['.', '/']) => write!(f, "[{key}]")?,
                PathStep::Key(key) if i == 0 => write!(f, "{key}")?,
                PathStep::Key(key) => write!(f, ".{key}")?,
                PathStep::Index(index) => write!(f, "[{index}]")?,
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
