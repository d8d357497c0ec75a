//! The kernel data path: lower the routing table to map entries, plan the difference, write it, attach the program.
//!
//! ```text
//! RoutingTable ─┐
//! listeners    ─┼─► lower ─► MapImage ─► plan ─► [Change] ─► Maps (kernel) ─► Programmed
//! addresses    ─┤            ▲    ▲
//! egress_routes─┘           │    └─ adopt: what the maps held when this agent came
//!                            └─ pools: endpoints of routes, under ids that are never given twice
//!
//! flows ─► flow_gc ─┐
//! flow_ends        ─┼─► flow_log ─► access log, counters
//! events           ─┘
//! ```
//! Map writes are idempotent; failed writes are kept and retried, and are visible upstream only in the status.

#![forbid(unsafe_code)]

pub mod address;
pub mod adopt;
pub mod alias_table;
pub mod clock;
pub mod conntrack;
pub mod dump;
mod egress_hooks;
pub mod egress_routes;
pub mod events;
pub mod flow_gc;
pub mod flow_log;
pub mod flows;
pub mod gate;
pub mod host;
pub mod image;
pub mod instances;
pub mod interfaces;
pub mod kernel;
pub mod lower;
pub mod maps;
pub mod net_keys;
pub mod netfilter;
pub mod netlink;
pub mod obstacles;
pub mod pin_folder;
pub mod plan;
pub mod pools;
pub mod ports;
pub mod reconciler;
pub mod redirect_peer;
mod resets;
pub mod simulate;
mod taken_flows;
#[cfg(test)]
mod testing;
mod xdp_forward;

pub use pin_folder::{BPFFS, PinFolder};

/// The data path that the operator selects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum DataPathMode {
    /// The kernel's, if it is available; else user space, with the reason in the log.
    #[default]
    Auto,
    /// The kernel's, or fail.
    Kernel,
    /// User space only.
    Userspace,
}
