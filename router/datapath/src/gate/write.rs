//! The order of writes to the gate's maps.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use router_common::maps::{GatePolicy, MAX_GATE_NETS};

use super::image::GateImage;

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
        if now.networks() + list.len() > MAX_GATE_NETS {
            // Not even tried: of millions of writes, all would be undone.
            keep(Err(io::Error::other(format!(
                "a list of {} networks does not fit beside the {} that are in force: at most {MAX_GATE_NETS} do",
                list.len(),
                now.networks()
            ))));
        } else if keep(maps.add(*id, list)) {
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
