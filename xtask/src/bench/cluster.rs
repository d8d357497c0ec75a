//! `bench cluster`: a router whose objects are in an API server, a real one and the mock of the tests.
//!
//! A program of the tests measures (`tests/programs/measure_cluster`), as it needs their clusters.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::document::{self, machine};
use crate::process::{self, cargo};
use crate::{ebpf, install, kube};

/// Length of the outage of which the bars are, in seconds.
const OUTAGE: u32 = 600;

/// How to measure.
#[derive(Clone, clap::Args)]
pub struct Arguments {
    /// Length of the API server's outage, in seconds.
    #[arg(long, default_value_t = OUTAGE, value_name = "SECONDS")]
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
    let (sluice, program, readers) = (process::build_sluice(root)?, program(root)?, readers(root)?);
    let mut command = Command::new(program);
    command.arg(arguments.outage.to_string()).env("SLUICE_BINARY", sluice).env("SLUICE_READERS", readers);
    command.stdout(Stdio::piped());
    let mut child = command.spawn().context("the program that measures cannot be run")?;
    let mut text = head(arguments.outage)?;
    let missed = rows(child.stdout.take().context("stdout is piped")?, &mut text);
    if missed.is_err() {
        child.kill()?;
    }
    let status = child.wait()?;
    let missed = missed?;
    ensure!(status.success(), "the program that measures has failed ({status})");
    println!("{text}");
    document::write_section(root, "Cluster", &text)?;
    ensure!(missed.is_empty(), "bars missed: {}", missed.join("; "));
    Ok(())
}

/// Adds the rows that the program prints to a table; returns those whose bar is missed.
fn rows(printed: impl Read, table: &mut String) -> Result<Vec<String>> {
    let mut missed = Vec::new();
    for line in BufReader::new(printed).lines() {
        let Row { what, measured, bar, met } = serde_json::from_str(&line?).context("a row is JSON")?;
        let verdict = if met { "met" } else { "**missed**" };
        eprintln!("{what}: {measured}, {verdict}");
        writeln!(table, "| {what} | {measured} | {bar} | {verdict} |")?;
        if !met {
            missed.push(format!("{what}: {measured}, the bar is {bar}"));
        }
    }
    Ok(missed)
}

/// Builds the program that measures.
fn program(root: &Path) -> Result<PathBuf> {
    let build = ["build", "--quiet", "--locked", "--release", "--package", "tests", "--bin", "measure-cluster"];
    process::run(cargo(root).args(build))?;
    Ok(process::target(root).join("release/measure-cluster"))
}

/// Builds the program that is many agents' sources.
fn readers(root: &Path) -> Result<PathBuf> {
    let build = ["build", "--quiet", "--locked", "--release", "--package", "router", "--example", "readers"];
    process::run(cargo(root).args(build))?;
    Ok(process::target(root).join("release/examples/readers"))
}

fn head(outage: u32) -> Result<String> {
    let note = match outage {
        OUTAGE => String::new(),
        other => {
            format!("\n**Not the default outage**: the API server was away for {other} s; the bar is for {OUTAGE} s.\n")
        }
    };
    Ok(format!(
        "`cargo xtask bench cluster`, on {}. Etcd, the API server, its controllers, the agents and their clients share the
cores. A real API server has 10,000 Routes to 100 Services; the mock of the tests has 100,000, and 5,000 each with a Service
for the changes of EndpointSlices; the thousand agents have a real one with 100, which sends no GOAWAY. The Routes have the
statuses that an agent wrote, as before any restart. The clock of a start runs from exec to `sluice: ready`. That of a change
of a Route's host, made while the agent is at rest, runs from before the request to the API server: to a response of the proxy
on a new connection, to the key in the pinned map `http_be`, or to the stored status. Writes are those of the API server's audit
log, but for Leases. Under load, four clients send 100 requests a second, half of them on new connections; none is open at the
moment when the agent, which `sluice keep` runs, is killed.
{note}
| what | measured | bar | |
|---|---|---|---|
",
        machine()?
    ))
}
