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
        let mut ordered: Vec<_> = rules
            .flat_map(|rule| {
                let hosts: Vec<_> = rule.levels.iter().map(|level| closest(&level.hosts, host)).collect();
                rule.alternatives.iter().map(move |one| {
                    // Read once: other threads may set it during the sort.
                    let position = one.position.get().copied();
                    (position, sort_key(&hosts, rule.outcome, one), (rule, one))
                })
            })
            .collect();
        // Most of the rules of a large host were in order before; then the sort is linear.
        ordered.sort_by_key(|(position, ..)| *position);
        ordered.sort_by(|(_, one, _), (_, other, _)| compare(one, other));
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
type RuleOrder<'a> = Vec<(Option<Specificity>, &'a MatchRank, Option<Specificity>, bool, (usize, usize))>;

fn sort_key<'a>(hosts: &[Option<Specificity>], outcome: RuleOutcome, alternative: &'a Alternative) -> RuleOrder<'a> {
    let levels = hosts.iter().zip(&alternative.order).enumerate();
    let keys = levels.map(|(i, (host, key))| {
        let below = hosts.get(i + 1);
        let is_slot = below.is_some() || outcome != RuleOutcome::Serve;
        (*host, &key.rank, *below.unwrap_or(host), is_slot, key.position)
    });
    keys.collect()
}

/// The fallback of a slot comes after all of the slot's children.
fn compare(one: &RuleOrder<'_>, other: &RuleOrder<'_>) -> std::cmp::Ordering {
    let mut levels = one.iter().zip(other).map(|(one, other)| one.cmp(other));
    levels.find(|order| order.is_ne()).unwrap_or_else(|| other.len().cmp(&one.len()))
}

/// The most specific of these hosts that covers a host.
fn closest(hosts: &[HostPattern], host: &HostPattern) -> Option<Specificity> {
    hosts.iter().filter(|own| own.covers(host)).map(HostPattern::specificity).min()
}
