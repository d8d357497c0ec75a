//! Order of the rules of a listener. Rules are compared level by level from the listener down: by specificity of the
//! hostname, then by the API's order of matches, then by age. So a child never takes a request from a more specific
//! rule of its parent, however specific the child's own match is. Of equal rules of one route, a plain rule precedes a
//! slot, unless a child of the slot has a narrower hostname.

use std::collections::HashMap;

use router_table::host_pattern::{HostPattern, Specificity};

use crate::gateway::inclusion::level_key::MatchRank;
use crate::gateway::inclusion::types::{Alternative, EffectiveRule, RuleOutcome};

/// Rules of one listener by host.
#[derive(Debug)]
pub struct Precedence<'r> {
    rules: Vec<&'r EffectiveRule>,
    by_host: HashMap<&'r HostPattern, Vec<usize>>,
}

impl<'r> Precedence<'r> {
    /// Indexes the rules of all routes of a listener.
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

    /// The rules that serve a host, in order: the first match decides. `host` may be a name or a wildcard; rules of
    /// hosts that cover it apply.
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

/// For each level how specific its host is, the rank of its match, how specific the host of the level below is,
/// whether it is a slot, and the order within its route. One after the other, so the order is total.
type RuleOrder<'a> = Vec<(Option<Specificity>, &'a MatchRank, Option<Specificity>, bool, (usize, usize))>;

fn place<'a>(hosts: &[Option<Specificity>], outcome: RuleOutcome, alternative: &'a Alternative) -> RuleOrder<'a> {
    let levels = hosts.iter().zip(&alternative.order).enumerate();
    let place = levels.map(|(i, (host, key))| {
        let below = hosts.get(i + 1);
        let is_slot = below.is_some() || outcome != RuleOutcome::Serve;
        (*host, &key.rank, *below.unwrap_or(host), is_slot, key.position)
    });
    place.collect()
}

/// The fallback of a slot comes after all of the slot's children.
fn compare(one: &RuleOrder<'_>, other: &RuleOrder<'_>) -> std::cmp::Ordering {
    let levels = one.iter().zip(other).map(|(one, other)| one.cmp(other));
    levels.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then).then(other.len().cmp(&one.len()))
}

/// The most specific of these hosts that covers a host; `wider` lists all that cover it, the most specific first.
fn closest(hosts: &[HostPattern], wider: &[HostPattern]) -> Option<Specificity> {
    wider.iter().find(|pattern| hosts.contains(pattern)).map(HostPattern::specificity)
}
