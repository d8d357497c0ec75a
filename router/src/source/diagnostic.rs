//! A problem in a folder of manifests, with its place.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Maximum number of diagnostics logged at a time.
const MAX_LOGGED: usize = 50;

/// Severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Something is not served, or an old version of it is.
    Error,
    /// Everything that can be served is served.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        })
    }
}

/// One problem. Ordered by place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Diagnostic {
    /// File, relative to the folder; empty for the folder itself.
    pub file: Arc<str>,
    /// Line, from 1; 0 when the problem is the file itself.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
    /// The object, as `Kind namespace/name`; empty when there is none.
    pub object: String,
    /// Path of the field; empty when there is none.
    pub path: String,
    /// The problem, and what to write instead.
    pub message: String,
    /// Severity.
    pub severity: Severity,
}

impl Diagnostic {
    /// A problem of a file as a whole.
    pub fn of_file(file: &Arc<str>, severity: Severity, message: impl Into<String>) -> Self {
        Diagnostic {
            file: file.clone(),
            line: 0,
            column: 0,
            object: String::new(),
            path: String::new(),
            message: message.into(),
            severity,
        }
    }

    /// The problem as one line, with the file's path below `folder`.
    pub fn display_in(&self, folder: &Path) -> String {
        let shown = if self.file.is_empty() { folder.to_owned() } else { folder.join(&*self.file) };
        format!("{}{}", shown.display(), self.without_file())
    }

    fn without_file(&self) -> String {
        let mut text = String::new();
        if self.line > 0 {
            text.push_str(&format!(":{}:{}", self.line, self.column));
        }
        text.push_str(": ");
        if self.severity == Severity::Warning {
            text.push_str("warning: ");
        }
        for part in [&self.object, &self.path] {
            if !part.is_empty() {
                text.push_str(part);
                text.push_str(": ");
            }
        }
        text.push_str(&self.message);
        text
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.without_file();
        // Objects of an API server have no place.
        let text = if self.file.is_empty() { text.strip_prefix(": ").unwrap_or(&text) } else { &text };
        write!(f, "{}{text}", self.file)
    }
}

/// Logs diagnostics that are new. Both lists are sorted.
pub(super) fn log_new(before: &[Diagnostic], now: &[Diagnostic]) {
    let mut new = now.iter().filter(|problem| before.binary_search(problem).is_err());
    for problem in new.by_ref().take(MAX_LOGGED) {
        match problem.severity {
            Severity::Error => tracing::error!(target: "manifests", "{problem}"),
            Severity::Warning => tracing::warn!(target: "manifests", "{problem}"),
        }
    }
    let more = new.count();
    if more > 0 {
        tracing::warn!(target: "manifests", "and {more} more problems; `sluice get status` shows them all");
    }
}
