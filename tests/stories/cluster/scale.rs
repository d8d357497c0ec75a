//! Many objects of an API server, and changes among them. The figures are printed (`--nocapture`); the limits are those of a
//! debug build on a busy machine. `SLUICE_BINARY=target/release/sluice` measures the release build.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tests::wait::{PATIENCE, wait_until};

use super::site::{ONE, Site, TWO};

/// Number of Routes; `SLUICE_ROUTES` is another one.
const ROUTES: usize = 2_000;
/// Number of changes of which the median is taken.
const CHANGES: usize = 21;

fn route(i: usize) -> Value {
    json!({
        "apiVersion": "route.openshift.io/v1",
        "kind": "Route",
        "metadata": {"namespace": "test", "name": format!("r{i}")},
        "spec": {"host": format!("r{i}.apps.test"), "to": {"kind": "Service", "name": format!("web{}", i % 100)}},
    })
}

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
        server.apply(&route(i))?;
    }
    let begin = Instant::now();
    let sluice = site.serve()?;
    let started = begin.elapsed();
    site.wait_for("r0.apps.test", "one")?;
    ensure!(started < Duration::from_secs(20), "{started:?} to serve {routes} Routes");

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
    // The statuses of the start are written at a limited rate.
    let all = PATIENCE + Duration::from_secs(u64::try_from(routes / 50)?);
    wait_until("every status is written", all, || site.status_writes().is_ok_and(|writes| writes >= routes))?;
    for i in 0..CHANGES {
        let begin = Instant::now();
        site.route(&name(i), "web1")?;
        site.wait_for_admitted(&name(i), "True")?;
        to_status.push(begin.elapsed());
    }
    let writes = site.status_writes()?;
    ensure!(writes == routes + CHANGES, "{writes} writes for {routes} Routes and {CHANGES} changes");
    let resident = sluice.resident().context("it runs")? >> 20;
    let (proxy, status) = (median(to_proxy), median(to_status));
    println!(
        "{routes} Routes: start {started:.2?}; endpoint to request {proxy:.1?}; Route to status {status:.1?}; {resident} MiB"
    );
    ensure!(proxy < Duration::from_secs(2) && status < Duration::from_secs(2), "{proxy:?}, {status:?}");
    Ok(())
}
