//! Which file an object comes from if several have it: the first in order of files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use router_model::object::ObjectRef;

use crate::source::diagnostic::{Diagnostic, Severity};
use crate::source::entry::ManifestEntry;

/// A file and its entry for an object.
type FileEntry = (Arc<str>, Arc<ManifestEntry>);

/// Every object with its places, in order of file and line.
#[derive(Debug, Default)]
pub struct ObjectIndex {
    places: BTreeMap<ObjectRef, Vec<FileEntry>>,
    /// Objects with more than one place.
    contested: BTreeSet<ObjectRef>,
}

impl ObjectIndex {
    /// The place that counts: the first one.
    pub fn owner(&self, object: &ObjectRef) -> Option<FileEntry> {
        self.places.get(object).and_then(|places| places.first()).cloned()
    }

    /// Replaces the entries of a file. Returns the objects whose entries changed.
    pub fn replace<'e>(
        &mut self,
        file: &Arc<str>,
        old: Option<impl Iterator<Item = &'e Arc<ManifestEntry>>>,
        new: Option<impl Iterator<Item = &'e Arc<ManifestEntry>>>,
    ) -> BTreeSet<ObjectRef> {
        let by_address = |entry: &&Arc<ManifestEntry>| Arc::as_ptr(entry);
        let old: BTreeMap<_, _> = old.into_iter().flatten().map(|entry| (by_address(&entry), entry)).collect();
        let new: BTreeMap<_, _> = new.into_iter().flatten().map(|entry| (by_address(&entry), entry)).collect();
        let mut touched = BTreeSet::new();
        for entry in old.iter().filter(|(address, _)| !new.contains_key(*address)).map(|(_, entry)| *entry) {
            touched.insert(entry.object.clone());
            if let Some(places) = self.places.get_mut(&entry.object) {
                places.retain(|(_, known)| !Arc::ptr_eq(known, entry));
            }
        }
        for entry in new.iter().filter(|(address, _)| !old.contains_key(*address)).map(|(_, entry)| *entry) {
            touched.insert(entry.object.clone());
            let places = self.places.entry(entry.object.clone()).or_insert_with(|| Vec::with_capacity(1));
            let before = places.partition_point(|(other, known)| (other, known.at) <= (file, entry.at));
            places.insert(before, (file.clone(), entry.clone()));
        }
        for object in &touched {
            match self.places.get(object).map_or(0, Vec::len) {
                0 => drop(self.places.remove(object)),
                1 => drop(self.contested.remove(object)),
                _ => drop(self.contested.insert(object.clone())),
            }
            if !self.places.contains_key(object) {
                self.contested.remove(object);
            }
        }
        touched
    }

    /// A diagnostic for every place that does not count.
    pub fn duplicates(&self) -> Vec<Diagnostic> {
        let mut diagnostics = Vec::new();
        for object in &self.contested {
            let Some([(first_file, first), others @ ..]) = self.places.get(object).map(Vec::as_slice) else { continue };
            diagnostics.extend(others.iter().map(|(file, entry)| Diagnostic {
                file: file.clone(),
                line: entry.at.line,
                column: entry.at.column,
                object: object.to_string(),
                path: String::new(),
                message: format!(
                    "is defined in {first_file}:{} already, and that one counts; remove one of the two",
                    first.at.line
                ),
                severity: Severity::Error,
            }));
        }
        diagnostics
    }
}
