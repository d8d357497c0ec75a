//! A rule: the expressions that the kernel evaluates in order (linux/netfilter/nf_tables.h).

use std::sync::Arc;

use super::verdict::RuleVerdict;
use crate::netfilter::xt_match;

/// Bytes of the registers of a rule.
pub const REGISTERS: usize = 80;

/// A span of the registers, within their bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterSpan {
    /// Offset of the first byte.
    pub at: usize,
    /// Number of bytes.
    pub len: usize,
}

/// Source of a register's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterSource {
    /// Bytes of the IP header, from this offset on.
    Network(usize),
    /// Bytes of the TCP header, from this offset on.
    Transport(usize),
    /// `NFT_META_*`.
    Meta(u32),
    /// `NFT_CT_*`; the direction is not known.
    Ct(u32),
    /// A look-up of addresses: result (`NFT_FIB_RESULT_*`) and flags (`NFTA_FIB_F_*`).
    Fib(u32, u32),
    /// Presence of an IPv6 extension header.
    ExtensionHeader,
    /// An unknown value, which may be absent.
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

/// Effect of a rule on a packet, besides a verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It is rejected, with an ICMP error or a reset.
    Reject,
    /// Its addresses or ports change.
    Translate,
    /// It is delivered to a socket that it is not addressed to.
    Divert,
    /// Its headers change.
    Rewrite,
    /// A copy of it, or the packet itself, is sent elsewhere.
    Copy,
    /// An unknown effect, by name.
    Unknown(Arc<str>),
}

/// An expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NftExpression {
    /// Loads a value.
    Load(RegisterSource, RegisterSpan),
    /// Loads these bytes.
    Immediate(RegisterSpan, Box<[u8]>),
    /// Continues if the comparison of the bytes holds.
    Compare(RegisterSpan, Comparison, Box<[u8]>),
    /// Continues if the bytes are within a range, or outside of it if inverted.
    Range {
        /// The bytes.
        of: RegisterSpan,
        /// Lowest and highest.
        ends: (Box<[u8]>, Box<[u8]>),
        /// Outside.
        inverted: bool,
    },
    /// `to = (from & mask) ^ xor`
    Bitwise {
        /// Source.
        from: RegisterSpan,
        /// Offset of the destination, with the same length.
        to: usize,
        /// Of the same length.
        mask: Box<[u8]>,
        /// Of the same length.
        xor: Box<[u8]>,
    },
    /// Reverses the bytes of each unit, on little-endian hosts; with the unit's size and the length in bytes.
    ByteOrder(RegisterSpan, usize, usize),
    /// Continues if the bytes are in a set, or are not if inverted.
    InSet(RegisterSpan, usize, bool),
    /// Applies the verdict that a map has for the bytes.
    VerdictOf(RegisterSpan, usize),
    /// Loads the value that a map has for the bytes.
    ValueOf(RegisterSpan, usize, RegisterSpan),
    /// Does it.
    Verdict(RuleVerdict),
    /// Does it.
    Effect(Effect),
    /// Sets the packet's mark.
    SetMark(RegisterSpan),
    /// Exempts the packet from connection tracking.
    NoTrack,
    /// An xtables match.
    Match(xt_match::Match),
    /// An xtables target that changes the mark: mask and value; `None` if unknown.
    Mark(Option<(u32, u32)>),
    /// May continue or not; `true`: the registers are unknown afterwards.
    Perhaps(bool),
    /// Has no effect here.
    Nothing,
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NftRule {
    /// Its handle in `nft`.
    pub handle: u64,
    /// Its expressions, in order.
    pub expressions: Vec<NftExpression>,
}
