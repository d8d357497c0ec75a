//! Who serves what for whom: delegation over real connections.

mod subdomains;
