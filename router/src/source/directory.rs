//! A folder of manifests, or a single file, as a source of objects.
//!
//! The folder may change at any time: a file is read between two reads of its metadata, a file that is empty right
//! after a change counts as being written, and if something cannot be read, the last read version stays in force. An
//! unreadable folder or file never removes objects.
//!
//! A new version of an object in force is an update, read as the API server reads one: immutable fields cannot change.
//! An object that was absent in one scan, or that has another uid, is a new one.

mod file_state;
mod index;
mod places;
mod stable_read;

use std::borrow::Cow;
use std::cell::{LazyCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::mem;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use router_api::defaults::Defaults;
use router_api::resources::Resources;
use router_api::unread::instead_of;
use router_model::field::FieldPath;
use router_model::object::ObjectRef;
use router_model::parallel;

use super::diagnostic::{Diagnostic, Severity};
use super::entry::ManifestEntry;
use super::manifests::{Due, FileContent, ManifestReader};
use super::snapshot::SourceSnapshot;
use super::walk::{self, Listing};
use crate::source::document::tree::Mark;
use file_state::{FileState, Trouble};
use index::ObjectIndex;
use places::FilePlaces;
use stable_read::{FileText, is_recent};

/// How long an empty file counts as being written; then it counts as empty.
const EMPTY_GRACE: Duration = Duration::from_secs(1);
/// Maximum number of files in memory at a time.
const MAX_BATCH: usize = 4096;
/// Maximum number of bytes of such texts, except for a single larger file.
const MAX_BATCH_BYTES: u64 = 16 << 20;

/// Why a folder cannot be a source.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// It does not exist or is not readable.
    #[error("cannot read {path}: {message}")]
    Unreadable {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        message: String,
    },
}

/// What to scan again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everything.
    Everything,
    /// These files, by path relative to the folder. Unknown ones are ignored.
    Files(BTreeSet<Arc<str>>),
}

/// A folder of manifests.
#[derive(Debug)]
pub struct Directory {
    root: PathBuf,
    /// The only file to read, if the source is a file and not a folder.
    only: Option<Arc<str>>,
    reader: ManifestReader,
    /// Of digests of texts and stamps.
    hasher: RandomState,
    files: BTreeMap<Arc<str>, Box<FileState>>,
    /// Files about which there is something to report.
    flawed: BTreeSet<Arc<str>>,
    index: ObjectIndex,
    resources: Resources,
    /// Diagnostics of objects that parse differently as updates; they replace those of their entries.
    revised: BTreeMap<ObjectRef, (Arc<ManifestEntry>, Vec<Diagnostic>)>,
    listing: Listing,
    diagnostics: Arc<[Diagnostic]>,
}

impl Directory {
    /// Reads a folder, or a single file, for the first time.
    ///
    /// # Errors
    /// [`FolderError::Unreadable`]. Faults of single files are diagnostics of the snapshot.
    pub fn open(root: impl AsRef<Path>, defaults: Defaults) -> Result<(Directory, SourceSnapshot), FolderError> {
        Directory::open_with(root, defaults, parallel::threads())
    }

    fn open_with(
        root: impl AsRef<Path>,
        defaults: Defaults,
        threads: usize,
    ) -> Result<(Directory, SourceSnapshot), FolderError> {
        let given = root.as_ref();
        let unreadable = |message: String| FolderError::Unreadable { path: given.to_owned(), message };
        let (folder, only) = folder_of(given);
        let mut directory = Directory {
            root: std::path::absolute(folder).map_err(|error| unreadable(error.to_string()))?,
            only,
            reader: ManifestReader::new(defaults, threads),
            hasher: RandomState::new(),
            files: BTreeMap::new(),
            flawed: BTreeSet::new(),
            index: ObjectIndex::default(),
            resources: Resources::default(),
            revised: BTreeMap::new(),
            listing: Listing::default(),
            diagnostics: Arc::default(),
        };
        directory.rescan(&Scope::Everything);
        // Built from sorted entries, the tree's nodes are full; after insertions in order they are half empty.
        directory.files = mem::take(&mut directory.files).into_iter().collect();
        match directory.listing.unreadable.get("") {
            Some(message) => Err(unreadable(message.clone())),
            None => {
                let snapshot = directory.snapshot();
                Ok((directory, snapshot))
            }
        }
    }

    /// The folder, as an absolute path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The current snapshot.
    pub fn snapshot(&self) -> SourceSnapshot {
        SourceSnapshot {
            resources: Arc::new(self.resources.clone()),
            diagnostics: self.diagnostics.clone(),
            doubts: Arc::default(),
            as_of: None,
        }
    }

    /// Scans again. Returns a new snapshot if anything in it has changed.
    pub fn rescan(&mut self, scope: &Scope) -> Option<SourceSnapshot> {
        let mut changed = match scope {
            Scope::Files(files) => {
                let known = files.iter().filter(|file| self.files.contains_key(*file));
                let size = |file: &Arc<str>| fs::metadata(self.root.join(&**file)).map_or(0, |metadata| metadata.len());
                let known: Vec<_> = known.map(|file| (file.clone(), size(file))).collect();
                self.read_files(&known)
            }
            Scope::Everything => self.rescan_everything(),
        };
        let diagnostics = self.collect_diagnostics();
        if *diagnostics != *self.diagnostics {
            self.diagnostics = diagnostics.into();
            changed = true;
        }
        changed.then(|| self.snapshot())
    }

    /// The files and places of fields of objects; `None` for objects that no file has. Parses each text once.
    pub fn locate(&self, fields: &[(&ObjectRef, &FieldPath)]) -> Vec<Option<(Arc<str>, Mark)>> {
        let owners = fields.iter().enumerate().filter_map(|(i, (object, _))| Some((self.index.owner(object)?, i)));
        let mut owners: Vec<_> = owners.collect();
        owners.sort_by_key(|(entry, _)| entry.place());
        let mut found = vec![None; fields.len()];
        for owners in owners.chunk_by(|(one, _), (next, _)| one.file == next.file) {
            let Some(file) = owners.first().map(|(entry, _)| &entry.file) else { continue };
            let text = read_again(&self.root, file, &self.files, &self.hasher);
            let mut places = FilePlaces::new(file, text.as_deref().unwrap_or_default());
            for (entry, i) in owners {
                if let (Some(found), Some((_, path))) = (found.get_mut(*i), fields.get(*i)) {
                    *found = Some((file.clone(), places.locate(entry.at, path)));
                }
            }
        }
        found
    }

    /// Device and inode of the folder; `None` while it cannot be opened.
    pub(super) fn identity(&self) -> Option<(u64, u64)> {
        self.listing.identity
    }

    /// True if a file with this relative path is known.
    pub(super) fn is_known(&self, file: &str) -> bool {
        self.files.contains_key(file)
    }

    /// True if this relative path is that of the only file to read, or of a folder of known files.
    pub(super) fn covers(&self, path: &str) -> bool {
        let within = format!("{path}/");
        let following = self.files.range::<str, _>((Bound::Included(&*within), Bound::Unbounded));
        self.only.as_deref() == Some(path) || following.take(1).any(|(file, _)| file.starts_with(&within))
    }

    fn rescan_everything(&mut self) -> bool {
        let mut stale = Vec::new();
        self.listing = walk::walk(&self.root, self.only.as_ref(), &mut |file, stamp| {
            if let Some(known) = self.files.get_mut(file) {
                known.is_listed = true;
                if !known.unsettled && known.stamp == self.hasher.hash_one(stamp) {
                    return;
                }
            }
            stale.push((file.into(), stamp.size()));
        });
        stale.sort();
        let is_gone =
            |file: &str, known: &mut FileState| !mem::take(&mut known.is_listed) && !self.listing.is_unknown(file);
        let gone: Vec<Arc<str>> =
            self.files.iter_mut().filter_map(|(file, known)| is_gone(file, known).then(|| file.clone())).collect();
        // New places are added before old ones are removed, so that an object that moves to another file is never
        // absent.
        let changed = self.read_files(&stale);
        let touched = gone.iter().flat_map(|file| self.forget_file(file)).collect();
        self.settle(touched, &BTreeMap::new()) || changed
    }

    /// Parses files, given with their sizes in bytes, and replaces their objects. Returns true if an object changed.
    fn read_files(&mut self, files: &[(Arc<str>, u64)]) -> bool {
        let mut changed = false;
        let mut rest = files;
        while !rest.is_empty() {
            let (batch, after) = rest.split_at(batch(rest));
            changed |= self.read_batch(batch);
            rest = after;
        }
        changed
    }

    fn read_batch(&mut self, files: &[(Arc<str>, u64)]) -> bool {
        let (root, hasher) = (&self.root, &self.hasher);
        let texts = parallel::map_all(files, |(file, _)| FileText::read(&root.join(&**file), hasher));
        let (mut due, mut gone) = (Vec::new(), Vec::new());
        for ((file, _), text) in files.iter().zip(texts) {
            match text {
                Ok(text) if self.is_due(file, &text) => due.push((file, text)),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => gone.push(file),
                Err(error) => self.note_trouble(file, &error),
            }
        }
        let previous = |file| self.files.get(file).map(|known| &known.content);
        let texts: Vec<_> =
            due.iter().map(|(file, text)| Due { file, text: &text.text, previous: previous(*file) }).collect();
        let contents = self.reader.read(&texts);
        drop(texts);
        let mut touched = Vec::new();
        for ((file, text), content) in due.iter().zip(contents) {
            touched.extend(self.replace(file, text, content));
        }
        for file in gone {
            touched.extend(self.forget_file(file));
        }
        let texts = due.iter().map(|(file, text)| (&***file, &*text.text)).collect();
        self.settle(touched, &texts)
    }

    /// True if a file's text must be parsed: it has changed and is not about to be written.
    fn is_due(&mut self, file: &Arc<str>, text: &FileText) -> bool {
        let Some(known) = self.files.get_mut(file) else { return true };
        if known.digest == text.digest && known.error().is_none() {
            (known.stamp, known.unsettled) = (self.hasher.hash_one(text.stamp), text.is_unsettled());
            return false;
        }
        if text.text.trim().is_empty() && known.entries().next().is_some() && is_recent(&text.stamp, EMPTY_GRACE) {
            known.unsettled = true;
            return false;
        }
        true
    }

    /// Replaces the content of a file. Returns the objects whose entries changed, some more than once.
    fn replace(&mut self, file: &Arc<str>, text: &FileText, content: FileContent) -> Vec<ObjectRef> {
        let previous = self.files.get(file);
        let held = match (content.flaws().and_then(|flaws| flaws.broken.as_ref()), previous) {
            (Some(problem), Some(previous)) => previous.missing_from(&content, problem),
            _ => Vec::new(),
        };
        let (stamp, unsettled) = (self.hasher.hash_one(text.stamp), text.is_unsettled());
        let trouble = (!held.is_empty()).then(|| Box::new(Trouble { held, error: None }));
        let state = FileState { stamp, unsettled, is_listed: false, digest: text.digest, content, trouble };
        let old = previous.into_iter().flat_map(|previous| previous.entries());
        let touched = self.index.replace(old, state.entries());
        if state.is_flawed() {
            self.flawed.insert(file.clone());
        } else {
            self.flawed.remove(file);
        }
        self.files.insert(file.clone(), Box::new(state));
        touched
    }

    /// Removes a file. Returns the objects that it had.
    fn forget_file(&mut self, file: &Arc<str>) -> Vec<ObjectRef> {
        let Some(known) = self.files.remove(file) else { return Vec::new() };
        self.flawed.remove(file);
        self.index.replace(known.entries(), std::iter::empty())
    }

    fn note_trouble(&mut self, file: &Arc<str>, error: &io::Error) {
        match self.files.get_mut(file) {
            Some(known) => {
                known.trouble.get_or_insert_default().error = Some(error.to_string());
                known.unsettled = true;
                self.flawed.insert(file.clone());
            }
            None => drop(self.listing.unreadable.insert(file.clone(), error.to_string())),
        }
    }

    /// Decides anew which version of each object is in force. Returns true if there was any object. `texts` are those of
    /// files that were read just now.
    fn settle(&mut self, mut objects: Vec<ObjectRef>, texts: &BTreeMap<&str, &str>) -> bool {
        objects.sort();
        objects.dedup();
        let Directory { root, reader, hasher, files, index, resources, revised, .. } = self;
        let mut owners = Vec::new();
        for object in &objects {
            revised.remove(object);
            match index.owner(object) {
                Some(entry) => owners.push(entry),
                None => resources.set(object.key.clone(), object.kind, None, None),
            }
        }
        owners.sort_by_key(|entry| entry.place());
        for entries in owners.chunk_by(|one, next| one.file == next.file) {
            let Some(file) = entries.first().map(|entry| &entry.file) else { continue };
            let text = LazyCell::new(|| match texts.get(&**file) {
                Some(text) => Some(Cow::Borrowed(*text)),
                None => read_again(root, file, files, hasher).map(Cow::Owned),
            });
            let places = LazyCell::new(|| RefCell::new(FilePlaces::new(file, text.as_deref().unwrap_or_default())));
            for entry in entries {
                let ObjectRef { kind, key } = entry.object();
                let locate = |path: &FieldPath| places.borrow_mut().locate(entry.at, path);
                let (decision, diagnostics) = reader.decide(entry, resources.object(kind, &key), &locate);
                resources.set(key.clone(), kind, decision.accepted.as_ref(), decision.rejected);
                if let Some(diagnostics) = diagnostics {
                    revised.insert(ObjectRef { kind, key }, (Arc::clone(entry), diagnostics));
                }
            }
        }
        !objects.is_empty()
    }

    fn collect_diagnostics(&self) -> Vec<Diagnostic> {
        let mut diagnostics: Vec<Diagnostic> = Vec::new();
        let mut unknown: BTreeMap<&(String, String), (Arc<str>, Mark, usize)> = BTreeMap::new();
        for (place, message) in &self.listing.unreadable {
            let message = format!("cannot be read: {message}; what was last read stays in force");
            diagnostics.push(Diagnostic::of_file(place, Severity::Error, message));
        }
        for (file, state) in self.flawed.iter().filter_map(|file| self.files.get_key_value(file)) {
            for entry in state.content.entries().filter(|entry| !entry.diagnostics().is_empty()) {
                let revised = self.revised.get(&entry.object()).filter(|(original, _)| Arc::ptr_eq(original, entry));
                if revised.is_none() {
                    diagnostics.extend(entry.diagnostics().iter().cloned());
                }
            }
            if let Some(error) = state.error() {
                let message = format!("cannot be read: {error}; what was last read stays in force");
                diagnostics.push(Diagnostic::of_file(file, Severity::Error, message));
            }
            let Some(flaws) = state.content.flaws() else { continue };
            diagnostics.extend(flaws.diagnostics.iter().cloned());
            for object in &flaws.unknown {
                unknown.entry(&object.kind).or_insert_with(|| (file.clone(), object.at, 0)).2 += 1;
            }
        }
        diagnostics.extend(self.revised.values().flat_map(|(_, revised)| revised.iter().cloned()));
        for ((api_version, kind), (file, at, count)) in unknown {
            let rest = if count > 1 { format!(", and {} more of it", count - 1) } else { String::new() };
            let advice = instead_of(api_version, kind).map(|advice| format!("; {advice}")).unwrap_or_default();
            let message = format!("kind {kind} of {api_version} is not read, ignored{rest}{advice}");
            let mut diagnostic = Diagnostic::of_file(&file, Severity::Warning, message);
            (diagnostic.line, diagnostic.column) = (at.line, at.column);
            diagnostics.push(diagnostic);
        }
        diagnostics.extend(self.index.duplicates());
        diagnostics.sort();
        diagnostics
    }
}

/// The folder of a path, and the file if the path is one. The folder of a file in the working directory is `.`.
pub fn folder_of(given: &Path) -> (&Path, Option<Arc<str>>) {
    let name = given.file_name().and_then(|name| name.to_str()).filter(|_| given.is_file());
    match (name, given.parent()) {
        (Some(name), Some(parent)) if parent.as_os_str().is_empty() => (Path::new("."), Some(name.into())),
        (Some(name), Some(parent)) => (parent, Some(name.into())),
        _ => (given, None),
    }
}

/// The number of files to read at a time, of those that are left; each with its size in bytes.
fn batch(files: &[(Arc<str>, u64)]) -> usize {
    let mut bytes = 0;
    let is_over = |(_, size): &(Arc<str>, u64)| {
        bytes += size;
        bytes > MAX_BATCH_BYTES
    };
    let end = files.iter().take(MAX_BATCH).position(is_over).unwrap_or(MAX_BATCH).max(1);
    end.min(files.len())
}

/// The text of a file, if it is still the one that was parsed.
fn read_again(
    root: &Path,
    file: &Arc<str>,
    files: &BTreeMap<Arc<str>, Box<FileState>>,
    hasher: &RandomState,
) -> Option<String> {
    let text = FileText::read(&root.join(&**file), hasher).ok()?;
    (files.get(file)?.digest == text.digest).then_some(text.text)
}

#[cfg(test)]
mod tests;
