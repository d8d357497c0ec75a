//! Lists the files of a folder of manifests, with their metadata.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

/// Maximum number of files.
const MAX_FILES: usize = 200_000;
/// Maximum depth of subfolders.
const MAX_DEPTH: usize = 32;

/// Metadata of a file: a change of content changes one of these, except within the clock's resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// The stamp of a file.
    pub fn of(metadata: &Metadata) -> Self {
        Stamp {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// When content or metadata last changed: seconds and nanoseconds since 1970.
    pub fn latest(&self) -> (i64, i64) {
        self.modified.max(self.changed)
    }
}

/// What a walk found beside files.
#[derive(Debug, Default)]
pub struct Listing {
    /// Paths that could not be listed; nothing is known about the files below.
    pub unreadable: BTreeMap<Arc<str>, String>,
    /// The folder itself: device and inode; `None` when it could not be opened.
    pub identity: Option<(u64, u64)>,
}

impl Listing {
    /// True if `file` is below an unreadable path, so that its absence means nothing.
    pub fn is_unknown(&self, file: &str) -> bool {
        self.unreadable.keys().any(|place| {
            place.is_empty() || file.strip_prefix(&**place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }
}

/// True if a file of this name is a manifest.
pub fn is_manifest(name: &str) -> bool {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    !name.starts_with('.') && matches!(extension, Some("yaml" | "yml" | "json"))
}

/// Lists the folder and its subfolders, following links; each folder once, however many links lead to it. With `only`,
/// lists this file alone, whatever its extension. `found` has each file, by its path relative to the folder: nothing is
/// kept of the many that have not changed.
pub fn walk(root: &Path, only: Option<&Arc<str>>, found: &mut dyn FnMut(&str, Stamp)) -> Listing {
    let mut listing = Listing::default();
    match fs::metadata(root) {
        Ok(metadata) => listing.identity = Some((metadata.dev(), metadata.ino())),
        Err(error) => drop(listing.unreadable.insert("".into(), error.to_string())),
    }
    match (listing.identity, only) {
        (Some(_), Some(file)) => match fs::metadata(root.join(&**file)) {
            Ok(metadata) => found(file, Stamp::of(&metadata)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => drop(listing.unreadable.insert(Arc::clone(file), error.to_string())),
        },
        (Some(identity), None) => {
            let mut walk = Walk { visited: BTreeSet::from([identity]), files: 0, listing: &mut listing, found };
            walk.folder(root, "", 0);
        }
        (None, _) => {}
    }
    listing
}

struct Walk<'a> {
    /// Folders, by device and inode.
    visited: BTreeSet<(u64, u64)>,
    /// Number of files so far.
    files: usize,
    listing: &'a mut Listing,
    found: &'a mut dyn FnMut(&str, Stamp),
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Path, relative: &str, depth: usize) {
        let entries = match sorted_entries(folder) {
            Ok(entries) => entries,
            Err(error) => return self.unreadable(relative, error.to_string()),
        };
        for (name, entry) in entries {
            let relative = if relative.is_empty() { name } else { format!("{relative}/{name}") };
            let metadata = match metadata(&entry) {
                Ok(metadata) => metadata,
                // Deleted since the folder was read, or a dangling link: there is no such file.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    self.unreadable(&relative, error.to_string());
                    continue;
                }
            };
            if metadata.is_dir() {
                if !self.visited.insert((metadata.dev(), metadata.ino())) {
                    continue;
                }
                if depth == MAX_DEPTH {
                    self.unreadable(&relative, format!("nests deeper than {MAX_DEPTH} folders"));
                    continue;
                }
                self.folder(&entry.path(), &relative, depth + 1);
            } else if metadata.is_file() && is_manifest(&relative) {
                if self.files == MAX_FILES {
                    return self.unreadable(&relative, format!("there are more than {MAX_FILES} manifests"));
                }
                self.files += 1;
                (self.found)(&relative, Stamp::of(&metadata));
            }
        }
    }

    fn unreadable(&mut self, place: &str, why: String) {
        self.listing.unreadable.insert(place.into(), why);
    }
}

/// Metadata of an entry, or of what it links to. Without a link the kernel looks up one name, not the whole path.
fn metadata(entry: &DirEntry) -> io::Result<Metadata> {
    if entry.file_type()?.is_symlink() { fs::metadata(entry.path()) } else { entry.metadata() }
}

fn sorted_entries(folder: &Path) -> io::Result<Vec<(String, DirEntry)>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // A name that is not UTF-8 cannot be shown in a message; such files are ignored.
        let Ok(name) = entry.file_name().into_string() else { continue };
        if !name.starts_with('.') {
            entries.push((name, entry));
        }
    }
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(entries)
}
