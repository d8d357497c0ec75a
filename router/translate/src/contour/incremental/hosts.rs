//! Outcomes of hosts. Hosts are translated anew one by one, and with them those whose routes get other numbers, or
//! whose namespace reaches its limit on visits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use router_model::names::HostMatch;
use router_model::object::ObjectRef;
use router_table::table::VirtualHost;

use crate::contour::backends::Backends;
use crate::contour::claims::types::Contest;
use crate::contour::domain_tls::DomainStates;
use crate::contour::host::HostTranslator;
use crate::contour::numbers::Numbers;
use crate::contour::outcome::HostOutcome;
use crate::contour::outcomes::Outcomes;
use crate::contour::walk::MAX_NAMESPACE_VISITS;
use crate::translator::{LostHosts, RouterPorts};

/// See the module.
#[derive(Debug, Default)]
pub struct Hosts {
    outcomes: Outcomes,
    numbers: Numbers,
    /// Number of visits below the roots of each namespace.
    entered: BTreeMap<Arc<str>, usize>,
    /// Namespaces of more visits than are allowed: what is visited below a host depends on the hosts before it.
    crowded: BTreeSet<Arc<str>>,
}

/// What hosts are translated from.
#[derive(Clone, Copy, Debug)]
pub struct Ground<'r> {
    /// Claims by host.
    pub contests: &'r BTreeMap<HostMatch, Contest>,
    /// The TLS of domains.
    pub states: &'r DomainStates,
    /// Objects.
    pub backends: Backends<'r>,
    /// The router.
    pub router: Option<&'r RouterPorts>,
    /// Hosts that objects of other APIs have.
    pub lost: &'r LostHosts,
}

/// A host that was translated anew.
#[derive(Debug)]
pub struct Renewed {
    /// The former outcome.
    pub last: Option<HostOutcome>,
    /// What it serves now.
    pub host: Option<VirtualHost>,
}

impl Hosts {
    /// The outcomes.
    pub fn outcomes(&self) -> &Outcomes {
        &self.outcomes
    }

    /// Translates these hosts anew, and those that depend on them.
    pub fn renew(&mut self, hosts: &BTreeSet<HostMatch>, ground: Ground<'_>) -> BTreeMap<HostMatch, Renewed> {
        let mut pass = Pass { renewed: BTreeMap::new(), moved: BTreeSet::new(), namespaces: BTreeSet::new() };
        for host in hosts {
            self.renew_host(host, 0, ground, &mut pass);
        }
        for namespace in std::mem::take(&mut pass.namespaces) {
            let entered = self.entered.get(&namespace).copied().unwrap_or_default();
            if self.crowded.contains(&namespace) || entered > MAX_NAMESPACE_VISITS {
                self.renew_namespace(&namespace, ground, &mut pass);
            }
        }
        for host in std::mem::take(&mut pass.moved) {
            let Some(outcome) = self.outcomes.get(&host) else { continue };
            if outcome.parts.iter().any(|(object, parts)| self.numbers.first(object, &host) != parts.first) {
                self.renew_host(&host, outcome.before, ground, &mut pass);
            }
        }
        pass.renewed
    }

    /// Translates all hosts of roots in a namespace in order, with the visits below those before.
    fn renew_namespace(&mut self, namespace: &Arc<str>, ground: Ground<'_>, pass: &mut Pass) {
        let is_of_namespace =
            |contest: &Contest| contest.granted().is_some_and(|granted| granted.root.key.namespace == *namespace);
        let mut before = 0;
        for (host, _) in ground.contests.iter().filter(|(_, contest)| is_of_namespace(contest)) {
            self.renew_host(host, before, ground, pass);
            before += self.outcomes.get(host).map_or(0, |outcome| outcome.entered);
        }
        if before > MAX_NAMESPACE_VISITS {
            self.crowded.insert(Arc::clone(namespace));
        } else {
            self.crowded.remove(namespace);
        }
    }

    fn renew_host(&mut self, host: &HostMatch, before: usize, ground: Ground<'_>, pass: &mut Pass) {
        let Ground { contests, states, backends, router, lost } = ground;
        let translator = HostTranslator { backends, router, states, numbers: &self.numbers };
        let owner = router.and_then(|router| lost.get(&(router.name.clone(), host.clone())));
        let (outcome, served) = match contests.get(host).map(|contest| translator.translate(contest, owner, before)) {
            Some((outcome, served)) => (Some(outcome), served),
            None => (None, None),
        };
        let parts = outcome.as_ref().map(|outcome| outcome.parts.clone()).unwrap_or_default();
        self.count(outcome.as_ref(), true, pass);
        let last = self.outcomes.set(host, outcome);
        self.count(last.as_ref(), false, pass);
        let has_parts = |object: &ObjectRef| parts.iter().any(|(known, _)| known == object);
        let without = last.iter().flat_map(|last| &last.parts).filter(|(object, _)| !has_parts(object));
        for (object, count) in without.map(|(object, _)| (object, 0)).chain(parts.iter().map(|(o, p)| (o, p.count))) {
            pass.moved.extend(self.numbers.set(object, host, count));
        }
        match pass.renewed.get_mut(host) {
            Some(renewed) => renewed.host = served,
            None => drop(pass.renewed.insert(host.clone(), Renewed { last, host: served })),
        }
    }

    /// Adds the visits below a host to those of its namespace, or subtracts them.
    fn count(&mut self, outcome: Option<&HostOutcome>, is_there: bool, pass: &mut Pass) {
        let Some((namespace, entered)) = outcome.and_then(|it| Some((it.namespace.as_ref()?, it.entered))) else {
            return;
        };
        pass.namespaces.insert(Arc::clone(namespace));
        let sum = self.entered.entry(Arc::clone(namespace)).or_default();
        *sum = if is_there { *sum + entered } else { sum.saturating_sub(entered) };
        if *sum == 0 {
            self.entered.remove(namespace);
        }
    }
}

/// One call of [`Hosts::renew`].
struct Pass {
    renewed: BTreeMap<HostMatch, Renewed>,
    /// Hosts whose routes may have got other numbers.
    moved: BTreeSet<HostMatch>,
    /// Namespaces whose number of visits may differ.
    namespaces: BTreeSet<Arc<str>>,
}
