//! The requests that the server has had.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::Value;

use super::call::Verb;
use super::lock::lock;
use crate::wait::{self, PATIENCE};

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    /// Number of the request, from 0.
    pub number: u64,
    /// Number of the connection, from 1.
    pub connection: u64,
    /// Its method.
    pub method: Method,
    /// Its path, with escapes.
    pub path: String,
    /// Its query, with escapes.
    pub query: String,
    /// What it asks of a kind.
    pub verb: Option<Verb>,
    /// Collection of the kind: `routes`.
    pub plural: String,
    /// Its body.
    pub body: Bytes,
    /// Its user agent.
    pub agent: String,
    /// Status of the answer, when that has begun.
    pub answer: Option<StatusCode>,
}

impl Request {
    /// Whether it is one of a kind.
    pub fn is(&self, verb: Verb, plural: &str) -> bool {
        self.verb == Some(verb) && self.plural == plural
    }

    /// Its body as JSON; null if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// The latest requests, in their order. Older ones are forgotten, and counted.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Entries>>);

#[derive(Default)]
struct Entries {
    requests: VecDeque<Request>,
    forgotten: u64,
    /// Number of requests of each kind, by its collection, forgotten ones included.
    counts: BTreeMap<String, BTreeMap<Verb, usize>>,
}

/// Number of requests that are kept.
const KEPT: usize = 20_000;

impl Log {
    /// The requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.lock().requests.iter().cloned().collect()
    }

    /// Number of requests so far.
    pub fn count(&self) -> u64 {
        let entries = self.lock();
        entries.forgotten + entries.requests.len() as u64
    }

    /// Number of requests of a kind so far, by its collection.
    pub fn count_of(&self, verb: Verb, plural: &str) -> usize {
        self.lock().counts.get(plural).and_then(|verbs| verbs.get(&verb)).copied().unwrap_or_default()
    }

    /// Waits until the requests fulfil a condition; returns what it finds.
    ///
    /// # Errors
    /// When that takes too long; the error has the latest requests.
    pub fn wait_for<T>(&self, what: &str, mut find: impl FnMut(&[Request]) -> Option<T>) -> Result<T> {
        let found = wait::wait_for(what, PATIENCE, || find(self.lock().requests.make_contiguous()));
        found.map(|(found, _)| found).with_context(|| {
            let entries = self.lock();
            let line =
                |it: &Request| format!("{} {} {}?{} {:?}\n", it.connection, it.method, it.path, it.query, it.answer);
            let latest = entries.requests.iter().rev().take(50).rev().map(line);
            format!("the latest requests are:\n{}", latest.collect::<String>())
        })
    }

    /// Waits for a request after the first `after` ones.
    ///
    /// # Errors
    /// When none comes.
    pub fn next(&self, after: u64, what: &str, is_wanted: impl Fn(&Request) -> bool) -> Result<Request> {
        self.wait_for(what, |requests| requests.iter().find(|it| it.number >= after && is_wanted(it)).cloned())
    }

    /// Adds a request, and gives it its number.
    pub(super) fn add(&self, mut request: Request) -> u64 {
        let mut entries = self.lock();
        if entries.requests.len() == KEPT {
            entries.requests.pop_front();
            entries.forgotten += 1;
        }
        if let Some(verb) = request.verb {
            *entries.counts.entry(request.plural.clone()).or_default().entry(verb).or_default() += 1;
        }
        request.number = entries.forgotten + entries.requests.len() as u64;
        let number = request.number;
        entries.requests.push_back(request);
        number
    }

    /// Notes the answer to a request.
    pub(super) fn answered(&self, number: u64, answer: StatusCode) {
        let mut entries = self.lock();
        let place = number.checked_sub(entries.forgotten).and_then(|place| usize::try_from(place).ok());
        if let Some(request) = place.and_then(|place| entries.requests.get_mut(place)) {
            request.answer = Some(answer);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        lock(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_requests_are_kept_with_their_answers() -> Result<()> {
        let log = Log::default();
        let request = |path: String| Request {
            number: 0,
            connection: 1,
            method: Method::GET,
            path,
            query: String::new(),
            verb: Some(Verb::List),
            plural: "routes".to_owned(),
            body: Bytes::from_static(b"{\"a\":1}"),
            agent: String::new(),
            answer: None,
        };
        for number in 0..KEPT as u64 + 5 {
            assert_eq!(log.add(request(format!("/{number}"))), number);
        }
        assert_eq!((log.count_of(Verb::List, "routes"), log.count_of(Verb::Patch, "routes")), (KEPT + 5, 0));
        log.answered(3, StatusCode::OK);
        log.answered(7, StatusCode::GONE);
        let requests = log.requests();
        assert_eq!((requests.len(), requests[0].number, log.count()), (KEPT, 5, KEPT as u64 + 5));
        assert_eq!((requests[2].path.as_str(), requests[2].answer), ("/7", Some(StatusCode::GONE)));
        assert!(requests[2].is(Verb::List, "routes") && !requests[2].is(Verb::Watch, "routes"));
        assert_eq!(requests[2].json()["a"], 1);
        assert_eq!(log.next(9, "a later one", |_| true)?.number, 9);
        assert!(requests.iter().filter(|request| request.answer.is_some()).count() == 1);
        Ok(())
    }
}
