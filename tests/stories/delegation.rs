//! Delegation over real connections.

mod inclusion;
mod subdomains;
