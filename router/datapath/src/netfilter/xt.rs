//! Extensions of xtables (iptables) in rules of nftables: `-m` and `-j` of `iptables-nft` (linux/netfilter/xt_*.h).

use std::sync::Arc;

use super::bits::{Truth, Word};
use super::packet::{Class, Packet, Tracked};
use super::rules::{Effect, Expression, Verdict};

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Match {
    /// Ports and flags of TCP (`-p tcp --dport 80 --syn`).
    Tcp {
        /// Lowest and highest source port.
        source: (u16, u16),
        /// Lowest and highest destination port.
        destination: (u16, u16),
        /// Which flags are looked at.
        flags: u8,
        /// Which of them are set.
        set: u8,
        /// `XT_TCP_INV_*`
        inverted: u8,
    },
    /// `-m multiport`
    Ports {
        /// Source (0), destination (1) or either (2).
        which: u8,
        /// Ranges.
        ranges: Vec<(u16, u16)>,
        /// None of them.
        inverted: bool,
    },
    /// `-m mark`
    Mark {
        /// Which bits.
        mask: u32,
        /// What they are.
        value: u32,
        /// Or anything else.
        inverted: bool,
    },
    /// States (`NFT_CT_STATE`'s bits), and whether that is all that is asked.
    States(u32, bool, bool),
    /// Types of addresses as bits of `RTN_*`: of the source, of the destination; inverted.
    Addresses([u16; 2], [bool; 2]),
    /// The route back leaves by the interface that the packet came in by (`-m rpfilter`); inverted.
    ReversePath(bool),
    /// The source (or the destination) is in an ipset, by its number.
    InIpset {
        /// The set's number.
        index: u16,
        /// The source.
        source: bool,
        /// Or it is not.
        inverted: bool,
    },
    /// Never: of another protocol.
    Never,
}

/// `XT_TCP_INV_DSTPT`
pub const OTHER_DESTINATION: u8 = 2;

/// `NFT_CT_STATE`'s bits.
pub const INVALID: u32 = 1;
/// As above.
pub const ESTABLISHED: u32 = 2;
/// As above.
pub const NEW: u32 = 8;
/// As above.
pub const UNTRACKED: u32 = 64;

/// `RTN_UNICAST` and `RTN_LOCAL` (linux/rtnetlink.h).
const UNICAST: u16 = 1 << 1;
const LOCAL: u16 = 1 << 2;

impl Match {
    /// Whether a packet is of that kind.
    pub fn is_of(&self, packet: &Packet, mark: Word) -> Truth {
        match self {
            Match::Tcp { source, destination, flags, set, inverted } => {
                let port = |is_source, (low, high)| packet.port_is_within(is_source, low, high);
                let is = port(true, *source).invert(inverted & 1 != 0);
                let is = is.and(port(false, *destination).invert(inverted & OTHER_DESTINATION != 0));
                is.and(has_flags(packet, *flags, *set).invert(inverted & 4 != 0))
            }
            Match::Ports { which, ranges, inverted } => {
                let of = |source| {
                    let within = ranges.iter().map(|(low, high)| packet.port_is_within(source, *low, *high));
                    within.max().unwrap_or(Truth::No)
                };
                let is = match which {
                    0 => of(true),
                    1 => of(false),
                    _ => of(true).max(of(false)),
                };
                is.invert(*inverted)
            }
            Match::Mark { mask, value, inverted } => mark.has(*mask, *value).invert(*inverted),
            Match::States(states, inverted, whole) => {
                let is = state(packet).map_or(Truth::Perhaps, |state| Truth::of(states & state != 0));
                let is = is.invert(*inverted);
                if *whole { is } else { is.and(Truth::Perhaps) }
            }
            Match::Addresses([source, destination], inverted) => {
                let is = has_class(packet.source, *source).invert(inverted[0]);
                is.and(has_class(packet.destination, *destination).invert(inverted[1]))
            }
            // Endpoints' packets come in where packets to them leave.
            Match::ReversePath(inverted) if packet.reply => Truth::of(!inverted),
            Match::ReversePath(_) => Truth::Perhaps,
            // Whoever has the sets looks there.
            Match::InIpset { .. } => Truth::Perhaps,
            Match::Never => Truth::No,
        }
    }
}

/// The bit of `NFT_CT_STATE` of a packet.
pub fn state(packet: &Packet) -> Option<u32> {
    match packet.tracked {
        Tracked::New => Some(NEW),
        Tracked::Established => Some(ESTABLISHED),
        Tracked::Unknown => None,
    }
}

fn has_flags(packet: &Packet, mask: u8, set: u8) -> Truth {
    let flags = packet.transport().part(13, 1);
    let (value, known) = (u32::from(flags.value[0]), u32::from(flags.known[0]));
    Word { value, known }.has(u32::from(mask), u32::from(set))
}

fn has_class(class: Class, types: u16) -> Truth {
    match class {
        _ if types == 0 => Truth::Yes,
        Class::Local => Truth::of(types & LOCAL != 0),
        Class::Elsewhere => Truth::of(types & UNICAST != 0),
        Class::Unknown => Truth::Perhaps,
    }
}

fn byte(info: &[u8], at: usize) -> Option<u8> {
    info.get(at).copied()
}

fn short(info: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*info.get(at..)?.first_chunk()?))
}

fn word(info: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*info.get(at..)?.first_chunk()?))
}

/// What a match means; what is not understood perhaps matches.
pub fn read_match(name: &str, revision: u32, info: &[u8]) -> Expression {
    if name == "comment" {
        return Expression::Nothing;
    }
    understood(name, revision, info).map_or(Expression::Perhaps(false), Expression::Match)
}

fn understood(name: &str, revision: u32, info: &[u8]) -> Option<Match> {
    Some(match (name, revision) {
        ("udp" | "udplite" | "icmp" | "icmp6" | "sctp" | "dccp" | "esp" | "ah", _) => Match::Never,
        ("tcp", 0) => {
            // Whether it has an option is not known.
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
                // A range takes two.
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
            // Addresses of one interface alone.
            if flags & 0xc != 0 {
                return None;
            }
            Match::Addresses([short(info, 0)?, short(info, 2)?], [flags & 1 != 0, flags & 2 != 0])
        }
        // Of one dimension, and without conditions on counters.
        ("set", 1..=4) if byte(info, 2)? == 1 && info.iter().skip(4).all(|byte| *byte == 0) => {
            let flags = byte(info, 3)?;
            Match::InIpset { index: short(info, 0)?, source: flags & 2 != 0, inverted: flags & 1 != 0 }
        }
        ("rpfilter", 0) => Match::ReversePath(byte(info, 0)? & 8 != 0),
        _ => return None,
    })
}

/// States as xtables has them, where `untracked` is another bit, and translated ones are no states at all: whose
/// addresses change is not asked this.
fn states(mask: u32, untracked: u32) -> u32 {
    let common = mask & (INVALID | ESTABLISHED | 4 | NEW);
    if mask & untracked != 0 { common | UNTRACKED } else { common }
}

/// What a target does.
pub fn read_target(name: &str, revision: u32, info: &[u8]) -> Expression {
    let effect = match name {
        "MARK" => {
            let marked = word(info, 0).zip(word(info, 4)).filter(|_| revision == 2);
            return Expression::Mark(marked.map(|(mark, mask)| (mask, mark)));
        }
        // It may restore the mark of a packet.
        "CONNMARK" => return Expression::Mark(None),
        "CT" if short(info, 0).is_some_and(|flags| flags & 1 == 0) => return Expression::Nothing,
        "CT" | "NOTRACK" => return Expression::NoTrack,
        "LOG" | "NFLOG" | "TRACE" | "AUDIT" | "CLASSIFY" | "SECMARK" | "CONNSECMARK" | "RATEEST" | "LED"
        | "IDLETIMER" | "SET" | "CHECKSUM" | "HMARK" => {
            return if name == "HMARK" { Expression::Mark(None) } else { Expression::Nothing };
        }
        "NFQUEUE" => return Expression::Verdict(Verdict::Queue),
        "REJECT" => Effect::Reject,
        "MASQUERADE" | "SNAT" | "DNAT" | "REDIRECT" | "NETMAP" => Effect::Translate,
        "TPROXY" | "SYNPROXY" => Effect::Divert,
        "TEE" => Effect::Copy,
        "TCPMSS" | "TCPOPTSTRIP" | "TOS" | "DSCP" | "TTL" | "HL" | "ECN" => Effect::Rewrite,
        other => Effect::Unknown(Arc::from(other)),
    };
    Expression::Effect(effect)
}

#[cfg(test)]
mod tests {
    use super::super::packet::Segment;
    use super::*;

    fn packet() -> Packet {
        let to = "10.0.0.2:8080".parse().unwrap();
        let packet = Packet::new(Some("10.0.0.1:0".parse().unwrap()), to, Segment::Syn);
        Packet { tracked: Tracked::New, source: Class::Local, destination: Class::Elsewhere, ..packet }
    }

    fn is_of(name: &str, revision: u32, info: &[u8]) -> Truth {
        understood(name, revision, info).unwrap().is_of(&packet(), Word::of(0x4000))
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
        assert_eq!(read_match("statistic", 0, &[0; 32]), Expression::Perhaps(false));
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
    fn a_target_that_nobody_knows_counts() {
        assert_eq!(read_target("LOG", 0, &[]), Expression::Nothing);
        assert_eq!(read_target("MASQUERADE", 0, &[]), Expression::Effect(Effect::Translate));
        assert!(matches!(read_target("NOVEL", 0, &[]), Expression::Effect(Effect::Unknown(name)) if &*name == "NOVEL"));
        let mark = [0x4000_u32.to_ne_bytes(), 0x4000_u32.to_ne_bytes()].concat();
        assert_eq!(read_target("MARK", 2, &mark), Expression::Mark(Some((0x4000, 0x4000))));
        assert_eq!(read_target("MARK", 1, &mark), Expression::Mark(None));
    }
}
