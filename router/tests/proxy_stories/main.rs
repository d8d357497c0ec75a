//! The proxy on loopback with real clients and backends, and routing tables made by hand.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests")]

mod backends;
mod changes;
mod client;
mod failures;
mod forwarded;
mod hellos;
mod http1_corpus;
mod log;
mod messages;
mod passthrough;
mod pki;
mod reencrypt;
mod routing;
mod strictness;
mod tables;
mod termination;
mod upgrades;
