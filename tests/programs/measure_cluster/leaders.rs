//! Two agents: another leads when the leader is killed, and two never write at a time.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rustix::process::Signal;
use tests::cluster::ControlPlane;
use tests::cluster::site::{Server, Site};
use tests::netns::Netns;
use tests::sluice::DataPath;

use crate::agents::{Agent, written, written_since};
use crate::change::change_host;
use crate::objects::route;
use crate::row;

/// Maximum time until another agent leads.
const FAIL_OVER: Duration = Duration::from_secs(35);
/// Number of changes after a paused leader goes on, one a second.
const LATE_CHANGES: usize = 8;
/// Number of the first Route that is changed here.
const FIRST: usize = 1_000;

/// An agent as a user of its own, by whom the audit log names it.
fn agent(plane: &ControlPlane, netns: &Netns, user: &str) -> Result<Agent> {
    let credentials = plane.credentials();
    let kubeconfig = credentials.kubeconfig(user, &credentials.user(user, "system:masters")?)?;
    Agent::start_in(netns, &kubeconfig, DataPath::UserSpace, &["--lease", "sluice-shared"])
}

/// Measures.
pub fn measure(site: &Site) -> Result<()> {
    let Server::Real(plane) = &site.server else { bail!("the API server is the mock") };
    let netns = Netns::new("second")?;
    plane.network().join(&netns, "eth0")?;
    let first = agent(plane, &site.netns, "first")?;
    first.settle()?;
    let second = agent(plane, &netns, "second")?;
    let before = written(site)?.len();
    let begin = Instant::now();
    drop(first.sluice.kill()?);
    second.leads(2 * FAIL_OVER)?;
    let took = begin.elapsed();
    let bar = format!("≤ {}", row::text(FAIL_OVER));
    row::print("leader killed: another leads after", &row::text(took), &bar, took <= FAIL_OVER);
    second.settle()?;
    let writes = written_since(site, before, 0)?;
    row::print("writes by the fail-over", &writes.to_string(), "0", writes == 0);

    // The second one is paused for longer than its Lease holds, and goes on while another leads.
    let third = agent(plane, &site.netns, "third")?;
    let before = written(site)?.len();
    let mut changed = 0;
    let mut change = || {
        changed += 1;
        change_host(plane.api(), &route(FIRST + changed), &format!("led-{changed}.apps.test"))?;
        thread::sleep(Duration::from_secs(1));
        Ok::<_, anyhow::Error>(changed)
    };
    change()?;
    second.sluice.signal(Signal::STOP)?;
    let begin = Instant::now();
    while !third.sluice.has_line("holds the Lease") && begin.elapsed() < 2 * FAIL_OVER {
        change()?;
    }
    second.sluice.signal(Signal::CONT)?;
    for _ in 0..LATE_CHANGES {
        change()?;
    }
    let changes = change()?;
    let writes = written_since(site, before, changes)?;
    let mut writers = written(site)?.split_off(before);
    writers.dedup();
    let measured = format!("{writes} writes for {changes} changes, by {}", writers.join(", then by "));
    let once = writes == changes && writers == ["second", "third"];
    row::print(
        "leader paused for longer than its Lease, then going on",
        &measured,
        "1 for each, by one at a time",
        once,
    );
    Ok(())
}
