//! Translation of all objects at once, which the incremental translation must equal.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use router_model::names::HostMatch;
use router_table::table::VirtualHost;

use crate::contour::claims::types::{Contest, ContourClaims, Proxies};
use crate::contour::domain_tls::{self, DomainStates};
use crate::contour::host::HostTranslator;
use crate::contour::numbers::Numbers;
use crate::contour::outcome::ContourOutcome;
use crate::contour::outcomes::Outcomes;
use crate::contour::status::StatusInputs;
use crate::contour::{backends, claims, delegation_status, router, valid_domains};
use crate::status::host_conflict::HostOwner;
use crate::translator::testing::{Claims, Outcome};
use crate::translator::{Inputs, LostHosts, RouterPorts};

/// Contour's objects, with the decision on hosts.
#[derive(Debug)]
pub struct Model<'r> {
    pub inputs: Inputs<'r>,
    proxies: Proxies<'r>,
    router: Option<&'r RouterPorts>,
    pub claims: ContourClaims,
}

impl<'r> Model<'r> {
    /// Decides on hosts.
    pub fn new(inputs: &Inputs<'r>) -> Self {
        let resources = inputs.resources;
        let proxies: Proxies<'r> = resources
            .ingress_routes
            .iter()
            .chain(resources.http_proxies.iter())
            .filter(|proxy| !proxy.is_foreign())
            .map(|proxy| (proxy.object(), proxy))
            .collect();
        let claims = claims::decide(&proxies, inputs.settings);
        Model { inputs: *inputs, proxies, router: router(inputs), claims }
    }

    fn owner<'l>(&self, host: &HostMatch, lost: &'l LostHosts) -> Option<&'l HostOwner> {
        lost.get(&(self.router?.name.clone(), host.clone()))
    }

    fn host(
        &self,
        contest: &Contest,
        owner: Option<&HostOwner>,
        before: usize,
        states: &DomainStates,
        numbers: &Numbers,
    ) -> (ContourOutcome, Option<VirtualHost>) {
        let translator = HostTranslator { backends: backends(&self.inputs), router: self.router, states, numbers };
        translator.translate(contest, owner, before)
    }
}

impl Model<'_> {
    /// Every host that may be served, even if another API gets it.
    fn claims(&self) -> Claims {
        let Some(router) = self.router else { return Claims::new() };
        let claim =
            |(host, contest): (&HostMatch, &Contest)| ((router.name.clone(), host.clone()), Arc::clone(&contest.claim));
        self.claims.contests.iter().map(claim).collect()
    }

    /// Claims, hosts and statuses. `lost` returns the claimed hosts that another API owns.
    pub fn translate(&self, lost: impl FnOnce(&Claims) -> LostHosts) -> Outcome {
        let claims = self.claims();
        let lost = &lost(&claims);
        let states = domain_tls::states(self.claims.domains.values(), self.inputs.resources);
        let (mut outcomes, mut numbers) = (Outcomes::default(), Numbers::default());
        let mut hosts: BTreeMap<&HostMatch, VirtualHost> = BTreeMap::new();
        let mut visit_count: BTreeMap<&Arc<str>, usize> = BTreeMap::new();
        let mut moved = BTreeSet::new();
        for (at, contest) in &self.claims.contests {
            let namespace = contest.granted().map(|claim| &claim.root.key.namespace);
            let before = namespace.and_then(|namespace| visit_count.get(namespace)).copied().unwrap_or_default();
            let (outcome, host) = self.host(contest, self.owner(at, lost), before, &states, &numbers);
            namespace
                .into_iter()
                .for_each(|namespace| *visit_count.entry(namespace).or_default() += outcome.visit_count);
            outcome.parts.iter().for_each(|(object, parts)| moved.extend(numbers.set(object, at, parts.count)));
            hosts.extend(host.map(|host| (at, host)));
            outcomes.set(at, Some(outcome));
        }
        for (at, contest) in self.claims.contests.iter().filter(|(at, _)| moved.contains(*at)) {
            let before = outcomes.get(at).map_or(0, |outcome| outcome.earlier_visits);
            let (outcome, host) = self.host(contest, self.owner(at, lost), before, &states, &numbers);
            hosts.extend(host.map(|host| (at, host)));
            outcomes.set(at, Some(outcome));
        }
        let name = self.router.map(|router| &router.name);
        let resources = self.inputs.resources;
        let status_inputs =
            StatusInputs { resources, claims: &self.claims, states: &states, outcomes: &outcomes, router: name };
        let statuses = self.proxies.iter().map(|(object, proxy)| (object.clone(), status_inputs.status_of(proxy)));
        let delegations = resources.certificate_delegations.iter();
        let statuses = statuses.chain(delegations.filter_map(|object| delegation_status(object, resources))).collect();
        let mut translation = Outcome { claims, statuses, ..Outcome::default() };
        if let Some(name) = name {
            translation.domains = valid_domains(name, &states);
            translation.hosts = hosts.into_iter().map(|(at, host)| ((name.clone(), at.clone()), host)).collect();
        }
        translation
    }
}
