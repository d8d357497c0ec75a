//! The rules of a host as the kernel has them (linux/netfilter/nf_tables.h), as far as they are understood.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::index::Index;
use super::rule::{Effect, Expression, Rule};
use super::sets::Set;
use super::verdict::Verdict;
use super::xt_match;

/// What a base chain does (`NFTA_CHAIN_TYPE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It filters.
    Filter,
    /// It sees the first packet of a connection.
    Nat,
    /// Packets are routed again that it has marked.
    Route,
}

/// Where packets come into a base chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// Where.
    pub hook: Hook,
    /// The lowest is first.
    pub priority: i32,
    /// What it does.
    pub kind: Kind,
    /// Its policy is to drop.
    pub drops: bool,
    /// Interfaces, for [`Hook::Ingress`] and [`Hook::Egress`].
    pub devices: Vec<String>,
}

/// A place in the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// On an interface, before all others.
    Ingress,
    /// Before it is known where the packet goes.
    Prerouting,
    /// To a socket of this host.
    Input,
    /// From a socket of this host.
    Output,
    /// Before it leaves.
    Postrouting,
    /// On the interface that it leaves by, after all others.
    Egress,
}

/// `NFPROTO_*` of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// IPv4 and IPv6.
    Inet,
    /// IPv4.
    Ip,
    /// IPv6.
    Ip6,
    /// Interfaces.
    Netdev,
}

impl Family {
    /// As `nft` spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Family::Inet => "inet",
            Family::Ip => "ip",
            Family::Ip6 => "ip6",
            Family::Netdev => "netdev",
        }
    }

    /// Whether it sees packets of a version of IP.
    pub const fn sees(self, v6: bool) -> bool {
        match self {
            Family::Inet | Family::Netdev => true,
            Family::Ip => !v6,
            Family::Ip6 => v6,
        }
    }
}

/// A chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Of its table.
    pub family: Family,
    /// Its table.
    pub table: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// If it is a base chain.
    pub base: Option<Base>,
    /// In their order.
    pub rules: Vec<Rule>,
    /// Which of them may be for a packet.
    pub index: Index,
    /// Nothing that it does, or a chain that it calls, is more than to accept.
    pub inert: bool,
    /// Nor that it hands packets to somebody else than to whom they are addressed, or marks them.
    pub plain: bool,
}

/// All rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ruleset {
    /// Chains; verdicts name them by their place.
    pub chains: Vec<Chain>,
    /// Sets and maps; expressions name them by their place.
    pub sets: Vec<Set>,
    /// Base chains, in the order in which packets come to them.
    pub bases: Vec<usize>,
    /// ipsets that rules ask for, by number.
    pub ipsets: BTreeMap<u16, Set>,
    /// A rule sets or restores the mark of a connection.
    pub marks_connections: bool,
}

impl Ruleset {
    /// Of these. Whoever adds expressions that set connections' marks says so.
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
            chain.index = Index::of(&chain.rules);
        }
        rules
    }

    /// Numbers of the ipsets that rules ask for.
    pub fn asked_ipsets(&self) -> BTreeSet<u16> {
        let rules = self.chains.iter().flat_map(|chain| &chain.rules);
        let expressions = rules.flat_map(|rule| &rule.expressions);
        let index = |expression: &Expression| match expression {
            Expression::Match(xt_match::Match::InIpset { index, .. }) => Some(*index),
            _ => None,
        };
        expressions.filter_map(index).collect()
    }

    /// Chains whose own rules are all of a kind, and those of the chains that they call.
    fn without(&self, is_of: impl Fn(&Ruleset, &Rule) -> bool) -> Vec<bool> {
        let mut of: Vec<bool> =
            self.chains.iter().map(|chain| chain.rules.iter().all(|rule| is_of(self, rule))).collect();
        // Who calls whom.
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

    fn verdicts<'a>(&'a self, expression: &'a Expression) -> impl Iterator<Item = Verdict> + 'a {
        let (one, many) = match expression {
            Expression::Verdict(verdict) => (Some(*verdict), None),
            Expression::VerdictOf(_, set) => (None, Some(self.sets[*set].verdicts())),
            _ => (None, None),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }

    fn called<'a>(&'a self, rule: &'a Rule) -> impl Iterator<Item = usize> + 'a {
        let verdicts = rule.expressions.iter().flat_map(|expression| self.verdicts(expression));
        verdicts.filter_map(|verdict| match verdict {
            Verdict::Jump(chain) | Verdict::Goto(chain) => Some(chain),
            _ => None,
        })
    }

    fn is_harmless(&self, rule: &Rule) -> bool {
        rule.expressions.iter().all(|expression| match expression {
            Expression::Effect(_) | Expression::SetMark(_) | Expression::NoTrack | Expression::Mark(_) => false,
            _ => !self.verdicts(expression).any(|verdict| matches!(verdict, Verdict::Drop | Verdict::Queue)),
        })
    }
}

/// Whether whoever is to get a packet gets it, if anybody does, and rules that come later find it as it was.
fn is_plain(rule: &Rule) -> bool {
    rule.expressions.iter().all(|expression| {
        !matches!(
            expression,
            Expression::Effect(Effect::Translate | Effect::Divert | Effect::Copy | Effect::Unknown(_))
                | Expression::SetMark(_)
                | Expression::NoTrack
                | Expression::Mark(_)
        )
    })
}
