//! `bench cluster`: a router whose objects are in an API server, a real one and the mock of the tests.
//!
//! A program of the tests measures (`tests/programs/measure_cluster`), as it needs their clusters.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::document::{self, machine};
use crate::process::{self, cargo};
use crate::{ebpf, install, kube};

/// How to measure.
#[derive(Clone, clap::Args)]
pub struct Arguments {
    /// Length of the API server's outage, in seconds.
    #[arg(long, default_value_t = 600, value_name = "SECONDS")]
    outage: u32,
}

/// A row of the table, as the program prints it.
#[derive(Deserialize)]
struct Row {
    what: String,
    measured: String,
    bar: String,
    met: bool,
}

/// Measures, prints, writes its section of docs/benchmarks.md, and fails when a bar is missed.
pub fn run(root: &Path, arguments: &Arguments) -> Result<()> {
    ensure!(process::is_root(), "clusters need network namespaces: run it again by `sudo --preserve-env=PATH,HOME`");
    install::for_tests(root)?;
    ebpf::build(root)?;
    kube::build(root)?;
    let (sluice, program) = (process::build_sluice(root)?, program(root)?);
    let mut command = Command::new(program);
    command.arg(arguments.outage.to_string()).env("SLUICE_BINARY", sluice).stdout(Stdio::piped());
    let mut child = command.spawn().context("the program that measures cannot be run")?;
    let (mut text, mut missed) = (head()?, Vec::new());
    for line in BufReader::new(child.stdout.take().context("stdout is piped")?).lines() {
        let Row { what, measured, bar, met } = serde_json::from_str(&line?).context("a row is JSON")?;
        let verdict = if met { "met" } else { "**missed**" };
        eprintln!("{what}: {measured}, {verdict}");
        writeln!(text, "| {what} | {measured} | {bar} | {verdict} |")?;
        if !met {
            missed.push(format!("{what}: {measured}, the bar is {bar}"));
        }
    }
    let status = child.wait()?;
    ensure!(status.success(), "the program that measures has failed ({status})");
    println!("{text}");
    document::write_section(root, "Cluster", &text)?;
    ensure!(missed.is_empty(), "bars missed: {}", missed.join("; "));
    Ok(())
}

/// Builds the program that measures.
fn program(root: &Path) -> Result<PathBuf> {
    let build = ["build", "--quiet", "--locked", "--release", "--package", "tests", "--bin", "measure-cluster"];
    process::run(cargo(root).args(build))?;
    Ok(process::target(root).join("release/measure-cluster"))
}

fn head() -> Result<String> {
    Ok(format!(
        "`cargo xtask bench cluster`, on {}. Etcd, the API server, its controllers, the agents and their clients share the
cores. A real API server has 10,000 Routes to 100 Services; the mock of the tests has 100,000, and 5,000 each with a Service
for the changes of EndpointSlices. The Routes have the statuses that an agent wrote, as before any restart. The clock of a
start runs from exec to `sluice: ready`. That of a change of a Route's host, made while the agent is at rest, runs from before
the request to the API server: to a response of the proxy on a new connection, to the key in the pinned map `http_be`, or to the
stored status. Writes are those of the API server's audit log, but for Leases. Under load, four clients send 100 requests
a second, half of them on new connections; none is open at the moment when the agent, which `sluice keep` runs, is killed.

| what | measured | bar | |
|---|---|---|---|
",
        machine()?
    ))
}
