//! The XDP gate's policies: from the routing table to the kernel's maps.
//!
//! A list of networks that changes is written under a new id, beside the old one; then the policies that name it; then the
//! old one is removed. So no packet meets half a list, and a list that does not fit leaves the old one in force.

mod maps;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use router_common::maps::{GATE_NO_FRAGMENTS, GATE_NO_OPTIONS, GATE_OBSERVE, GatePolicy};
use router_listener::{BindState, ListenerState, Protocol};
use router_table::policy::gate::GatePolicy as Policy;
use router_table::table::RoutingTable;

use crate::lower::reachable;

pub use maps::GateMaps;

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
    fn buckets(&self) -> BTreeSet<u32> {
        self.policies.values().map(|policy| policy.id).collect()
    }

    /// The id of a list: that of an equal one, or a new one.
    fn list(&mut self, list: &Arc<[IpNet]>, before: &GateImage) -> u32 {
        let known = before.lists.iter().chain(&self.lists);
        let equal = known.clone().find(|(_, known)| Arc::ptr_eq(known, list) || known == &list).map(|(id, _)| *id);
        let id = equal.unwrap_or_else(|| known.map(|(id, _)| *id).max().unwrap_or_default() + 1);
        self.lists.insert(id, Arc::clone(list));
        id
    }
}

/// Lowers the policies of a table. Lists that are equal to some of `before` have their ids. `local` as in
/// [`lower`](crate::lower::lower).
pub fn lower(table: &RoutingTable, listeners: &[ListenerState], local: &[IpAddr], before: &GateImage) -> GateImage {
    let mut image = GateImage::default();
    for listener in listeners.iter().filter(|listener| listener.state == BindState::Bound) {
        let Some(router) = table.routers.iter().find(|router| router.id == listener.router_id) else { continue };
        let Some(policy) = &router.policy.gate else { continue };
        let id = (router.id << 1 | u32::from(listener.protocol == Protocol::Https)) + 1;
        let lowered = lower_policy(id, policy, router.policy.accept_proxy, before, &mut image);
        for ip in reachable(listener.address, local) {
            image.policies.insert((ip, listener.address.port()), lowered);
            // Whoever has malformed headers: they are observed only if every listener at the address only observes.
            let of_address = image.policies.entry((ip, 0)).or_insert(GatePolicy {
                id,
                flags: GATE_OBSERVE,
                ..GatePolicy::default()
            });
            of_address.flags &= lowered.flags;
        }
    }
    image
}

/// The kernel form of a policy. Behind a balancer that sends PROXY headers, the source is the balancer's: nothing that depends
/// on it applies.
fn lower_policy(id: u32, policy: &Policy, has_header: bool, before: &GateImage, image: &mut GateImage) -> GatePolicy {
    let flags = [
        (policy.observes, GATE_OBSERVE),
        (policy.rejects_fragments, GATE_NO_FRAGMENTS),
        (policy.rejects_options, GATE_NO_OPTIONS),
    ];
    let flags = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).sum();
    let lists = (!has_header).then_some(policy);
    let deny = lists.map(|policy| &policy.deny).filter(|list| !list.is_empty());
    let (deny, allow) = (deny, lists.and_then(|policy| policy.allow.as_ref()));
    let mut list = |list: Option<&Arc<[IpNet]>>| list.map_or(0, |list| image.list(list, before));
    let (deny, allow) = (list(deny), list(allow));
    let source = policy.source_rate.filter(|_| !has_header);
    GatePolicy {
        listener_interval: policy.listener_rate.map_or(0, |rate| nanoseconds(rate.interval) << 4),
        listener_burst: policy.listener_rate.map_or(1, |rate| rate.burst),
        id,
        deny,
        allow,
        source_interval: source
            .map_or(0, |rate| u32::try_from(nanoseconds(rate.interval) >> 8).unwrap_or(u32::MAX).max(1)),
        source_burst: source.map_or(1, |rate| rate.burst),
        flags,
        v4_bits: policy.v4_bits,
        v6_bits: policy.v6_bits,
        pad: [0; 2],
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX >> 4)
}

/// Writes to the gate's maps. Every change is idempotent.
pub trait GateWrites {
    /// Adds networks to a list.
    ///
    /// # Errors
    /// The system call's; `ENOSPC` for a full map.
    fn add(&mut self, list: u32, nets: &[IpNet]) -> io::Result<()>;
    /// Removes networks of a list.
    ///
    /// # Errors
    /// The system call's.
    fn remove(&mut self, list: u32, nets: &[IpNet]) -> io::Result<()>;
    /// Writes a policy, and creates its token bucket if there is none.
    ///
    /// # Errors
    /// The system call's.
    fn put(&mut self, listener: (IpAddr, u16), policy: &GatePolicy) -> io::Result<()>;
    /// Removes a policy.
    ///
    /// # Errors
    /// The system call's.
    fn withdraw(&mut self, listener: (IpAddr, u16)) -> io::Result<()>;
    /// Removes a token bucket.
    ///
    /// # Errors
    /// The system call's.
    fn remove_bucket(&mut self, policy: u32) -> io::Result<()>;
}

/// Writes the difference between `now`, the maps' content, and `wanted`. `now` becomes what the maps hold; what failed is
/// written by the next call.
///
/// # Errors
/// The first failure.
pub fn reconcile(maps: &mut impl GateWrites, now: &mut GateImage, wanted: &GateImage) -> io::Result<()> {
    let mut result = Ok(());
    let mut keep = |done: io::Result<()>| {
        let is_done = done.is_ok();
        result = std::mem::replace(&mut result, Ok(())).and(done);
        is_done
    };
    for (id, list) in &wanted.lists {
        if now.lists.get(id) == Some(list) {
            continue;
        }
        if keep(maps.add(*id, list)) {
            now.lists.insert(*id, Arc::clone(list));
        } else {
            // Part of it is there: it is removed with the lists that are not wanted, or completed.
            let _ = maps.remove(*id, list);
        }
    }
    for (listener, policy) in &wanted.policies {
        let has = |list: u32| list == 0 || now.lists.contains_key(&list);
        let is_new = now.policies.get(listener) != Some(policy);
        if is_new && has(policy.deny) && has(policy.allow) && keep(maps.put(*listener, policy)) {
            now.policies.insert(*listener, *policy);
        }
    }
    let gone: Vec<_> =
        now.policies.keys().filter(|listener| !wanted.policies.contains_key(listener)).copied().collect();
    for listener in gone {
        if keep(maps.withdraw(listener)) {
            now.policies.remove(&listener);
        }
    }
    let used: BTreeSet<u32> = now.policies.values().flat_map(|policy| [policy.deny, policy.allow]).collect();
    let gone: Vec<_> =
        now.lists.keys().filter(|id| !wanted.lists.contains_key(id) && !used.contains(id)).copied().collect();
    for id in gone {
        if now.lists.get(&id).is_some_and(|list| keep(maps.remove(id, list))) {
            now.lists.remove(&id);
        }
    }
    result
}

/// Removes the token buckets of policies that are gone.
///
/// # Errors
/// The first failure.
pub fn remove_buckets(maps: &mut impl GateWrites, before: &GateImage, now: &GateImage) -> io::Result<()> {
    before.buckets().difference(&now.buckets()).try_for_each(|policy| maps.remove_bucket(*policy))
}

/// The policy that decides packets to a listener.
pub fn policy_of(image: &GateImage, listener: SocketAddr) -> Option<&GatePolicy> {
    image.policies.get(&(listener.ip(), listener.port()))
}

#[cfg(test)]
mod tests;
