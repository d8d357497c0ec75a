//! Intersection of hostnames of listeners and routes (Gateway API's documentation, "Hostnames"), and their specificity.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt;

use router_model::names::{HostMatch, Hostname};

/// A hostname of a listener or a route.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HostPattern {
    /// Every name: no hostname is set.
    Any,
    /// `*.` before this domain: one label or more, never the domain itself.
    Suffix(Hostname),
    /// This name.
    Exact(Hostname),
}

impl HostPattern {
    /// Whether this pattern matches every name that the other matches.
    pub fn covers(&self, other: &HostPattern) -> bool {
        match (self, other) {
            (HostPattern::Any, _) => true,
            (HostPattern::Exact(own), HostPattern::Exact(name)) => own == name,
            (HostPattern::Suffix(domain), HostPattern::Exact(name)) => is_below(name, domain),
            (HostPattern::Suffix(domain), HostPattern::Suffix(other)) => domain == other || is_below(other, domain),
            _ => false,
        }
    }

    /// The pattern of the names that both match: always one of the two, as patterns are nested or disjoint.
    pub fn intersect(&self, other: &HostPattern) -> Option<HostPattern> {
        if self.covers(other) { Some(other.clone()) } else { other.covers(self).then(|| self.clone()) }
    }

    /// Sort key among patterns that match a common name: the most specific sorts first.
    pub fn specificity(&self) -> Specificity {
        match self {
            HostPattern::Exact(name) => Specificity(0, Reverse(name.as_str().len())),
            HostPattern::Suffix(domain) => Specificity(1, Reverse(domain.as_str().len())),
            HostPattern::Any => Specificity(2, Reverse(0)),
        }
    }

    /// The [`HostMatch`] of a virtual host with this pattern.
    pub fn to_match(&self) -> HostMatch {
        match self {
            HostPattern::Exact(name) => HostMatch::Exact(name.clone()),
            HostPattern::Suffix(domain) => HostMatch::Suffix(domain.clone()),
            HostPattern::Any => HostMatch::Any,
        }
    }

    /// The pattern of a host; `None` for a wildcard of one label, which no pattern is.
    pub fn of_match(host: &HostMatch) -> Option<Self> {
        match host {
            HostMatch::Exact(name) => Some(HostPattern::Exact(name.clone())),
            HostMatch::Suffix(domain) => Some(HostPattern::Suffix(domain.clone())),
            HostMatch::Any => Some(HostPattern::Any),
            HostMatch::Wildcard(_) => None,
        }
    }

    /// This pattern and all that cover it, the most specific first, up to [`HostPattern::Any`].
    pub fn and_wider(&self) -> Vec<HostPattern> {
        let mut wider = vec![self.clone()];
        if let HostPattern::Exact(name) | HostPattern::Suffix(name) = self {
            wider.extend(name.domains().filter_map(|domain| Hostname::parse(domain).ok()).map(HostPattern::Suffix));
            wider.push(HostPattern::Any);
        }
        wider
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_match().fmt(f)
    }
}

/// See [`HostPattern::specificity`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Specificity(u8, Reverse<usize>);

/// Whether a name is a domain with one label or more before it.
fn is_below(name: &Hostname, domain: &Hostname) -> bool {
    let labels = name.as_str().strip_suffix(domain.as_str());
    labels.is_some_and(|labels| labels.len() > 1 && labels.ends_with('.'))
}

/// A set of patterns with a test for overlap. A test costs the logarithm of their number.
#[derive(Clone, Debug, Default)]
pub struct PatternSet {
    /// See [`Hostname::reversed`]: names below a domain begin with its text.
    exact: BTreeSet<String>,
    suffix: BTreeSet<String>,
    any: bool,
}

impl PatternSet {
    /// Adds a pattern.
    pub fn insert(&mut self, pattern: &HostPattern) {
        match pattern {
            HostPattern::Exact(name) => self.exact.insert(name.reversed()),
            HostPattern::Suffix(domain) => self.suffix.insert(domain.reversed()),
            HostPattern::Any => !std::mem::replace(&mut self.any, true),
        };
    }

    /// Whether any pattern of the set has a name in common with this one.
    pub fn meets(&self, pattern: &HostPattern) -> bool {
        let begins = |set: &BTreeSet<String>, text: &str, strictly: bool| {
            let mut from = set.range(text.to_owned()..).take_while(|known| known.starts_with(text));
            from.any(|known| !strictly || known.len() > text.len())
        };
        let covers = |text: &str, strictly: bool| {
            let ends = text.match_indices('.').map(|(at, _)| at + 1);
            ends.filter(|end| !strictly || *end < text.len())
                .any(|end| text.get(..end).is_some_and(|domain| self.suffix.contains(domain)))
        };
        self.any
            || match pattern {
                HostPattern::Any => !self.exact.is_empty() || !self.suffix.is_empty(),
                HostPattern::Exact(name) => {
                    let text = name.reversed();
                    self.exact.contains(&text) || covers(&text, true)
                }
                HostPattern::Suffix(domain) => {
                    let text = domain.reversed();
                    begins(&self.exact, &text, true) || begins(&self.suffix, &text, false) || covers(&text, false)
                }
            }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pattern(text: &str) -> HostPattern {
        let name = |text| Hostname::parse(text).unwrap();
        match text.strip_prefix("*.") {
            Some(domain) => HostPattern::Suffix(name(domain)),
            None if text == "*" => HostPattern::Any,
            None => HostPattern::Exact(name(text)),
        }
    }

    #[test]
    fn patterns_meet_as_the_api_has_it() {
        let cases = [
            ("*", "*", Some("*")),
            ("*", "*.a.test", Some("*.a.test")),
            ("a.test", "*", Some("a.test")),
            ("a.test", "a.test", Some("a.test")),
            ("a.test", "b.test", None),
            ("*.a.test", "x.a.test", Some("x.a.test")),
            ("*.a.test", "y.x.a.test", Some("y.x.a.test")),
            ("*.a.test", "a.test", None),
            ("*.a.test", "xa.test", None),
            ("*.a.test", "*.x.a.test", Some("*.x.a.test")),
            ("*.a.test", "*.a.test", Some("*.a.test")),
            ("*.a.test", "*.b.test", None),
        ];
        for (one, other, both) in cases {
            let both = both.map(pattern);
            assert_eq!(pattern(one).intersect(&pattern(other)), both, "{one} {other}");
            assert_eq!(pattern(other).intersect(&pattern(one)), both, "{other} {one}");
        }
    }

    #[test]
    fn a_pattern_is_that_of_its_host() {
        for one in ["*", "*.a.test", "a.test"].map(pattern) {
            assert_eq!(HostPattern::of_match(&one.to_match()), Some(one));
        }
        assert_eq!(HostPattern::of_match(&HostMatch::Wildcard(Hostname::parse("a.test").unwrap())), None);
    }

    #[test]
    fn wider_patterns_are_ordered_by_specificity() {
        let wider = pattern("x.a.test").and_wider();
        assert_eq!(wider, ["x.a.test", "*.a.test", "*.test", "*"].map(pattern));
        assert!(wider.is_sorted_by_key(HostPattern::specificity));
        assert_eq!(pattern("*.a.test").and_wider(), ["*.a.test", "*.test", "*"].map(pattern));
    }

    fn patterns() -> impl Strategy<Value = HostPattern> {
        (prop_oneof![Just(""), Just("*.")], proptest::collection::vec("[ab]{1,2}", 0..4)).prop_map(|(star, labels)| {
            match labels.is_empty() {
                true => HostPattern::Any,
                false => pattern(&format!("{star}{}", labels.join("."))),
            }
        })
    }

    proptest! {
        #[test]
        fn a_set_meets_what_one_of_it_meets(known in proptest::collection::vec(patterns(), 0..6), asked in patterns()) {
            let mut set = PatternSet::default();
            known.iter().for_each(|pattern| set.insert(pattern));
            prop_assert_eq!(set.meets(&asked), known.iter().any(|pattern| pattern.intersect(&asked).is_some()));
        }

        #[test]
        fn wider_ones_are_those_that_cover(one in patterns(), other in patterns()) {
            prop_assert_eq!(one.and_wider().contains(&other), other.covers(&one));
        }
    }
}
