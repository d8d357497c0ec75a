//! Watches a folder: waits for changes, debounces them, scans again, and publishes.
//!
//! The kernel's notifications only trigger scans: every scan compares metadata. Where there are no notifications (links
//! that point out of the folder, network file systems, no watches left), polling triggers scans.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::{Notify, watch};

use super::diagnostic::log_new;
use super::directory::{Directory, Scope};
use super::snapshot::SourceSnapshot;
use super::walk::is_manifest;

/// A burst of changes has ended if nothing happens for this long.
const QUIET: Duration = Duration::from_millis(5);
/// A burst is scanned after this time, ended or not.
const LONGEST_BURST: Duration = Duration::from_millis(50);
/// Interval of scans without notifications.
const POLL: Duration = Duration::from_millis(500);
/// Maximum share of time spent on polling: one part in so many.
const POLL_SHARE: u32 = 20;
/// If more files than this have changed, the whole folder is scanned.
const MAX_PENDING: usize = 1024;

impl Directory {
    /// Watches the folder until every receiver is dropped. The receiver has the present snapshot at once, and a new one
    /// after each effective change. The future needs a runtime that allows blocking calls.
    pub fn watch(self) -> (watch::Receiver<SourceSnapshot>, impl Future<Output = ()> + Send) {
        let (sender, receiver) = watch::channel(self.snapshot());
        (receiver, follow(self, sender))
    }
}

async fn follow(mut directory: Directory, sender: watch::Sender<SourceSnapshot>) {
    let events = Arc::new(Events::default());
    let mut watches = Watches::new(directory.root(), &events);
    watches.follow(directory.identity());
    // Covers changes between the first scan and the watches.
    let mut scope = Scope::Everything;
    let mut logged = directory.snapshot().diagnostics;
    log_new(&[], &logged);
    loop {
        let begin = Instant::now();
        let looked = tokio::task::spawn_blocking(move || {
            let snapshot = directory.rescan(&scope);
            (directory, snapshot)
        });
        let Ok((returned, snapshot)) = looked.await else {
            tracing::error!("reading the manifests was aborted; changes are no longer followed");
            return;
        };
        directory = returned;
        if let Some(snapshot) = snapshot {
            log_new(&logged, &snapshot.diagnostics);
            logged = Arc::clone(&snapshot.diagnostics);
            sender.send_replace(snapshot);
        }
        if watches.follow(directory.identity()) {
            // The path names another folder: scan once more, now that it is watched.
            scope = Scope::Everything;
            continue;
        }
        let pause = POLL.max(begin.elapsed() * POLL_SHARE);
        tokio::select! {
            () = events.wait() => events.settle().await,
            () = tokio::time::sleep(pause) => events.note_everything(),
            () = sender.closed() => return,
        }
        scope = events.take(&directory);
    }
}

/// Reported changes that have not been scanned yet; bounded.
#[derive(Debug, Default)]
struct Events {
    pending: Mutex<Pending>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Pending {
    everything: bool,
    paths: BTreeSet<PathBuf>,
}

impl Events {
    fn note(&self, event: notify::Result<Event>, root: &Path) {
        // `None` stands for lost events, or an error of the watcher.
        let paths = match event {
            Ok(event) if event.need_rescan() => None,
            Ok(event) if !is_change(&event.kind) => return,
            Ok(event) => Some(event.paths),
            Err(_) => None,
        };
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        match paths {
            Some(mut paths) => {
                // The parent folder is watched only for a replacement of this one.
                paths.retain(|path| path.starts_with(root));
                if paths.is_empty() {
                    return;
                }
                pending.paths.extend(paths);
            }
            None => pending.everything = true,
        }
        if pending.paths.len() > MAX_PENDING {
            pending.everything = true;
            pending.paths.clear();
        }
        drop(pending);
        self.arrived.notify_one();
    }

    fn note_everything(&self) {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).everything = true;
    }

    async fn wait(&self) {
        self.arrived.notified().await;
    }

    /// Waits for the end of a burst of changes.
    async fn settle(&self) {
        let end = Instant::now() + LONGEST_BURST;
        while Instant::now() < end {
            if tokio::time::timeout(QUIET, self.arrived.notified()).await.is_err() {
                return;
            }
        }
    }

    /// The scope of the next scan. Only changes of known files can be scanned individually; what is no manifest, and was
    /// none, is not scanned, such as the file that an editor writes and then renames.
    fn take(&self, directory: &Directory) -> Scope {
        let pending = std::mem::take(&mut *self.pending.lock().unwrap_or_else(PoisonError::into_inner));
        if pending.everything || pending.paths.is_empty() {
            return Scope::Everything;
        }
        let mut files = BTreeSet::new();
        for path in pending.paths {
            match path.strip_prefix(directory.root()).ok().and_then(Path::to_str) {
                Some(relative) if directory.is_known(relative) => drop(files.insert(relative.into())),
                Some(relative) if !directory.covers(relative) && is_no_manifest(&path) => {}
                _ => return Scope::Everything,
            }
        }
        Scope::Files(files)
    }
}

/// True of a plain file whose name is no manifest's, and of nothing. A link to such a file is found changed by polling.
fn is_no_manifest(path: &Path) -> bool {
    match fs::symlink_metadata(path) {
        Ok(metadata) => {
            let name = path.file_name().and_then(OsStr::to_str);
            metadata.is_file() && !name.is_some_and(is_manifest)
        }
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

fn is_change(kind: &EventKind) -> bool {
    match kind {
        EventKind::Access(access) => *access == AccessKind::Close(AccessMode::Write),
        _ => true,
    }
}

/// The kernel's watches on the folder, and on its parent to detect a replacement.
struct Watches {
    root: PathBuf,
    watcher: Option<RecommendedWatcher>,
    watched: Option<(u64, u64)>,
}

impl Watches {
    fn new(root: &Path, events: &Arc<Events>) -> Self {
        let (events, below) = (events.clone(), root.to_owned());
        let watcher = notify::recommended_watcher(move |event| events.note(event, &below));
        let mut watches = Watches { root: root.to_owned(), watcher: None, watched: None };
        match watcher {
            Ok(watcher) => watches.watcher = Some(watcher),
            Err(error) => tracing::warn!(%error, "no file notifications; changes are found by polling"),
        }
        if let (Some(watcher), Some(parent)) = (&mut watches.watcher, root.parent())
            && let Err(error) = watcher.watch(parent, RecursiveMode::NonRecursive)
        {
            tracing::debug!(%error, "the folder above is not watched; its replacement is found by polling");
        }
        watches
    }

    /// Watches the folder that has this path now. Returns true if it is another folder than before.
    fn follow(&mut self, identity: Option<(u64, u64)>) -> bool {
        if self.watched == identity {
            return false;
        }
        let Some(watcher) = &mut self.watcher else {
            self.watched = identity;
            return false;
        };
        if self.watched.take().is_some() {
            // Fails if the folder is gone, and its watches with it.
            drop(watcher.unwatch(&self.root));
        }
        let Some(identity) = identity else { return false };
        match watcher.watch(&self.root, RecursiveMode::Recursive) {
            Ok(()) => {}
            Err(error) => tracing::warn!(%error, "not every folder is watched; changes are found by polling"),
        }
        self.watched = Some(identity);
        true
    }
}

#[cfg(test)]
mod tests;
