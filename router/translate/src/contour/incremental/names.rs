//! Incremental decision on hosts. A changed root causes a new decision on the names that it can conflict with.
//!
//! These are its own name, or, if that is a domain or inside one, all names inside the outermost domain; in addition,
//! the domains that delegate names to an object among these that has no `fqdn` of its own. For these names, a decision
//! on them alone ([`claims::decide`]) equals the decision on all names.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use router_api::contour::types::ContourProxy;
use router_api::resources::Resources;
use router_model::names::{HostMatch, Hostname};
use router_model::object::ObjectRef;

use super::changes::ProxyChange;
use super::roots::{NameKey, NameScope, Roots};
use crate::contour::claims::{
    self,
    types::{Contest, ContourClaims, Proxies, is_domain, proxy},
};
use crate::contour::references::References;
use crate::translator::Inputs;

/// The claims on hosts, with the roots by name.
#[derive(Debug, Default)]
pub struct Names {
    roots: Roots,
    claims: ContourClaims,
}

/// Difference between two decisions.
#[derive(Debug, Default)]
pub struct NamesChange {
    /// The previous contests of hosts whose contest differs.
    pub contests: BTreeMap<HostMatch, Option<Contest>>,
    /// Roots whose rejection was added, changed or removed.
    pub rejected: BTreeSet<ObjectRef>,
    /// Domains that were added, changed or removed.
    pub domains: BTreeSet<Hostname>,
}

impl Names {
    /// The decision.
    pub fn claims(&self) -> &ContourClaims {
        &self.claims
    }

    /// A domain, the enclosing domains and those inside, with their roots.
    pub fn related_domains(&self, domain: &Hostname) -> Vec<(&Hostname, &[ObjectRef])> {
        let key = NameKey::of(domain);
        self.roots.domains(self.roots.outermost(&key).unwrap_or(&key)).collect()
    }

    /// Applies changed proxies; `references` are those of the present objects.
    pub fn apply_changes(
        &mut self,
        changes: &[ProxyChange<'_>],
        references: &References,
        last: &Resources,
        inputs: &Inputs<'_>,
    ) -> NamesChange {
        let changes: Vec<&ProxyChange<'_>> = changes.iter().filter(|it| !have_same_names(it.old, it.new)).collect();
        let mut scope = NameScope::default();
        let old = changes.iter().map(|change| (&change.object, change.old));
        self.extend_scope(old, references, last, &mut scope);
        let mut members: BTreeSet<ObjectRef> = self.roots.within(&scope).cloned().collect();
        let (mut hosts, mut domains) = self.decided(&scope);
        for (proxy, is_present) in changes.iter().flat_map(|change| [(change.old, false), (change.new, true)]) {
            proxy.into_iter().for_each(|proxy| self.roots.set(&proxy.object(), proxy, is_present));
        }
        let names: Vec<NameKey> = scope.names.iter().chain(&scope.domains).cloned().collect();
        names.into_iter().for_each(|name| self.roots.add(name, &mut scope));
        let new = changes.iter().map(|change| (&change.object, change.new));
        self.extend_scope(new, references, inputs.resources, &mut scope);
        if scope.is_empty() {
            return NamesChange::default();
        }
        members.extend(self.roots.within(&scope).chain(&scope.unnamed).cloned());
        let (more_hosts, more_domains) = self.decided(&scope);
        hosts.extend(more_hosts);
        domains.extend(more_domains);
        let decided = claims::decide(&with_delegates(&members, inputs.resources), inputs.settings);
        self.replace_scope(decided, &scope, PreviousDecision { members, hosts, domains })
    }

    /// Adds to a scope the names that these versions of objects can conflict with.
    fn extend_scope<'c>(
        &self,
        versions: impl Iterator<Item = (&'c ObjectRef, Option<&'c Arc<ContourProxy>>)>,
        references: &References,
        resources: &Resources,
        scope: &mut NameScope,
    ) {
        // The domains that delegate names to an object.
        let delegating = |object: &ObjectRef| -> Vec<NameKey> {
            let roots = references.get(object).iter().filter_map(|naming| proxy(resources, naming));
            roots.filter(|root| is_domain(root)).filter_map(|root| NameKey::of_root(root)).collect()
        };
        for (object, version) in versions {
            match version.and_then(|root| NameKey::of_root(root)) {
                Some(name) => self.roots.add(name, scope),
                None if version.is_some_and(|root| root.virtual_host.is_some()) => {
                    scope.unnamed.insert(object.clone());
                }
                None => {}
            }
            delegating(object).into_iter().for_each(|domain| self.roots.add(domain, scope));
        }
        let mut rest: Vec<NameKey> = scope.domains.iter().cloned().collect();
        while let Some(outermost) = rest.pop() {
            let roots = self.roots.domains(&outermost).flat_map(|(_, roots)| roots);
            for shared in roots.flat_map(|root| unnamed_delegates(root, resources)) {
                for domain in delegating(&shared).iter().filter_map(|domain| self.roots.outermost(domain)) {
                    if scope.domains.insert(domain.clone()) {
                        rest.push(domain.clone());
                    }
                }
                scope.unnamed.insert(shared);
            }
        }
    }

    /// The hosts and domains of a scope that the present decision contains.
    fn decided(&self, scope: &NameScope) -> (BTreeSet<HostMatch>, BTreeSet<Hostname>) {
        let inside = scope.domains.iter().flat_map(|outermost| self.roots.domains(outermost));
        let domains: BTreeSet<Hostname> = inside.map(|(domain, _)| domain.clone()).collect();
        let entries = domains.iter().filter_map(|domain| self.claims.domains.get(domain)).flat_map(|it| &it.entries);
        // The name of an invalid entry may be outside of the domain.
        let delegated = entries.filter(|entry| entry.fault.is_none()).filter_map(|entry| entry.host.clone());
        let delegated = delegated.map(HostMatch::Exact);
        (self.roots.hosts(scope).chain(delegated).collect(), domains)
    }

    /// Replaces the decision on a scope. Returns the difference.
    fn replace_scope(
        &mut self,
        mut decided: ContourClaims,
        scope: &NameScope,
        mut previous: PreviousDecision,
    ) -> NamesChange {
        let known = &mut self.claims;
        let mut change = NamesChange::default();
        for object in previous.members {
            let fault = decided.rejected.remove(&object);
            if known.rejected.get(&object) != fault.as_ref() {
                replace(&mut known.rejected, &object, fault);
                change.rejected.insert(object);
            }
        }
        // The rest are names of delegates outside of the scope: objects outside may conflict with them.
        let hosts = decided.contests.keys().filter(|host| NameKey::of_host(host).is_some_and(|key| scope.covers(&key)));
        previous.hosts.extend(hosts.cloned());
        let domains = decided.domains.keys().filter(|domain| scope.covers(&NameKey::of(domain)));
        previous.domains.extend(domains.cloned());
        for host in previous.hosts {
            let contest = decided.contests.remove(&host);
            if known.contests.get(&host) != contest.as_ref() {
                let last = replace(&mut known.contests, &host, contest);
                change.contests.insert(host, last);
            }
        }
        for domain in previous.domains {
            let found = decided.domains.remove(&domain);
            if known.domains.get(&domain) != found.as_ref() {
                replace(&mut known.domains, &domain, found);
                change.domains.insert(domain);
            }
        }
        change
    }
}

/// Objects, hosts and domains of the previous decision on a scope.
struct PreviousDecision {
    members: BTreeSet<ObjectRef>,
    hosts: BTreeSet<HostMatch>,
    domains: BTreeSet<Hostname>,
}

fn replace<K: Ord + Clone, V>(map: &mut BTreeMap<K, V>, key: &K, value: Option<V>) -> Option<V> {
    match value {
        Some(value) => map.insert(key.clone(), value),
        None => map.remove(key),
    }
}

/// These proxies, with the delegates of domains among them.
fn with_delegates<'r>(members: &BTreeSet<ObjectRef>, resources: &'r Resources) -> Proxies<'r> {
    let found = members.iter().filter_map(|object| proxy(resources, object));
    let mut proxies: Proxies<'r> = found.clone().map(|proxy| (proxy.object(), proxy)).collect();
    let delegates = found.filter(|root| is_domain(root)).flat_map(|root| {
        let kind = root.kind;
        let delegates = root.subdomains.iter().map(move |entry| ObjectRef { kind, key: entry.delegate.clone() });
        delegates.filter_map(move |object| proxy(resources, &object).map(|proxy| (object, proxy)))
    });
    proxies.extend(delegates);
    proxies
}

/// The delegates of a domain's root that have a virtual host without `fqdn`: each serves one name of one domain.
fn unnamed_delegates(root: &ObjectRef, resources: &Resources) -> Vec<ObjectRef> {
    let subdomains = proxy(resources, root).into_iter().flat_map(|root| &root.subdomains);
    let delegates = subdomains.map(|entry| ObjectRef { kind: root.kind, key: entry.delegate.clone() });
    let is_unnamed = |object: &ObjectRef| {
        let own = proxy(resources, object).and_then(|delegate| delegate.virtual_host.as_ref());
        own.is_some_and(|own| own.fqdn.is_empty())
    };
    delegates.filter(is_unnamed).collect()
}

/// True if both versions claim and delegate the same names.
fn have_same_names(old: Option<&Arc<ContourProxy>>, new: Option<&Arc<ContourProxy>>) -> bool {
    let (Some(old), Some(new)) = (old, new) else { return old.is_none() && new.is_none() };
    let fqdn = |root: &ContourProxy| root.virtual_host.as_ref().map(|own| Arc::clone(&own.fqdn));
    let entries = old.subdomains.iter().zip(&new.subdomains);
    (old.meta.created, &old.meta.uid, fqdn(old)) == (new.meta.created, &new.meta.uid, fqdn(new))
        && old.subdomains.len() == new.subdomains.len()
        && entries.clone().all(|(old, new)| (&old.name, &old.delegate) == (&new.name, &new.delegate))
}
