//! Faults: what the server does instead of its usual answer, or to it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use http::StatusCode;
use tokio::sync::watch;

use super::call::{Call, Verb};
use super::lock::lock;
use super::status::Failure;

/// Which requests a fault meets: all, unless it says more.
#[derive(Clone, Debug, Default)]
pub struct When {
    verbs: Vec<Verb>,
    plural: Option<String>,
    is_continued: Option<bool>,
    times: Option<usize>,
    after: usize,
}

impl When {
    /// Requests of these verbs.
    pub fn verbs(verbs: &[Verb]) -> When {
        When { verbs: verbs.to_vec(), ..When::default() }
    }

    /// Only of a kind's collection: `routes`.
    pub fn of(self, plural: &str) -> When {
        When { plural: Some(plural.to_owned()), ..self }
    }

    /// Only pages after the first one of a list, or only first ones.
    pub fn continued(self, is_continued: bool) -> When {
        When { is_continued: Some(is_continued), ..self }
    }

    /// Only so many requests.
    pub fn times(self, times: usize) -> When {
        When { times: Some(times), ..self }
    }

    /// Only requests after so many.
    pub fn after(self, after: usize) -> When {
        When { after, ..self }
    }

    fn meets(&self, call: &Call) -> bool {
        let is_continued = !call.query.get("continue").is_empty();
        (self.verbs.is_empty() || self.verbs.contains(&call.verb))
            && self.plural.as_ref().is_none_or(|plural| *plural == call.kind.plural)
            && self.is_continued.is_none_or(|wanted| wanted == is_continued)
    }
}

/// What happens to a request that a fault meets.
#[derive(Clone, Debug)]
pub enum Then {
    /// It fails: 401, 403, 410, 422 for a streaming list, 429, 5xx.
    Fail(Failure),
    /// It fails by 429 as API Priority and Fairness answers: a text, and a header field with the seconds after which to try
    /// again.
    Busy(u64),
    /// The answer is 200 with these bytes: invalid JSON, for example.
    Answer(Bytes),
    /// The answer waits until the fault is released.
    Hold,
    /// The answer stops in silence after so many bytes of its body, until the fault is released.
    Stall(usize),
    /// The answer breaks off after so many bytes of its body: a reset of the stream, or of a connection of HTTP/1.1.
    Cut(usize),
    /// A list, or the begin of a streaming one, has only so many objects.
    Keep(usize),
    /// A list has this item before the others, a streaming list this event's object: a malformed object, for example.
    Insert(Bytes),
}

impl Then {
    /// A failure with the usual reason of its code.
    pub fn fail(code: StatusCode) -> Then {
        Then::Fail(Failure::new(code, "the test makes this request fail"))
    }

    /// Too many requests, with the seconds after which to try again.
    pub fn too_many(retry_after: u64) -> Then {
        let failure = Failure::new(StatusCode::TOO_MANY_REQUESTS, "Too many requests, please try again later.");
        Then::Fail(Failure { retry_after: Some(retry_after), ..failure })
    }
}

/// A fault of a running server. It stays when the value is dropped.
#[derive(Clone)]
pub struct Fault(Arc<Inner>);

struct Inner {
    when: When,
    then: Then,
    /// Number of requests that it let pass, and of those that it has met.
    passed: AtomicUsize,
    met: AtomicUsize,
    state: watch::Sender<State>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Active,
    Released,
}

impl Fault {
    fn new(when: When, then: Then) -> Fault {
        let (passed, met) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Fault(Arc::new(Inner { when, then, passed, met, state: watch::channel(State::Active).0 }))
    }

    /// Number of requests that it has met.
    pub fn met(&self) -> usize {
        self.0.met.load(Ordering::Relaxed)
    }

    /// Ends it: later requests do not meet it, and answers that it holds go on.
    pub fn release(&self) {
        self.0.state.send_replace(State::Released);
    }

    /// What happens to the request.
    pub(super) fn then(&self) -> &Then {
        &self.0.then
    }

    /// Waits until it is released.
    pub(super) async fn released(&self) {
        // The sender lives as long as the fault.
        let _ = self.0.state.subscribe().wait_for(|state| *state == State::Released).await;
    }

    fn is_active(&self) -> bool {
        *self.0.state.borrow() == State::Active && self.0.when.times.is_none_or(|times| self.met() < times)
    }
}

/// The faults of a server; the first one that a request meets counts.
#[derive(Default)]
pub struct Faults(Mutex<Vec<Fault>>);

impl Faults {
    /// Adds one.
    pub fn add(&self, when: When, then: Then) -> Fault {
        let fault = Fault::new(when, then);
        let mut faults = self.lock();
        faults.retain(Fault::is_active);
        faults.push(fault.clone());
        fault
    }

    /// The one that a request meets.
    pub fn met(&self, call: &Call) -> Option<Fault> {
        let faults = self.lock();
        // One that lets the request pass is none.
        let is_early = |fault: &Fault| fault.0.passed.fetch_add(1, Ordering::Relaxed) < fault.0.when.after;
        let fault = faults.iter().find(|it| it.is_active() && it.0.when.meets(call) && !is_early(it))?;
        fault.0.met.fetch_add(1, Ordering::Relaxed);
        Some(fault.clone())
    }

    /// Whether requests of a kind are forbidden.
    pub fn forbids(&self, verb: Verb, plural: &str) -> bool {
        let is_forbidding = |fault: &Fault| {
            let When { verbs, plural: of, .. } = &fault.0.when;
            matches!(&fault.0.then, Then::Fail(failure) if failure.code == StatusCode::FORBIDDEN)
                && (verbs.is_empty() || verbs.contains(&verb))
                && of.as_ref().is_none_or(|of| of == plural)
        };
        self.lock().iter().any(|fault| fault.is_active() && is_forbidding(fault))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Fault>> {
        lock(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::super::store::Store;
    use super::*;

    #[test]
    fn a_fault_meets_the_requests_that_it_names() -> Result<(), Failure> {
        let store = Store::new(1);
        let call = |uri: &str| Call::parse(&store, &Method::GET, &uri.parse().unwrap_or_default());
        let is_met = |faults: &Faults, uri: &str| Ok(call(uri)?.is_some_and(|call| faults.met(&call).is_some()));
        let faults = Faults::default();
        let twice = faults.add(When::verbs(&[Verb::List]).of("pods").times(2), Then::fail(StatusCode::GONE));
        assert!(!is_met(&faults, "/api/v1/pods?watch=1")? && !is_met(&faults, "/api/v1/nodes")?);
        for (number, expected) in [true, true, false].into_iter().enumerate() {
            assert_eq!(is_met(&faults, "/api/v1/pods")?, expected, "{number}");
        }
        assert_eq!(twice.met(), 2);
        let later = faults.add(When::verbs(&[Verb::List]).of("pods").after(1), Then::Hold);
        assert!(!is_met(&faults, "/api/v1/pods")? && is_met(&faults, "/api/v1/pods")?);
        later.release();
        let pages = faults.add(When::default().continued(true), Then::Hold);
        assert!(!is_met(&faults, "/api/v1/pods")? && is_met(&faults, "/api/v1/pods?continue=x")?);
        pages.release();
        assert!(!is_met(&faults, "/api/v1/pods?continue=x")?);
        let forbidden = faults.add(When::default().of("secrets"), Then::fail(StatusCode::FORBIDDEN));
        assert!(faults.forbids(Verb::List, "secrets") && !faults.forbids(Verb::List, "pods"));
        forbidden.release();
        assert!(!faults.forbids(Verb::List, "secrets"));
        Ok(())
    }
}
