//! `bench load`: time from start to serving 10,000 Routes, and from a written file to the new rule in force.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use router_common::maps::{ABI, names};

use super::document::{self, machine};
use super::folder::{self, Setting};
use super::probe::{self, HostMap};
use super::summary::{Summary, milliseconds, summary};
use crate::process::{self, Running};
use crate::{ebpf, install};

const ROUTES: usize = 10_000;
const STARTS: usize = 5;
const CHANGES: usize = 41;
/// Until ready.
const START_BAR: Duration = Duration::from_secs(2);
/// Until a change is in force.
const CHANGE_BAR: Duration = Duration::from_millis(50);
/// When to give up on a change.
const PATIENCE: Duration = Duration::from_secs(10);
const INSTANCE: &str = "bench";

struct Results {
    start: Summary,
    proxy: Summary,
    kernel: Summary,
    resident: u64,
}

/// Measures, prints, writes docs/benchmarks.md, and fails when a bar is missed.
pub fn run(root: &Path) -> Result<()> {
    ensure!(process::is_root(), "the benchmark measures the kernel path too: run it again with sudo");
    install::for_tests(root)?;
    ebpf::build(root)?;
    let sluice = process::build_sluice(root)?;
    let work = Work::new()?;
    let results = measure(&sluice, &work)?;
    let text = report(&results)?;
    println!("{text}");
    document::write_section(root, "Loading and changing", &text)?;
    for (what, measured, bar) in [
        ("loading", results.start, START_BAR),
        ("a change in the proxy", results.proxy, CHANGE_BAR),
        ("a change in the kernel", results.kernel, CHANGE_BAR),
    ] {
        ensure!(measured.median < bar, "{what} takes {:?}, the bar is {bar:?}", measured.median);
    }
    Ok(())
}

/// Folders that go with the benchmark.
struct Work(PathBuf);

impl Work {
    fn new() -> Result<Work> {
        let folder = std::env::temp_dir().join(format!("sluice-bench-{}", std::process::id()));
        fs::create_dir_all(folder.join("manifests"))?;
        Ok(Work(folder))
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // What cannot be removed is in the system's folder for such things.
        let _ = fs::remove_dir_all(&self.0);
        let _ = fs::remove_dir_all(Path::new("/sys/fs/bpf/sluice").join(INSTANCE));
    }
}

fn measure(sluice: &Path, work: &Work) -> Result<Results> {
    let setting = Setting {
        http: probe::free_port()?,
        https: probe::free_port()?,
        stats: probe::free_port()?,
        endpoint: probe::backend()?,
    };
    let manifests = work.0.join("manifests");
    let file = folder::write(&manifests, ROUTES, setting)?;

    let mut starts = Vec::new();
    for _ in 1..STARTS {
        let (took, running) = start(sluice, work)?;
        starts.push(took);
        drop(running);
    }
    let (took, running) = start(sluice, work)?;
    starts.push(took);
    let resident = running.resident()?;

    let mut number = 0;
    let mut change = |arrived: &dyn Fn(&str) -> Result<bool>| -> Result<Duration> {
        number += 1;
        let host = format!("changed-{number}.bench.test");
        ensure!(!arrived(&host)?, "{host} is served before it is written");
        let text = folder::route(0, &host);
        // Work caused by the previous change, such as its status file, must not count here.
        running.settle()?;
        let begin = Instant::now();
        fs::write(&file, text)?;
        while !arrived(&host)? {
            if begin.elapsed() > PATIENCE {
                bail!("{host} is not in force {PATIENCE:?} after its Route was written");
            }
            thread::sleep(Duration::from_micros(500));
        }
        Ok(begin.elapsed())
    };
    let in_proxy = |host: &str| probe::serves(setting.http, host);
    let proxy: Vec<_> = (0..CHANGES).map(|_| change(&in_proxy)).collect::<Result<_>>()?;
    let map =
        HostMap::open(&Path::new("/sys/fs/bpf/sluice").join(INSTANCE).join(format!("v{ABI}")).join(names::HTTP_BE))?;
    let in_kernel = |host: &str| map.has(host);
    let kernel: Vec<_> = (0..CHANGES).map(|_| change(&in_kernel)).collect::<Result<_>>()?;
    Ok(Results {
        start: summary(starts).context("no start was measured")?,
        proxy: summary(proxy).context("no change was measured")?,
        kernel: summary(kernel).context("no change was measured")?,
        resident,
    })
}

/// Starts a router; returns how long it took from exec to `sluice: ready`.
fn start(sluice: &Path, work: &Work) -> Result<(Duration, Running)> {
    let mut command = Command::new(sluice);
    command
        .args(["run", "--huge-text", "auto"])
        .arg("--manifests")
        .arg(work.0.join("manifests"))
        .arg("--state")
        .arg(work.0.join("state"));
    command.args(["--instance", INSTANCE, "--data-path", "kernel", "--endpoint-addresses", "any"]);
    process::start_sluice(&mut command)
}

fn report(results: &Results) -> Result<String> {
    let mut text = String::new();
    writeln!(
        text,
        "`cargo xtask bench load`, on {}. {ROUTES} Routes, one per file in {} folders: a third clear
text, a third edge, a third passthrough, with the kernel program loaded. The clock of a start runs from exec to
`sluice: ready`, which is printed when everything is loaded, every port is open and the kernel maps are filled. The clock
of a change, made while the router is idle, runs from before one Route's file is written, with another host, to the
answer that shows the new host: a request to the proxy on a new connection, or a lookup in the pinned map `http_be` by
`bpftool` (whose own start-up is part of the figure).

| what | median | worst | rounds | bar (median) |
|---|---|---|---|---|",
        machine()?,
        ROUTES / 100,
    )?;
    for (what, measured, bar) in [
        ("start with all Routes", results.start, START_BAR),
        ("a change, in the proxy", results.proxy, CHANGE_BAR),
        ("a change, in the kernel", results.kernel, CHANGE_BAR),
    ] {
        let Summary { rounds, median, worst } = measured;
        let [median, worst, bar] = [median, worst, bar].map(milliseconds);
        writeln!(text, "| {what} | {median} | {worst} | {rounds} | {bar} |")?;
    }
    writeln!(text, "\nResident memory after loading: {} MiB.", results.resident >> 20)?;
    Ok(text)
}
