//! Routes by place and hostname: those that cover a hostname, and those below one, are found without a scan.

use router_model::object::ObjectRef;
use router_table::host_pattern::HostPattern;

use crate::gateway::incremental::objects_by::ObjectsBy;

/// A place ([`crate::gateway::base::Base::place`]), the labels of a name from the last to the first, each with a dot behind
/// it, and the pattern itself. Patterns below a domain begin with its text.
type Key = (usize, Box<str>, HostPattern);

/// Routes by place and hostname; see the module.
#[derive(Debug, Default)]
pub struct PatternIndex(ObjectsBy<Key>);

impl PatternIndex {
    /// Adds a route.
    pub fn insert(&mut self, place: usize, pattern: &HostPattern, route: &ObjectRef) {
        self.0.insert(key(place, pattern), route);
    }

    /// Removes a route.
    pub fn remove(&mut self, place: usize, pattern: &HostPattern, route: &ObjectRef) {
        self.0.remove(&key(place, pattern), route);
    }

    /// The routes of exactly this pattern.
    pub fn exactly(&self, place: usize, pattern: &HostPattern) -> &[ObjectRef] {
        self.0.get(&key(place, pattern))
    }

    /// The routes of this pattern and of those that cover it.
    pub fn covering(&self, place: usize, pattern: &HostPattern) -> impl Iterator<Item = &ObjectRef> {
        pattern.and_wider().into_iter().flat_map(move |wider| self.exactly(place, &wider))
    }

    /// This pattern and those that it covers, with their routes; only such that have any.
    pub fn below(&self, place: usize, pattern: &HostPattern) -> impl Iterator<Item = (&HostPattern, &[ObjectRef])> {
        let text = text(pattern);
        // `Any` is the least pattern of a text.
        let all = self.0.range((place, text.clone(), HostPattern::Any)..);
        let is_name = matches!(pattern, HostPattern::Exact(_));
        let all = all.take_while(move |((at, known, _), _)| {
            *at == place && if is_name { **known == *text } else { known.starts_with(&*text) }
        });
        let pattern = pattern.clone();
        all.map(|((.., known), routes)| (known, routes)).filter(move |(known, _)| pattern.covers(known))
    }
}

fn key(place: usize, pattern: &HostPattern) -> Key {
    (place, text(pattern), pattern.clone())
}

fn text(pattern: &HostPattern) -> Box<str> {
    match pattern {
        HostPattern::Any => Box::default(),
        HostPattern::Suffix(name) | HostPattern::Exact(name) => {
            let mut text = String::with_capacity(name.as_str().len() + 1);
            name.as_str().rsplit('.').flat_map(|label| [label, "."]).for_each(|part| text.push_str(part));
            text.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use proptest::sample::subsequence;
    use router_model::kind::Kind;
    use router_model::names::Hostname;
    use router_model::object::ObjectKey;

    use super::*;

    fn pattern(text: &str) -> HostPattern {
        let name = |text| Hostname::parse(text).unwrap();
        match text.strip_prefix("*.") {
            Some(domain) => HostPattern::Suffix(name(domain)),
            None if text == "*" => HostPattern::Any,
            None => HostPattern::Exact(name(text)),
        }
    }

    const ALL: [&str; 9] =
        ["*", "*.test", "test", "*.x.test", "x.test", "a.x.test", "*.a.x.test", "b.a.x.test", "ax.test"];

    proptest! {
        #[test]
        fn what_covers_and_what_is_below_is_what_patterns_say(known in subsequence(ALL.to_vec(), 0..9)) {
            let route = |text: &str| ObjectRef { kind: Kind::HttpRoute, key: ObjectKey::new("shop", text) };
            let mut index = PatternIndex::default();
            for text in &known {
                index.insert(1, &pattern(text), &route(text));
                index.insert(0, &pattern("*"), &route("elsewhere"));
                index.insert(2, &pattern("*"), &route("elsewhere"));
            }
            for asked in ALL {
                let asked = pattern(asked);
                let covering: BTreeSet<_> = index.covering(1, &asked).cloned().collect();
                let expected = known.iter().filter(|text| pattern(text).covers(&asked)).map(|text| route(text));
                prop_assert_eq!(covering, expected.collect());
                let below: BTreeSet<_> = index.below(1, &asked).flat_map(|(_, routes)| routes).cloned().collect();
                let expected = known.iter().filter(|text| asked.covers(&pattern(text))).map(|text| route(text));
                prop_assert_eq!(below, expected.collect());
            }
            known.iter().for_each(|text| index.remove(1, &pattern(text), &route(text)));
            prop_assert_eq!(index.below(1, &HostPattern::Any).count(), 0);
        }
    }
}
