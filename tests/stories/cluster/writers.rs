//! Which of several agents writes statuses.

use anyhow::{Context, Result, ensure};
use http::StatusCode;
use rustix::process::Signal;
use serde_json::json;
use tests::cluster::mock::{Request, Verb};
use tests::wait::{hold, wait_until};

use super::site::{CALM, ROUTES, Site, wait_until_it_leads};

/// Maximum time until another agent leads: the Lease's 30 s, at most 2 s at random, and the load of the machine.
const TAKEN_OVER: std::time::Duration = std::time::Duration::from_secs(45);

#[test]
fn a_leader_that_was_stopped_writes_nothing_when_it_goes_on() -> Result<()> {
    let site = Site::mock_with_route()?;
    let serve = |address: &str| site.serve_with(&["--lease", "sluice-shared", "--listen", address]);
    let first = serve("127.0.0.1")?;
    wait_until_it_leads(&first)?;
    site.wait_for_admitted("a", "True")?;
    let server = site.mocked()?;
    // While the first agent is stopped, each new connection is the second one's.
    first.signal(Signal::STOP)?;
    let made = server.connections_made();
    let second = serve("127.0.0.2")?;
    for i in 0..20 {
        site.route(&format!("b{i}"), "web")?;
    }
    wait_until("the second agent leads", TAKEN_OVER, || second.has_line("holds the Lease"))?;
    for i in 0..20 {
        site.wait_for_admitted(&format!("b{i}"), "True")?;
    }
    // What the first agent would write if it had not noticed.
    let newest = site.stored_route("b19")?;
    let api = site.api()?;
    api.patch(
        &format!("{ROUTES}/b19/status"),
        &json!({"metadata": {"resourceVersion": newest["metadata"]["resourceVersion"]}, "status": null}),
    )?;
    site.wait_for_admitted("b19", "True")?;
    let seconds = made + 1..=server.connections_made();
    first.signal(Signal::CONT)?;
    wait_until("the first agent notices", TAKEN_OVER, || first.has_line("the Lease was lost"))?;
    site.route("c", "web")?;
    site.wait_for_admitted("c", "True")?;

    let is_status = |it: &&Request| it.is(Verb::Patch, "routes") && it.agent.starts_with("sluice");
    let writers = || -> Result<Vec<bool>> {
        let requests = server.log().requests();
        // One without an answer yet is not rejected.
        let is_accepted = |it: &Request| it.answer.is_none_or(|answer| answer == StatusCode::OK);
        ensure!(requests.iter().filter(is_status).all(is_accepted), "a write was rejected");
        Ok(requests.iter().filter(is_status).map(|it| !seconds.contains(&it.connection)).collect())
    };
    hold(CALM, || {
        let writers = writers()?;
        let handed = writers.iter().position(|is_first| !is_first).context("the second agent has written")?;
        ensure!(writers.iter().skip(handed).all(|is_first| !is_first), "both write: {writers:?}");
        // One of a, each of b, one more of b19, and one of c.
        ensure!(writers.len() == 23, "{} writes", writers.len());
        Ok(())
    })
}
