//! Who serves what for whom: delegation over real connections.

mod inclusion;
mod subdomains;
