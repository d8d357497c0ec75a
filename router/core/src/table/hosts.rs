//! Virtual hosts by name, found by the name's hash. Comparing names takes a visit to each of them, which among 100,000
//! hosts costs more than all else that a request's routing does.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use crate::model::{HostMatch, Hostname};
use crate::persistent::{Hashed, Sorted};

use super::VirtualHost;

static NAMELESS: LazyLock<Hostname> = LazyLock::new(Hostname::default);

/// Virtual hosts of one kind, exact or wildcard. Reads as the map by name that it holds.
#[derive(Clone, Default)]
pub struct Hosts {
    by_name: Sorted<Hostname, Arc<VirtualHost>>,
    /// One of the virtual hosts for each hash of a name, with that name: both are looked at at once.
    by_hash: Hashed<(Hostname, Arc<VirtualHost>)>,
    /// Hashes that more than one name has, or has had.
    shared: Sorted<u64, ()>,
    of_routes: usize,
}

impl Hosts {
    /// The virtual host of a name.
    pub fn get<N: Borrow<str> + ?Sized>(&self, name: &N) -> Option<&Arc<VirtualHost>> {
        self.get_by(hash(name.borrow()), name.borrow())
    }

    fn get_by(&self, hash: u64, name: &str) -> Option<&Arc<VirtualHost>> {
        let (known, found) = self.by_hash.get(hash)?;
        if known.as_str() == name { Some(found) } else { self.by_name.get(name) }
    }

    /// How many of them are of Routes.
    pub fn of_routes(&self) -> usize {
        self.of_routes
    }

    /// Puts a virtual host in the place of whatever its name had.
    pub fn insert(&mut self, host: Arc<VirtualHost>) {
        self.insert_by(hash(name_of(&host).as_str()), host);
    }

    fn insert_by(&mut self, hash: u64, host: Arc<VirtualHost>) {
        let name = name_of(&host).clone();
        match self.by_hash.get(hash) {
            Some((other, _)) if *other != name => self.shared.insert(hash, ()),
            _ => self.by_hash.insert(hash, (name.clone(), Arc::clone(&host))),
        }
        self.of_routes += usize::from(host.is_of_routes());
        let replaced = self.by_name.get(&name).is_some_and(|host| host.is_of_routes());
        self.of_routes -= usize::from(replaced);
        self.by_name.insert(name, host);
    }

    /// Forgets a name.
    pub fn remove(&mut self, name: &Hostname) {
        self.remove_by(hash, name);
    }

    fn remove_by(&mut self, hash: impl Fn(&str) -> u64, name: &Hostname) {
        let Some(gone) = self.by_name.remove(name) else { return };
        self.of_routes -= usize::from(gone.is_of_routes());
        let own = hash(name.as_str());
        if self.by_hash.get(own).is_some_and(|(kept, _)| kept == name) {
            self.by_hash.remove(own);
        }
        // Two names in 2^32 have one hash, unless somebody looks for them: then this is what they cost.
        if self.shared.get(&own).is_some() && self.by_hash.get(own).is_none() {
            let other = self.by_name.entries().find(|(name, _)| hash(name.as_str()) == own);
            if let Some((name, other)) = other {
                self.by_hash.insert(own, (name.clone(), Arc::clone(other)));
            }
        }
    }
}

impl Extend<Arc<VirtualHost>> for Hosts {
    /// Puts in all of these. What is empty is built as a whole.
    fn extend<I: IntoIterator<Item = Arc<VirtualHost>>>(&mut self, hosts: I) {
        if !self.by_name.is_empty() {
            hosts.into_iter().for_each(|host| self.insert(host));
            return;
        }
        self.by_name.extend(hosts.into_iter().map(|host| (name_of(&host).clone(), host)));
        self.of_routes = self.by_name.values().filter(|host| host.is_of_routes()).count();
        let mut hashes: Vec<u64> = self.by_name.entries().map(|(name, _)| hash(name.as_str())).collect();
        let named = hashes.iter().zip(self.by_name.entries());
        let named: Vec<_> = named.map(|(hash, (name, host))| (*hash, (name.clone(), Arc::clone(host)))).collect();
        self.by_hash.extend(named);
        hashes.sort_unstable();
        self.shared.extend(hashes.windows(2).filter_map(|pair| match pair {
            [one, other] if one == other => Some((*one, ())),
            _ => None,
        }));
    }
}

impl Deref for Hosts {
    type Target = Sorted<Hostname, Arc<VirtualHost>>;

    fn deref(&self) -> &Self::Target {
        &self.by_name
    }
}

impl fmt::Debug for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.by_name.fmt(f)
    }
}

fn name_of(host: &VirtualHost) -> &Hostname {
    match &host.host {
        HostMatch::Exact(name) | HostMatch::Wildcard(name) | HostMatch::Suffix(name) => name,
        // Of this one there is at most one, and it is never among these.
        HostMatch::Any => &NAMELESS,
    }
}

/// With keys of this process: whoever owns routes may choose names, and must not choose which of them share a place.
fn hash(name: &str) -> u64 {
    static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    let mut hasher = KEYS.build_hasher();
    hasher.write(name.as_bytes());
    hasher.finish()
}

#[cfg(test)]
mod tests;
