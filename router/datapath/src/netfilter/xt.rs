//! xtables (iptables) extensions in nftables' rules: `-m` and `-j` of `iptables-nft` (linux/netfilter/xt_*.h).

use std::sync::Arc;

use super::xt_match::{ESTABLISHED, INVALID, Match, NEW, UNTRACKED};
use crate::netfilter::rule::{Effect, NftExpression};
use crate::netfilter::verdict::RuleVerdict;

fn byte(info: &[u8], at: usize) -> Option<u8> {
    info.get(at).copied()
}

fn short(info: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*info.get(at..)?.first_chunk()?))
}

fn word(info: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*info.get(at..)?.first_chunk()?))
}

/// Parses a match; one that is not understood may match.
pub fn read_match(name: &str, revision: u32, info: &[u8]) -> NftExpression {
    if name == "comment" {
        return NftExpression::Nothing;
    }
    understood(name, revision, info).map_or(NftExpression::Perhaps(false), NftExpression::Match)
}

fn understood(name: &str, revision: u32, info: &[u8]) -> Option<Match> {
    Some(match (name, revision) {
        ("udp" | "udplite" | "icmp" | "icmp6" | "sctp" | "dccp" | "esp" | "ah", _) => Match::Never,
        ("tcp", 0) => {
            // Presence of the option is unknown.
            let option = byte(info, 8)?;
            if option != 0 {
                return None;
            }
            Match::Tcp {
                source: (short(info, 0)?, short(info, 2)?),
                destination: (short(info, 4)?, short(info, 6)?),
                flags: byte(info, 9)?,
                set: byte(info, 10)?,
                inverted: byte(info, 11)?,
            }
        }
        ("multiport", 1) => {
            let count = usize::from(byte(info, 1)?).min(15);
            let mut ranges = Vec::new();
            let mut at = 0;
            while at < count {
                let low = short(info, 2 + 2 * at)?;
                // A range takes two elements.
                let has_end = byte(info, 32 + at)? != 0;
                let high = if has_end { short(info, 4 + 2 * at)? } else { low };
                ranges.push((low, high));
                at += if has_end { 2 } else { 1 };
            }
            Match::Ports { which: byte(info, 0)?, ranges, inverted: byte(info, 47)? != 0 }
        }
        ("mark", 1) => Match::Mark { value: word(info, 0)?, mask: word(info, 4)?, inverted: byte(info, 8)? != 0 },
        ("state", 0) => Match::States(states(word(info, 0)?, UNTRACKED), false, true),
        ("conntrack", 2 | 3) => {
            let (asked, inverted) = (short(info, 146)?, short(info, 148)? & 1 != 0);
            if asked & 1 == 0 {
                return None;
            }
            Match::States(states(u32::from(short(info, 150)?), 1 << 8), inverted, asked == 1)
        }
        ("addrtype", 1) => {
            let flags = word(info, 4)?;
            // Restricted to addresses of one interface.
            if flags & 0xc != 0 {
                return None;
            }
            Match::Addresses([short(info, 0)?, short(info, 2)?], [flags & 1 != 0, flags & 2 != 0])
        }
        // One dimension, and no conditions on counters.
        ("set", 1..=4) if byte(info, 2)? == 1 && info.iter().skip(4).all(|byte| *byte == 0) => {
            let flags = byte(info, 3)?;
            Match::InIpset { index: short(info, 0)?, source: flags & 2 != 0, inverted: flags & 1 != 0 }
        }
        ("rpfilter", 0) => Match::ReversePath(byte(info, 0)? & 8 != 0),
        _ => return None,
    })
}

/// Converts xtables' state bits, where `untracked` is another bit. States of translated connections are dropped:
/// packets whose addresses are translated are not evaluated.
fn states(mask: u32, untracked: u32) -> u32 {
    let common = mask & (INVALID | ESTABLISHED | 4 | NEW);
    if mask & untracked != 0 { common | UNTRACKED } else { common }
}

/// Parses a target.
pub fn read_target(name: &str, revision: u32, info: &[u8]) -> NftExpression {
    let effect = match name {
        "MARK" => {
            let marked = word(info, 0).zip(word(info, 4)).filter(|_| revision == 2);
            return NftExpression::Mark(marked.map(|(mark, mask)| (mask, mark)));
        }
        // It may restore the mark of a packet.
        "CONNMARK" => return NftExpression::Mark(None),
        "CT" if short(info, 0).is_some_and(|flags| flags & 1 == 0) => return NftExpression::Nothing,
        "CT" | "NOTRACK" => return NftExpression::NoTrack,
        "LOG" | "NFLOG" | "TRACE" | "AUDIT" | "CLASSIFY" | "SECMARK" | "CONNSECMARK" | "RATEEST" | "LED"
        | "IDLETIMER" | "SET" | "CHECKSUM" | "HMARK" => {
            return if name == "HMARK" { NftExpression::Mark(None) } else { NftExpression::Nothing };
        }
        "NFQUEUE" => return NftExpression::Verdict(RuleVerdict::Queue),
        "REJECT" => Effect::Reject,
        "MASQUERADE" | "SNAT" | "DNAT" | "REDIRECT" | "NETMAP" => Effect::Translate,
        "TPROXY" | "SYNPROXY" => Effect::Divert,
        "TEE" => Effect::Copy,
        "TCPMSS" | "TCPOPTSTRIP" | "TOS" | "DSCP" | "TTL" | "HL" | "ECN" => Effect::Rewrite,
        other => Effect::Unknown(Arc::from(other)),
    };
    NftExpression::Effect(effect)
}

#[cfg(test)]
mod tests {
    use super::super::known_bits::{KnownBits, Truth};
    use super::super::packet::{AddressClass, RulePacket, SegmentKind, Tracked};
    use super::super::xt_match::{LOCAL, UNICAST};
    use super::*;

    fn packet() -> RulePacket {
        let to = "10.0.0.2:8080".parse().unwrap();
        let packet = RulePacket::new(Some("10.0.0.1:0".parse().unwrap()), to, SegmentKind::Syn);
        RulePacket {
            tracked: Tracked::New,
            source: AddressClass::Local,
            destination: AddressClass::Elsewhere,
            ..packet
        }
    }

    fn is_of(name: &str, revision: u32, info: &[u8]) -> Truth {
        understood(name, revision, info).unwrap().is_of(&packet(), KnownBits::of(0x4000))
    }

    fn of(shorts: &[u16], bytes: &[u8]) -> Vec<u8> {
        shorts.iter().flat_map(|short| short.to_ne_bytes()).chain(bytes.iter().copied()).collect()
    }

    #[test]
    fn ports_and_flags_of_tcp_match() {
        let all = (0, 65_535);
        let tcp = |destination: (u16, u16), flags: [u8; 4]| {
            is_of("tcp", 0, &of(&[all.0, all.1, destination.0, destination.1], &flags))
        };
        assert_eq!(tcp((8080, 8080), [0, 0, 0, 0]), Truth::Yes);
        assert_eq!(tcp((1, 80), [0, 0, 0, 0]), Truth::No);
        assert_eq!(tcp((1, 80), [0, 0, 0, 2]), Truth::Yes, "any other");
        assert_eq!(tcp(all, [0, 0x17, 2, 0]), Truth::Yes, "--syn");
        assert_eq!(tcp(all, [0, 0x17, 2, 4]), Truth::No, "! --syn");
        assert_eq!(is_of("tcp", 0, &of(&[10_240, 20_000, 0, 65_535], &[0; 4])), Truth::Perhaps, "from some port");
    }

    #[test]
    fn lists_of_ports_have_ranges() {
        let mut info = vec![1, 3];
        info.extend(of(&[80, 8000, 8090], &[0; 24]));
        info.extend([0, 1]);
        info.resize(48, 0);
        assert_eq!(is_of("multiport", 1, &info), Truth::Yes);
        info[47] = 1;
        assert_eq!(is_of("multiport", 1, &info), Truth::No);
        info[33] = 0;
        assert_eq!(is_of("multiport", 1, &info), Truth::Yes, "none of three ports");
    }

    #[test]
    fn marks_states_and_types_of_addresses_match() {
        let mark = |value: u32, mask: u32| [value.to_ne_bytes(), mask.to_ne_bytes(), [0; 4]].concat();
        assert_eq!(is_of("mark", 1, &mark(0x4000, 0x4000)), Truth::Yes);
        assert_eq!(is_of("mark", 1, &mark(0x8000, 0x8000)), Truth::No);
        let mut info = vec![0; 160];
        (info[146], info[150]) = (1, NEW as u8);
        assert_eq!(is_of("conntrack", 3, &info), Truth::Yes);
        info[148] = 1;
        assert_eq!(is_of("conntrack", 3, &info), Truth::No);
        info[146] = 3;
        info[148] = 0;
        assert_eq!(is_of("conntrack", 3, &info), Truth::Perhaps, "and something else");
        assert_eq!(is_of("addrtype", 1, &of(&[0, LOCAL, 0, 0], &[])), Truth::No);
        assert_eq!(is_of("addrtype", 1, &of(&[LOCAL, UNICAST, 0, 0], &[])), Truth::Yes);
        assert_eq!(read_match("statistic", 0, &[0; 32]), NftExpression::Perhaps(false));
    }

    #[test]
    fn what_is_too_short_is_not_understood() {
        for (name, revision, length) in [("tcp", 0, 12), ("multiport", 1, 48), ("mark", 1, 9), ("conntrack", 3, 152)] {
            let mut info = vec![0; length];
            (info[1], info[length - 1]) = (1, 0);
            if name == "conntrack" {
                info[146] = 1;
            }
            assert!(understood(name, revision, &info).is_some(), "{name}");
            assert!((0..length - 1).all(|length| understood(name, revision, &info[..length]).is_none()), "{name}");
        }
    }

    #[test]
    fn an_unknown_target_counts() {
        assert_eq!(read_target("LOG", 0, &[]), NftExpression::Nothing);
        assert_eq!(read_target("MASQUERADE", 0, &[]), NftExpression::Effect(Effect::Translate));
        assert!(
            matches!(read_target("NOVEL", 0, &[]), NftExpression::Effect(Effect::Unknown(name)) if &*name == "NOVEL")
        );
        let mark = [0x4000_u32.to_ne_bytes(), 0x4000_u32.to_ne_bytes()].concat();
        assert_eq!(read_target("MARK", 2, &mark), NftExpression::Mark(Some((0x4000, 0x4000))));
        assert_eq!(read_target("MARK", 1, &mark), NftExpression::Mark(None));
    }
}
