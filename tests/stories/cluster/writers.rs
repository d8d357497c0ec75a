//! Which of several agents writes statuses.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use rustix::process::Signal;
use serde_json::{Value, json};
use tests::cluster::mock::{Request, Then, Verb, When};
use tests::sluice::Sluice;
use tests::wait::{PATIENCE, hold, wait_until};

use super::site::{CALM, ONE, ROUTES, Site, wait_until_it_leads};

/// Maximum time until another agent leads: the Lease's 30 s, at most 2 s at random, and the load of the machine.
pub const TAKEN_OVER: Duration = Duration::from_secs(45);
/// Maximum random delay before an expired Lease is taken.
const SPREAD: Duration = Duration::from_secs(2);

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

/// A Lease of another holder that was renewed at a time by the holder's clock.
fn lease(name: &str, seconds: u64, renewed: Timestamp) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"namespace": "default", "name": name},
        "spec": {
            "holderIdentity": "another", "leaseDurationSeconds": seconds, "leaseTransitions": 1,
            "acquireTime": format!("{renewed:.6}"), "renewTime": format!("{renewed:.6}"),
        },
    })
}

#[test]
fn what_a_killed_leader_had_not_written_is_written_by_the_next_one() -> Result<()> {
    const NUMBER: usize = 50;
    /// Number of writes that the first leader is let do.
    const WRITTEN: usize = 20;
    let site = Site::mock()?;
    site.service("web", ONE)?;
    (0..NUMBER).try_for_each(|i| site.route(&format!("r{i}"), "web"))?;
    let server = site.mocked()?;
    let serve = |address: &str| site.serve_with(&["--lease", "sluice-shared", "--listen", address]);
    let first = serve("127.0.0.1")?;
    wait_until_it_leads(&first)?;
    site.wait_for_status_writes(NUMBER)?;
    (0..NUMBER).try_for_each(|i| site.wait_for_admitted(&format!("r{i}"), "True").map(drop))?;
    let second = serve("127.0.0.2")?;

    // One change: another router serves each Route, so each status gets a second entry.
    let held = server.fault(When::verbs(&[Verb::Patch]).of("routes").after(WRITTEN), Then::Hold);
    let network = json!({"httpPort": 8090, "httpsPort": 8493, "statsPort": 1937});
    let shard = json!({
        "apiVersion": "operator.openshift.io/v1",
        "kind": "IngressController",
        "metadata": {"namespace": "openshift-ingress-operator", "name": "shard"},
        "spec": {
            "domain": "shard.test",
            "endpointPublishingStrategy": {"type": "HostNetwork", "hostNetwork": network},
        },
    });
    let begin = server.log().count();
    server.apply(&shard)?;
    let accepted = || -> BTreeMap<String, usize> {
        let mut writes = BTreeMap::new();
        for it in server.log().requests().into_iter().filter(|it| it.number >= begin && it.is(Verb::Patch, "routes")) {
            if it.answer == Some(StatusCode::OK) {
                *writes.entry(it.path).or_default() += 1;
            }
        }
        writes
    };
    wait_until("a write is held", PATIENCE, || held.met() > 0)?;
    wait_until("the writes before it are answered", PATIENCE, || accepted().len() == WRITTEN)?;
    drop(first.kill()?);
    held.release();
    // How long another agent waits for a dead leader is not what this is about.
    server.apply(&lease("sluice-shared", 1, Timestamp::now()))?;
    wait_until_it_leads(&second)?;
    wait_until("each status is written", PATIENCE, || accepted().len() == NUMBER)?;
    hold(CALM, || {
        let writes = accepted();
        ensure!(writes.values().all(|number| *number == 1), "{writes:?}");
        Ok(())
    })?;
    for i in 0..NUMBER {
        let entries = site.stored_route(&format!("r{i}"))?["status"]["ingress"].as_array().map(Vec::len);
        ensure!(entries == Some(2), "r{i} has {entries:?} entries");
    }
    Ok(())
}

#[test]
fn a_leader_with_a_wrong_clock_is_overtaken_when_it_is_dead_and_not_before() -> Result<()> {
    const SECONDS: u64 = 2;
    let expires = Duration::from_secs(SECONDS);
    let site = Site::mock_with_route()?;
    let server = site.mocked()?;
    // An hour behind this host, and ahead of it.
    let leases = [("behind", SignedDuration::from_hours(-1)), ("ahead", SignedDuration::from_hours(1))];
    let renew = || -> Result<Instant> {
        let renewed = Instant::now();
        leases
            .iter()
            .try_for_each(|(name, shift)| server.apply(&lease(name, SECONDS, Timestamp::now() + *shift)).map(drop))?;
        Ok(renewed)
    };
    // Returns when they were renewed last, unless it was too late once.
    let outlive = |agents: &[Sluice; 2]| -> Result<Option<Instant>> {
        let (begin, mut renewed) = (Instant::now(), renew()?);
        while begin.elapsed() < 2 * (expires + SPREAD) {
            thread::sleep(expires / 8);
            let next = renew()?;
            if renewed.elapsed() >= expires {
                return Ok(None);
            }
            renewed = next;
            ensure!(!agents.iter().any(|agent| agent.has_line("holds the Lease")), "a live leader is overtaken");
        }
        Ok(Some(renewed))
    };
    let serve = |(name, _): &(&str, _), address: &str| site.serve_with(&["--lease", name, "--listen", address]);
    let begin = Instant::now();
    let (agents, renewed) = loop {
        renew()?;
        let agents = [serve(&leases[0], "127.0.0.1")?, serve(&leases[1], "127.0.0.2")?];
        if let Some(renewed) = outlive(&agents)? {
            break (agents, renewed);
        }
        ensure!(begin.elapsed() < PATIENCE, "the test renews too late");
    };
    for agent in &agents {
        wait_until_it_leads(agent)?;
    }
    let took = renewed.elapsed();
    ensure!(
        took >= expires && took < expires + SPREAD + Duration::from_secs(5),
        "a dead leader is overtaken after {took:?}"
    );
    site.wait_for_admitted("a", "True").map(drop)
}
