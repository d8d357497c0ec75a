//! Sluice's behaviour, tested from outside: one story per file.
//!
//! The stories need root, and all packages that `cargo xtask test` installs.

mod across;
mod allowlist;
mod changes;
mod cleartext;
mod clients;
mod cluster;
mod cluster_rules;
mod delegation;
mod documented;
mod explain;
mod findings;
mod flows;
mod gate;
mod gateway;
mod harness;
mod host_rules;
mod http;
mod instances;
mod keep;
mod later_rules;
mod limits;
mod links;
mod loops;
mod manifests;
mod maps;
mod next_hops;
mod offline;
mod path_mtu;
mod peers;
mod pods;
mod quickstart;
mod relay;
mod state;
mod steer;
mod strangers;
mod survival;
mod tls;
mod trust;
mod vlan;
mod ways_out;
