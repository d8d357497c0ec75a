//! What Sluice does, told from outside: one story per file.
//!
//! The stories need root, and everything that `cargo xtask test` installs.

mod allowlist;
mod changes;
mod explain;
mod harness;
mod maps;
mod offline;
mod quickstart;
mod relay;
mod state;
mod trust;
