//! Runs a [`Translator`] through a history, and sums up its deltas.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

use router_api::resources::Resources;
use router_model::names::{Hostname, RouterName};
use router_model::object::ObjectRef;
use router_table::table::VirtualHost;

use crate::endpoints::EndpointIndex;
use crate::settings::Settings;
use crate::status::object_status::ObjectStatus;
use crate::translator::{Changes, HostClaim, Inputs, LostHosts, RouterHost, RouterPorts, Translator};

/// Claims on hosts.
pub type Claims = BTreeMap<RouterHost, Arc<HostClaim>>;

/// The sum of a translator's deltas.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Hosts that may be served, even if another API gets them.
    pub claims: Claims,
    /// Virtual hosts; none that is lost.
    pub hosts: BTreeMap<RouterHost, VirtualHost>,
    /// Statuses.
    pub statuses: BTreeMap<ObjectRef, ObjectStatus>,
    /// Routers to be created.
    pub routers: Vec<RouterPorts>,
    /// Delegated domains.
    pub domains: BTreeSet<(RouterName, Hostname)>,
}

impl Outcome {
    /// Compares with the outcome of a full translation.
    ///
    /// # Errors
    /// The first difference.
    pub fn same_as(&self, full: &Outcome) -> Result<(), String> {
        let Outcome { claims, hosts, statuses, routers, domains } = full;
        same("claims", &self.claims, claims)?;
        same("hosts", &self.hosts, hosts)?;
        same("statuses", &self.statuses, statuses)?;
        if (&self.routers, &self.domains) != (routers, domains) {
            let incremental = (&self.routers, &self.domains);
            return Err(format!("routers and domains: {incremental:?}, not {routers:?}, {domains:?}"));
        }
        Ok(())
    }
}

fn same<K: Ord + Debug, V: PartialEq + Debug>(
    what: &str,
    incremental: &BTreeMap<K, V>,
    full: &BTreeMap<K, V>,
) -> Result<(), String> {
    let differs = |key: &&K| incremental.get(*key) != full.get(*key);
    let differing = incremental.keys().chain(full.keys()).find(differs);
    differing.map_or(Ok(()), |key| {
        Err(format!("{what} of {key:?}:\n    incremental {:#?}\n    full {:#?}", incremental.get(key), full.get(key)))
    })
}

/// A translator with the sum of its deltas.
pub struct Run<T> {
    translator: T,
    settings: Settings,
    index: EndpointIndex,
    resources: Resources,
    routers: Vec<RouterPorts>,
    lost: LostHosts,
    /// The sum of all deltas.
    pub outcome: Outcome,
    /// Number of claims, hosts and statuses in the last deltas.
    pub returned: (usize, usize, usize),
}

impl<T: Translator + Default> Run<T> {
    /// A new translator.
    pub fn new(settings: &Settings) -> Self {
        Run {
            translator: T::default(),
            settings: settings.clone(),
            index: EndpointIndex::new(&Resources::default(), settings.endpoint_addresses),
            resources: Resources::default(),
            routers: Vec::new(),
            lost: LostHosts::new(),
            outcome: Outcome::default(),
            returned: (0, 0, 0),
        }
    }

    /// Applies these objects and routers. `lost` returns those of the claimed hosts that objects of other APIs own.
    pub fn apply(
        &mut self,
        resources: &Resources,
        routers: &[RouterPorts],
        lost: impl FnOnce(&Claims) -> LostHosts,
    ) -> &Outcome {
        let mut protocols = BTreeSet::new();
        for changed in resources.endpoint_slices.in_force_since(&self.resources.endpoint_slices) {
            protocols.extend(self.index.replace(changed.old.cloned(), changed.new.cloned()).1);
        }
        let relabelled = resources.relabelled_since(&self.resources);
        let (settings, addresses) = (&self.settings, &self.settings.addresses);
        let inputs = Inputs { resources, settings, endpoints: &self.index, routers, addresses };
        let changes = Changes {
            last: &self.resources,
            routers_differ: self.routers != routers,
            relabelled: &relabelled,
            protocols: &protocols,
        };
        let claims = self.translator.claims(&inputs, &changes);
        let returned = claims.len();
        add(&mut self.outcome.claims, claims);

        let lost = lost(&self.outcome.claims);
        let all: BTreeSet<&RouterHost> = lost.keys().chain(self.lost.keys()).collect();
        let changed = all.into_iter().filter(|at| lost.get(*at) != self.lost.get(*at)).cloned();
        let changed: Vec<RouterHost> = changed.collect();
        let delta = self.translator.translate(&inputs, &lost, &changed);
        self.returned = (returned, delta.hosts.len(), delta.statuses.len());
        for (at, host) in &delta.hosts {
            assert!(host.is_some() || self.outcome.hosts.contains_key(at), "{at:?} was not served");
            assert!(host.is_none() || self.outcome.claims.contains_key(at), "{at:?} is not claimed");
        }
        add(&mut self.outcome.hosts, delta.hosts);
        add(&mut self.outcome.statuses, delta.statuses);
        self.outcome.routers = delta.routers.unwrap_or_else(|| std::mem::take(&mut self.outcome.routers));
        self.outcome.domains = delta.domains.unwrap_or_else(|| std::mem::take(&mut self.outcome.domains));
        (self.resources, self.routers, self.lost) = (resources.clone(), routers.to_vec(), lost);
        &self.outcome
    }
}

fn add<K: Ord, V>(map: &mut BTreeMap<K, V>, changes: Vec<(K, Option<V>)>) {
    for (key, value) in changes {
        match value {
            Some(value) => drop(map.insert(key, value)),
            None => drop(map.remove(&key)),
        }
    }
}
