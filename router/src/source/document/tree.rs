//! Values with the line and column where each part of them begins.

use std::borrow::Cow;

use router_model::field::{FieldPath, Step};
use serde_json::Value;

/// A place in a text: line and column, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// Line.
    pub line: u32,
    /// Column, in characters.
    pub column: u32,
}

/// Where a value begins, and each value in it, in the order of the value: itself first. Never empty where it was read.
/// Values without places of their own stand where the innermost one around them does.
pub type Places<'t> = [Place<'t>];

/// Content of a node.
#[derive(Clone, Debug)]
pub struct Place<'t> {
    /// Its key, where it is a member of a mapping.
    pub key: Cow<'t, str>,
    /// Where its key stands; the value itself, where it has none.
    pub key_at: Mark,
    /// Where to look for it: a scalar and an item where they begin, another member where its key stands.
    pub at: Mark,
    /// How many places are its own: this one, and those of the values in it.
    pub len: usize,
}

/// A fault at a place of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where.
    pub at: Mark,
    /// What.
    pub message: String,
}

/// One document of a text.
#[derive(Debug)]
pub struct Document<'t> {
    /// Its value; null when the document is empty.
    pub value: Value,
    /// Where that stands.
    pub places: Vec<Place<'t>>,
    /// What makes it unusable although it could be read, such as a key that is given twice.
    pub faults: Vec<Fault>,
}

impl Document<'_> {
    /// A value without places: all of it stands where the text begins.
    pub(super) fn of_value(value: Value) -> Self {
        let at = Mark { line: 1, column: 1 };
        Document { value, places: vec![Place { key: "".into(), key_at: at, at, len: 1 }], faults: Vec::new() }
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

/// Where a value begins.
pub fn begin(places: &Places<'_>) -> Mark {
    places.first().map(|place| place.at).unwrap_or_default()
}

/// Where the value at a path begins, or the key of the innermost mapping around it that is there.
pub fn locate(places: &Places<'_>, path: &FieldPath) -> Mark {
    let mut places = places;
    for step in path.steps() {
        let inner = match step {
            Step::Key(key) => member(places, key),
            Step::Index(index) => children(places).nth(*index),
        };
        let Some(inner) = inner else { break };
        places = inner;
    }
    begin(places)
}
