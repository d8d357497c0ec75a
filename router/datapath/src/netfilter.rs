//! The host's own firewall: the effect that netfilter's rules may have on the packets of carried connections. Those
//! packets bypass the rules, so a connection that a rule may concern is relayed.
//!
//! A rule counts unless it certainly does not match. Unknown properties of a packet (its source port, and for listeners
//! its source) leave that open.

mod conditions;
mod evaluation;
mod expressions;
pub mod firewall;
mod index;
mod ipsets;
mod known_bits;
mod legacy;
mod packet;
mod read;
mod registers;
mod rule;
mod rules;
mod sets;
mod verdict;
mod watch;
mod xt;
mod xt_match;

pub use evaluation::Loss;
pub use packet::Interface;
pub use watch::RulesetWatch;

/// Whether the host's rules apply to connections that the kernel programs could carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum HostFirewall {
    /// A connection that a rule may concern is relayed.
    #[default]
    Respect,
    /// Rules are ignored.
    Bypass,
}
