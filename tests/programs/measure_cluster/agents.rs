//! Agents on an API server.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tempfile::TempDir;
use tests::cluster::site::{CALM, Server, Site};
use tests::netns::Netns;
use tests::sluice::{DataPath, Options, Sluice};
use tests::wait::{PATIENCE, wait_until};

/// Time without work after which an agent has settled. What it does once a second takes less than a clock tick.
const SETTLED: Duration = Duration::from_millis(300);

/// An agent that is ready.
pub struct Agent {
    pub sluice: Sluice,
    /// From exec to `sluice: ready`.
    pub start: Duration,
}

impl Agent {
    /// Starts one with further arguments, and the user-space data path.
    pub fn start(site: &Site, arguments: &[&str]) -> Result<Agent> {
        Agent::start_in(&site.netns, site.kubeconfig(), DataPath::UserSpace, arguments)
    }

    /// Starts one in a namespace, as the user of a kubeconfig.
    pub fn start_in(netns: &Netns, kubeconfig: &Path, data_path: DataPath, arguments: &[&str]) -> Result<Agent> {
        let options = Options { arguments: with_drain(arguments), ..Options::network(data_path) };
        Agent::of(netns, kubeconfig, &options)
    }

    /// Starts one that `sluice keep` starts again when it ends.
    pub fn keep(site: &Site, arguments: &[&str]) -> Result<Agent> {
        let state = Some(Arc::new(TempDir::new()?));
        let options =
            Options { arguments: with_drain(arguments), kept: true, state, ..Options::network(DataPath::UserSpace) };
        Agent::of(&site.netns, site.kubeconfig(), &options)
    }

    fn of(netns: &Netns, kubeconfig: &Path, options: &Options) -> Result<Agent> {
        let begin = Instant::now();
        let mut sluice = Sluice::spawn_in_cluster(netns, kubeconfig, options)?;
        sluice.wait_until_ready()?;
        Ok(Agent { sluice, start: begin.elapsed() })
    }

    /// Waits until it holds its Lease.
    pub fn leads(&self, within: Duration) -> Result<Duration> {
        wait_until("the agent holds the Lease", within, || self.sluice.has_line("holds the Lease"))
    }

    /// Waits until it holds its Lease, and has nothing left to do.
    pub fn settle(&self) -> Result<()> {
        self.leads(PATIENCE)?;
        let begin = Instant::now();
        let mut last = (self.sluice.processor_time()?, begin);
        while last.1.elapsed() < SETTLED {
            ensure!(begin.elapsed() < PATIENCE, "the agent does not settle");
            thread::sleep(Duration::from_millis(10));
            let now = self.sluice.processor_time()?;
            if now > last.0 + Duration::from_millis(10) {
                last = (now, Instant::now());
            }
        }
        Ok(())
    }
}

fn with_drain(arguments: &[&str]) -> Vec<String> {
    ["--drain", "0"].iter().chain(arguments).map(|argument| (*argument).to_owned()).collect()
}

/// The users of the writes of agents to a real API server so far, in their order; those of Leases do not count.
pub fn written(site: &Site) -> Result<Vec<String>> {
    let Server::Real(plane) = &site.server else { anyhow::bail!("the API server is the mock") };
    let writes = plane.writes()?.into_iter();
    let of_agents = writes.filter(|write| write.agent.starts_with("sluice/") && write.resource != "leases");
    Ok(of_agents.map(|write| write.user).collect())
}

/// Number of writes of agents after some that would have come by now; waits until there are `least` of them.
pub fn written_since(site: &Site, before: usize, least: usize) -> Result<usize> {
    let since = || written(site).map_or(0, |written| written.len().saturating_sub(before));
    let _ = wait_until("writes are logged", PATIENCE, || since() >= least);
    thread::sleep(CALM);
    Ok(since())
}
