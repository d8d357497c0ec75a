//! The proxy on loopback with real clients and backends, and routing tables made by hand.

mod backends;
mod changes;
mod client;
mod failures;
mod hellos;
mod log;
mod passthrough;
mod pki;
mod reencrypt;
mod requests;
mod tables;
mod termination;
mod upgrades;
