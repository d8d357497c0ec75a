//! The rules of a host as the kernel has them (linux/netfilter/nf_tables.h), as far as they are understood.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::index::Index;
use super::sets::Set;
use super::xt;

/// Bytes of the registers of a rule.
pub const REGISTERS: usize = 80;

/// A part of the registers; within them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first byte.
    pub at: usize,
    /// How many.
    pub len: usize,
}

/// What is loaded into a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Bytes of the IP header, from this one on.
    Network(usize),
    /// Bytes of the TCP header, from this one on.
    Transport(usize),
    /// `NFT_META_*`.
    Meta(u32),
    /// `NFT_CT_*`; the direction is not known.
    Ct(u32),
    /// A look-up of addresses: result (`NFT_FIB_RESULT_*`) and flags (`NFTA_FIB_F_*`).
    Fib(u32, u32),
    /// Whether there is an extension header of IPv6.
    ExtensionHeader,
    /// Something that is not known, and may not be there.
    Unknown,
}

/// How two values compare (`NFT_CMP_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `NFT_CMP_EQ`
    Equal,
    /// `NFT_CMP_NEQ`
    Unequal,
    /// `NFT_CMP_LT`
    Less,
    /// `NFT_CMP_LTE`
    LessOrEqual,
    /// `NFT_CMP_GT`
    Greater,
    /// `NFT_CMP_GTE`
    GreaterOrEqual,
}

/// What a rule does with a packet, or a chain by its policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The packet goes on to the next base chain.
    Accept,
    /// It goes no further.
    Drop,
    /// The next rule looks at it.
    Continue,
    /// Back to the calling chain; at its end, to the policy.
    Return,
    /// Another chain, and back.
    Jump(usize),
    /// Another chain, and back to this one's caller.
    Goto(usize),
    /// A program decides.
    Queue,
}

/// What a rule does to a packet besides a verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Refused, with an answer.
    Reject,
    /// Its addresses or ports change.
    Translate,
    /// It goes to a socket that it is not addressed to.
    Divert,
    /// Its headers change.
    Rewrite,
    /// A copy of it goes elsewhere, or the packet itself.
    Copy,
    /// One that is not known, by name.
    Unknown(Arc<str>),
}

/// A step of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expression {
    /// Loads.
    Load(Source, Span),
    /// Loads these bytes.
    Immediate(Span, Box<[u8]>),
    /// Goes on if the bytes compare so.
    Compare(Span, Comparison, Box<[u8]>),
    /// Goes on if the bytes are within a range, or outside one.
    Range {
        /// The bytes.
        of: Span,
        /// Lowest and highest.
        ends: (Box<[u8]>, Box<[u8]>),
        /// Outside.
        inverted: bool,
    },
    /// `to = (from & mask) ^ xor`
    Bitwise {
        /// Where from.
        from: Span,
        /// Where to, with the same length.
        to: usize,
        /// As long.
        mask: Box<[u8]>,
        /// As long.
        xor: Box<[u8]>,
    },
    /// Turns units of so many bytes around, if the host's numbers begin with their lowest bytes.
    ByteOrder(Span, usize, usize),
    /// Goes on if the bytes are in a set, or not in it.
    InSet(Span, usize, bool),
    /// Does what a map of verdicts has for the bytes.
    VerdictOf(Span, usize),
    /// Loads what a map has for the bytes.
    ValueOf(Span, usize, Span),
    /// Does it.
    Verdict(Verdict),
    /// Does it.
    Effect(Effect),
    /// Sets the packet's mark.
    SetMark(Span),
    /// Takes the packet from connection tracking.
    NoTrack,
    /// A match of xtables.
    Match(xt::Match),
    /// A target of xtables that changes the mark: mask and value; `None` for one that is not known.
    Mark(Option<(u32, u32)>),
    /// Goes on or not; what is in the registers afterwards is not known if `true`.
    Perhaps(bool),
    /// Nothing that counts here.
    Nothing,
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The number by which `nft` knows it.
    pub handle: u64,
    /// Its steps.
    pub expressions: Vec<Expression>,
}

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
            Expression::Match(xt::Match::InIpset { index, .. }) => Some(*index),
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
