//! A thousand agents of one API server, of which only the sources run: each lists and watches every kind over a connection of
//! its own.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use http::Method;
use tests::cluster::ControlPlane;
use tests::cluster::site::{ONE, Server, Site};
use tests::command;

use crate::objects::route;
use crate::row;

/// Number of agents.
const AGENTS: usize = 1000;
/// Number of Routes.
const ROUTES: usize = 100;
/// The Route that every agent waits for.
const NEW: &str = "new";

/// Measures what they cost the API server, and when all have a change.
pub fn measure() -> Result<()> {
    let site = Site::real()?;
    let Server::Real(plane) = &site.server else { anyhow::bail!("the API server is the mock") };
    site.service("web", ONE)?;
    (0..ROUTES).try_for_each(|number| site.route(&route(number), "web"))?;
    let (before, rejected_before) = (resident(plane)?, rejected(plane)?);
    let readers = env::var_os("SLUICE_READERS").context("SLUICE_READERS is the example `readers` of router")?;
    let mut command = site.netns.command(readers)?;
    command.arg(site.kubeconfig()).args([&AGENTS.to_string(), NEW]);
    let begin = Instant::now();
    let mut readers = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(readers.stdout.take().context("stdout is piped")?).lines();
    let mut expect = |expected: &str| -> Result<()> {
        let line = lines.next().context("the readers have ended")??;
        ensure!(line == expected, "the readers print {line:?}");
        Ok(())
    };
    expect("listed")?;
    let listed = begin.elapsed();
    let connections = connections(&site, plane)?;
    let after = resident(plane)?;
    let begin = Instant::now();
    site.route(NEW, "web")?;
    expect("changed")?;
    let changed = begin.elapsed();
    let rejected = rejected(plane)? - rejected_before;
    drop(readers.stdin.take());
    ensure!(readers.wait()?.success(), "the readers failed");

    let what = format!("{AGENTS} agents that start at once (their sources alone): connections");
    row::print(&what, &connections.to_string(), &AGENTS.to_string(), connections == AGENTS);
    let recorded = |what: &str, measured: &str| row::print(what, measured, "–", true);
    recorded("until all have listed every kind", &row::text(listed));
    recorded("until all have a new Route", &row::text(changed));
    let each = (after.saturating_sub(before) >> 10) / AGENTS as u64;
    recorded("resident memory of the API server", &format!("{} MiB ({each} KiB for each agent)", after >> 20));
    recorded("requests that its priority and fairness rejected", &rejected.to_string());
    Ok(())
}

/// Connections of the site to the API server.
fn connections(site: &Site, plane: &ControlPlane) -> Result<usize> {
    let mut command = site.netns.command("ss")?;
    command.args(["-tnH", "state", "established", "dst", &plane.server().to_string()]);
    let listed = command::output(&mut command)?;
    Ok(String::from_utf8(listed.stdout)?.lines().count())
}

/// Resident memory of the API server, in bytes.
fn resident(plane: &ControlPlane) -> Result<u64> {
    let is_server = |process: &u32| {
        fs::read(format!("/proc/{process}/cmdline"))
            .is_ok_and(|line| line.split(|byte| *byte == 0).any(|argument| argument.ends_with(b"kube-apiserver")))
    };
    let process = plane.processes().into_iter().find(is_server).context("the API server runs")?;
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("VmRSS")?;
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kibibytes << 10)
}

/// Requests that API Priority and Fairness has rejected (429), of all flows.
fn rejected(plane: &ControlPlane) -> Result<u64> {
    let (status, metrics) =
        plane.api().request_as("text/plain", Method::GET, "/metrics", "text/plain", String::new())?;
    ensure!(status.is_success(), "/metrics: {status}");
    let metrics = String::from_utf8(metrics.to_vec())?;
    let of_rejected = metrics.lines().filter(|line| line.starts_with("apiserver_flowcontrol_rejected_requests_total{"));
    let counts = of_rejected.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    Ok(counts.sum::<f64>() as u64)
}
