//! Numbers of an object's routes (`RouteId::part`), which must differ below all hosts that the object is served on.
//!
//! Below its first host an object's routes are numbered from 0, below another one from the hash of that host, or from the
//! next number that is free. So the numbers follow from the hosts alone, not from the order in which they came, and a new
//! host moves no others but those whose hash is just above.

use std::collections::BTreeMap;

use router_model::names::HostMatch;
use router_model::object::ObjectRef;

use crate::fnv1a::fnv1a;

/// The numbers that the routes of an object have below one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The first one.
    pub first: u32,
    /// How many there are.
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
    /// The first number of an object's routes below a host, as it is or would be.
    pub fn first(&self, object: &ObjectRef, host: &HostMatch) -> u32 {
        let Some(spans) = self.0.get(object) else { return 0 };
        match place(spans, host) {
            Ok(at) => spans.get(at).map_or(0, |span| span.parts.first),
            Err(at) => first(spans.get(..at).unwrap_or_default(), hash(host)),
        }
    }

    /// Takes over how many routes an object has below a host. Returns the hosts, this one included, below which its
    /// routes now have other numbers.
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
                // What comes behind depends on this one alone, which is where it was.
                break;
            }
        }
        if spans.is_empty() {
            self.0.remove(object);
        }
        moved
    }
}

/// The first number behind these hosts for one of this hash.
fn first(before: &[Span], hash: u32) -> u32 {
    before.last().map_or(0, |last| hash.max(last.parts.first.saturating_add(last.parts.count)))
}

fn place(spans: &[Span], host: &HostMatch) -> Result<usize, usize> {
    let hash = hash(host);
    spans.binary_search_by(|span| (span.hash, &span.host).cmp(&(hash, host)))
}

/// In the lower half of the numbers, so that there are enough above the greatest hash.
fn hash(host: &HostMatch) -> u32 {
    fnv1a(host.to_string().as_bytes()) >> 1
}

#[cfg(test)]
mod tests;
