//! Paths of inclusion as keys of maps: compared by the names of routes, without copies of these.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};

use router_model::kind::Kind;
use router_model::object::ObjectKey;

use crate::gateway::inclusion::types::Level;

/// The routes and rules of an effective rule, from the root down.
#[derive(Clone, Copy)]
pub struct RulePath<'e>(pub &'e [Level]);

/// The same without the rule of the last route: a path to that route.
#[derive(Clone, Copy)]
struct RoutePath<'e>(&'e [Level]);

/// Numbers of paths, in the order in which rules are numbered.
pub struct Paths<'e> {
    /// How many paths lead to a route.
    counts: HashMap<(Kind, &'e ObjectKey), usize>,
    /// For each path to a route, its numbers among the paths to that route: one, or as many as a rule of it has
    /// outcomes.
    numbers: HashMap<RoutePath<'e>, Vec<usize>>,
}

impl<'e> Paths<'e> {
    /// No paths, with room for this many.
    pub fn with_capacity(paths: usize) -> Self {
        Paths { counts: HashMap::with_capacity(paths), numbers: HashMap::with_capacity(paths) }
    }

    /// The number of a rule's path, which ends at `leaf`, among those to its route. A rule that is already numbered for
    /// a path, with `others` other outcomes, repeats the path.
    pub fn number(&mut self, levels: &'e [Level], leaf: &'e Level, others: usize) -> usize {
        let numbers = self.numbers.entry(RoutePath(levels)).or_insert_with(|| Vec::with_capacity(1));
        if let Some(number) = numbers.get(others) {
            return *number;
        }
        let count = self.counts.entry((leaf.route.kind, &leaf.route.meta.key)).or_default();
        let number = *count;
        *count += 1;
        numbers.push(number);
        number
    }
}

impl<'e> RulePath<'e> {
    fn steps(self) -> impl Iterator<Item = (Kind, &'e ObjectKey, usize)> {
        self.0.iter().map(|level| (level.route.kind, &level.route.meta.key, level.rule))
    }
}

impl<'e> RoutePath<'e> {
    fn parts(self) -> (Option<(Kind, &'e ObjectKey)>, RulePath<'e>) {
        let (last, above) = self.0.split_last().map_or((None, &[][..]), |(last, above)| (Some(last), above));
        (last.map(|last| (last.route.kind, &last.route.meta.key)), RulePath(above))
    }
}

impl PartialEq for RulePath<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.steps().eq(other.steps())
    }
}

impl Eq for RulePath<'_> {}

impl Hash for RulePath<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.len().hash(state);
        self.steps().for_each(|step| step.hash(state));
    }
}

impl PartialEq for RoutePath<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for RoutePath<'_> {}

impl Hash for RoutePath<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use router_api::object::Object;
    use router_api::testing::good;
    use serde_json::json;

    use super::*;

    fn levels(path: &[(&str, usize)]) -> Vec<Level> {
        let level = |(name, rule): &(&str, usize)| {
            let route = json!({
                "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
                "metadata": { "namespace": "shop", "name": name }, "spec": {},
            });
            let Object::HttpRoute(route) = good(route) else { unreachable!("it is an HTTPRoute") };
            Level { route, rule: *rule, hosts: Arc::default() }
        };
        path.iter().map(level).collect()
    }

    #[test]
    fn each_path_to_a_route_has_a_number_that_its_rules_share() {
        let rules = [
            (vec![("top", 0), ("leaf", 0)], 0, 0),
            (vec![("top", 0), ("leaf", 1)], 0, 0),
            (vec![("top", 1), ("leaf", 0)], 0, 1),
            // The same path and rule with another outcome.
            (vec![("top", 0), ("leaf", 0)], 1, 2),
            (vec![("top", 0), ("leaf", 1)], 1, 2),
            (vec![("top", 1), ("leaf", 1)], 0, 1),
            (vec![("leaf", 0)], 0, 3),
            (vec![("top", 0)], 0, 0),
        ];
        let levels = rules.map(|(path, others, number)| (levels(&path), others, number));
        let mut paths = Paths::with_capacity(levels.len());
        for (levels, others, number) in &levels {
            let got = paths.number(levels, levels.last().unwrap(), *others);
            assert_eq!(got, *number, "{:?}", RulePath(levels).steps().last());
        }
    }

    #[test]
    fn paths_are_equal_by_the_names_of_their_routes() {
        let (one, same, other) =
            (levels(&[("a", 0), ("b", 1)]), levels(&[("a", 0), ("b", 1)]), levels(&[("a", 0), ("b", 2)]));
        assert!(RulePath(&one) == RulePath(&same) && RulePath(&one) != RulePath(&other));
        assert!(RoutePath(&one) == RoutePath(&other) && RoutePath(&one) != RoutePath(&one[..1]));
    }
}
