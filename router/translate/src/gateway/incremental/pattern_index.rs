//! Index of routes by router and host pattern: finds the patterns that cover a host, or that a pattern covers, without
//! a scan.

use router_model::object::ObjectRef;
use router_table::host_pattern::HostPattern;

use crate::objects_by::ObjectsBy;

/// The router ([`crate::gateway::base::GatewayBase::router_index`]), the labels of the name in reverse order, each
/// followed by a dot, and the pattern. So the text of a domain is a prefix of the texts of its subdomains.
type Key = (usize, Box<str>, HostPattern);

/// Routes by router and host pattern; see the module.
#[derive(Debug, Default)]
pub struct PatternIndex(ObjectsBy<Key>);

impl PatternIndex {
    /// Adds a route.
    pub fn insert(&mut self, router_index: usize, pattern: &HostPattern, route: &ObjectRef) {
        self.0.insert(key(router_index, pattern), route);
    }

    /// See [`ObjectsBy::compact`].
    pub fn compact(&mut self) {
        self.0.compact();
    }

    /// Removes a route.
    pub fn remove(&mut self, router_index: usize, pattern: &HostPattern, route: &ObjectRef) {
        self.0.remove(&key(router_index, pattern), route);
    }

    /// The routes of exactly this pattern.
    pub fn exactly(&self, router_index: usize, pattern: &HostPattern) -> &[ObjectRef] {
        self.0.get(&key(router_index, pattern))
    }

    /// The routes of this pattern and of the patterns that cover it.
    pub fn covering(&self, router_index: usize, pattern: &HostPattern) -> impl Iterator<Item = &ObjectRef> {
        pattern.and_wider().into_iter().flat_map(move |wider| self.exactly(router_index, &wider))
    }

    /// This pattern and those that it covers, with their routes; patterns without routes are left out.
    pub fn below(
        &self,
        router_index: usize,
        pattern: &HostPattern,
    ) -> impl Iterator<Item = (&HostPattern, &[ObjectRef])> {
        let text = text(pattern);
        // `Any` is the least pattern of a text.
        let all = self.0.range((router_index, text.clone(), HostPattern::Any)..);
        let is_name = matches!(pattern, HostPattern::Exact(_));
        let all = all.take_while(move |((at, known, _), _)| {
            *at == router_index && if is_name { **known == *text } else { known.starts_with(&*text) }
        });
        let pattern = pattern.clone();
        all.map(|((.., known), routes)| (known, routes)).filter(move |(known, _)| pattern.covers(known))
    }
}

fn key(router_index: usize, pattern: &HostPattern) -> Key {
    (router_index, text(pattern), pattern.clone())
}

fn text(pattern: &HostPattern) -> Box<str> {
    match pattern {
        HostPattern::Any => Box::default(),
        HostPattern::Suffix(name) | HostPattern::Exact(name) => name.reversed().into(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use proptest::sample::subsequence;
    use router_model::kind::Kind;
    use router_model::object::ObjectKey;

    use super::*;
    use crate::gateway::pattern_map::tests::{ALL, pattern};

    proptest! {
        #[test]
        fn covering_and_below_agree_with_patterns(known in subsequence(ALL.to_vec(), 0..9)) {
            let route = |text: &str| ObjectRef { kind: Kind::HttpRoute, key: ObjectKey::new("shop", text) };
            let mut index = PatternIndex::default();
            for text in &known {
                index.insert(1, &pattern(text), &route(text));
                index.insert(0, &pattern("*"), &route("elsewhere"));
                index.insert(2, &pattern("*"), &route("elsewhere"));
            }
            for text in ALL {
                let host = pattern(text);
                let covering: BTreeSet<_> = index.covering(1, &host).cloned().collect();
                let expected = known.iter().filter(|text| pattern(text).covers(&host)).map(|text| route(text));
                prop_assert_eq!(covering, expected.collect());
                let below: BTreeSet<_> = index.below(1, &host).flat_map(|(_, routes)| routes).cloned().collect();
                let expected = known.iter().filter(|text| host.covers(&pattern(text))).map(|text| route(text));
                prop_assert_eq!(below, expected.collect());
            }
            known.iter().for_each(|text| index.remove(1, &pattern(text), &route(text)));
            prop_assert_eq!(index.below(1, &HostPattern::Any).count(), 0);
        }
    }
}
