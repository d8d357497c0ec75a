//! The host's own firewall: what the rules of netfilter may do with the packets of connections that the kernel programs
//! carry. Those packets go past it, so a connection that a rule is for is relayed.
//!
//! A rule counts if it cannot be ruled out that it matches. What is not known of a packet (its source port, and for
//! listeners its source) leaves it open.

mod bits;
mod conditions;
mod expressions;
pub mod firewall;
mod index;
mod ipsets;
mod judge;
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

pub use judge::Loss;
pub use packet::Link;
pub use watch::Watch;

/// Whether rules of the host hold for connections that the kernel programs could carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum HostFirewall {
    /// A connection that a rule may be for is relayed.
    #[default]
    Respect,
    /// Rules are not looked at.
    Bypass,
}
