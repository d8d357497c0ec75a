//! Parsing the expressions of rules from netlink attributes (linux/netfilter/nf_tables.h).

use std::collections::HashMap;
use std::sync::Arc;

use super::xt;
use crate::netfilter::rule::{Comparison, Effect, NftExpression, REGISTERS, RegisterSource, RegisterSpan};
use crate::netfilter::verdict::RuleVerdict;
use crate::netlink::channel::NetlinkAttributes;

/// Positions of the chains and sets that a table's rules name.
#[derive(Debug, Default)]
pub struct RulesetNames {
    /// Positions of chains, by name.
    pub chains: HashMap<String, usize>,
    /// Sets, by name.
    pub sets: HashMap<String, SetName>,
}

/// A set's position, and the size of its entries.
#[derive(Clone, Copy, Debug)]
pub struct SetName {
    /// Its position.
    pub place: usize,
    /// Size of a key in bytes.
    pub key: usize,
    /// Size of a map's value in bytes.
    pub value: usize,
}

/// Parses an expression. One that is not understood counts as an unknown effect, which it may have.
pub fn expression(bytes: &[u8], names: &RulesetNames) -> NftExpression {
    let attributes = NetlinkAttributes::of(bytes);
    // NFTA_EXPR_NAME, NFTA_EXPR_DATA
    let name = attributes.text(1).unwrap_or_default();
    let data = NetlinkAttributes::of(attributes.bytes(2).unwrap_or_default());
    understood(name, &data, names).unwrap_or_else(|| NftExpression::Effect(Effect::Unknown(Arc::from(name))))
}

fn understood(name: &str, data: &NetlinkAttributes<'_>, names: &RulesetNames) -> Option<NftExpression> {
    Some(match name {
        "payload" => payload(data)?,
        "meta" => match (data.word(1), data.word(3)) {
            (Some(to), _) => {
                NftExpression::Load(RegisterSource::Meta(data.word(2)?), span(to, meta_length(data.word(2)?))?)
            }
            // NFT_META_MARK; the others (priority, packet type, tracing) have no effect here.
            (None, Some(from)) if data.word(2)? == 3 => NftExpression::SetMark(span(from, 4)?),
            (None, Some(_)) => NftExpression::Nothing,
            (None, None) => return None,
        },
        "ct" => match (data.word(1), data.word(4)) {
            (Some(to), _) => {
                let key = data.word(2)?;
                // A key with a direction is of the original or the reply direction.
                let source = if data.bytes(3).is_some() { RegisterSource::Unknown } else { RegisterSource::Ct(key) };
                let length = match key {
                    1 | 7 | 10 => 1,
                    _ if data.bytes(3).is_some() => 16,
                    13 | 8 | 9 | 20 | 21 => 16,
                    _ => 4,
                };
                NftExpression::Load(source, span(to, length)?)
            }
            (None, Some(_)) => NftExpression::Nothing,
            (None, None) => return None,
        },
        "cmp" => {
            let value = value(data, 3)?;
            let how = match data.word(2)? {
                0 => Comparison::Equal,
                1 => Comparison::Unequal,
                2 => Comparison::Less,
                3 => Comparison::LessOrEqual,
                4 => Comparison::Greater,
                5 => Comparison::GreaterOrEqual,
                _ => return None,
            };
            NftExpression::Compare(span(data.word(1)?, value.len())?, how, value.into())
        }
        "range" => {
            let (low, high) = (value(data, 3)?, value(data, 4)?);
            let of = span(data.word(1)?, low.len())?;
            NftExpression::Range { of, ends: (low.into(), high.into()), inverted: data.word(2)? == 1 }
        }
        "bitwise" => bitwise(data)?,
        "byteorder" => {
            let (from, to) =
                (span(data.word(1)?, data.word(4)? as usize)?, span(data.word(2)?, data.word(4)? as usize)?);
            let unit = data.word(5)? as usize;
            if unit == 0 { return None } else { NftExpression::ByteOrder(from, to.at, unit) }
        }
        "immediate" => {
            let inner = data.within(2)?;
            match inner.bytes(1) {
                Some(bytes) => NftExpression::Immediate(span(data.word(1)?, bytes.len())?, bytes.into()),
                None => NftExpression::Verdict(verdict(&inner.within(2)?, names)?),
            }
        }
        "lookup" => lookup(data, names)?,
        "fib" => NftExpression::Load(RegisterSource::Fib(data.word(2)?, data.word(3)?), fib_span(data)?),
        "exthdr" => match (data.word(1), data.word(7)) {
            // NFT_EXTHDR_F_PRESENT of NFT_EXTHDR_OP_IPV6
            (Some(to), _) if data.word(5) == Some(1) && data.word(6).unwrap_or(0) == 0 => {
                NftExpression::Load(RegisterSource::ExtensionHeader, span(to, 1)?)
            }
            (Some(to), _) => NftExpression::Load(RegisterSource::Unknown, span(to, data.word(4)? as usize)?),
            // A TCP option is written; or removed, with neither register.
            (None, _) => NftExpression::Effect(Effect::Rewrite),
        },
        "match" => xt::read_match(data.text(1)?, data.word(2)?, data.bytes(3)?),
        "target" => xt::read_target(data.text(1)?, data.word(2)?, data.bytes(3)?),
        "counter" | "log" | "last" => NftExpression::Nothing,
        "limit" | "quota" | "connlimit" => NftExpression::Perhaps(false),
        // NFTA_OBJREF_IMM_TYPE: NFT_OBJECT_SYNPROXY
        "objref" if data.word(1) == Some(10) => NftExpression::Effect(Effect::Divert),
        "objref" | "dynset" => NftExpression::Perhaps(false),
        "rt" | "socket" | "osf" | "tunnel" | "xfrm" | "hash" | "numgen" => NftExpression::Perhaps(true),
        "notrack" => NftExpression::NoTrack,
        "reject" => NftExpression::Effect(Effect::Reject),
        "nat" | "masq" | "redir" => NftExpression::Effect(Effect::Translate),
        "tproxy" | "synproxy" => NftExpression::Effect(Effect::Divert),
        "dup" | "fwd" => NftExpression::Effect(Effect::Copy),
        "queue" => NftExpression::Verdict(RuleVerdict::Queue),
        _ => return None,
    })
}

/// True if an expression may set or restore a connection's mark.
pub fn marks_connections(bytes: &[u8]) -> bool {
    let attributes = NetlinkAttributes::of(bytes);
    let Some(data) = attributes.within(2) else { return false };
    match attributes.text(1) {
        // NFT_CT_MARK is written.
        Some("ct") => data.bytes(4).is_some() && data.word(2) == Some(3),
        Some("target") => data.text(1) == Some("CONNMARK"),
        _ => false,
    }
}

/// The bytes of a register: registers from 1 on have 16 bytes, those from 8 on have 4.
fn span(register: u32, len: usize) -> Option<RegisterSpan> {
    let at = match register {
        1..=4 => register as usize * 16,
        8..=23 => (register as usize - 4) * 4,
        _ => return None,
    };
    (at + len <= REGISTERS).then_some(RegisterSpan { at, len })
}

fn meta_length(key: u32) -> usize {
    match key {
        // NFT_META_PROTOCOL, …IFTYPE, …OIFTYPE
        1 | 8 | 9 => 2,
        // NFT_META_NFPROTO, …L4PROTO, …PKTTYPE
        15 | 16 | 19 => 1,
        // Names and kinds of interfaces.
        6 | 7 | 17 | 18 | 26 | 27 | 33 => 16,
        // NFT_META_TIME_NS
        29 => 8,
        _ => 4,
    }
}

fn fib_span(data: &NetlinkAttributes<'_>) -> Option<RegisterSpan> {
    // Size of a name, unless only its presence is requested (NFTA_FIB_F_PRESENT).
    let length = match (data.word(2)?, data.word(3)?) {
        (_, flags) if flags & 32 != 0 => 1,
        (2, _) => 16,
        _ => 4,
    };
    span(data.word(1)?, length)
}

fn payload(data: &NetlinkAttributes<'_>) -> Option<NftExpression> {
    let Some(to) = data.word(1) else {
        // NFTA_PAYLOAD_SREG
        return data.word(5).map(|_| NftExpression::Effect(Effect::Rewrite));
    };
    let (offset, to) = (data.word(3)? as usize, span(to, data.word(4)? as usize)?);
    let source = match data.word(2)? {
        1 => RegisterSource::Network(offset),
        2 => RegisterSource::Transport(offset),
        _ => RegisterSource::Unknown,
    };
    Some(NftExpression::Load(source, to))
}

fn bitwise(data: &NetlinkAttributes<'_>) -> Option<NftExpression> {
    let length = data.word(3)? as usize;
    let (from, to) = (span(data.word(1)?, length)?, span(data.word(2)?, length)?);
    // NFT_BITWISE_MASK_XOR
    if data.word(6).unwrap_or(0) != 0 {
        return Some(NftExpression::Load(RegisterSource::Unknown, to));
    }
    let (mask, xor) = (value(data, 4)?, value(data, 5)?);
    (mask.len() == length && xor.len() == length).then(|| NftExpression::Bitwise {
        from,
        to: to.at,
        mask: mask.into(),
        xor: xor.into(),
    })
}

fn lookup(data: &NetlinkAttributes<'_>, names: &RulesetNames) -> Option<NftExpression> {
    let name = data.text(1)?;
    let SetName { place: set, key, value } = *names.sets.get(name)?;
    let key = span(data.word(2)?, key)?;
    let inverted = data.word(5).unwrap_or(0) & 1 != 0;
    Some(match data.word(3) {
        None => NftExpression::InSet(key, set, inverted),
        Some(0) => NftExpression::VerdictOf(key, set),
        Some(to) => NftExpression::ValueOf(key, set, span(to, value)?),
    })
}

/// `NFTA_DATA_VALUE` in an attribute.
fn value<'a>(data: &NetlinkAttributes<'a>, kind: u16) -> Option<&'a [u8]> {
    data.within(kind)?.bytes(1)
}

/// `NFTA_VERDICT_*`.
pub fn verdict(data: &NetlinkAttributes<'_>, names: &RulesetNames) -> Option<RuleVerdict> {
    let chain = || data.text(2).and_then(|name| names.chains.get(name)).copied();
    Some(match data.word(1)? as i32 {
        0 => RuleVerdict::Drop,
        1 => RuleVerdict::Accept,
        // NFT_CONTINUE and NFT_BREAK
        -1 | -2 => RuleVerdict::Continue,
        -3 => RuleVerdict::Jump(chain()?),
        -4 => RuleVerdict::Goto(chain()?),
        -5 => RuleVerdict::Return,
        code if code & 0xff == 3 => RuleVerdict::Queue,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netfilter::firewall::tests::attribute;

    fn step(name: &str, data: &[Vec<u8>]) -> Vec<u8> {
        [attribute(1, format!("{name}\0").as_bytes()), attribute(2, &data.concat())].concat()
    }

    fn word(kind: u16, number: u32) -> Vec<u8> {
        attribute(kind, &number.to_be_bytes())
    }

    fn read(name: &str, data: &[Vec<u8>]) -> NftExpression {
        let chains = HashMap::from([("inner".to_owned(), 7)]);
        let sets = HashMap::from([("banned".to_owned(), SetName { place: 2, key: 4, value: 0 })]);
        expression(&step(name, data), &RulesetNames { chains, sets })
    }

    #[test]
    fn steps_are_read_from_the_kernels_bytes() {
        let destination = [word(1, 1), word(2, 1), word(3, 16), word(4, 4)];
        let register = RegisterSpan { at: 16, len: 4 };
        assert_eq!(read("payload", &destination), NftExpression::Load(RegisterSource::Network(16), register));
        let address = attribute(3, &attribute(1, &[10, 0, 0, 1]));
        let equal = NftExpression::Compare(register, Comparison::Equal, [10, 0, 0, 1].into());
        assert_eq!(read("cmp", &[word(1, 1), word(2, 0), address]), equal);
        let jump = attribute(2, &[word(1, -3_i32 as u32), attribute(2, b"inner\0")].concat());
        let verdict = attribute(2, &jump);
        assert_eq!(read("immediate", &[word(1, 0), verdict]), NftExpression::Verdict(RuleVerdict::Jump(7)));
        let lookup = [attribute(1, b"banned\0"), word(2, 8), word(5, 1)];
        assert_eq!(read("lookup", &lookup), NftExpression::InSet(RegisterSpan { at: 16, len: 4 }, 2, true));
        assert_eq!(read("meta", &[word(2, 3), word(3, 8)]), NftExpression::SetMark(register));
        assert_eq!(read("masq", &[]), NftExpression::Effect(Effect::Translate));
        let rewrites = [word(5, 1), word(2, 1), word(3, 8), word(4, 1)];
        assert_eq!(read("payload", &rewrites), NftExpression::Effect(Effect::Rewrite));
    }

    #[test]
    fn what_is_not_understood_is_taken_for_an_effect() {
        let unknown = |name: &str| NftExpression::Effect(Effect::Unknown(Arc::from(name)));
        assert_eq!(read("novel", &[]), unknown("novel"));
        assert_eq!(read("cmp", &[word(1, 1), word(2, 9)]), unknown("cmp"));
        assert_eq!(read("payload", &[word(1, 23), word(2, 1), word(3, 0), word(4, 64)]), unknown("payload"));
        assert_eq!(read("lookup", &[attribute(1, b"gone\0"), word(2, 8)]), unknown("lookup"));
        let whole = step("payload", &[word(1, 1), word(2, 1), word(3, 16), word(4, 4)]);
        for length in 0..whole.len() {
            let read = expression(&whole[..length], &RulesetNames::default());
            assert!(matches!(read, NftExpression::Effect(_)), "{length}: {read:?}");
        }
    }

    #[test]
    fn rules_that_mark_connections_are_noticed() {
        assert!(marks_connections(&step("ct", &[word(2, 3), word(4, 1)])));
        assert!(!marks_connections(&step("ct", &[word(2, 3), word(1, 1)])));
        assert!(marks_connections(&step("target", &[attribute(1, b"CONNMARK\0")])));
    }
}
