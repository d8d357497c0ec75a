//! Finds the rules of a chain that may match a packet. In long chains most rules require one address or one port, and
//! are skipped for packets with others.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::iter::Peekable;

use super::known_bits::Bits;
use super::packet::RulePacket;
use super::xt_match;
use crate::netfilter::rule::{Comparison, NftExpression, NftRule, RegisterSource};

/// Number of different values of a field from which an index costs less than evaluating the rules.
const WORTH_IT: usize = 8;

/// A part of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Field {
    /// True for the TCP header, false for the IP header.
    transport: bool,
    at: usize,
    len: usize,
}

impl Field {
    fn of(self, packet: &RulePacket) -> Bits<'_> {
        let header = if self.transport { packet.transport() } else { packet.network() };
        header.part(self.at, self.len)
    }
}

/// The rules of a chain, by the value that they require of one field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleIndex {
    rules: u32,
    field: Option<Field>,
    by_value: HashMap<Box<[u8]>, Vec<u32>>,
    /// Rules that require no value of the field.
    others: Vec<u32>,
}

impl RuleIndex {
    /// An index by the field of which the rules require most values.
    pub fn of(rules: &[NftRule]) -> RuleIndex {
        let count = rules.len() as u32;
        let wants: Vec<Vec<(Field, Box<[u8]>)>> = rules.iter().map(required_values).collect();
        let mut values = BTreeMap::<Field, BTreeSet<&[u8]>>::new();
        wants.iter().flatten().for_each(|(field, value)| _ = values.entry(*field).or_default().insert(value));
        let counts = values.into_iter().map(|(field, values)| (field, values.len()));
        let best = counts.max_by_key(|(_, values)| *values).filter(|(_, values)| *values >= WORTH_IT);
        let Some((field, _)) = best else { return RuleIndex { rules: count, ..RuleIndex::default() } };
        let mut index = RuleIndex { rules: count, field: Some(field), ..RuleIndex::default() };
        for (number, wants) in (0..).zip(wants) {
            match wants.into_iter().find(|(wanted, _)| *wanted == field) {
                Some((_, value)) => index.by_value.entry(value).or_default().push(number),
                None => index.others.push(number),
            }
        }
        index
    }

    /// Positions of the rules that may match a packet, in order.
    pub fn rules_for(&self, packet: &RulePacket) -> impl Iterator<Item = usize> + '_ {
        let value = self.field.map(|field| field.of(packet)).filter(|bits| bits.is_known() && !bits.value.is_empty());
        let (all, some, others) = match value {
            None => (0..self.rules, &[][..], &[][..]),
            Some(bits) => (0..0, self.by_value.get(bits.value).map_or(&[][..], Vec::as_slice), &self.others[..]),
        };
        let merged = Merged { one: some.iter().peekable(), other: others.iter().peekable() };
        all.chain(merged).map(|number| number as usize)
    }
}

/// Merges two sorted lists.
struct Merged<'a> {
    one: Peekable<std::slice::Iter<'a, u32>>,
    other: Peekable<std::slice::Iter<'a, u32>>,
}

impl Iterator for Merged<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let first = match (self.one.peek(), self.other.peek()) {
            (Some(one), Some(other)) if other < one => &mut self.other,
            (None, _) => &mut self.other,
            _ => &mut self.one,
        };
        first.next().copied()
    }
}

/// The values that a rule requires before it has any effect.
fn required_values(rule: &NftRule) -> Vec<(Field, Box<[u8]>)> {
    let mut wants = Vec::new();
    let mut last = None;
    for expression in &rule.expressions {
        let loaded = std::mem::take(&mut last);
        match expression {
            NftExpression::Load(RegisterSource::Network(at), to) => last = Some((false, *at, *to)),
            NftExpression::Load(RegisterSource::Transport(at), to) => last = Some((true, *at, *to)),
            NftExpression::Compare(of, Comparison::Equal, bytes) => {
                if let Some((transport, at, to)) = loaded
                    && to.at == of.at
                    && of.len <= to.len
                {
                    wants.push((Field { transport, at, len: of.len }, bytes.clone()));
                }
            }
            NftExpression::Match(xt_match::Match::Tcp { destination: (low, high), inverted, .. })
                if low == high && inverted & xt_match::OTHER_DESTINATION == 0 =>
            {
                wants.push((Field { transport: true, at: 2, len: 2 }, low.to_be_bytes().into()));
            }
            NftExpression::Load(..)
            | NftExpression::Immediate(..)
            | NftExpression::Compare(..)
            | NftExpression::Range { .. }
            | NftExpression::Bitwise { .. }
            | NftExpression::ByteOrder(..)
            | NftExpression::InSet(..)
            | NftExpression::ValueOf(..)
            | NftExpression::Match(_)
            | NftExpression::Perhaps(_)
            | NftExpression::Nothing => {}
            NftExpression::VerdictOf(..)
            | NftExpression::Verdict(_)
            | NftExpression::Effect(_)
            | NftExpression::SetMark(_)
            | NftExpression::NoTrack
            | NftExpression::Mark(_) => break,
        }
    }
    wants
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::super::packet::SegmentKind;
    use super::*;
    use crate::netfilter::rule::RegisterSpan;
    use crate::netfilter::verdict::RuleVerdict;

    /// All require the same port; the address distinguishes them.
    fn to(address: [u8; 4]) -> Vec<NftExpression> {
        let (span, port) = (RegisterSpan { at: 16, len: 4 }, RegisterSpan { at: 16, len: 2 });
        vec![
            NftExpression::Load(RegisterSource::Network(16), span),
            NftExpression::Compare(span, Comparison::Equal, address.into()),
            NftExpression::Load(RegisterSource::Transport(2), port),
            NftExpression::Compare(port, Comparison::Equal, [0, 80].into()),
            NftExpression::Verdict(RuleVerdict::Drop),
        ]
    }

    fn rules(of: impl IntoIterator<Item = Vec<NftExpression>>) -> Vec<NftRule> {
        of.into_iter().map(|expressions| NftRule { handle: 0, expressions }).collect()
    }

    fn found(rules: &[NftRule], to: [u8; 4]) -> Vec<usize> {
        let packet = RulePacket::new(None, SocketAddr::from((to, 80)), SegmentKind::Syn);
        RuleIndex::of(rules).rules_for(&packet).collect()
    }

    #[test]
    fn rules_for_other_addresses_are_not_looked_at() {
        let any = vec![NftExpression::Verdict(RuleVerdict::Drop)];
        let mut all: Vec<_> = (0..100).map(|host| to([10, 0, 0, host])).collect();
        all.insert(50, any.clone());
        all.push(to([10, 0, 0, 7]));
        assert_eq!(found(&rules(all.clone()), [10, 0, 0, 7]), [7, 50, 101]);
        assert_eq!(found(&rules(all), [10, 0, 1, 7]), [50]);
        assert_eq!(found(&rules((0..3).map(|host| to([10, 0, 0, host]))), [10, 0, 0, 1]), [0, 1, 2], "too few");
    }

    #[test]
    fn what_is_done_before_a_condition_is_done_whatever_the_condition() {
        let marks = |host| [vec![NftExpression::Mark(Some((1, 1)))], to([10, 0, 0, host])].concat();
        assert_eq!(found(&rules((0..20).map(marks)), [10, 0, 1, 1]).len(), 20);
    }

    #[test]
    fn a_field_that_is_not_known_leaves_all_rules() {
        let from = |host| {
            let span = RegisterSpan { at: 16, len: 4 };
            let compare = NftExpression::Compare(span, Comparison::Equal, [10, 0, 0, host].into());
            vec![
                NftExpression::Load(RegisterSource::Network(12), span),
                compare,
                NftExpression::Verdict(RuleVerdict::Drop),
            ]
        };
        assert_eq!(found(&rules((0..20).map(from)), [10, 0, 1, 1]).len(), 20);
    }
}
