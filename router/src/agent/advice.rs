//! Logs warnings that no status reports: each once, after the change was published.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use router_api::object::Object;
use router_model::object::Origin;
use router_proxy::ProxyState;
use router_translate::advice::advice;
use router_translate::explain::facts::Facts;
use router_translate::warning::Warning;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::published::Published;
use crate::source::{Diagnostic, Severity};

/// Delay after a change. Changes come in bursts; warnings about an intermediate state are of no use.
const PAUSE: Duration = Duration::from_secs(1);
/// Maximum share of time spent on this: one part in so many.
const SHARE: u32 = 20;
/// Interval without changes: certificates expire.
const OFTEN: Duration = Duration::from_secs(3600);
/// Maximum number of warnings in the log for one pass.
const MAX_LOGGED: usize = 50;

/// Logs warnings about every version that stays for a moment, until the sender is dropped.
pub async fn log_warnings(mut published: watch::Receiver<Arc<Published>>, known: ProxyState) {
    let mut told = LoggedWarnings::default();
    loop {
        let (now, known, begin) = (published.borrow_and_update().clone(), known.clone(), Instant::now());
        let work = tokio::task::spawn_blocking(move || {
            for line in told.lines(&now, &known) {
                tracing::warn!(target: "manifests", "{line}");
            }
            told
        });
        // A bug, which the log shows. Warnings may be repeated.
        told = work.await.unwrap_or_default();
        sleep(PAUSE.max(begin.elapsed() * SHARE)).await;
        if let Ok(Err(_)) = timeout(OFTEN, published.changed()).await {
            return;
        }
    }
}

/// Hashes of the warnings that are logged and still hold.
#[derive(Debug, Default)]
struct LoggedWarnings {
    hasher: RandomState,
    warnings: HashSet<u64>,
}

impl LoggedWarnings {
    fn lines(&mut self, published: &Published, known: &ProxyState) -> Vec<String> {
        let (table, status) = (&published.table, &published.status);
        let (report, resources) = (&status.report, &status.resources);
        let facts = Facts::of(table, report, resources, known.trust());
        let place = |warning: &Warning| {
            let object = resources.object(warning.object.kind, &warning.object.key);
            object.as_ref().map(|object| Object::meta(object).origin.clone()).unwrap_or_default()
        };
        self.new_lines(&advice(facts, Timestamp::now()), place)
    }

    fn new_lines(&mut self, now: &[Warning], place: impl Fn(&Warning) -> Origin) -> Vec<String> {
        let hashes: Vec<u64> = now.iter().map(|warning| self.hasher.hash_one(warning)).collect();
        let mut new = now.iter().zip(&hashes).filter(|(_, hash)| !self.warnings.contains(hash)).map(|(it, _)| it);
        let mut lines: Vec<String> =
            new.by_ref().take(MAX_LOGGED).map(|warning| line(warning, place(warning))).collect();
        let more = new.count();
        if more > 0 {
            lines.push(format!("and {more} more warnings; `sluice validate` shows them all"));
        }
        self.warnings = hashes.into_iter().collect();
        lines
    }
}

/// A log line in the form of diagnostics of manifests; the place is that of the object.
fn line(warning: &Warning, at: Origin) -> String {
    let Warning { object, path, message } = warning;
    let diagnostic = Diagnostic {
        file: at.file,
        line: at.line,
        column: at.column,
        object: object.to_string(),
        path: path.to_string(),
        message: message.clone(),
        severity: Severity::Warning,
    };
    diagnostic.to_string()
}

#[cfg(test)]
mod tests {
    use router_model::field::FieldPath;
    use router_model::kind::Kind;
    use router_model::object::{ObjectKey, ObjectRef};

    use super::*;

    fn warning(name: &str, message: &str) -> Warning {
        let object = ObjectRef { kind: Kind::Route, key: ObjectKey::new("shop", name) };
        Warning { object, path: FieldPath::of(&["spec", "to"]), message: message.to_owned() }
    }

    fn lines(told: &mut LoggedWarnings, now: &[Warning]) -> Vec<String> {
        told.new_lines(now, |_| Origin { file: "routes.yaml".into(), line: 3, column: 1 })
    }

    #[test]
    fn a_warning_is_logged_once_while_it_holds() {
        let mut told = LoggedWarnings::default();
        let (one, two) = (warning("one", "is odd"), warning("two", "is odd"));
        let line = |name: &str| format!("routes.yaml:3:1: warning: Route shop/{name}: spec.to: is odd");
        assert_eq!(lines(&mut told, std::slice::from_ref(&one)), [line("one")]);
        assert_eq!(lines(&mut told, &[one.clone(), two.clone()]), [line("two")]);
        assert_eq!(lines(&mut told, &[one.clone(), two.clone()]), [""; 0]);
        assert_eq!(lines(&mut told, std::slice::from_ref(&two)), [""; 0]);
        assert_eq!(lines(&mut told, &[one, two]), [line("one")]);
    }

    #[test]
    fn a_flood_of_warnings_is_counted_instead() {
        let all: Vec<Warning> = (0..MAX_LOGGED + 7).map(|i| warning(&i.to_string(), "is odd")).collect();
        let lines = lines(&mut LoggedWarnings::default(), &all);
        assert_eq!(lines.len(), MAX_LOGGED + 1);
        assert_eq!(lines[MAX_LOGGED], "and 7 more warnings; `sluice validate` shows them all");
    }
}
