//! Content of the gate's maps, as comparable values.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use router_common::maps::GatePolicy;

/// Content of the gate's maps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GateImage {
    /// `gate_policies`.
    pub policies: BTreeMap<(IpAddr, u16), GatePolicy>,
    /// `gate_nets`, by list.
    pub lists: BTreeMap<u32, Arc<[IpNet]>>,
}

impl GateImage {
    /// Number of networks of all lists.
    pub fn networks(&self) -> usize {
        self.lists.values().map(|list| list.len()).sum()
    }

    /// Ids of the token buckets of listeners.
    pub fn buckets(&self) -> BTreeSet<u32> {
        self.policies.values().map(|policy| policy.id).collect()
    }

    /// The id of a list: that of an equal one, or a new one.
    pub fn list(&mut self, list: &Arc<[IpNet]>, before: &GateImage) -> u32 {
        let known = before.lists.iter().chain(&self.lists);
        let equal = known.clone().find(|(_, known)| Arc::ptr_eq(known, list) || known == &list).map(|(id, _)| *id);
        let id = equal.unwrap_or_else(|| known.map(|(id, _)| *id).max().unwrap_or_default() + 1);
        self.lists.insert(id, Arc::clone(list));
        id
    }
}
