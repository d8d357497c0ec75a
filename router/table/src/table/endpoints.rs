//! Endpoints by service port. Routes hold keys and their endpoints are looked up here, so that a change of endpoints
//! rebuilds no route.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use router_model::names::RouterName;
use router_model::parallel;
use router_model::persistent::{KeyedMap, OrderedMap};

use super::{ResolvedRoute, RouterTable, WeightedService};
use crate::recent::Recent;

/// Target of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint {
    /// Address and port.
    pub address: SocketAddr,
    /// Name of the pod, if the EndpointSlice has it.
    pub target: Option<Arc<str>>,
    /// Whether the port's `appProtocol`, or else its name, specifies HTTP/2 without TLS (docs/openshift.md#backends).
    /// Clear-text and edge routes use it; re-encrypt routes negotiate.
    pub h2c: bool,
}

/// Identifies the endpoints of a Service behind some of its ports. With the EndpointSlices it determines them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EndpointsKey {
    /// Namespace of the Service.
    pub namespace: Arc<str>,
    /// Its name.
    pub service: Arc<str>,
    /// Which ports of its slices.
    pub ports: PortChoice,
}

impl EndpointsKey {
    /// The key behind an `Arc`, which recent equal keys share: many routes name the same service.
    pub fn shared(self) -> Arc<Self> {
        static RECENT: Recent<EndpointsKey> = Recent::new();
        RECENT.share(self)
    }
}

/// Selects ports of a Service's slices.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PortChoice {
    /// Ports whose name or number is a Route's `targetPort`; `None` for every port.
    Target(Option<Arc<str>>),
    /// Ports that belong to a port of the Service. Slices refer to it by name. A port without a name also matches the
    /// number of its `targetPort`, since hand-written slices name their ports.
    Service {
        /// `ServicePort.name`; may be empty.
        name: Arc<str>,
        /// `ServicePort.targetPort`, of a port without a name.
        target: Option<Arc<str>>,
        /// Whether the endpoints speak HTTP/2 without TLS; `None`: as the slice's port says.
        h2c: Option<bool>,
    },
}

/// Endpoints of all service ports that routes refer to, and the routes that refer to them. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Endpoints {
    lists: OrderedMap<Arc<EndpointsKey>, Arc<[Endpoint]>>,
    users: OrderedMap<User, ()>,
}

/// A route that refers to a service port, for itself or for one of its mirrors.
#[derive(Clone)]
pub struct User {
    /// The service port.
    pub key: Arc<EndpointsKey>,
    /// The router.
    pub router: RouterName,
    /// The route.
    pub route: Arc<ResolvedRoute>,
}

impl Endpoints {
    /// The usable endpoints of a service: the ready ones, or the draining ones if none is ready; each address once, in
    /// order.
    pub fn of(&self, service: &WeightedService) -> &[Endpoint] {
        service.key.as_ref().and_then(|key| self.list(key)).map_or(&[], |list| &**list)
    }

    /// The endpoints of a service port; `None` if no route refers to it.
    pub fn list(&self, key: &EndpointsKey) -> Option<&Arc<[Endpoint]>> {
        self.lists.get(key)
    }

    /// All service ports with their endpoints, in order.
    pub fn lists(&self) -> impl Iterator<Item = (&EndpointsKey, &Arc<[Endpoint]>)> {
        self.lists.entries().map(|(key, list)| (&**key, list))
    }

    /// Applies the changes between two versions of the routers. Cost is proportional to the change. `find` gives the
    /// endpoints of a service port that becomes referred to; those no longer referred to are removed.
    pub fn follow(
        &mut self,
        before: &[Arc<RouterTable>],
        now: &[Arc<RouterTable>],
        find: impl Fn(&EndpointsKey) -> Arc<[Endpoint]> + Sync,
    ) {
        if before.len() == now.len() && before.iter().zip(now).all(|(before, now)| Arc::ptr_eq(before, now)) {
            return;
        }
        let nothing = KeyedMap::default();
        let older: BTreeMap<&RouterName, &Arc<RouterTable>> = before.iter().map(|it| (&it.name, it)).collect();
        let newer: BTreeSet<&RouterName> = now.iter().map(|router| &router.name).collect();
        let gone = before.iter().filter(|router| !newer.contains(&router.name));
        let gone = gone.map(|router| (&router.name, &router.routes, &nothing));
        let kept = now.iter().map(|router| {
            (&router.name, older.get(&router.name).map_or(&nothing, |older| &older.routes), &router.routes)
        });
        let (mut come, mut left) = (Vec::new(), BTreeSet::new());
        for (router, before, now) in gone.chain(kept) {
            for changed in now.changes_since(before) {
                for user in changed.old.into_iter().flat_map(|route| users(router, route)) {
                    self.users.remove(&user);
                    left.insert(user.key);
                }
                come.extend(changed.new.into_iter().flat_map(|route| users(router, route)));
            }
        }
        let mut named: Vec<Arc<EndpointsKey>> = come.iter().map(|user| Arc::clone(&user.key)).collect();
        // Neighbours mostly share theirs; then there is little to sort.
        named.dedup_by(|one, other| Arc::ptr_eq(one, other));
        named.sort_unstable();
        named.dedup();
        self.users.extend(come.into_iter().map(|user| (user, ())));
        for key in left {
            if self.users_of(&key).next().is_none() {
                self.lists.remove(&*key);
            }
        }
        named.retain(|key| self.list(key).is_none());
        let found = parallel::map_all(&named, |key| find(key));
        self.lists.extend(named.into_iter().zip(found));
    }

    /// Looks up the endpoints of all ports of a Service again. Equal lists keep their `Arc`.
    pub fn renew(&mut self, namespace: &str, service: &str, find: impl Fn(&EndpointsKey) -> Arc<[Endpoint]>) {
        let order = |key: &Arc<EndpointsKey>| (&*key.namespace, &*key.service).cmp(&(namespace, service));
        let named = self.lists.entries_from(|key| order(key).is_lt()).take_while(|(key, _)| order(key).is_eq());
        let found = named.map(|(key, known)| (key, known, find(key)));
        let changed = found.filter(|(_, known, found)| *known != found).map(|(key, _, found)| (Arc::clone(key), found));
        let changed: Vec<_> = changed.collect();
        self.lists.extend(changed);
    }

    /// The routes that refer to a service port.
    pub fn users_of<'e>(&'e self, key: &'e EndpointsKey) -> impl Iterator<Item = &'e User> {
        let users = self.users.entries_from(|user| *user.key < *key).map(|(user, ())| user);
        users.take_while(move |user| *user.key == *key)
    }

    /// The routes whose endpoints differ from those of an older version, once for each service port that differs.
    pub fn changes_since<'e>(&'e self, older: &'e Self) -> impl Iterator<Item = &'e User> {
        self.lists.changes_since(&older.lists).flat_map(|changed| self.users_of(changed.key))
    }
}

impl FromIterator<(Arc<EndpointsKey>, Arc<[Endpoint]>)> for Endpoints {
    /// These endpoints, without users.
    fn from_iter<I: IntoIterator<Item = (Arc<EndpointsKey>, Arc<[Endpoint]>)>>(lists: I) -> Self {
        Endpoints { lists: lists.into_iter().collect(), users: OrderedMap::default() }
    }
}

fn users(router: &RouterName, route: &Arc<ResolvedRoute>) -> impl Iterator<Item = User> {
    let keys = route.services().filter_map(|service| service.key.as_ref());
    keys.map(|key| User { key: Arc::clone(key), router: router.clone(), route: Arc::clone(route) })
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("User").field(&self.key).field(&self.router).field(&self.route.id).finish()
    }
}

impl Ord for User {
    /// By key, router and id. Most neighbours share their key.
    fn cmp(&self, other: &Self) -> Ordering {
        let keys = if Arc::ptr_eq(&self.key, &other.key) { Ordering::Equal } else { self.key.cmp(&other.key) };
        keys.then_with(|| self.router.cmp(&other.router)).then_with(|| self.route.id.cmp(&other.route.id))
    }
}

impl PartialOrd for User {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for User {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for User {}

#[cfg(test)]
mod tests;
