//! The ruleset of a host (linux/netfilter/nf_tables.h), as far as it is understood.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::index::RuleIndex;
use super::rule::{Effect, NftExpression, NftRule};
use super::sets::Set;
use super::verdict::RuleVerdict;
use super::xt_match;

/// Type of a base chain (`NFTA_CHAIN_TYPE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainType {
    /// Filters packets.
    Filter,
    /// Translates addresses; sees only the first packet of a connection.
    Nat,
    /// Packets whose mark it changes are routed again.
    Route,
}

/// Properties of a base chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// The hook.
    pub hook: Hook,
    /// Chains with lower values come first.
    pub priority: i32,
    /// The type.
    pub kind: ChainType,
    /// True if its policy is to drop.
    pub drops: bool,
    /// Interfaces, for [`Hook::Ingress`] and [`Hook::Egress`].
    pub devices: Vec<String>,
}

/// A netfilter hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// On the input interface, before all others.
    Ingress,
    /// Before the routing decision.
    Prerouting,
    /// Packets to a socket of this host.
    Input,
    /// Packets from a socket of this host.
    Output,
    /// Before a packet leaves.
    Postrouting,
    /// On the output interface, after all others.
    Egress,
}

/// `NFPROTO_*` of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NftFamily {
    /// IPv4 and IPv6.
    Inet,
    /// IPv4.
    Ip,
    /// IPv6.
    Ip6,
    /// Interfaces.
    Netdev,
}

impl NftFamily {
    /// As `nft` spells it.
    pub const fn name(self) -> &'static str {
        match self {
            NftFamily::Inet => "inet",
            NftFamily::Ip => "ip",
            NftFamily::Ip6 => "ip6",
            NftFamily::Netdev => "netdev",
        }
    }

    /// True if its tables see packets of this IP version.
    pub const fn sees(self, v6: bool) -> bool {
        match self {
            NftFamily::Inet | NftFamily::Netdev => true,
            NftFamily::Ip => !v6,
            NftFamily::Ip6 => v6,
        }
    }
}

/// A chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Its table's family.
    pub family: NftFamily,
    /// Its table.
    pub table: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its properties as a base chain; `None` for others.
    pub base: Option<Base>,
    /// Its rules, in order.
    pub rules: Vec<NftRule>,
    /// Index of the rules that may match a packet.
    pub index: RuleIndex,
    /// True if neither it nor a chain that it calls has any effect except to accept.
    pub inert: bool,
    /// True if neither it nor a chain that it calls translates, diverts, copies, marks or untracks packets.
    pub plain: bool,
}

/// All chains and sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ruleset {
    /// Chains; verdicts refer to them by position.
    pub chains: Vec<Chain>,
    /// Sets and maps; expressions refer to them by position.
    pub sets: Vec<Set>,
    /// Positions of the base chains, in the order in which packets pass them.
    pub bases: Vec<usize>,
    /// ipsets that rules look up, by index.
    pub ipsets: BTreeMap<u16, Set>,
    /// A rule sets or restores the mark of a connection.
    pub marks_connections: bool,
}

impl Ruleset {
    /// A ruleset of these chains and sets. `marks_connections`: an expression sets connections' marks.
    pub fn new(chains: Vec<Chain>, sets: Vec<Set>, marks_connections: bool) -> Ruleset {
        let mut rules = Ruleset { chains, sets, bases: Vec::new(), ipsets: BTreeMap::new(), marks_connections };
        let base = |at: &usize| rules.chains[*at].base.as_ref().map(|base| base.priority);
        let mut bases: Vec<usize> = (0..rules.chains.len()).filter(|at| base(at).is_some()).collect();
        bases.sort_by_key(base);
        rules.bases = bases;
        let inert = rules.without(|rules, rule| rules.is_harmless(rule));
        let plain = rules.without(|_, rule| is_plain(rule));
        for (chain, (inert, plain)) in rules.chains.iter_mut().zip(inert.into_iter().zip(plain)) {
            (chain.inert, chain.plain) = (inert, plain);
            chain.index = RuleIndex::of(&chain.rules);
        }
        rules
    }

    /// Indices of the ipsets that rules look up.
    pub fn used_ipsets(&self) -> BTreeSet<u16> {
        let rules = self.chains.iter().flat_map(|chain| &chain.rules);
        let expressions = rules.flat_map(|rule| &rule.expressions);
        let index = |expression: &NftExpression| match expression {
            NftExpression::Match(xt_match::Match::InIpset { index, .. }) => Some(*index),
            _ => None,
        };
        expressions.filter_map(index).collect()
    }

    /// For each chain: true if all its rules, and those of the chains that it calls, satisfy a condition.
    fn without(&self, is_of: impl Fn(&Ruleset, &NftRule) -> bool) -> Vec<bool> {
        let mut of: Vec<bool> =
            self.chains.iter().map(|chain| chain.rules.iter().all(|rule| is_of(self, rule))).collect();
        // Callers of each chain.
        let mut callers = vec![Vec::new(); self.chains.len()];
        for (caller, chain) in self.chains.iter().enumerate() {
            for called in chain.rules.iter().flat_map(|rule| self.called(rule)) {
                callers[called].push(caller);
            }
        }
        let mut others: Vec<usize> = (0..of.len()).filter(|at| !of[*at]).collect();
        while let Some(at) = others.pop() {
            for caller in &callers[at] {
                if std::mem::replace(&mut of[*caller], false) {
                    others.push(*caller);
                }
            }
        }
        of
    }

    fn verdicts<'a>(&'a self, expression: &'a NftExpression) -> impl Iterator<Item = RuleVerdict> + 'a {
        let (one, many) = match expression {
            NftExpression::Verdict(verdict) => (Some(*verdict), None),
            NftExpression::VerdictOf(_, set) => (None, Some(self.sets[*set].verdicts())),
            _ => (None, None),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }

    fn called<'a>(&'a self, rule: &'a NftRule) -> impl Iterator<Item = usize> + 'a {
        let verdicts = rule.expressions.iter().flat_map(|expression| self.verdicts(expression));
        verdicts.filter_map(|verdict| match verdict {
            RuleVerdict::Jump(chain) | RuleVerdict::Goto(chain) => Some(chain),
            _ => None,
        })
    }

    fn is_harmless(&self, rule: &NftRule) -> bool {
        rule.expressions.iter().all(|expression| match expression {
            NftExpression::Effect(_) | NftExpression::SetMark(_) | NftExpression::NoTrack | NftExpression::Mark(_) => {
                false
            }
            _ => !self.verdicts(expression).any(|verdict| matches!(verdict, RuleVerdict::Drop | RuleVerdict::Queue)),
        })
    }
}

/// True if a rule neither changes who receives a packet, nor what later rules see of it.
fn is_plain(rule: &NftRule) -> bool {
    rule.expressions.iter().all(|expression| {
        !matches!(
            expression,
            NftExpression::Effect(Effect::Translate | Effect::Divert | Effect::Copy | Effect::Unknown(_))
                | NftExpression::SetMark(_)
                | NftExpression::NoTrack
                | NftExpression::Mark(_)
        )
    })
}
