//! Values by hostname: those of the patterns that cover a host are found without a scan.

use std::collections::HashMap;

use router_model::names::Hostname;
use router_table::host_pattern::HostPattern;

/// Values by hostname; see the module.
#[derive(Clone, Debug)]
pub struct PatternMap<V> {
    exact: HashMap<Hostname, V>,
    suffix: HashMap<Hostname, V>,
    any: Option<V>,
}

impl<V> Default for PatternMap<V> {
    fn default() -> Self {
        PatternMap { exact: HashMap::new(), suffix: HashMap::new(), any: None }
    }
}

impl<V> PatternMap<V> {
    /// An empty map with room for this many exact names.
    pub fn with_capacity(names: usize) -> Self {
        PatternMap { exact: HashMap::with_capacity(names), ..PatternMap::default() }
    }

    /// The value of exactly this pattern.
    pub fn get(&self, pattern: &HostPattern) -> Option<&V> {
        match pattern {
            HostPattern::Exact(name) => self.exact.get(name),
            HostPattern::Suffix(domain) => self.suffix.get(domain),
            HostPattern::Any => self.any.as_ref(),
        }
    }

    /// The value of exactly this pattern; `value` is inserted if there is none.
    pub fn or_insert(&mut self, pattern: &HostPattern, value: V) -> &mut V {
        match pattern {
            HostPattern::Exact(name) => self.exact.entry(name.clone()).or_insert(value),
            HostPattern::Suffix(domain) => self.suffix.entry(domain.clone()).or_insert(value),
            HostPattern::Any => self.any.get_or_insert(value),
        }
    }

    /// The values of this pattern and of those that cover it, the most specific first.
    pub fn covering(&self, pattern: &HostPattern) -> impl Iterator<Item = &V> {
        let name = match pattern {
            HostPattern::Exact(name) | HostPattern::Suffix(name) => Some(name),
            HostPattern::Any => None,
        };
        // Names are only split if there is a suffix to be found.
        let domains = name.filter(|_| !self.suffix.is_empty()).into_iter().flat_map(Hostname::domains);
        let domains = domains.filter_map(|domain| self.suffix.get(domain));
        self.get(pattern).into_iter().chain(domains).chain(self.any.as_ref().filter(|_| name.is_some()))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;
    use proptest::sample::subsequence;

    use super::*;

    /// Patterns of which some cover others.
    pub const ALL: [&str; 9] =
        ["*", "*.test", "test", "*.x.test", "x.test", "a.x.test", "*.a.x.test", "b.a.x.test", "ax.test"];

    /// A pattern as the API writes it; `*` is any host.
    pub fn pattern(text: &str) -> HostPattern {
        let name = |text| Hostname::parse(text).unwrap();
        match text.strip_prefix("*.") {
            Some(domain) => HostPattern::Suffix(name(domain)),
            None if text == "*" => HostPattern::Any,
            None => HostPattern::Exact(name(text)),
        }
    }

    proptest! {
        #[test]
        fn what_covers_is_what_patterns_say(known in subsequence(ALL.to_vec(), 0..9)) {
            let mut map = PatternMap::default();
            for text in &known {
                map.or_insert(&pattern(text), pattern(text));
            }
            for asked in ALL.map(pattern) {
                let mut expected: Vec<_> = known.iter().map(|text| pattern(text)).filter(|it| it.covers(&asked)).collect();
                expected.sort_by_key(HostPattern::specificity);
                prop_assert_eq!(map.covering(&asked).cloned().collect::<Vec<_>>(), expected);
                prop_assert_eq!(map.get(&asked).is_some(), known.iter().any(|text| pattern(text) == asked));
            }
        }
    }
}
