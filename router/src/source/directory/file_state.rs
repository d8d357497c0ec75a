//! What is known of a file.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::source::entry::ManifestEntry;
use crate::source::manifests::FileContent;

/// State of a file.
#[derive(Debug)]
pub struct FileState {
    /// Digest of its stamp.
    pub stamp: u64,
    /// True if the file must be read again although its stamp is unchanged.
    pub unsettled: bool,
    /// While the folder is scanned: the file is there.
    pub is_listed: bool,
    /// Digest of its text.
    pub digest: u64,
    /// What it contains.
    pub content: FileContent,
    /// Most files have none.
    pub trouble: Option<Box<Trouble>>,
}

const _: () = assert!(size_of::<FileState>() <= 80, "a size class of the allocator");

/// What keeps an older version of a file's objects in force.
#[derive(Debug, Default)]
pub struct Trouble {
    /// Objects that the file had before its syntax error.
    pub held: Vec<Arc<ManifestEntry>>,
    /// Why the file cannot be read at present.
    pub error: Option<String>,
}

impl FileState {
    /// Its objects, held ones included.
    pub fn entries(&self) -> impl Iterator<Item = &Arc<ManifestEntry>> {
        self.content.entries().chain(self.trouble.iter().flat_map(|trouble| &trouble.held))
    }

    /// Why it cannot be read at present.
    pub fn error(&self) -> Option<&str> {
        self.trouble.as_ref()?.error.as_deref()
    }

    /// Whether there is something to report about it.
    pub fn is_flawed(&self) -> bool {
        let mut entries = self.content.entries();
        self.error().is_some() || self.content.flaws().is_some() || entries.any(|entry| !entry.diagnostics().is_empty())
    }
    /// Its objects that its new content lacks, because a document of it cannot be read.
    pub fn missing_from(&self, content: &FileContent, problem: &str) -> Vec<Arc<ManifestEntry>> {
        let present: BTreeSet<_> = content.entries().map(|entry| entry.name()).collect();
        let missing = self.entries().filter(|entry| !present.contains(&entry.name()));
        missing.map(|entry| Arc::new(entry.held(entry.accepted().cloned(), problem))).collect()
    }
}
