//! Incremental translation of Contour's objects: a change translates only the hosts and statuses that depend on it (see
//! [`super`]).
//!
//! The outcomes of hosts are indexed by proxy. A proxy that is added, removed or becomes a root, a Service, a Secret or
//! a TLSCertificateDelegation affects the proxies that name it. Limits: all names inside a domain are resolved
//! together, and the hosts of a namespace that exceeds its limit on visits are translated together.

mod changes;
mod hosts;
mod names;
mod roots;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use router_api::contour::types::{ContourProxy, TlsCertificateDelegation};
use router_api::resources::Resources;
use router_model::kind::Kind;
use router_model::names::{HostMatch, Hostname, RouterName};
use router_model::object::ObjectRef;

use self::changes::ProxyChange;
use self::hosts::{HostInputs, Hosts, TranslatedHost};
use self::names::{Names, NamesChange};
use crate::contour::claims::delegated_domains::{domain_of, nearest};
use crate::contour::claims::types::{Contest, is_domain, proxy};
use crate::contour::domain_tls::{self, DomainStates};
use crate::contour::outcome::ContourOutcome;
use crate::contour::references::{self, References};
use crate::contour::status::StatusInputs;
use crate::contour::{backends, delegation_status, router, valid_domains};
use crate::status::object_status::ObjectStatus;
use crate::translator::{Changes, Delta, HostClaim, Inputs, LostHosts, RouterHost, RouterPorts, Translator};

/// Translator of Contour's objects.
#[derive(Debug, Default)]
pub struct Contour {
    router: Option<RouterPorts>,
    references: References,
    names: Names,
    states: DomainStates,
    hosts: Hosts,
    dirty: Dirty,
}

/// Hosts, domains and statuses to translate again.
#[derive(Debug, Default)]
struct Dirty {
    hosts: BTreeSet<HostMatch>,
    /// Domains whose TLS may differ.
    domains: BTreeSet<Hostname>,
    /// Objects whose status may differ.
    objects: BTreeSet<ObjectRef>,
    /// Objects whose status is removed.
    removed: Vec<ObjectRef>,
    /// The previous router, if it changed; `Some(None)` if there was none.
    former_router: Option<Option<RouterName>>,
}

impl Translator for Contour {
    fn claims(&mut self, inputs: &Inputs<'_>, changes: &Changes<'_>) -> Vec<(RouterHost, Option<Arc<HostClaim>>)> {
        let last = changes.last;
        let proxies = changes::proxies(inputs.resources, last);
        for ProxyChange { object, old, new } in &proxies {
            let named = |version: &Option<&Arc<ContourProxy>>| version.map(|proxy| references::of_proxy(proxy));
            let (old, new) = (named(old).unwrap_or_default(), named(new).unwrap_or_default());
            self.references.replace(object, &old, &new);
        }
        self.apply_named_objects(inputs.resources, last);
        let names = self.names.apply_changes(&proxies, &self.references, last, inputs);
        for change in &proxies {
            self.apply_proxy(change);
        }
        self.apply_names(&names);
        self.apply_router(router(inputs), &names, inputs.resources)
    }

    fn translate(&mut self, inputs: &Inputs<'_>, lost: &LostHosts, changed: &[RouterHost]) -> Delta {
        let mut dirty = std::mem::take(&mut self.dirty);
        let name = self.router.as_ref().map(|router| router.name.clone());
        let here = changed.iter().filter(|(router, _)| Some(router) == name.as_ref());
        dirty.hosts.extend(here.map(|(_, host)| host.clone()));
        let domains_differ = self.update_domains(&mut dirty, inputs.resources) || dirty.former_router.is_some();
        let mut delta = Delta::default();
        let former = dirty.former_router.filter(|former| *former != name);
        if let Some(Some(former)) = &former {
            let served = self.hosts.outcomes().served().map(|host| ((former.clone(), host.clone()), None));
            delta.hosts.extend(served);
        }
        let claims = self.names.claims();
        let host_inputs = HostInputs {
            contests: &claims.contests,
            states: &self.states,
            backends: backends(inputs),
            router: self.router.as_ref(),
            lost,
        };
        for (host, TranslatedHost { last, host: served }) in self.hosts.translate(&dirty.hosts, host_inputs) {
            self.add_reporting_objects(&host, last.as_ref(), &mut dirty.objects);
            let was_served_here = former.is_none() && last.is_some_and(|last| last.served);
            let differs = served.is_some() || was_served_here;
            let at = name.clone().filter(|_| differs).map(|name| (name, host));
            delta.hosts.extend(at.map(|at| (at, served)));
        }
        delta.statuses = self.statuses(dirty.objects, inputs.resources);
        delta.statuses.extend(dirty.removed.into_iter().map(|object| (object, None)));
        delta.domains = domains_differ.then(|| name.map(|name| valid_domains(&name, &self.states)).unwrap_or_default());
        delta
    }
}

impl Contour {
    /// Applies changed Services, Secrets and TLSCertificateDelegations.
    fn apply_named_objects(&mut self, resources: &Resources, last: &Resources) {
        let mut changed = changes::services_and_secrets(resources, last);
        for change in resources.certificate_delegations.in_force_since(&last.certificate_delegations) {
            let object = ObjectRef { kind: Kind::TlsCertificateDelegation, key: change.key.clone() };
            let named =
                |version: Option<&Arc<TlsCertificateDelegation>>| version.map(|it| references::of_delegation(it));
            let (old, new) = (named(change.old).unwrap_or_default(), named(change.new).unwrap_or_default());
            self.references.replace(&object, &old, &new);
            changed.extend(old.into_iter().chain(new));
            let has_status = |version: Option<&Arc<TlsCertificateDelegation>>| version.is_some_and(|it| it.has_status);
            match (has_status(change.old), has_status(change.new)) {
                (_, true) => drop(self.dirty.objects.insert(object)),
                (true, false) => self.dirty.removed.push(object),
                (false, false) => {}
            }
        }
        for naming in changed.iter().flat_map(|named| self.references.get(named)) {
            if naming.kind == Kind::TlsCertificateDelegation {
                self.dirty.objects.insert(naming.clone());
            }
            self.dirty.hosts.extend(self.hosts.outcomes().hosts_of(naming).cloned());
            let root = proxy(resources, naming);
            self.dirty.domains.extend(root.and_then(|root| own_domain(root)));
        }
    }

    fn apply_proxy(&mut self, change: &ProxyChange<'_>) {
        let ProxyChange { object, old, new } = change;
        let hosts_of = |object: &ObjectRef| self.hosts.outcomes().hosts_of(object).cloned();
        self.dirty.hosts.extend(hosts_of(object));
        let is_root = |version: &Option<&Arc<ContourProxy>>| version.map(|it| it.virtual_host.is_some());
        if is_root(old) != is_root(new) {
            // A delegation to a root is an error, a delegation to another object is followed.
            let naming: Vec<HostMatch> = self.references.get(object).iter().flat_map(hosts_of).collect();
            self.dirty.hosts.extend(naming);
        }
        self.dirty.domains.extend([old, new].into_iter().flatten().filter_map(|root| own_domain(root)));
        if new.is_some() {
            self.dirty.objects.insert(object.clone());
        } else if old.is_some() {
            self.dirty.removed.push(object.clone());
        }
    }

    fn apply_names(&mut self, names: &NamesChange) {
        self.dirty.hosts.extend(names.contests.keys().cloned());
        self.dirty.objects.extend(names.rejected.iter().cloned());
        self.dirty.domains.extend(names.domains.iter().cloned());
    }

    /// Sets the router. Returns the claims that differ.
    fn apply_router(
        &mut self,
        router: Option<&RouterPorts>,
        names: &NamesChange,
        resources: &Resources,
    ) -> Vec<(RouterHost, Option<Arc<HostClaim>>)> {
        let claim = |contest: &Contest| Arc::clone(&contest.claim);
        let last = std::mem::replace(&mut self.router, router.cloned());
        let contests = &self.names.claims().contests;
        if last.as_ref().map(|it| (&it.name, it.traffic)) == router.map(|it| (&it.name, it.traffic)) {
            let Some(router) = router else { return Vec::new() };
            let differs = names.contests.iter().filter_map(|(host, last)| {
                let new = contests.get(host).map(claim);
                (new != last.as_ref().map(claim)).then(|| ((router.name.clone(), host.clone()), new))
            });
            return differs.collect();
        }
        self.dirty.hosts.extend(contests.keys().cloned());
        let all = resources.ingress_routes.iter().chain(resources.http_proxies.iter());
        self.dirty.objects.extend(all.filter(|proxy| !proxy.is_foreign()).map(|proxy| proxy.object()));
        // The contests before this apply: the present ones, except those that differ.
        let unchanged = contests.keys().filter(|host| !names.contests.contains_key(*host));
        let former = names.contests.iter().filter(|(_, last)| last.is_some()).map(|(host, _)| host);
        let mut claims = BTreeMap::new();
        if let Some(last) = &last {
            claims.extend(unchanged.chain(former).map(|host| ((last.name.clone(), host.clone()), None)));
        }
        if let Some(router) = router {
            let now = contests.iter().map(|(host, it)| ((router.name.clone(), host.clone()), Some(claim(it))));
            claims.extend(now);
        }
        self.dirty.former_router = Some(last.map(|last| last.name));
        claims.into_iter().collect()
    }

    /// Resolves the TLS of changed domains again, and adds the hosts and statuses that depend on it. True if a domain
    /// differs.
    fn update_domains(&mut self, dirty: &mut Dirty, resources: &Resources) -> bool {
        let mut related: BTreeSet<Hostname> = BTreeSet::new();
        for domain in &dirty.domains {
            if !self.names.claims().domains.contains_key(domain) {
                self.states.remove(domain);
            }
            for (domain, roots) in self.names.related_domains(domain) {
                related.insert(domain.clone());
                dirty.objects.extend(roots.iter().cloned());
            }
        }
        let domains = &self.names.claims().domains;
        let found: Vec<_> = related.iter().filter_map(|domain| domains.get(domain)).collect();
        let mut differs = false;
        for (domain, state) in domain_tls::states(found, resources) {
            if self.states.get(&domain) != Some(&state) {
                differs = true;
                let entries = domains.get(&domain).into_iter().flat_map(|domain| &domain.entries);
                dirty.hosts.extend(entries.filter_map(|entry| entry.host.clone()).map(HostMatch::Exact));
                self.states.insert(domain, state);
            }
        }
        differs || !dirty.domains.is_empty()
    }

    /// Adds the objects whose status reports the outcome of a host, if it differs from the last one.
    fn add_reporting_objects(
        &self,
        host: &HostMatch,
        last: Option<&ContourOutcome>,
        objects: &mut BTreeSet<ObjectRef>,
    ) {
        let nothing = ContourOutcome::default();
        let outcomes = [last.unwrap_or(&nothing), self.hosts.outcomes().get(host).unwrap_or(&nothing)];
        let [old, new] = outcomes;
        let visited = outcomes.into_iter().flat_map(|outcome| outcome.objects());
        objects.extend(visited.filter(|object| old.visits_of(object) != new.visits_of(object)).cloned());
        let lost = outcomes.into_iter().flat_map(|outcome| outcome.winners.keys());
        objects.extend(lost.filter(|object| old.winners.get(object) != new.winners.get(object)).cloned());
        let faulty = |outcome: &ContourOutcome| -> Vec<ObjectRef> {
            let faulty = outcome.visits.iter().filter(|visit| !visit.faults.is_empty());
            faulty.map(|visit| visit.object.clone()).collect()
        };
        let reported = |it: &ContourOutcome| (it.problem.clone(), it.warning.clone(), faulty(it));
        // Roots of the enclosing domains: the innermost one delegates the name, an outer one may name the certificate.
        let domains = &self.names.claims().domains;
        let mut enclosing = nearest(domains, &host.to_string()).filter(|_| reported(old) != reported(new));
        while let Some(domain) = enclosing {
            objects.extend(domain.root.clone());
            enclosing = domain.parent.as_ref().and_then(|parent| domains.get(parent));
        }
    }

    fn statuses(&self, objects: BTreeSet<ObjectRef>, resources: &Resources) -> Vec<(ObjectRef, Option<ObjectStatus>)> {
        let (claims, states, outcomes) = (self.names.claims(), &self.states, self.hosts.outcomes());
        let router = self.router.as_ref().map(|router| &router.name);
        let status_inputs = StatusInputs { resources, claims, states, outcomes, router };
        let status = |object: &ObjectRef| match object.kind {
            Kind::TlsCertificateDelegation => {
                let found = resources.certificate_delegations.get(&object.key);
                found.and_then(|found| delegation_status(found, resources)).map(|(_, status)| status)
            }
            _ => proxy(resources, object).map(|proxy| status_inputs.status_of(proxy)),
        };
        let statuses = objects.into_iter().map(|object| (status(&object), object));
        statuses.filter_map(|(status, object)| Some((object, Some(status?)))).collect()
    }
}

/// The domain of a domain root; `None` for other roots.
fn own_domain(root: &ContourProxy) -> Option<Hostname> {
    if is_domain(root) { domain_of(root).ok() } else { None }
}
