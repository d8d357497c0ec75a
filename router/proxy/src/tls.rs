//! TLS with clients: client authentication, sessions and handshakes. For server certificates see `certificates`.
//!
//! ```text
//! RouterPolicy ─► terms ─┬─ offer (router_table::tls_offer): versions, cipher suites
//!                        ├─ client_auth: whose certificates are good ─► client_certificate: what endpoints are told
//!                        └─ sessions, ticket keys: thrown away with the terms they were made under
//! ```

pub mod anchors;
pub mod client_auth;
pub mod client_certificate;
pub mod router_tls;
pub mod sessions;
pub mod terminate;
