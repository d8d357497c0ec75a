//! Requests received by backends, in order of arrival.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A request as a backend received it.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The backend.
    pub backend: String,
    /// The first line: method, target, version.
    pub request: String,
    /// Header fields in order; over HTTP/1.1 with their original spelling.
    pub fields: Vec<(String, String)>,
    /// Facts about the connection: PROXY header, TLS.
    pub about: Vec<String>,
    /// The content.
    pub body: Vec<u8>,
    /// Trailer fields.
    pub trailers: Vec<(String, String)>,
}

impl Seen {
    /// True for a health check of the router.
    pub fn is_check(&self) -> bool {
        self.fields
            .iter()
            .any(|(name, value)| name.eq_ignore_ascii_case("user-agent") && value == "sluice-health-check")
    }

    /// The entire request as lines.
    pub fn lines(&self) -> String {
        let mut lines = vec![self.backend.clone(), self.request.clone()];
        lines.extend(self.fields.iter().map(|(name, value)| format!("{name}: {value}")));
        lines.extend(self.about.iter().map(|about| format!("[{about}]")));
        if !self.body.is_empty() {
            lines.push(format!("[content {}]", String::from_utf8_lossy(&self.body)));
        }
        lines.extend(self.trailers.iter().map(|(name, value)| format!("[trailer {name}: {value}]")));
        lines.push(String::new());
        lines.join("\n")
    }
}

/// The requests received by all backends of a stage.
#[derive(Clone, Default)]
pub struct Log(Arc<(Mutex<Vec<Arc<Seen>>>, Condvar)>, Arc<Mutex<BTreeMap<String, usize>>>);

impl Log {
    /// Adds an entry; returns its number, counted from 0.
    pub fn add(&self, backend: &str, seen: Seen) -> usize {
        let mut entries = self.entries();
        entries.push(Arc::new(Seen { backend: backend.to_owned(), ..seen }));
        self.0.1.notify_all();
        entries.len() - 1
    }

    /// Counts a connection to a backend.
    pub fn connected(&self, backend: &str) {
        *self.1.lock().unwrap_or_else(PoisonError::into_inner).entry(backend.to_owned()).or_default() += 1;
    }

    /// Number of connections accepted by a backend.
    pub fn connections_of(&self, backend: &str) -> usize {
        self.1.lock().unwrap_or_else(PoisonError::into_inner).get(backend).copied().unwrap_or_default()
    }

    /// Number of entries.
    pub fn count(&self) -> usize {
        self.entries().len()
    }

    /// Number of entries of a backend.
    pub fn count_of(&self, backend: &str) -> usize {
        self.entries().iter().filter(|seen| seen.backend == backend).count()
    }

    /// The entries from this number on, with their numbers.
    pub fn since(&self, number: usize) -> Vec<(usize, Arc<Seen>)> {
        self.entries().iter().cloned().enumerate().skip(number).collect()
    }

    /// Waits until a backend has this many entries; returns the last of them, or `None` after the time.
    pub fn wait_for(&self, backend: &str, count: usize, within: Duration) -> Option<Arc<Seen>> {
        let nth = |entries: &[Arc<Seen>]| {
            let mut of_backend = entries.iter().filter(|seen| seen.backend == backend);
            of_backend.nth(count.checked_sub(1)?).cloned()
        };
        let waited = self.0.1.wait_timeout_while(self.entries(), within, |entries| nth(entries).is_none());
        let (entries, _) = waited.unwrap_or_else(PoisonError::into_inner);
        nth(&entries)
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Arc<Seen>>> {
        // Entries are complete even if a thread panicked.
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
