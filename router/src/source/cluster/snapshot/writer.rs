//! Writes the snapshot: changes as they come, and a copy when most of the file is superseded.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use router_model::object::ObjectRef;
use serde_json::Value;

use super::{MAX_LINE, Place, Snapshot, append};

/// Minimum interval of writes, once every kind was listed.
const WRITE: Duration = Duration::from_secs(1);
/// Interval at which the file's time of modification is set, while the API server can be read.
const STAMP: Duration = Duration::from_secs(10);
/// A file of another agent that is older than this is not maintained any more.
const ABANDONED: Duration = Duration::from_secs(60);
/// Number of bytes after which changes are written before their time.
const MAX_WAITING: usize = 1 << 20;
/// Number of superseded bytes that no copy is worth.
const MIN_SUPERSEDED: u64 = 1 << 20;

/// Writes the snapshot. The first error ends it; it never stops the caller.
pub struct SnapshotWriter {
    place: Place,
    /// `None` after an error.
    file: Option<File>,
    /// Changes that wait to be written.
    waiting: Vec<u8>,
    /// Length of the file, and what of it was in force when it was last copied.
    length: u64,
    in_force: u64,
    /// Whether every kind was listed: the file is complete.
    published: bool,
    written: Instant,
    stamped: Instant,
}

impl SnapshotWriter {
    /// Begins a file beside the old one.
    pub fn new(place: Place) -> Self {
        let now = Instant::now();
        let mut writer = SnapshotWriter {
            file: None,
            waiting: Vec::new(),
            length: 0,
            in_force: 0,
            published: false,
            written: now,
            stamped: now,
            place,
        };
        match create(&writer.place.beside()) {
            Ok(file) => writer.file = Some(file),
            Err(error) => writer.fail(&error),
        }
        append(&mut writer.waiting, &writer.place.header());
        writer
    }

    /// An object was set or removed.
    pub fn set(&mut self, object: &ObjectRef, value: Option<&Value>) {
        if self.file.is_some() {
            let begin = self.waiting.len();
            let (kind, namespace, name) = (object.kind.name(), &*object.key.namespace, &*object.key.name);
            append(&mut self.waiting, &(kind, namespace, name, value));
            // A longer line ends the snapshot for a reader.
            if (self.waiting.len() - begin) as u64 > MAX_LINE {
                tracing::warn!(%object, "not in the snapshot: it has more than {MAX_LINE} bytes");
                self.waiting.truncate(begin);
                self.waiting.shrink_to(MAX_WAITING);
                append(&mut self.waiting, &(kind, namespace, name, None::<&Value>));
            }
            if self.waiting.len() >= MAX_WAITING {
                self.attempt(Self::flush);
            }
        }
    }

    /// The objects of an older snapshot were set.
    pub fn loaded(&mut self) {
        self.attempt(Self::flush);
        self.in_force = self.length;
    }

    /// Every kind was listed: replaces the older snapshot.
    pub fn publish(&mut self) {
        self.published = true;
        self.attempt(|writer| {
            writer.flush()?;
            // Without an older snapshot, all of it is in force.
            if writer.in_force == 0 {
                writer.in_force = writer.length;
            }
            // An agent that this one replaces may use the name at the same time.
            if writer.is_at(&writer.place.beside()) {
                fs::rename(writer.place.beside(), &writer.place.path)
            } else {
                writer.copy()
            }
        });
    }

    /// When [`SnapshotWriter::maintain`] is due.
    pub fn due(&self) -> Duration {
        if self.file.is_none() {
            return Duration::MAX;
        }
        let since = if self.waiting.is_empty() { self.stamped + STAMP } else { self.written + WRITE };
        since.saturating_duration_since(Instant::now())
    }

    /// Writes what is due. `current`: the API server can be read.
    pub fn maintain(&mut self, current: bool) {
        if self.file.is_none() || !self.due().is_zero() {
            return;
        }
        self.written = Instant::now();
        self.attempt(Self::flush);
        let is_own = self.is_at(&self.place.path);
        if is_own && self.length > 2 * self.in_force + MIN_SUPERSEDED {
            self.attempt(Self::copy);
        }
        if self.stamped.elapsed() >= STAMP {
            self.stamped = self.written;
            if is_own && current {
                self.attempt(|writer| writer.file.as_ref().map_or(Ok(()), |it| it.set_modified(SystemTime::now())));
            } else if self.is_abandoned() {
                self.attempt(Self::copy);
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_all(&self.waiting)?;
        self.length += self.waiting.len() as u64;
        self.waiting.clear();
        Ok(())
    }

    /// Copies what is in force to a new file, and puts it in the place of the snapshot.
    fn copy(&mut self) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let (_, old) = Snapshot::read(file.try_clone()?)?;
        if old.intact != self.length {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the file was changed"));
        }
        let path = self.place.beside();
        let mut copy = BufWriter::new(create(&path)?);
        let mut length = 0;
        let mut header = Vec::new();
        append(&mut header, &self.place.header());
        for line in std::iter::once(Ok(header)).chain(old.lines.values().map(|place| old.line(*place))) {
            let line = line?;
            copy.write_all(&line)?;
            length += line.len() as u64;
        }
        let copy = copy.into_inner()?;
        // The copy is as old as what it is a copy of.
        copy.set_modified(old.as_of()?)?;
        fs::rename(path, &self.place.path)?;
        (self.file, self.length, self.in_force) = (Some(copy), length, length);
        Ok(())
    }

    fn is_at(&self, path: &Path) -> bool {
        let own = self.file.as_ref().and_then(|file| file.metadata().ok());
        let found = fs::metadata(path).ok();
        own.zip(found).is_some_and(|(own, found)| (own.dev(), own.ino()) == (found.dev(), found.ino()))
    }

    /// True if no agent maintains the snapshot: one that was to replace this one has ended.
    fn is_abandoned(&self) -> bool {
        let modified = fs::metadata(&self.place.path).and_then(|found| found.modified());
        self.published
            && !self.is_at(&self.place.path)
            && modified.map_or(true, |modified| modified.elapsed().is_ok_and(|age| age > ABANDONED))
    }

    fn attempt(&mut self, work: impl FnOnce(&mut Self) -> io::Result<()>) {
        if let Err(error) = work(self) {
            self.fail(&error);
        }
    }

    fn fail(&mut self, error: &io::Error) {
        tracing::error!(path = %self.place.path.display(), %error,
            "the snapshot cannot be written; it stays as it is until the next start");
        if self.is_at(&self.place.beside()) {
            let _ = fs::remove_file(self.place.beside());
        }
        (self.file, self.waiting) = (None, Vec::new());
    }
}

impl Drop for SnapshotWriter {
    fn drop(&mut self) {
        self.attempt(Self::flush);
        if !self.published && self.is_at(&self.place.beside()) {
            let _ = fs::remove_file(self.place.beside());
        }
    }
}

/// A new file that only its owner may read.
fn create(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests;
