//! Outcomes of hosts. Changed hosts are translated one by one, and with them the hosts whose routes get other numbers,
//! or whose namespace reaches its limit on visits.

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
use crate::contour::outcome::ContourOutcome;
use crate::contour::outcomes::Outcomes;
use crate::contour::walk::MAX_NAMESPACE_VISITS;
use crate::translator::{LostHosts, RouterPorts};

/// Outcomes of all hosts.
#[derive(Debug, Default)]
pub struct Hosts {
    outcomes: Outcomes,
    numbers: Numbers,
    /// Number of visits below the roots of each namespace.
    visit_count: BTreeMap<Arc<str>, usize>,
    /// Namespaces with more visits than the limit: the visits below a host depend on the hosts before it.
    over_limit: BTreeSet<Arc<str>>,
}

/// Inputs for the translation of hosts.
#[derive(Clone, Copy, Debug)]
pub struct HostInputs<'r> {
    /// Claims by host.
    pub contests: &'r BTreeMap<HostMatch, Contest>,
    /// The TLS of domains.
    pub states: &'r DomainStates,
    /// Objects.
    pub backends: Backends<'r>,
    /// The router.
    pub router: Option<&'r RouterPorts>,
    /// Hosts that objects of other APIs own.
    pub lost: &'r LostHosts,
}

/// A host that was translated again.
#[derive(Debug)]
pub struct TranslatedHost {
    /// The previous outcome.
    pub last: Option<ContourOutcome>,
    /// The new virtual host; `None` if the host is not served.
    pub host: Option<VirtualHost>,
}

impl Hosts {
    /// The outcomes.
    pub fn outcomes(&self) -> &Outcomes {
        &self.outcomes
    }

    /// Translates these hosts, and those that depend on them.
    pub fn translate(
        &mut self,
        hosts: &BTreeSet<HostMatch>,
        inputs: HostInputs<'_>,
    ) -> BTreeMap<HostMatch, TranslatedHost> {
        let mut pass =
            TranslationPass { translated: BTreeMap::new(), moved: BTreeSet::new(), namespaces: BTreeSet::new() };
        for host in hosts {
            self.translate_host(host, 0, inputs, &mut pass);
        }
        for namespace in std::mem::take(&mut pass.namespaces) {
            let visit_count = self.visit_count.get(&namespace).copied().unwrap_or_default();
            if self.over_limit.contains(&namespace) || visit_count > MAX_NAMESPACE_VISITS {
                self.translate_namespace(&namespace, inputs, &mut pass);
            }
        }
        for host in std::mem::take(&mut pass.moved) {
            let Some(outcome) = self.outcomes.get(&host) else { continue };
            if outcome.parts.iter().any(|(object, parts)| self.numbers.first(object, &host) != parts.first) {
                self.translate_host(&host, outcome.earlier_visits, inputs, &mut pass);
            }
        }
        pass.translated
    }

    /// Translates all hosts of roots in a namespace in order, each with the number of visits below the hosts before it.
    fn translate_namespace(&mut self, namespace: &Arc<str>, inputs: HostInputs<'_>, pass: &mut TranslationPass) {
        let is_of_namespace =
            |contest: &Contest| contest.granted().is_some_and(|granted| granted.root.key.namespace == *namespace);
        let mut before = 0;
        for (host, _) in inputs.contests.iter().filter(|(_, contest)| is_of_namespace(contest)) {
            self.translate_host(host, before, inputs, pass);
            before += self.outcomes.get(host).map_or(0, |outcome| outcome.visit_count);
        }
        if before > MAX_NAMESPACE_VISITS {
            self.over_limit.insert(Arc::clone(namespace));
        } else {
            self.over_limit.remove(namespace);
        }
    }

    fn translate_host(&mut self, host: &HostMatch, before: usize, inputs: HostInputs<'_>, pass: &mut TranslationPass) {
        let HostInputs { contests, states, backends, router, lost } = inputs;
        let translator = HostTranslator { backends, router, states, numbers: &self.numbers };
        let owner = router.and_then(|router| lost.get(&(router.name.clone(), host.clone())));
        let (outcome, served) = match contests.get(host).map(|contest| translator.translate(contest, owner, before)) {
            Some((outcome, served)) => (Some(outcome), served),
            None => (None, None),
        };
        let parts = outcome.as_ref().map(|outcome| outcome.parts.clone()).unwrap_or_default();
        self.count_visits(outcome.as_ref(), true, pass);
        let last = self.outcomes.set(host, outcome);
        self.count_visits(last.as_ref(), false, pass);
        let has_parts = |object: &ObjectRef| parts.iter().any(|(known, _)| known == object);
        let without = last.iter().flat_map(|last| &last.parts).filter(|(object, _)| !has_parts(object));
        for (object, count) in without.map(|(object, _)| (object, 0)).chain(parts.iter().map(|(o, p)| (o, p.count))) {
            pass.moved.extend(self.numbers.set(object, host, count));
        }
        match pass.translated.get_mut(host) {
            Some(translated) => translated.host = served,
            None => drop(pass.translated.insert(host.clone(), TranslatedHost { last, host: served })),
        }
    }

    /// Adds the visits below a host to those of its namespace, or subtracts them.
    fn count_visits(&mut self, outcome: Option<&ContourOutcome>, is_added: bool, pass: &mut TranslationPass) {
        let Some((namespace, visit_count)) = outcome.and_then(|it| Some((it.namespace.as_ref()?, it.visit_count)))
        else {
            return;
        };
        pass.namespaces.insert(Arc::clone(namespace));
        let sum = self.visit_count.entry(Arc::clone(namespace)).or_default();
        *sum = if is_added { *sum + visit_count } else { sum.saturating_sub(visit_count) };
        if *sum == 0 {
            self.visit_count.remove(namespace);
        }
    }
}

/// One call of [`Hosts::translate`].
struct TranslationPass {
    translated: BTreeMap<HostMatch, TranslatedHost>,
    /// Hosts whose routes may have new numbers.
    moved: BTreeSet<HostMatch>,
    /// Namespaces whose number of visits may differ.
    namespaces: BTreeSet<Arc<str>>,
}
