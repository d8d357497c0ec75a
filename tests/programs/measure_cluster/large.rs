//! Many Routes: the time from a start to serving, and resident memory.

use std::time::Duration;

use anyhow::Result;
use tests::cluster::mock::Verb;
use tests::cluster::site::Site;

use crate::agents::{Agent, written, written_since};
use crate::objects::{Objects, SERVICES};
use crate::row;

/// Number of Routes in a real API server.
pub const REAL: usize = 10_000;
/// Number of Routes in the mock.
const MOCK: usize = 100_000;
/// Number of starts of which the median is taken.
const STARTS: usize = 3;
const REAL_START: Duration = Duration::from_secs(3);
const MOCK_START: Duration = Duration::from_secs(8);
/// Maximum resident memory, in MiB.
const RESIDENT: u64 = 400;

/// Starts with 100,000 Routes.
pub fn on_the_mock() -> Result<()> {
    let site = Site::mock()?;
    Objects { routes: MOCK, services: SERVICES }.create(&site)?;
    let writes = || Ok::<_, anyhow::Error>(site.mocked()?.log().count_of(Verb::Patch, "routes"));
    let before = writes()?;
    let (mut starts, mut ready, mut settled) = (Vec::new(), 0, 0);
    for _ in 0..STARTS {
        let agent = Agent::start(&site, &[])?;
        starts.push(agent.start);
        ready = ready.max(agent.sluice.resident()? >> 20);
        agent.settle()?;
        settled = settled.max(agent.sluice.resident()? >> 20);
    }
    row::print_median("100,000 Routes (mock): from a start to serving", starts, MOCK_START);
    let measured = format!("{settled} MiB ({ready} MiB at readiness)");
    let bar = format!("≤ {RESIDENT} MiB");
    row::print("resident once all statuses were compared", &measured, &bar, ready.max(settled) <= RESIDENT);
    let writes = writes()? - before;
    row::print("statuses written by these starts", &writes.to_string(), "0", writes == 0);
    Ok(())
}

/// Starts with 10,000 Routes.
pub fn on_a_real_server(site: &Site) -> Result<()> {
    let before = written(site)?.len();
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        let agent = Agent::start(site, &[])?;
        starts.push(agent.start);
        agent.settle()?;
    }
    row::print_median("10,000 Routes: from a start to serving", starts, REAL_START);
    let writes = written_since(site, before, 0)?;
    row::print("writes by these starts", &writes.to_string(), "0", writes == 0);
    Ok(())
}
