//! The order of writes to the gate's maps.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

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

/// Most networks that are written or removed in one go: some 20 ms of work, after which the kernel path follows other changes.
pub const AT_ONCE: usize = 1 << 13;

/// Time between two parts of a removal. The kernel frees removed networks a grace period later, all at once, and the processor
/// that does handles no packets meanwhile: some 60 ms for what is removed in half a second without a pause.
pub const REMOVAL_PAUSE: Duration = Duration::from_millis(80);

/// What the maps hold.
#[derive(Debug, Default)]
pub struct GateContent {
    /// What packets are decided by.
    pub now: GateImage,
    /// A list that is written or removed in parts; no policy names it.
    partial: Option<PartialList>,
    /// Time to wait before the next part.
    pub pause: Duration,
}

#[derive(Debug)]
struct PartialList {
    id: u32,
    list: Arc<[IpNet]>,
    /// How many of its networks are in the map, from the first one on.
    written: usize,
}

impl GateContent {
    /// Content that was read.
    pub fn of(now: GateImage) -> Self {
        GateContent { now, ..GateContent::default() }
    }

    /// Networks in the map.
    pub fn networks(&self) -> usize {
        self.now.networks() + self.partial.as_ref().map_or(0, |partial| partial.written)
    }

    /// Adds the next networks of a list, at most `left`. If that fails, none of the list is left.
    fn add_part(
        &mut self,
        maps: &mut impl GateWrites,
        (id, list): (u32, &Arc<[IpNet]>),
        left: &mut usize,
    ) -> io::Result<()> {
        let written = self.partial.take().map_or(0, |partial| partial.written);
        let end = list.len().min(written + *left);
        *left -= end - written;
        if let Err(error) = maps.add(id, &list[written..end]) {
            // What remains, if this fails too, the next agent removes.
            let _ = maps.remove(id, &list[..end]);
            return Err(error);
        }
        if end == list.len() {
            self.now.lists.insert(id, Arc::clone(list));
        } else {
            self.partial = Some(PartialList { id, list: Arc::clone(list), written: end });
        }
        Ok(())
    }

    /// Removes the last networks of the partial list, at most `left`.
    fn remove_part(&mut self, maps: &mut impl GateWrites, left: &mut usize) -> io::Result<()> {
        let Some(partial) = &mut self.partial else { return Ok(()) };
        let begin = partial.written.saturating_sub(*left);
        *left -= partial.written - begin;
        self.pause = REMOVAL_PAUSE;
        maps.remove(partial.id, &partial.list[begin..partial.written])?;
        partial.written = begin;
        if begin == 0 {
            self.partial = None;
        }
        Ok(())
    }
}

/// Writes the difference between the maps' content and `wanted`, of lists [`AT_ONCE`] networks; `false` if there is more to
/// write, after [`GateContent::pause`]. What failed is written by the next call.
///
/// # Errors
/// The first failure.
pub fn reconcile(maps: &mut impl GateWrites, content: &mut GateContent, wanted: &GateImage) -> io::Result<bool> {
    let mut left = AT_ONCE;
    content.pause = Duration::ZERO;
    let mut result = Ok(());
    let mut keep = |done: io::Result<()>| {
        let is_done = done.is_ok();
        result = std::mem::replace(&mut result, Ok(())).and(done);
        is_done
    };
    let is_wanted = |partial: &PartialList| wanted.lists.get(&partial.id) == Some(&partial.list);
    if content.partial.as_ref().is_some_and(|partial| !is_wanted(partial)) {
        keep(content.remove_part(maps, &mut left));
    }
    for (id, list) in &wanted.lists {
        // One list after another.
        let waits = left == 0 || content.partial.as_ref().is_some_and(|partial| partial.id != *id);
        if waits || content.now.lists.get(id) == Some(list) {
            continue;
        }
        let others = content.now.networks();
        if others + list.len() > MAX_GATE_NETS {
            // Not even begun: of millions of writes, all would be undone.
            keep(Err(io::Error::other(format!(
                "a list of {} networks does not fit beside the {others} that are in force: at most {MAX_GATE_NETS} do",
                list.len(),
            ))));
        } else {
            keep(content.add_part(maps, (*id, list), &mut left));
        }
    }
    let now = &mut content.now;
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
        if left == 0 || content.partial.is_some() {
            break;
        }
        if let Some(list) = content.now.lists.remove(&id) {
            content.partial = Some(PartialList { id, written: list.len(), list });
            keep(content.remove_part(maps, &mut left));
        }
    }
    result.map(|()| content.partial.is_none() && content.now == *wanted)
}
