//! Index of roots by name, which finds the names inside a domain.

use std::collections::{BTreeMap, BTreeSet};

use router_api::contour::types::ContourProxy;
use router_model::names::{HostMatch, Hostname};
use router_model::object::ObjectRef;

use crate::contour::claims::delegated_domains::domain_of;
use crate::contour::claims::host_of;
use crate::contour::claims::types::is_domain;

/// A name with its labels in reverse order, e.g. `test.d.*`, so that the names inside a domain sort after it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NameKey(Box<str>);

impl NameKey {
    /// The key of a name, a wildcard, or a domain without its dot.
    pub fn of(name: &str) -> Self {
        NameKey(name.rsplit('.').collect::<Vec<_>>().join(".").into())
    }

    /// The key of a host.
    pub fn of_host(host: &HostMatch) -> Self {
        NameKey::of(&host.to_string())
    }

    /// The key of the name that a root claims, or of its domain; `None` if that is not valid.
    pub fn of_root(root: &ContourProxy) -> Option<Self> {
        let own = root.virtual_host.as_ref()?;
        if is_domain(root) {
            return domain_of(root).ok().map(|domain| NameKey::of(domain.as_str()));
        }
        host_of(root.kind, &own.fqdn).ok().map(|(_, name)| NameKey::of(&name))
    }

    fn name(&self) -> String {
        self.0.rsplit('.').collect::<Vec<_>>().join(".")
    }

    fn host(&self) -> Option<HostMatch> {
        let name = self.name();
        match name.strip_prefix("*.") {
            Some(domain) => Hostname::parse(domain).ok().map(HostMatch::Wildcard),
            None => Hostname::parse(&name).ok().map(HostMatch::Exact),
        }
    }

    /// The domains that enclose a name, outermost first, and the name itself.
    fn enclosing(&self) -> impl Iterator<Item = NameKey> {
        let ends = self.0.match_indices('.').map(|(at, _)| at).chain([self.0.len()]);
        ends.filter_map(|end| self.0.get(..end)).map(|domain| NameKey(domain.into()))
    }
}

/// Names to decide on together.
#[derive(Debug, Default)]
pub struct NameScope {
    /// Domains, with all names inside.
    pub domains: BTreeSet<NameKey>,
    /// Names outside of all domains.
    pub names: BTreeSet<NameKey>,
    /// Objects that claim no valid name.
    pub unnamed: BTreeSet<ObjectRef>,
}

impl NameScope {
    /// True if it contains no name and no object.
    pub fn is_empty(&self) -> bool {
        self.domains.is_empty() && self.names.is_empty() && self.unnamed.is_empty()
    }

    /// True if the name is in the scope.
    pub fn covers(&self, name: &NameKey) -> bool {
        self.names.contains(name) || name.enclosing().any(|domain| self.domains.contains(&domain))
    }
}

/// Roots by name.
#[derive(Debug, Default)]
pub struct Roots {
    all: BTreeMap<NameKey, BTreeSet<ObjectRef>>,
    /// Domain roots among them.
    domains: BTreeMap<NameKey, BTreeSet<ObjectRef>>,
}

impl Roots {
    /// Adds or removes a version of an object.
    pub fn set(&mut self, object: &ObjectRef, proxy: &ContourProxy, is_present: bool) {
        let Some(key) = NameKey::of_root(proxy) else { return };
        let maps = [Some(&mut self.all), Some(&mut self.domains).filter(|_| is_domain(proxy))];
        for map in maps.into_iter().flatten() {
            let roots = map.entry(key.clone()).or_default();
            if is_present {
                roots.insert(object.clone());
            } else {
                roots.remove(object);
            }
            if roots.is_empty() {
                map.remove(&key);
            }
        }
    }

    /// Adds a name to a scope, or the outermost domain that encloses it if there is one.
    pub fn add(&self, name: NameKey, scope: &mut NameScope) {
        match self.outermost(&name) {
            Some(domain) => drop(scope.domains.insert(domain)),
            None => drop(scope.names.insert(name)),
        }
    }

    /// The outermost domain that encloses a name, or is this name.
    pub fn outermost(&self, name: &NameKey) -> Option<NameKey> {
        name.enclosing().find(|domain| self.domains.contains_key(domain))
    }

    /// The roots of a scope.
    pub fn within(&self, scope: &NameScope) -> impl Iterator<Item = &ObjectRef> {
        let inside = scope.domains.iter().flat_map(|domain| inside(&self.all, domain));
        let named = scope.names.iter().filter_map(|name| self.all.get(name));
        inside.map(|(_, roots)| roots).chain(named).flatten()
    }

    /// The hosts that roots of a scope claim.
    pub fn hosts<'m>(&'m self, scope: &'m NameScope) -> impl Iterator<Item = HostMatch> + use<'m> {
        let inside = scope.domains.iter().flat_map(|domain| inside(&self.all, domain)).map(|(name, _)| name);
        inside.chain(&scope.names).filter_map(NameKey::host)
    }

    /// A domain and the domains inside of it, with their roots.
    pub fn domains<'m>(
        &'m self,
        outermost: &NameKey,
    ) -> impl Iterator<Item = (Hostname, &'m BTreeSet<ObjectRef>)> + use<'m> {
        let inside = inside(&self.domains, outermost);
        inside.filter_map(|(key, roots)| Some((Hostname::parse(&key.name()).ok()?, roots)))
    }
}

/// The entries of a domain and of all names inside.
fn inside<'m, T>(
    map: &'m BTreeMap<NameKey, T>,
    domain: &NameKey,
) -> impl Iterator<Item = (&'m NameKey, &'m T)> + use<'m, T> {
    let first = NameKey(format!("{}.", domain.0).into());
    let within = map.range(first.clone()..).take_while(move |(key, _)| key.0.starts_with(&*first.0));
    map.get_key_value(domain).into_iter().chain(within)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_inside_a_domain_are_found() {
        let key = |name: &str| NameKey::of(name);
        let names = ["d.test", "a.d.test", "*.d.test", "x.a.d.test", "ad.test", "d-x.test", "test"];
        let map: BTreeMap<NameKey, ()> = names.iter().map(|name| (key(name), ())).collect();
        let found: Vec<String> = inside(&map, &key("d.test")).map(|(key, ())| key.name()).collect();
        assert_eq!(found, ["d.test", "*.d.test", "a.d.test", "x.a.d.test"]);
        let enclosing: Vec<String> = key("x.d.test").enclosing().map(|key| key.name()).collect();
        assert_eq!(enclosing, ["test", "d.test", "x.d.test"]);
        assert_eq!(key("*.d.test").host().map(|host| host.to_string()).as_deref(), Some("*.d.test"));
    }
}
