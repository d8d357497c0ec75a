//! `cargo xtask bench`: measurements with release builds, written to docs/benchmarks.md.

use std::path::Path;

use anyhow::Result;
use clap::Subcommand;

mod admission;
mod bars;
pub mod cluster;
mod document;
mod folder;
mod gate;
pub mod http;
mod load;
mod network;
mod order;
pub mod passthrough;
mod probe;
mod programs;
mod start;
mod summary;
mod tools;
pub mod usage;

/// What to measure.
#[derive(Clone, Subcommand)]
pub enum Bench {
    /// How long 10,000 Routes take to load, and one of them to change.
    Load,
    /// How long 100,000 Routes and 10,000 HTTPRoutes take from start to serving, and their memory.
    Start,
    /// What admission of 100,000 routes of each kind takes, and one change of each kind of object.
    Admission,
    /// How fast TLS is passed through: the direct path, Sluice, HAProxy, nginx and Envoy side by side.
    Passthrough(passthrough::Arguments),
    /// What the XDP gate costs when nothing happens, and how many connections come about in a flood of SYNs.
    Gate(gate::Arguments),
    /// How fast requests are routed by host: Sluice, HAProxy, nginx and Envoy side by side.
    Http(http::Arguments),
    /// What objects in an API server cost: a start, a change, writes, and what holds in its outages.
    Cluster(cluster::Arguments),
}

/// Measures, prints and writes the results.
pub fn run(root: &Path, what: Bench) -> Result<()> {
    match what {
        Bench::Load => load::run(root),
        Bench::Start => start::run(root),
        Bench::Admission => admission::run(root),
        Bench::Passthrough(arguments) => passthrough::run(root, &arguments),
        Bench::Gate(arguments) => gate::run(root, &arguments),
        Bench::Http(arguments) => http::run(root, &arguments),
        Bench::Cluster(arguments) => cluster::run(root, &arguments),
    }
}
