//! Gateway API from manifests to statuses and look-ups. Each test names the tests of the API's conformance suite whose
//! behaviour it covers; `docs/gateway-api.md` has the list.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test stops at the first surprise")]

mod documented;
mod filters;
mod gateways;
mod grpc_routes;
mod http_matching;
mod http_references;
mod http_routes;
mod inclusion;
mod listeners;
mod messages;
mod other_apis;
mod properties;
mod scenario;
mod tenants;
mod tls_routes;
