//! Which file an object comes from if several have it: the first in order of files.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use router_model::object::ObjectRef;
use router_model::persistent::OrderedMap;

use crate::source::diagnostic::{Diagnostic, Severity};
use crate::source::entry::ManifestEntry;

/// Every object with its places, in order of object, file and line.
#[derive(Debug, Default)]
pub struct ObjectIndex {
    places: OrderedMap<FileEntry, ()>,
    /// Objects with more than one place.
    contested: BTreeSet<ObjectRef>,
}

/// An entry, ordered by its object and its place.
#[derive(Clone, Debug)]
struct FileEntry(Arc<ManifestEntry>);

impl ObjectIndex {
    /// The place that counts: the first one.
    pub fn owner(&self, object: &ObjectRef) -> Option<&Arc<ManifestEntry>> {
        self.from(object).next().filter(|entry| is_of(entry, object))
    }

    fn places_of(&self, object: &ObjectRef) -> impl Iterator<Item = &Arc<ManifestEntry>> {
        self.from(object).take_while(|entry| is_of(entry, object))
    }

    /// The places from those of an object on.
    fn from<'i>(&'i self, object: &ObjectRef) -> impl Iterator<Item = &'i Arc<ManifestEntry>> + use<'i> {
        self.places
            .entries_from(|FileEntry(entry)| entry.name() < (object.kind, &object.key))
            .map(|(FileEntry(entry), ())| entry)
    }

    /// Replaces the entries of a file. Returns the objects whose entries changed, some more than once.
    pub fn replace<'e>(
        &mut self,
        old: impl Iterator<Item = &'e Arc<ManifestEntry>>,
        new: impl Iterator<Item = &'e Arc<ManifestEntry>>,
    ) -> Vec<ObjectRef> {
        let by_address = |entry: &'e Arc<ManifestEntry>| (Arc::as_ptr(entry), entry);
        let mut gone: BTreeMap<_, _> = old.map(by_address).collect();
        let mut come: Vec<&Arc<ManifestEntry>> = new.collect();
        come.retain(|entry| gone.remove(&Arc::as_ptr(entry)).is_none());
        for entry in gone.values() {
            self.places.remove(&FileEntry(Arc::clone(entry)));
        }
        for entry in &come {
            self.places.insert(FileEntry(Arc::clone(entry)), ());
        }
        let touched: Vec<_> = gone.values().chain(&come).map(|entry| entry.object()).collect();
        for object in &touched {
            if self.places_of(object).nth(1).is_some() {
                self.contested.insert(object.clone());
            } else {
                self.contested.remove(object);
            }
        }
        touched
    }

    /// A diagnostic for every place that does not count.
    pub fn duplicates(&self) -> Vec<Diagnostic> {
        let mut diagnostics = Vec::new();
        for object in &self.contested {
            let mut places = self.places_of(object);
            let Some(first) = places.next() else { continue };
            diagnostics.extend(places.map(|entry| Diagnostic {
                file: entry.file.clone(),
                line: entry.at.line,
                column: entry.at.column,
                object: object.to_string(),
                path: String::new(),
                message: format!(
                    "is defined in {}:{} already, and that one counts; remove one of the two",
                    first.file, first.at.line
                ),
                severity: Severity::Error,
            }));
        }
        diagnostics
    }
}

fn is_of(entry: &ManifestEntry, object: &ObjectRef) -> bool {
    entry.name() == (object.kind, &object.key)
}

impl FileEntry {
    /// Entries of one object at one place are versions of a file's text.
    fn order(&self) -> impl Ord {
        (self.0.name(), &self.0.file, self.0.at, Arc::as_ptr(&self.0))
    }
}

impl Ord for FileEntry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}

impl PartialOrd for FileEntry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for FileEntry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for FileEntry {}
