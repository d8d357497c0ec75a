//! Which of several rules a request belongs to. Compared level by level from the listener down, first how specific the
//! hostname is, then the API's order of matches, then age: so a child never takes what a more specific rule of its
//! parent would take, however specific it is itself. Of equal rules of one route a plain one comes before a slot, unless
//! a child there has a narrower hostname.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::{Alternative, EffectiveRule, Outcome};
use router_api::gateway_api::types::GatewayRoute;
use router_model::object::{Created, ObjectKey};
use router_table::host_pattern::HostPattern;
use router_table::host_pattern::Specificity;
use router_table::matchers::{PathMatcher, RequestMatcher};

/// The place of a match among those of its level, hostnames aside; smaller comes first. Exact paths, then regular
/// expressions, then prefixes, the longer first; a method; most headers; most query parameters; then the older route
/// (one without a time is the youngest), its namespace and name; and at last the order within it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelKey {
    worth: Worth,
    position: (usize, usize),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Worth {
    path: (u8, Reverse<usize>),
    method: Reverse<bool>,
    headers: Reverse<usize>,
    query: Reverse<usize>,
    route: (Created, ObjectKey),
}

impl LevelKey {
    /// The key of match `alternative` of rule `rule`.
    pub fn new(route: &GatewayRoute, rule: usize, alternative: usize, matcher: &RequestMatcher) -> Self {
        let worth = Worth {
            path: match &matcher.path {
                PathMatcher::Exact(path) => (0, Reverse(path.len())),
                PathMatcher::Regex(regex) => (1, Reverse(regex.as_str().len())),
                PathMatcher::Prefix(path) => (2, Reverse(path.len())),
            },
            method: Reverse(matcher.method.is_some()),
            headers: Reverse(matcher.headers.len()),
            query: Reverse(matcher.query.len()),
            route: (route.meta.created, route.meta.key.clone()),
        };
        LevelKey { worth, position: (rule, alternative) }
    }
}

/// Rules of one listener by host.
#[derive(Debug)]
pub struct Precedence<'r> {
    rules: Vec<&'r EffectiveRule>,
    by_host: HashMap<&'r HostPattern, Vec<usize>>,
}

impl<'r> Precedence<'r> {
    /// Takes the rules of all routes of a listener.
    pub fn new(rules: impl IntoIterator<Item = &'r EffectiveRule>) -> Self {
        let rules: Vec<_> = rules.into_iter().collect();
        let mut by_host: HashMap<_, Vec<_>> = HashMap::new();
        for (i, rule) in rules.iter().enumerate() {
            for host in rule.hosts() {
                by_host.entry(host).or_default().push(i);
            }
        }
        Precedence { rules, by_host }
    }

    /// What serves a host, in order: the first that matches a request is the one. A host may be a name or a wildcard; it
    /// is served by what covers it.
    pub fn serving(&self, host: &HostPattern) -> Vec<(&'r EffectiveRule, &'r Alternative)> {
        let wider = host.and_wider();
        let mut found: Vec<usize> = wider.iter().filter_map(|host| self.by_host.get(host)).flatten().copied().collect();
        found.sort_unstable();
        found.dedup();
        let rules = found.into_iter().filter_map(|i| self.rules.get(i).copied());
        let mut serving: Vec<_> = rules
            .flat_map(|rule| {
                let hosts: Vec<_> = rule.levels.iter().map(|level| closest(&level.hosts, &wider)).collect();
                rule.alternatives.iter().map(move |one| (place(&hosts, rule.outcome, one), rule, one))
            })
            .collect();
        serving.sort_by(|(one, ..), (other, ..)| compare(one, other));
        serving.into_iter().map(|(_, rule, alternative)| (rule, alternative)).collect()
    }
}

/// For each level how specific its host is, the worth of its match, how specific the host of the level below is,
/// whether it is a slot, and the order within its route. One after the other, so the order is total.
type Place<'a> = Vec<(Option<Specificity>, &'a Worth, Option<Specificity>, bool, (usize, usize))>;

fn place<'a>(hosts: &[Option<Specificity>], outcome: Outcome, alternative: &'a Alternative) -> Place<'a> {
    let levels = hosts.iter().zip(&alternative.order).enumerate();
    let place = levels.map(|(i, (host, key))| {
        let below = hosts.get(i + 1);
        let is_slot = below.is_some() || outcome != Outcome::Serve;
        (*host, &key.worth, *below.unwrap_or(host), is_slot, key.position)
    });
    place.collect()
}

/// What remains of a slot comes after all of its children.
fn compare(one: &Place<'_>, other: &Place<'_>) -> std::cmp::Ordering {
    let levels = one.iter().zip(other).map(|(one, other)| one.cmp(other));
    levels.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then).then(other.len().cmp(&one.len()))
}

/// The most specific of these hosts that covers a host; `wider` are all that do, the most specific first.
fn closest(hosts: &[HostPattern], wider: &[HostPattern]) -> Option<Specificity> {
    wider.iter().find(|pattern| hosts.contains(pattern)).map(HostPattern::specificity)
}
