//! The agent behind the `sluice` binary: sources, data path, proxy, status writer, admin. `agent` alone wires them.

#![forbid(unsafe_code)]

pub mod admin;
pub mod agent;
pub mod causes;
pub mod cli;
pub mod cluster_statuses;
pub mod controller;
pub mod demo;
pub mod keep;
pub mod kubernetes;
pub mod leader;
pub mod published;
pub mod random;
pub mod source;
pub mod status;
pub mod translation;
