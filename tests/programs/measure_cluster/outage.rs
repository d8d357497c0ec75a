//! The API server is killed under load, and an agent in the outage.

use std::net::SocketAddr;
use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tests::cluster::site::{Site, TWO};
use tests::wait::{PATIENCE, wait_until};

use crate::agents::{Agent, written, written_since};
use crate::change::change_host;
use crate::load::{self, Load};
use crate::objects::{SERVICES, SLICES, host, route, service, slice};
use crate::row;

/// Maximum time from the API server's return until the agent has what changed.
const IN_STEP: Duration = Duration::from_secs(10);
/// Numbers of the Routes that are asked for; nothing changes them.
const ASKED: Range<usize> = 3_000..10_000;
/// Number of the Route that is changed at the end.
const CHANGED: usize = 2_000;

/// Measures.
pub fn measure(site: &mut Site, outage: Duration) -> Result<()> {
    let agent = Agent::keep(site, &["--lease", "sluice-kept"])?;
    agent.settle()?;
    let before = written(site)?.len();
    let load = Load::start(site, ASKED);
    let length = length(outage);
    site.plane()?.kill_api_server()?;
    eprintln!("the API server is killed, for {length}");
    thread::sleep(outage / 2);
    let killed = Instant::now();
    load.paused(|| kill_agent(&agent))?;
    let (netns, router) = (site.netns.clone(), SocketAddr::new(site.address(), 8080));
    let serves = |host: &str| load::serves(&netns, router, host).unwrap_or_default();
    wait_until("another agent serves", PATIENCE, || serves(&host(ASKED.start)))?;
    let served = killed.elapsed();
    thread::sleep(outage / 2);

    site.plane()?.start_api_server(&[])?;
    let returned = Instant::now();
    let new = "after-the-outage.apps.test";
    let service = service(CHANGED % SERVICES);
    let endpoints = slice(site, &service, TWO);
    let api = site.plane()?.api();
    change_host(api, &route(CHANGED), new)?;
    api.patch(&format!("{SLICES}/{service}-1"), &endpoints)?;
    wait_until("the change is served", PATIENCE, || serves(new))?;
    site.wait_for(new, "two")?;
    let in_step = returned.elapsed();
    let result = load.end()?;
    let writes = written_since(site, before, 1)?;

    let measured = format!("{} of {}, the slowest after {}", result.failed, result.requests, row::text(result.slowest));
    let what = format!("API server killed for {length} under load, an agent killed in it: failed requests");
    row::print(&what, &measured, "0", result.failed == 0);
    if let Some(failure) = result.failure {
        eprintln!("the first failed request: {failure}");
    }
    eprintln!("the agent that was killed is replaced after {}", row::text(served));
    let bar = format!("≤ {}", row::text(IN_STEP));
    row::print(
        "after its return, a changed Route and endpoint are served after",
        &row::text(in_step),
        &bar,
        in_step <= IN_STEP,
    );
    row::print("writes then", &format!("{writes} for 1 change"), "1", writes == 1);
    Ok(())
}

/// Minutes, or seconds if they are no whole minutes.
fn length(outage: Duration) -> String {
    let seconds = outage.as_secs();
    if seconds >= 60 && seconds.is_multiple_of(60) { format!("{} min", seconds / 60) } else { format!("{seconds} s") }
}

/// Kills the agent that a keeper runs.
fn kill_agent(kept: &Agent) -> Result<()> {
    let [agent] = kept.sluice.agents()?[..] else { bail!("one agent runs") };
    kill_process(Pid::from_raw(i32::try_from(agent)?).context("a process id is positive")?, Signal::KILL)?;
    let is_gone = || kept.sluice.agents().is_ok_and(|agents| !agents.contains(&agent));
    wait_until("the killed agent has ended", PATIENCE, is_gone).map(drop)
}
