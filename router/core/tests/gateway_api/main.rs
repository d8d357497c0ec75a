//! Gateway API from manifests to statuses and look-ups. Each test names the tests of the API's conformance suite whose
//! behaviour it shows; `docs/gateway-api.md` has the list.

mod documented;
mod filters;
mod gateways;
mod grpc_routes;
mod http_matching;
mod http_references;
mod http_routes;
mod listeners;
mod properties;
mod tls_routes;
mod together;
mod world;
