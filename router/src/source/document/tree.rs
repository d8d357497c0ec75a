//! Values with the line and column of each of their parts.

use std::borrow::Cow;

use router_model::field::{FieldPath, PathStep};
use serde_json::Value;

/// A place in a text: line and column, one-based.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark {
    /// Line.
    pub line: u32,
    /// Column, in characters.
    pub column: u32,
}

/// The places of a value and of each value in it, in the value's order, its own first. Never empty for a parsed value.
/// Values without a place have that of the innermost value around them.
pub type Places<'t> = [NodePlace<'t>];

/// Content of a node.
#[derive(Clone, Debug)]
pub struct NodePlace<'t> {
    /// Its key, if it is a member of a mapping.
    pub key: Cow<'t, str>,
    /// Place of its key; of the value itself if it has no key.
    pub key_at: Mark,
    /// The place to report: of the value for scalars and list items, of the key for other members.
    pub at: Mark,
    /// Number of places of the value: its own, and those of the values in it.
    pub len: usize,
}

/// A fault in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentError {
    /// The place.
    pub at: Mark,
    /// The message.
    pub message: String,
}

/// One document of a text.
#[derive(Debug)]
pub struct Document<'t> {
    /// Its value; null if the document is empty.
    pub value: Value,
    /// Places of the value.
    pub places: Vec<NodePlace<'t>>,
    /// Faults that make a parsed document unusable, such as a duplicate key.
    pub faults: Vec<DocumentError>,
}

impl Document<'_> {
    /// A value without places: all of it has the place of the text's beginning.
    pub(super) fn of_value(value: Value) -> Self {
        let at = Mark { line: 1, column: 1 };
        Document { value, places: vec![NodePlace { key: "".into(), key_at: at, at, len: 1 }], faults: Vec::new() }
    }
}

/// The places of the values directly in a value, each with those in it.
pub fn children<'p, 't>(places: &'p Places<'t>) -> impl Iterator<Item = &'p Places<'t>> {
    let mut rest = places.get(1..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (child, after) = rest.split_at_checked(rest.first()?.len.max(1))?;
        rest = after;
        Some(child)
    })
}

/// The places of the member of this key.
pub fn member<'p, 't>(places: &'p Places<'t>, key: &str) -> Option<&'p Places<'t>> {
    children(places).find(|child| child.first().is_some_and(|place| place.key == key))
}

/// The place of a value.
pub fn begin(places: &Places<'_>) -> Mark {
    places.first().map(|place| place.at).unwrap_or_default()
}

/// The place of the value at a path, or of the innermost existing mapping around it.
pub fn locate(places: &Places<'_>, path: &FieldPath) -> Mark {
    let mut places = places;
    for step in path.steps() {
        let inner = match step {
            PathStep::Key(key) => member(places, key),
            PathStep::Index(index) => children(places).nth(*index),
        };
        let Some(inner) = inner else { break };
        places = inner;
    }
    begin(places)
}
