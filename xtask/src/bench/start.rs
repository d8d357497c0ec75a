//! `bench start`: time from start to serving a large folder, resident memory once all statuses are written, and time until a
//! changed manifest has effect.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use self::launch::Launched;
use super::document::{self, machine};
use super::folder::{self, Setting};
use super::summary::{Summary, milliseconds, summary};
use crate::install;
use crate::process;

mod launch;
mod renamed;

/// Starts of each folder.
const STARTS: usize = 5;
/// Longest median of a change, until it has effect.
const CHANGE: Duration = Duration::from_millis(20);

/// A folder of manifests.
struct World {
    about: &'static str,
    write: fn(&Path, usize, Setting) -> Result<PathBuf>,
    /// Number of routes, one in each file.
    routes: usize,
    /// Longest median of a start.
    start: Duration,
    /// Most resident memory, in bytes: of all, or for each route more than with one route.
    resident: Memory,
}

#[derive(Clone, Copy)]
enum Memory {
    All(u64),
    EachRoute(u64),
}

const WORLDS: [World; 2] = [
    World {
        about: "100,000 Routes: a third clear text, a third edge, a third passthrough",
        write: folder::write,
        routes: 100_000,
        start: Duration::from_millis(1500),
        resident: Memory::All(150 << 20),
    },
    World {
        about: "10,000 HTTPRoutes, each with a Service and an EndpointSlice",
        write: folder::write_http_routes,
        routes: 10_000,
        start: Duration::from_millis(500),
        resident: Memory::EachRoute(5 << 10),
    },
];

/// Measures, prints, writes its section of docs/benchmarks.md, and fails when a bar is missed.
pub fn run(root: &Path) -> Result<()> {
    ensure!(process::is_root(), "the router runs in a network namespace of its own: run it again with sudo");
    install::for_tests(root)?;
    let sluice = process::build_sluice(root)?;
    let mut text = format!(
        "`cargo xtask bench start`, on {}. One route in each file, a hundred files in each folder, on a tmpfs; user-space data
path. The clock runs from exec to `sluice: ready`. Memory is read once all statuses are written.

| folder | start, median | worst | bar | resident at readiness | resident once statuses are written | bar |
|---|---|---|---|---|---|---|
",
        machine()?
    );
    let mut missed = Vec::new();
    for world in &WORLDS {
        measure(&sluice, world, &mut text, &mut missed)?;
    }
    measure_change(&sluice, &mut text, &mut missed)?;
    println!("{text}");
    document::write_section(root, "Start", &text)?;
    ensure!(missed.is_empty(), "bars missed: {}", missed.join("; "));
    Ok(())
}

fn measure(sluice: &Path, world: &World, text: &mut String, missed: &mut Vec<String>) -> Result<()> {
    let World { about, routes, .. } = world;
    let rounds = (0..STARTS).map(|_| start(sluice, world, *routes)).collect::<Result<Vec<_>>>()?;
    let Summary { median, worst, .. } =
        summary(rounds.iter().map(|round| round.took).collect()).context("no rounds")?;
    let most = |of: fn(&Round) -> u64| rounds.iter().map(of).max().unwrap_or_default();
    let (ready, written) = (most(|round| round.ready), most(|round| round.written));
    if median > world.start {
        missed.push(format!("{about}: a start takes {median:?} of {:?}", world.start));
    }
    let mib = |bytes: u64| format!("{} MiB", bytes >> 20);
    let each = |bytes: u64| format!("{:.1} KiB for each", bytes as f64 / 1024.0);
    let (measured, bar, shown, shown_bar) = match world.resident {
        Memory::All(bar) => (written, bar, mib(written), mib(bar)),
        Memory::EachRoute(bar) => {
            let measured = written.saturating_sub(start(sluice, world, 1)?.written) / *routes as u64;
            (measured, bar, format!("{}, {}", mib(written), each(measured)), each(bar))
        }
    };
    if measured > bar {
        missed.push(format!("{about}: {shown} resident, the bar is {shown_bar}"));
    }
    let [median, worst, bar_of_start] = [median, worst, world.start].map(milliseconds);
    writeln!(text, "| {about} | {median} | {worst} | {bar_of_start} | {} | {shown} | {shown_bar} |", mib(ready))?;
    Ok(())
}

/// One start.
struct Round {
    took: Duration,
    /// Resident bytes at readiness.
    ready: u64,
    /// Resident bytes once all statuses are written.
    written: u64,
}

fn start(sluice: &Path, world: &World, routes: usize) -> Result<Round> {
    let launched = Launched::new(sluice, world.write, routes)?;
    let ready = launched.running.resident()?;
    launched.wait_for_statuses(routes)?;
    Ok(Round { took: launched.took, ready, written: launched.running.resident()? })
}

/// Measures a change from outside, in the folder of the last world.
fn measure_change(sluice: &Path, text: &mut String, missed: &mut Vec<String>) -> Result<()> {
    let [.., World { write, routes, .. }] = WORLDS;
    let launched = Launched::new(sluice, write, routes)?;
    launched.wait_for_statuses(routes)?;
    let Summary { median, worst, .. } = renamed::measure(&launched)?;
    let [shown, worst, bar] = [median, worst, CHANGE].map(milliseconds);
    writeln!(
        text,
        "\nOne of these EndpointSlices, written beside its old version and renamed, until a request is answered by the new
endpoint: median {shown}, worst {worst}, bar {bar}."
    )?;
    if median > CHANGE {
        missed.push(format!("a change takes {shown} of {bar}"));
    }
    Ok(())
}
