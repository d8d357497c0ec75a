//! The agent behind the `sluice` binary: sources, data path, proxy, status writer, admin. `agent` alone wires them.
pub mod admin;
pub mod agent;
pub mod allocator;
pub mod cli;
pub mod conntrack;
pub mod datapath;
pub mod demo;
pub mod keep;
pub mod log_writer;
pub mod netlink;
pub mod proxy;
pub mod published;
pub mod relay;
pub mod source;
pub mod status;
pub mod text;
pub mod timer;
