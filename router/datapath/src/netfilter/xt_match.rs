//! Matches of xtables (iptables): `-m` of `iptables-nft`.

use crate::netfilter::known_bits::{KnownBits, Truth};
use crate::netfilter::packet::{AddressClass, RulePacket, Tracked};

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Match {
    /// Ports and flags of TCP (`-p tcp --dport 80 --syn`).
    Tcp {
        /// Lowest and highest source port.
        source: (u16, u16),
        /// Lowest and highest destination port.
        destination: (u16, u16),
        /// Mask of the flags compared.
        flags: u8,
        /// Flags that must be set.
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
        /// Matches ports outside all ranges.
        inverted: bool,
    },
    /// `-m mark`
    Mark {
        /// Bits compared.
        mask: u32,
        /// Their value.
        value: u32,
        /// Matches any other value.
        inverted: bool,
    },
    /// Connection states (bits of `NFT_CT_STATE`); inverted; true if the match compares nothing else.
    States(u32, bool, bool),
    /// Types of addresses as bits of `RTN_*`: of the source, of the destination; inverted.
    Addresses([u16; 2], [bool; 2]),
    /// The route to the packet's source leaves by its input interface (`-m rpfilter`); inverted.
    ReversePath(bool),
    /// The source or the destination is in an ipset.
    InIpset {
        /// Index of the set.
        index: u16,
        /// True for the source, false for the destination.
        source: bool,
        /// Matches addresses that are not in the set.
        inverted: bool,
    },
    /// Never matches: another protocol.
    Never,
}

/// `XT_TCP_INV_DSTPT`
pub const OTHER_DESTINATION: u8 = 2;

/// `NFT_CT_STATE`'s bits.
pub const INVALID: u32 = 1;

/// See [`INVALID`].
pub const ESTABLISHED: u32 = 2;

/// See [`INVALID`].
pub const NEW: u32 = 8;

/// See [`INVALID`].
pub const UNTRACKED: u32 = 64;

/// `RTN_UNICAST` and `RTN_LOCAL` (linux/rtnetlink.h).
pub(super) const UNICAST: u16 = 1 << 1;

pub(super) const LOCAL: u16 = 1 << 2;

impl Match {
    /// Whether a packet matches.
    pub fn is_of(&self, packet: &RulePacket, mark: KnownBits) -> Truth {
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
            // Endpoints' packets arrive on the interface by which packets to them leave.
            Match::ReversePath(inverted) if packet.reply => Truth::of(!inverted),
            Match::ReversePath(_) => Truth::Perhaps,
            // Looked up where the sets are available.
            Match::InIpset { .. } => Truth::Perhaps,
            Match::Never => Truth::No,
        }
    }
}

/// A packet's bit of `NFT_CT_STATE`; `None` if unknown.
pub fn state(packet: &RulePacket) -> Option<u32> {
    match packet.tracked {
        Tracked::New => Some(NEW),
        Tracked::Established => Some(ESTABLISHED),
        Tracked::Invalid => Some(INVALID),
        Tracked::Unknown => None,
    }
}

fn has_flags(packet: &RulePacket, mask: u8, set: u8) -> Truth {
    let flags = packet.transport().part(13, 1);
    let (value, known) = (u32::from(flags.value[0]), u32::from(flags.known[0]));
    KnownBits { value, known }.has(u32::from(mask), u32::from(set))
}

fn has_class(class: AddressClass, types: u16) -> Truth {
    match class {
        _ if types == 0 => Truth::Yes,
        AddressClass::Local => Truth::of(types & LOCAL != 0),
        AddressClass::Elsewhere => Truth::of(types & UNICAST != 0),
        AddressClass::Unknown => Truth::Perhaps,
    }
}
