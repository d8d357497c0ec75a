//! Test double of a [`Translator`]: translates all objects in each apply.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use router_model::object::ObjectRef;
use router_table::table::VirtualHost;

use crate::status::object_status::ObjectStatus;
use crate::translator::{Changes, Delta, HostClaim, Inputs, LostHosts, RouterHost, RouterPorts, Translator};

/// A translation of all objects of an API.
pub trait Batch {
    /// Every host that may be served, even if another API gets it.
    fn claims(&self) -> BTreeMap<RouterHost, Arc<HostClaim>>;

    /// Hosts and statuses, given the claimed hosts that another API owns.
    fn translate(&self, lost: &LostHosts) -> Translation;
}

/// Hosts and statuses of an API.
#[derive(Debug, Default)]
pub struct Translation {
    /// Routers to be created for ports that no IngressController has.
    pub routers: Vec<RouterPorts>,
    /// Virtual hosts; none that is lost.
    pub hosts: BTreeMap<RouterHost, VirtualHost>,
    /// Statuses.
    pub statuses: BTreeMap<ObjectRef, ObjectStatus>,
}

/// See the module.
#[derive(Debug)]
pub struct Batches {
    translate: Translate,
    claims: BTreeSet<RouterHost>,
    hosts: BTreeSet<RouterHost>,
    statuses: BTreeSet<ObjectRef>,
}

/// Translates all objects.
pub type Translate = for<'r> fn(&Inputs<'r>) -> Box<dyn Batch + 'r>;

impl Batches {
    /// A translator without objects.
    pub fn new(translate: Translate) -> Self {
        let (claims, hosts, statuses) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        Batches { translate, claims, hosts, statuses }
    }
}

impl Translator for Batches {
    fn claims(&mut self, inputs: &Inputs<'_>, _: &Changes<'_>) -> Vec<(RouterHost, Option<Arc<HostClaim>>)> {
        difference(&mut self.claims, (self.translate)(inputs).claims())
    }

    fn translate(&mut self, inputs: &Inputs<'_>, lost: &LostHosts, _: &[RouterHost]) -> Delta {
        let Translation { routers, hosts, statuses } = (self.translate)(inputs).translate(lost);
        Delta {
            hosts: difference(&mut self.hosts, hosts),
            statuses: difference(&mut self.statuses, statuses),
            routers: Some(routers),
            domains: None,
        }
    }
}

/// These entries, and `None` for each key of the last call that is missing from them.
fn difference<K: Ord + Clone, V>(last: &mut BTreeSet<K>, entries: BTreeMap<K, V>) -> Vec<(K, Option<V>)> {
    let keys = entries.keys().cloned().collect();
    let gone = std::mem::replace(last, keys).into_iter().filter(|key| !entries.contains_key(key)).collect::<Vec<_>>();
    let gone = gone.into_iter().map(|key| (key, None));
    entries.into_iter().map(|(key, value)| (key, Some(value))).chain(gone).collect()
}
