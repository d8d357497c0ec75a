//! A thousand agents of one API server, of which only the sources run: each lists and watches every kind over a connection of
//! its own.

use std::env;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use http::Method;
use serde_json::Value;
use tests::cluster::site::{ONE, ROUTES, Server, Site, route_object};
use tests::cluster::{Api, ControlPlane};
use tests::command;
use tests::process::Process;

use crate::objects::route;
use crate::row;

/// Number of agents.
const AGENTS: usize = 1000;
/// Number of Routes.
const FEW: usize = 100;
/// The Route that every agent waits for.
const NEW: &str = "new";
/// Time-out for all of them to list, or to have the change.
const PATIENCE: Duration = Duration::from_secs(180);

/// Measures what they cost the API server, and when all have a change.
pub fn measure() -> Result<()> {
    let mut site = Site::real()?;
    site.service("web", ONE)?;
    // An agent has a second connection after each GOAWAY, and they could not be counted.
    site.plane()?.kill_api_server()?;
    site.plane()?.start_api_server(&["--goaway-chance=0"])?;
    let Server::Real(plane) = &site.server else { bail!("the API server is the mock") };
    let routes: Vec<Value> = (0..FEW).map(|number| route_object(&route(number), "web")).collect();
    plane.create_all(ROUTES, &routes)?;
    let (before, rejected_before) = (plane.resident()?, rejected(plane.api())?);
    let program = env::var_os("SLUICE_READERS").context("SLUICE_READERS is the example `readers` of router")?;
    let mut command = site.netns.command("setpriv")?;
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command.arg(site.kubeconfig()).args([&AGENTS.to_string(), NEW]);
    let begin = Instant::now();
    let mut readers = Process::start_lasting("readers", command)?;
    readers.wait_for_line("listed", PATIENCE)?;
    let listed = begin.elapsed();
    let connections = connections(&site, plane)?;
    let after = plane.resident()?;
    // The API server has closed the connection of the first client if the listing took long.
    let api = plane.client(plane.netns())?;
    let begin = Instant::now();
    api.create(ROUTES, &route_object(NEW, "web"))?;
    readers.wait_for_line("changed", PATIENCE)?;
    let changed = begin.elapsed();
    let rejected = rejected(&api)? - rejected_before;

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

/// Requests that API Priority and Fairness has rejected (429), of all flows.
fn rejected(api: &Api) -> Result<u64> {
    let (status, metrics) = api.request_as("text/plain", Method::GET, "/metrics", "text/plain", String::new())?;
    ensure!(status.is_success(), "/metrics: {status}");
    let metrics = String::from_utf8(metrics.to_vec())?;
    let of_rejected = metrics.lines().filter(|line| line.starts_with("apiserver_flowcontrol_rejected_requests_total{"));
    let counts = of_rejected.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    Ok(counts.sum::<f64>() as u64)
}
