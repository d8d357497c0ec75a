//! Orders the rules of a listener. Rules are compared level by level from the listener down: by specificity of the
//! hostname, then by the API's order of matches, then by age. So a child never receives a request that a more specific
//! rule of its parent matches, however specific the child's own match is. Of equal rules of one route, a plain rule
//! precedes a slot, unless a child of the slot has a narrower hostname.

use router_table::host_pattern::{HostPattern, Specificity};

use crate::gateway::inclusion::level_key::MatchRank;
use crate::gateway::inclusion::types::{Alternative, EffectiveRule, RuleOutcome};
use crate::gateway::pattern_map::PatternMap;

/// Rules of one listener by host.
#[derive(Debug)]
pub struct Precedence<'r> {
    rules: Vec<&'r EffectiveRule>,
    by_host: PatternMap<Vec<usize>>,
}

impl<'r> Precedence<'r> {
    /// Indexes the rules of all routes of a listener.
    pub fn new(rules: impl IntoIterator<Item = &'r EffectiveRule>) -> Self {
        let rules: Vec<&EffectiveRule> = rules.into_iter().collect();
        let mut by_host = PatternMap::with_capacity(rules.len());
        for (i, rule) in rules.iter().enumerate() {
            for host in rule.hosts() {
                by_host.or_insert(host, Vec::new()).push(i);
            }
        }
        Precedence { rules, by_host }
    }

    /// The rules that serve a host, in order: the first match decides. `host` may be a name or a wildcard; rules of
    /// hosts that cover it apply.
    pub fn rules_for(&self, host: &HostPattern) -> Vec<(&'r EffectiveRule, &'r Alternative)> {
        let mut found: Vec<usize> = self.by_host.covering(host).flatten().copied().collect();
        found.sort_unstable();
        found.dedup();
        let rules = found.into_iter().filter_map(|i| self.rules.get(i).copied());
        // The specificities of all levels of a rule follow each other.
        let (mut hosts, mut ordered) = (Vec::new(), Vec::new());
        for rule in rules {
            let first = hosts.len();
            hosts.extend(rule.levels.iter().map(|level| closest(&level.hosts, host)));
            // Positions are read once: other threads may set them during the sort.
            ordered.extend(rule.alternatives.iter().map(|one| (one.position.get().copied(), first, (rule, one))));
        }
        // Most of the rules of a large host were in order before; then the sort is linear.
        ordered.sort_by_key(|(position, ..)| *position);
        ordered.sort_by(|(_, one_first, one), (_, other_first, other)| {
            let hosts_of = |first: usize| hosts.get(first..).unwrap_or_default();
            compare((hosts_of(*one_first), *one), (hosts_of(*other_first), *other))
        });
        let ordered = ordered.into_iter().map(|(.., served)| served).enumerate();
        let served = ordered.map(|(i, (rule, alternative))| {
            alternative.position.get_or_init(|| i);
            (rule, alternative)
        });
        served.collect()
    }
}

/// For each level: specificity of its host, rank of its match, specificity of the host of the level below, whether it
/// is a slot, position within its route. The order is total.
type LevelOrder<'a> = (Option<Specificity>, &'a MatchRank, Option<Specificity>, bool, (usize, usize));

/// A match of a rule, with the specificities of the hosts of its levels; those of other rules may follow.
type Matched<'a> = (&'a [Option<Specificity>], (&'a EffectiveRule, &'a Alternative));

fn level_orders<'a>((hosts, (rule, alternative)): Matched<'a>) -> impl Iterator<Item = LevelOrder<'a>> {
    let levels = hosts.iter().take(rule.levels.len());
    levels.zip(&alternative.order).enumerate().map(move |(i, (host, key))| {
        let below = hosts.get(i + 1).filter(|_| i + 1 < rule.levels.len());
        let is_slot = below.is_some() || rule.outcome != RuleOutcome::Serve;
        (*host, &key.rank, *below.unwrap_or(host), is_slot, key.position)
    })
}

/// The fallback of a slot comes after all of the slot's children.
fn compare(one: Matched<'_>, other: Matched<'_>) -> std::cmp::Ordering {
    let depth = |(_, (rule, alternative)): Matched<'_>| rule.levels.len().min(alternative.order.len());
    let mut levels = level_orders(one).zip(level_orders(other)).map(|(one, other)| one.cmp(&other));
    levels.find(|order| order.is_ne()).unwrap_or_else(|| depth(other).cmp(&depth(one)))
}

/// The most specific of these hosts that covers a host.
fn closest(hosts: &[HostPattern], host: &HostPattern) -> Option<Specificity> {
    hosts.iter().filter(|own| own.covers(host)).map(HostPattern::specificity).min()
}
