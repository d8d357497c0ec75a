//! Numbers of an object's routes (`RouteId::part`), which are unique over all hosts of the object.
//!
//! On the host with the lowest hash an object's routes are numbered from 0, on another one from the hash of that host
//! or from the next free number. So the numbers depend on the set of hosts alone, not on their order of arrival.
//!
//! Limit: a new host changes the numbers on hosts whose hash follows closely, and, if its own hash is the lowest, on
//! the host that had the lowest before. A root of any namespace that delegates to the object can add such a host.
//! Routes with other numbers are other routes, whose counters begin anew; affinity cookies do not depend on numbers.

use std::collections::BTreeMap;

use router_model::names::HostMatch;
use router_model::object::ObjectRef;

use crate::fnv1a::fnv1a;

/// The numbers of an object's routes on one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The first number.
    pub first: u32,
    /// Number of routes.
    pub count: u32,
}

/// The numbers of all objects' routes.
#[derive(Debug, Default)]
pub struct Numbers(BTreeMap<ObjectRef, Vec<Span>>);

/// A host of an object: ordered by hash, then by host.
#[derive(Debug)]
struct Span {
    hash: u32,
    host: HostMatch,
    parts: Parts,
}

impl Numbers {
    /// The first number of an object's routes on a host; if the host is new, the one that it would get.
    pub fn first(&self, object: &ObjectRef, host: &HostMatch) -> u32 {
        let Some(spans) = self.0.get(object) else { return 0 };
        match place(spans, host) {
            Ok(at) => spans.get(at).map_or(0, |span| span.parts.first),
            Err(at) => first(spans.get(..at).unwrap_or_default(), hash(host)),
        }
    }

    /// Sets the number of an object's routes on a host. Returns the hosts, this one included, on which its routes now
    /// have other numbers.
    pub fn set(&mut self, object: &ObjectRef, host: &HostMatch, count: u32) -> Vec<HostMatch> {
        let spans = self.0.entry(object.clone()).or_default();
        let from = match (place(spans, host), count) {
            (Ok(at), 0) => {
                spans.remove(at);
                at
            }
            (Ok(at), _) => {
                spans.get_mut(at).into_iter().for_each(|span| span.parts.count = count);
                at
            }
            (Err(at), 0) => at,
            (Err(at), _) => {
                let parts = Parts { first: first(spans.get(..at).unwrap_or_default(), hash(host)), count };
                spans.insert(at, Span { hash: hash(host), host: host.clone(), parts });
                at + 1
            }
        };
        let mut moved = Vec::new();
        for at in from..spans.len() {
            let (before, rest) = spans.split_at_mut(at);
            let Some(span) = rest.first_mut() else { break };
            let first = first(before, span.hash);
            if first != span.parts.first {
                span.parts.first = first;
                moved.push(span.host.clone());
            } else if span.host != *host {
                // Later spans depend on this one alone, and it did not move.
                break;
            }
        }
        if spans.is_empty() {
            self.0.remove(object);
        }
        moved
    }
}

/// The first number for a host with this hash that follows these hosts.
fn first(before: &[Span], hash: u32) -> u32 {
    before.last().map_or(0, |last| hash.max(last.parts.first.saturating_add(last.parts.count)))
}

fn place(spans: &[Span], host: &HostMatch) -> Result<usize, usize> {
    let hash = hash(host);
    spans.binary_search_by(|span| (span.hash, &span.host).cmp(&(hash, host)))
}

/// A hash in the lower half of the numbers, so that enough numbers follow the greatest hash.
fn hash(host: &HostMatch) -> u32 {
    fnv1a(host.to_string().as_bytes()) >> 1
}

#[cfg(test)]
mod tests;
