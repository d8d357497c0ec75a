//! A rule: the expressions that the kernel evaluates in order (linux/netfilter/nf_tables.h).

use std::sync::Arc;

use super::verdict::Verdict;
use crate::netfilter::xt_match;

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
    Match(xt_match::Match),
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
