//! Index of roots by name, which finds the names inside a domain.

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::ops::Bound;

use router_api::contour::types::ContourProxy;
use router_model::names::{HostMatch, Hostname};
use router_model::object::ObjectRef;

use crate::contour::claims::delegated_domains::domain_of;
use crate::contour::claims::host_of;
use crate::contour::claims::types::is_domain;
use crate::objects_by::ObjectsBy;

/// A name, wildcard or domain. The names inside a domain sort after it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NameKey {
    /// See [`Hostname::reversed`], e.g. `test.d.*.`; it determines the other fields.
    text: Box<str>,
    /// The name; of a wildcard, its domain.
    pub name: Hostname,
    is_wildcard: bool,
}

impl Borrow<str> for NameKey {
    fn borrow(&self) -> &str {
        &self.text
    }
}

impl NameKey {
    /// The key of a name or domain.
    pub fn of(name: &Hostname) -> Self {
        NameKey { text: name.reversed().into(), name: name.clone(), is_wildcard: false }
    }

    /// The key of a host; `None` for a form that Contour does not have.
    pub fn of_host(host: &HostMatch) -> Option<Self> {
        match host {
            HostMatch::Exact(name) => Some(NameKey::of(name)),
            HostMatch::Wildcard(domain) => {
                let text = format!("{}*.", domain.reversed()).into();
                Some(NameKey { text, name: domain.clone(), is_wildcard: true })
            }
            HostMatch::Suffix(_) | HostMatch::Any => None,
        }
    }

    /// The key of the name that a root claims, or of its domain; `None` if that is not valid.
    pub fn of_root(root: &ContourProxy) -> Option<Self> {
        let own = root.virtual_host.as_ref()?;
        if is_domain(root) {
            return domain_of(root).ok().map(|domain| NameKey::of(&domain));
        }
        host_of(root.kind, &own.fqdn).ok().and_then(|(host, _)| NameKey::of_host(&host))
    }

    fn host(&self) -> HostMatch {
        let name = self.name.clone();
        if self.is_wildcard { HostMatch::Wildcard(name) } else { HostMatch::Exact(name) }
    }

    /// The texts of the domains that enclose a name, outermost first, and of the name itself.
    fn enclosing(&self) -> impl Iterator<Item = &str> {
        self.text.match_indices('.').filter_map(|(at, _)| self.text.get(..=at))
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
        self.names.contains(name) || name.enclosing().any(|domain| self.domains.contains(domain))
    }
}

/// Roots by name.
#[derive(Debug, Default)]
pub struct Roots {
    all: ObjectsBy<NameKey>,
    /// Domain roots among them.
    domains: ObjectsBy<NameKey>,
}

impl Roots {
    /// Adds or removes a version of an object.
    pub fn set(&mut self, object: &ObjectRef, proxy: &ContourProxy, is_present: bool) {
        let Some(key) = NameKey::of_root(proxy) else { return };
        let maps = [Some(&mut self.all), Some(&mut self.domains).filter(|_| is_domain(proxy))];
        for map in maps.into_iter().flatten() {
            if is_present {
                map.insert(key.clone(), object);
            } else {
                map.remove(&key, object);
            }
        }
    }

    /// Adds a name to a scope, or the outermost domain that encloses it if there is one.
    pub fn add(&self, name: NameKey, scope: &mut NameScope) {
        match self.outermost(&name) {
            Some(domain) => drop(scope.domains.insert(domain.clone())),
            None => drop(scope.names.insert(name)),
        }
    }

    /// The outermost domain that encloses a name, or is this name.
    pub fn outermost(&self, name: &NameKey) -> Option<&NameKey> {
        name.enclosing().find_map(|domain| self.domains.key(domain))
    }

    /// The roots of a scope.
    pub fn within(&self, scope: &NameScope) -> impl Iterator<Item = &ObjectRef> {
        let inside = scope.domains.iter().flat_map(|domain| inside(&self.all, domain)).map(|(_, roots)| roots);
        inside.chain(scope.names.iter().map(|name| self.all.get(name))).flatten()
    }

    /// The hosts that roots of a scope claim.
    pub fn hosts<'m>(&'m self, scope: &'m NameScope) -> impl Iterator<Item = HostMatch> + use<'m> {
        let inside = scope.domains.iter().flat_map(|domain| inside(&self.all, domain)).map(|(name, _)| name);
        inside.chain(&scope.names).map(NameKey::host)
    }

    /// A domain and the domains inside of it, with their roots.
    pub fn domains<'m, 'd>(
        &'m self,
        outermost: &'d NameKey,
    ) -> impl Iterator<Item = (&'m Hostname, &'m [ObjectRef])> + use<'m, 'd> {
        inside(&self.domains, outermost).map(|(key, roots)| (&key.name, roots))
    }
}

/// The entries of a domain and of all names inside.
fn inside<'m, 'd>(
    map: &'m ObjectsBy<NameKey>,
    domain: &'d NameKey,
) -> impl Iterator<Item = (&'m NameKey, &'m [ObjectRef])> + use<'m, 'd> {
    let following = map.range::<str>((Bound::Included(&*domain.text), Bound::Unbounded));
    following.take_while(|(key, _)| key.text.starts_with(&*domain.text))
}

#[cfg(test)]
mod tests {
    use router_model::kind::Kind;
    use router_model::object::ObjectKey;

    use super::*;

    #[test]
    fn names_inside_a_domain_are_found() {
        let key = |text: &str| {
            let name = |text| Hostname::parse(text).unwrap();
            let host = match text.strip_prefix("*.") {
                Some(domain) => HostMatch::Wildcard(name(domain)),
                None => HostMatch::Exact(name(text)),
            };
            NameKey::of_host(&host).unwrap()
        };
        let root = ObjectRef { kind: Kind::HttpProxy, key: ObjectKey::new("a", "root") };
        let mut map = ObjectsBy::default();
        for name in ["d.test", "a.d.test", "*.d.test", "x.a.d.test", "ad.test", "d-x.test", "test"] {
            map.insert(key(name), &root);
        }
        let found: Vec<String> = inside(&map, &key("d.test")).map(|(key, _)| key.host().to_string()).collect();
        assert_eq!(found, ["d.test", "*.d.test", "a.d.test", "x.a.d.test"]);
        assert_eq!(key("x.d.test").enclosing().collect::<Vec<_>>(), ["test.", "test.d.", "test.d.x."]);
        assert_eq!(NameKey::of_host(&HostMatch::Any), None);
        let (domains, all) = (ObjectsBy::default(), map);
        let mut roots = Roots { all, domains };
        assert_eq!(roots.outermost(&key("x.a.d.test")), None);
        ["d.test", "a.d.test"].into_iter().for_each(|name| roots.domains.insert(key(name), &root));
        assert_eq!(roots.outermost(&key("x.a.d.test")), Some(&key("d.test")));
    }
}
