//! Many objects of an API server, and changes among them. The figures are printed (`--nocapture`); the limits are those of a
//! debug build on a busy machine. `SLUICE_BINARY=target/release/sluice` measures the release build.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tests::wait::{PATIENCE, wait_until};

use super::site::{ONE, Site, TWO, route_object};

/// Number of Routes; `SLUICE_ROUTES` is another one.
const ROUTES: usize = 2_000;
/// Number of changes of which the median is taken.
const CHANGES: usize = 21;
/// Maximum median time from a change to its effect.
const SOON: Duration = Duration::from_secs(2);
/// Maximum time of a start.
const START: Duration = Duration::from_secs(20);

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

#[test]
fn many_routes_are_served_soon_and_a_change_costs_what_it_touches() -> Result<()> {
    let routes = match std::env::var("SLUICE_ROUTES") {
        Ok(text) => text.parse()?,
        Err(_) => ROUTES,
    };
    let site = Site::mock()?;
    for i in 0..100 {
        site.service(&format!("web{i}"), ONE)?;
    }
    let server = site.mocked()?;
    for i in 0..routes {
        server.apply(&route_object(&format!("r{i}"), &format!("web{}", i % 100)))?;
    }
    let begin = Instant::now();
    let sluice = site.serve()?;
    let started = begin.elapsed();
    ensure!(started < START, "{started:?} to serve {routes} Routes");
    site.wait_for("r0.apps.test", "one")?;

    // One endpoint changes: until a request goes there.
    let mut to_proxy = Vec::new();
    for i in 0..CHANGES {
        let (port, backend) = [(TWO, "two"), (ONE, "one")][i % 2];
        let begin = Instant::now();
        site.service("web7", port)?;
        wait_until("the endpoint is used", PATIENCE, || {
            site.get("r7.apps.test").is_ok_and(|(_, from)| from == backend)
        })?;
        to_proxy.push(begin.elapsed());
    }
    // A new Route: until its status is stored, by one write.
    let mut to_status = Vec::new();
    let name = |i: usize| format!("n{i}");
    site.wait_for_status_writes(routes)?;
    for i in 0..CHANGES {
        let begin = Instant::now();
        site.route(&name(i), "web1")?;
        site.wait_for_admitted(&name(i), "True")?;
        to_status.push(begin.elapsed());
    }
    let writes = site.wait_for_status_writes(routes + CHANGES)?;
    ensure!(writes == routes + CHANGES, "{writes} writes for {routes} Routes and {CHANGES} changes");
    let resident = sluice.resident().context("it runs")? >> 20;
    let (proxy, status) = (median(to_proxy), median(to_status));
    println!(
        "{routes} Routes: start {started:.2?}; endpoint to request {proxy:.1?}; Route to status {status:.1?}; {resident} MiB"
    );
    ensure!(proxy < SOON && status < SOON, "{proxy:?}, {status:?}");
    Ok(())
}
