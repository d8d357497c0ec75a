//! `bench admission`: who gets a host among 100,000 Routes, without a router around it.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::document::{self, machine};
use super::summary::{Summary, summary};
use crate::process;

/// Admission and compilation of everything.
const FULL_BAR: Duration = Duration::from_secs(1);
/// The same after one Route has changed.
const CHANGE_BAR: Duration = Duration::from_millis(5);
/// Bytes in memory for each Route.
const MEMORY_BAR: u64 = 1536;

/// Measures, prints, writes its section of docs/benchmarks.md, and fails when a bar is missed.
pub fn run(root: &Path) -> Result<()> {
    let mut command = process::cargo(root);
    command.args(["run", "--locked", "--release", "--package", "router-translate", "--example", "admission"]);
    let output = command.stderr(std::process::Stdio::inherit()).output().context("cargo could not be started")?;
    ensure!(output.status.success(), "the measurement failed ({})", output.status);
    let results = Results::read(&String::from_utf8(output.stdout)?)?;
    let text = results.report()?;
    println!("{text}");
    document::write_section(root, "Admission", &text)?;
    for (what, measured, bar) in [("everything", results.full, FULL_BAR), ("a change", results.change, CHANGE_BAR)] {
        ensure!(measured.median < bar, "{what} takes {:?}, the bar is {bar:?}", measured.median);
    }
    ensure!(results.route_bytes < MEMORY_BAR, "a Route takes {} bytes, the bar is {MEMORY_BAR}", results.route_bytes);
    Ok(())
}

/// The example's output, parsed.
struct Results {
    routes: u64,
    namespaces: u64,
    full: Summary,
    change: Summary,
    object_bytes: u64,
    route_bytes: u64,
}

impl Results {
    fn read(printed: &str) -> Result<Self> {
        let lines: HashMap<&str, &str> = printed.lines().filter_map(|line| line.split_once(' ')).collect();
        let list = |name: &str| -> Result<Vec<u64>> {
            let Some(text) = lines.get(name) else { bail!("the measurement does not print {name}") };
            text.split(',').map(|number| number.parse().with_context(|| format!("{name} {text}"))).collect()
        };
        let number = |name: &str| list(name)?.first().copied().context("an empty list");
        let times =
            |name: &str| summary(list(name)?.into_iter().map(Duration::from_micros).collect()).context("no rounds");
        Ok(Results {
            routes: number("routes")?,
            namespaces: number("namespaces")?,
            full: times("full_us")?,
            change: times("change_us")?,
            object_bytes: number("object_bytes")?,
            route_bytes: number("route_bytes")?,
        })
    }

    fn report(&self) -> Result<String> {
        let Results { routes, namespaces, full, change, object_bytes, route_bytes } = self;
        let mut text = format!(
            "`cargo xtask bench admission`, on {}. {routes} Routes in {namespaces} namespaces, on one router: clear
text, edge and passthrough, with hosts of their own, with subdomains, and sharing hosts by path; one in each namespace
loses its host. Measured is the engine alone, from parsed objects to the table and the statuses; one change is another
host for one Route.

| what | median | worst | rounds | bar (median) |
|---|---|---|---|---|
",
            machine()?
        );
        for (what, measured, bar) in [
            ("admission and compilation of everything", full, FULL_BAR),
            ("the same after a change", change, CHANGE_BAR),
        ] {
            let Summary { rounds, median, worst } = measured;
            let [median, worst, bar] =
                [*median, *worst, bar].map(|took| format!("{:.2} ms", took.as_secs_f64() * 1000.0));
            writeln!(text, "| {what} | {median} | {worst} | {rounds} | {bar} |")?;
        }
        writeln!(
            text,
            "\nResident memory for each Route: {route_bytes} bytes, of which {object_bytes} are its object with its share of \
             Services and\nslices; the rest is table, statuses and what the engine keeps. The bar is {MEMORY_BAR} bytes."
        )?;
        Ok(text)
    }
}
