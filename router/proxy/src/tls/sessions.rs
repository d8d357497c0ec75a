//! Sessions of TLS 1.2 clients that use session IDs instead of tickets.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustls::server::StoresServerSessions;

/// Most sessions of a router; each holds a master secret and the client's certificate, if any.
const CAPACITY: usize = 4096;
/// HAProxy's `tune.ssl.lifetime`.
const LIFETIME: Duration = Duration::from_secs(300);

/// Sessions by ID, for at most 5 minutes. The oldest are removed first.
#[derive(Default)]
pub struct Sessions(Mutex<StoredSessions>);

#[derive(Default)]
struct StoredSessions {
    by_id: HashMap<Vec<u8>, (Instant, Vec<u8>)>,
    /// Oldest first. Includes IDs of removed sessions.
    ids: VecDeque<(Instant, Vec<u8>)>,
}

impl StoredSessions {
    fn make_room(&mut self, now: Instant) {
        while self.ids.front().is_some_and(|(put, _)| self.ids.len() >= CAPACITY || is_over(*put, now)) {
            let Some((put, id)) = self.ids.pop_front() else { return };
            // A later session with the same ID has replaced it.
            if self.by_id.get(&id).is_some_and(|(kept, _)| *kept == put) {
                self.by_id.remove(&id);
            }
        }
    }
}

fn is_over(put: Instant, now: Instant) -> bool {
    now.saturating_duration_since(put) >= LIFETIME
}

impl Sessions {
    fn kept(&self) -> MutexGuard<'_, StoredSessions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put_at(&self, id: Vec<u8>, session: Vec<u8>, now: Instant) {
        let mut kept = self.kept();
        kept.make_room(now);
        kept.ids.push_back((now, id.clone()));
        kept.by_id.insert(id, (now, session));
    }

    fn get_at(&self, id: &[u8], now: Instant) -> Option<Vec<u8>> {
        let kept = self.kept();
        kept.by_id.get(id).filter(|(put, _)| !is_over(*put, now)).map(|(_, session)| session.clone())
    }
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sessions")
    }
}

impl StoresServerSessions for Sessions {
    fn put(&self, id: Vec<u8>, session: Vec<u8>) -> bool {
        self.put_at(id, session, Instant::now());
        true
    }

    fn get(&self, id: &[u8]) -> Option<Vec<u8>> {
        self.get_at(id, Instant::now())
    }

    fn take(&self, id: &[u8]) -> Option<Vec<u8>> {
        let (put, session) = self.kept().by_id.remove(id)?;
        (!is_over(put, Instant::now())).then_some(session)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
