//! TCP options as values, and their expected translation.

use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::super::FlowTranslation;
use super::any_number;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opt {
    Nop,
    Timestamps(u32, u32),
    /// Edges of SACK blocks.
    Sack(Vec<u32>),
    /// Another kind, or a known kind of another length, which is unchanged.
    Other(u8, Vec<u8>),
}

impl Opt {
    fn bytes(&self) -> Vec<u8> {
        let with_length = |kind: u8, value: &[u8]| [&[kind, value.len() as u8 + 2][..], value].concat();
        match self {
            Opt::Nop => vec![1],
            Opt::Timestamps(value, echo) => with_length(8, &[value.to_be_bytes(), echo.to_be_bytes()].concat()),
            Opt::Sack(edges) => {
                let edges: Vec<u8> = edges.iter().flat_map(|edge| edge.to_be_bytes()).collect();
                with_length(5, &edges)
            }
            Opt::Other(kind, value) => with_length(*kind, value),
        }
    }
}

/// Options of at most 40 bytes, and their end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    list: Vec<Opt>,
    /// Bytes after the options, at which reading ends: padding or garbage.
    tail: Vec<u8>,
}

impl Options {
    /// As many of the options as fit; the tail is cut or padded to a multiple of four bytes.
    pub fn new(list: Vec<Opt>, mut tail: Vec<u8>) -> Self {
        let mut room = 40;
        let fits = |option: &Opt| {
            let len = option.bytes().len();
            let fits = len <= room;
            room -= if fits { len } else { 0 };
            fits
        };
        let list: Vec<Opt> = list.into_iter().filter(fits).collect();
        // A cut tail leaves an option that is longer than the rest: malformed as before.
        tail.truncate(room);
        tail.resize(tail.len() + (room - tail.len()) % 4, 0);
        Options { list, tail }
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.list.iter().flat_map(Opt::bytes).chain(self.tail.iter().copied()).collect()
    }

    pub fn translated(&self, t: &FlowTranslation, ack: bool) -> Self {
        let translated = |option: &Opt| match option {
            Opt::Timestamps(value, echo) => {
                let echo = if ack { echo.wrapping_add(t.delta_tsecr) } else { *echo };
                Opt::Timestamps(value.wrapping_add(t.delta_tsval), echo)
            }
            Opt::Sack(edges) if ack => Opt::Sack(edges.iter().map(|edge| edge.wrapping_add(t.delta_ack)).collect()),
            other => other.clone(),
        };
        Options { list: self.list.iter().map(translated).collect(), tail: self.tail.clone() }
    }
}

fn any_option() -> impl Strategy<Value = Opt> {
    let bytes = |len| prop::collection::vec(any::<u8>(), len);
    let sack = (1..5_usize).prop_flat_map(|blocks| prop::collection::vec(any_number(), blocks * 2));
    prop_oneof![
        4 => Just(Opt::Nop),
        3 => (any_number(), any_number()).prop_map(|(value, echo)| Opt::Timestamps(value, echo)),
        3 => sack.prop_map(Opt::Sack),
        1 => bytes(2..3).prop_map(|mss| Opt::Other(2, mss)),
        1 => bytes(1..2).prop_map(|shift| Opt::Other(3, shift)),
        1 => Just(Opt::Other(4, Vec::new())),
        1 => (any::<u8>().prop_filter("known", |kind| ![0, 1, 5, 8].contains(kind)), bytes(0..12))
            .prop_map(|(kind, value)| Opt::Other(kind, value)),
        1 => bytes(0..20).prop_filter("a length that counts", |value| value.len() != 8)
            .prop_map(|value| Opt::Other(8, value)),
        1 => bytes(0..30).prop_filter("a length that counts", |value| value.is_empty() || value.len() % 8 != 0)
            .prop_map(|value| Opt::Other(5, value)),
    ]
}

fn any_tail() -> impl Strategy<Value = Vec<u8>> {
    // Bytes that would be timestamps, after the end of reading.
    let unread = prop_oneof![Just(vec![8, 10, 1, 2, 3, 4, 5, 6, 7, 8]), prop::collection::vec(any::<u8>(), 0..40)];
    let malformed = prop_oneof![
        (2..255_u8, 0..2_u8).prop_map(|(kind, length)| vec![kind, length]),
        (2..255_u8, 41..=255_u8).prop_map(|(kind, length)| vec![kind, length]),
        Just(vec![0]),
    ];
    prop_oneof![Just(Vec::new()), (malformed, unread).prop_map(|(malformed, unread)| [malformed, unread].concat())]
}

/// Options in any order, with any padding; every fourth time begins with those of nearly every packet.
pub fn any_options() -> impl Strategy<Value = Options> {
    let usual =
        (any_number(), any_number()).prop_map(|(value, echo)| vec![Opt::Nop, Opt::Nop, Opt::Timestamps(value, echo)]);
    let front = prop_oneof![3 => Just(Vec::new()), 1 => usual];
    (front, prop::collection::vec(any_option(), 0..8), any_tail())
        .prop_map(|(front, list, tail)| Options::new([front, list].concat(), tail))
}
