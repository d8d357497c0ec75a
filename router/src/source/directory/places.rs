//! Places of fields in a file that was read earlier, for diagnostics.

use std::collections::HashMap;

use router_model::field::FieldPath;

use crate::source::document;
use crate::source::document::tree::{Mark, NodePlace, locate};
use crate::source::manifests::object_places;

/// The text of a file, of which the part located in last is parsed. Each part is parsed once if objects come in order of
/// place.
pub struct FilePlaces<'t> {
    is_json: bool,
    /// Parts of the text, each with the number of lines before it.
    parts: Vec<(&'t str, u32)>,
    /// Index of the parsed part.
    parsed: Option<usize>,
    /// Places of the objects of that part, by the place where they begin.
    objects: HashMap<Mark, Vec<NodePlace<'t>>>,
}

impl<'t> FilePlaces<'t> {
    /// Nothing is parsed yet.
    pub fn new(file: &str, text: &'t str) -> Self {
        let is_json = file.ends_with(".json");
        FilePlaces { is_json, parts: document::parts(text, is_json), parsed: None, objects: HashMap::new() }
    }

    /// The place of a field of the object that begins at `at`; `at` if no object begins there.
    pub fn locate(&mut self, at: Mark, path: &FieldPath) -> Mark {
        let part = self.parts.partition_point(|(_, lines_before)| *lines_before < at.line).checked_sub(1);
        if self.parsed != part {
            let text = part.and_then(|part| self.parts.get(part));
            self.objects = text.map(|(text, before)| object_places(text, *before, self.is_json)).unwrap_or_default();
            self.parsed = part;
        }
        self.objects.get(&at).map_or(at, |places| locate(places, path))
    }
}
