//! The proxy on loopback with real clients and backends, and routing tables made by hand.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests")]

mod affinity;
mod backends;
mod backends_h2;
mod balance;
mod capacity;
mod changes;
mod client;
mod client_certificates;
mod failures;
mod fields;
mod forwarded;
mod grpc;
mod hellos;
mod http1_corpus;
mod http2_floods;
mod limits;
mod log;
mod messages;
mod misdirected;
mod passthrough;
mod pki;
mod proxied;
mod reencrypt;
mod resumption;
mod retries;
mod rotation;
mod routing;
mod strictness;
mod tables;
mod termination;
mod tls_profile;
mod upgrades;
