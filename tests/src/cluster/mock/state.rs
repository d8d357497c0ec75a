//! What the connections of a server share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use tokio::sync::{broadcast, watch};

use super::fault::Faults;
use super::list::Pages;
use super::lock::lock;
use super::log::Log;
use super::store::Store;

/// The state of a server.
pub struct State {
    store: Mutex<Store>,
    /// Version of the last change, for watches.
    pub changed: watch::Sender<u64>,
    /// What watches are to do at once.
    pub interrupts: broadcast::Sender<(Option<String>, Interrupt)>,
    /// Lists that clients are reading by pages.
    pub pages: Pages,
    /// Faults.
    pub faults: Faults,
    /// Requests.
    pub log: Log,
    /// Number of watches of each kind, by its collection.
    watches: Mutex<BTreeMap<String, usize>>,
    /// The only accepted bearer token.
    pub token: Mutex<Option<String>>,
}

/// What open watches are to do at once.
#[derive(Clone, Debug)]
pub enum Interrupt {
    /// Send a bookmark, if the client takes bookmarks.
    Bookmark,
    /// Send an event of type ERROR that the version is expired (410), and end.
    Expire,
    /// End, as after `timeoutSeconds`.
    End,
    /// Break off.
    Cut,
    /// Send these bytes, and go on.
    Send(Bytes),
}

impl State {
    /// A server's state without objects.
    pub fn new(history: usize) -> State {
        State {
            store: Mutex::new(Store::new(history)),
            changed: watch::Sender::new(0),
            interrupts: broadcast::Sender::new(64),
            pages: Pages::default(),
            faults: Faults::default(),
            log: Log::default(),
            watches: Mutex::default(),
            token: Mutex::default(),
        }
    }

    /// The objects, to be read.
    pub fn store(&self) -> MutexGuard<'_, Store> {
        lock(&self.store)
    }

    /// Changes objects, and tells the watches.
    pub fn write<T>(&self, write: impl FnOnce(&mut Store) -> T) -> T {
        let mut store = self.store();
        let written = write(&mut store);
        self.changed.send_replace(store.version());
        written
    }

    /// Number of open watches of a kind, by its collection.
    pub fn watches(&self, plural: &str) -> usize {
        lock(&self.watches).get(plural).copied().unwrap_or_default()
    }

    /// Counts a watch as long as the value lives.
    pub fn counted(self: &Arc<State>, plural: &str) -> Counted {
        *lock(&self.watches).entry(plural.to_owned()).or_default() += 1;
        Counted { state: Arc::clone(self), plural: plural.to_owned() }
    }
}

/// A counted watch.
pub struct Counted {
    state: Arc<State>,
    plural: String,
}

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some(count) = lock(&self.state.watches).get_mut(&self.plural) {
            *count -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watches_are_counted_while_they_are_open() {
        let state = Arc::new(State::new(1));
        let [one, two] = [(); 2].map(|()| state.counted("routes"));
        drop(one);
        assert_eq!((state.watches("routes"), state.watches("pods")), (1, 0));
        drop(two);
        assert_eq!(state.watches("routes"), 0);
    }
}
