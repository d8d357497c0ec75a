//! Changes of EndpointSlices at a steady rate, under load, on the mock.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use tests::cluster::site::{ONE, Site, TWO};

use crate::agents::Agent;
use crate::load::Load;
use crate::objects::{Objects, route, service, slice};
use crate::row;

/// Number of Routes, each with a Service and an EndpointSlice.
const ROUTES: usize = 5_000;
/// Number of changes in a second, and for how long.
const RATE: u32 = 200;
const SECONDS: u32 = 60;
/// Maximum part of a processor, in per cent.
const PROCESSOR: f64 = 15.0;

/// Measures.
pub fn measure() -> Result<()> {
    let site = Site::mock()?;
    Objects { routes: ROUTES, services: ROUTES }.create(&site)?;
    let agent = Agent::start(&site, &[])?;
    agent.settle()?;
    let server = site.mocked()?;
    let load = Load::start(&site, 0..ROUTES);
    let (before, begin) = (agent.sluice.processor_time()?, Instant::now());
    let made = server.connections_made();
    let port = |change: usize| [TWO, ONE][change / ROUTES % 2];
    let changes = usize::try_from(RATE * SECONDS)?;
    for (change, number) in (0..changes).zip(0_u32..) {
        let due = begin + Duration::from_secs(1) * number / RATE;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        server.apply(&slice(&site, &service(change % ROUTES), port(change)))?;
    }
    let took = begin.elapsed();
    let used = agent.sluice.processor_time()? - before;
    let served = load.end()?;
    // The last change of each is in force.
    for last in (changes - ROUTES..changes).step_by(ROUTES / 20) {
        let name = if port(last) == ONE { "one" } else { "two" };
        site.wait_for(&format!("{}.apps.test", route(last % ROUTES)), name)?;
    }
    let percent = 100.0 * used.as_secs_f64() / took.as_secs_f64();
    let what = format!(
        "{:.0} EndpointSlice changes a second for {:.0} s, {ROUTES} Routes: of a processor",
        changes as f64 / took.as_secs_f64(),
        took.as_secs_f64()
    );
    row::print(&what, &format!("{percent:.1} %"), &format!("≤ {PROCESSOR:.0} %"), percent <= PROCESSOR);
    row::print("failed requests in it", &format!("{} of {}", served.failed, served.requests), "0", served.failed == 0);
    // Of the real API server, connections that it has asked the agent to leave (GOAWAY) stay for a while.
    let (open, made) = (server.connections().len(), server.connections_made() - made);
    let measured = format!("{open} open, {made} made in it");
    row::print("connections of one agent to the API server", &measured, "1", (open, made) == (1, 0));
    if let Some(failure) = served.failure {
        eprintln!("the first failed request: {failure}");
    }
    Ok(())
}
