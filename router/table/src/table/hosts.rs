//! Virtual hosts, looked up by the hash of their name. Comparing names reads each of them from memory, which with
//! 100,000 hosts costs more than the rest of a request's routing.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use router_model::names::{HostMatch, Hostname};
use router_model::persistent::{HashedMap, Keyed, KeyedMap, OrderedMap};
use siphasher::sip128::{Hash128, Hasher128, SipHasher13};

use super::{ResolvedRoute, VirtualHost};

static NAMELESS: LazyLock<Hostname> = LazyLock::new(Hostname::default);

/// Virtual hosts of one kind, exact or wildcard. Dereferences to its map by name.
#[derive(Clone, Default)]
pub struct HostTable {
    by_name: KeyedMap<VirtualHost>,
    /// One virtual host for each first half of a name's hash.
    by_hash: HashedMap<HashedHost>,
    /// First halves that several names share, or have shared.
    shared: OrderedMap<u64, ()>,
    of_routes: usize,
    of_other_kinds: usize,
}

/// Result of a look-up, in half a cache line: reading the name or the virtual host would cost another cache miss.
#[derive(Clone)]
struct HashedHost {
    /// The second half of its name's hash. Names with the same 128 bits are the same, practically certainly: a
    /// collision by chance needs 2⁶⁴ look-ups, and hashes are not visible to clients, who could otherwise construct
    /// one.
    check: u64,
    host: Arc<VirtualHost>,
    /// See [`VirtualHost::plain_cleartext`].
    plain: Option<Arc<ResolvedRoute>>,
}

const _: () = assert!(size_of::<(u64, HashedHost)>() == 32);

impl HostTable {
    /// The virtual host of a name.
    pub fn get<N: Borrow<str> + ?Sized>(&self, name: &N) -> Option<&Arc<VirtualHost>> {
        self.get_with_plain(name.borrow()).map(|(host, _)| host)
    }

    /// The virtual host of a name, and its [`VirtualHost::plain_cleartext`], if that is stored with the hash.
    pub fn get_with_plain(&self, name: &str) -> Option<(&Arc<VirtualHost>, Option<&Arc<ResolvedRoute>>)> {
        self.get_by(hash(name), name)
    }

    fn get_by(&self, hash: Hash128, name: &str) -> Option<(&Arc<VirtualHost>, Option<&Arc<ResolvedRoute>>)> {
        let found = self.by_hash.get(hash.h1)?;
        if found.check == hash.h2 {
            Some((&found.host, found.plain.as_ref()))
        } else {
            self.by_name.get(name).map(|host| (host, None))
        }
    }

    /// Number of hosts that belong to Routes.
    pub fn of_routes(&self) -> usize {
        self.of_routes
    }

    /// Number of hosts that belong to objects of other kinds.
    pub fn of_other_kinds(&self) -> usize {
        self.of_other_kinds
    }

    /// Adds a virtual host, replacing the one of the same name.
    pub fn insert(&mut self, host: Arc<VirtualHost>) {
        self.insert_by(hash(host.key().as_str()), host);
    }

    fn insert_by(&mut self, hash: Hash128, host: Arc<VirtualHost>) {
        match self.by_hash.get(hash.h1) {
            Some(other) if other.check != hash.h2 => self.shared.insert(hash.h1, ()),
            _ => self.by_hash.insert(hash.h1, HashedHost::new(hash, &host)),
        }
        if let Some(replaced) = self.by_name.get(host.key()).cloned() {
            self.uncount(&replaced);
        }
        self.of_routes += usize::from(host.is_of_routes());
        self.of_other_kinds += usize::from(host.is_of_other_kind());
        self.by_name.insert(host);
    }

    fn uncount(&mut self, gone: &VirtualHost) {
        self.of_routes -= usize::from(gone.is_of_routes());
        self.of_other_kinds -= usize::from(gone.is_of_other_kind());
    }

    /// Removes a name.
    pub fn remove(&mut self, name: &Hostname) {
        self.remove_by(hash, name);
    }

    fn remove_by(&mut self, hash: impl Fn(&str) -> Hash128, name: &Hostname) {
        let Some(gone) = self.by_name.remove(name) else { return };
        self.uncount(&gone);
        let own = hash(name.as_str());
        if self.by_hash.get(own.h1).is_some_and(|kept| kept.check == own.h2) {
            self.by_hash.remove(own.h1);
        }
        // Among 2³² names about two share a first half; only those cost this scan.
        if self.shared.get(&own.h1).is_some() && self.by_hash.get(own.h1).is_none() {
            let mut others = self.by_name.entries().map(|(name, host)| (hash(name.as_str()), host));
            if let Some((hash, other)) = others.find(|(hash, _)| hash.h1 == own.h1) {
                self.by_hash.insert(own.h1, HashedHost::new(hash, other));
            }
        }
    }
}

impl HashedHost {
    fn new(hash: Hash128, host: &Arc<VirtualHost>) -> Self {
        HashedHost { check: hash.h2, host: Arc::clone(host), plain: host.plain_cleartext().cloned() }
    }
}

impl Extend<Arc<VirtualHost>> for HostTable {
    /// Adds all of these. An empty map is built as a whole.
    fn extend<I: IntoIterator<Item = Arc<VirtualHost>>>(&mut self, hosts: I) {
        if !self.by_name.is_empty() {
            hosts.into_iter().for_each(|host| self.insert(host));
            return;
        }
        self.by_name.extend(hosts);
        self.of_routes = self.by_name.values().filter(|host| host.is_of_routes()).count();
        self.of_other_kinds = self.by_name.values().filter(|host| host.is_of_other_kind()).count();
        let hashed = self.by_name.entries().map(|(name, host)| {
            let hash = hash(name.as_str());
            (hash.h1, HashedHost::new(hash, host))
        });
        let hashed: Vec<_> = hashed.collect();
        let mut hashes: Vec<u64> = hashed.iter().map(|(hash, _)| *hash).collect();
        self.by_hash.extend(hashed);
        hashes.sort_unstable();
        self.shared.extend(hashes.windows(2).filter_map(|pair| match pair {
            [one, other] if one == other => Some((*one, ())),
            _ => None,
        }));
    }
}

impl Deref for HostTable {
    type Target = KeyedMap<VirtualHost>;

    fn deref(&self) -> &Self::Target {
        &self.by_name
    }
}

impl fmt::Debug for HostTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.by_name.fmt(f)
    }
}

/// By name, as in a [`HostTable`].
impl Keyed for VirtualHost {
    type Key = Hostname;

    fn key(&self) -> &Hostname {
        match &self.host {
            HostMatch::Exact(name) | HostMatch::Wildcard(name) | HostMatch::Suffix(name) => name,
            // There is at most one of these, and it is never in a `HostTable`.
            HostMatch::Any => &NAMELESS,
        }
    }
}

/// Keyed per process: owners of routes choose names, and must not be able to choose collisions.
fn hash(name: &str) -> Hash128 {
    static KEYS: LazyLock<[u64; 2]> = LazyLock::new(|| [0, 1].map(|key: u8| RandomState::new().hash_one(key)));
    let mut hasher = SipHasher13::new_with_keys(KEYS[0], KEYS[1]);
    hasher.write(name.as_bytes());
    hasher.finish128()
}

#[cfg(test)]
mod tests;
