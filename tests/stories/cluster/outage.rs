//! A router that starts while the API server cannot be reached.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;
use tests::cluster::mock::{Then, Verb, When};
use tests::sluice::Sluice;
use tests::wait::{PATIENCE, hold, wait_until};

use super::site::{CALM, Site, TWO, wait_until_it_leads};

/// Maximum time from a start to serving, in an outage; the agent waits 2 s of it for the API server.
const START: Duration = Duration::from_secs(5);

/// Stops the API server, and kills a router; returns the router's state folder.
fn kill_in_outage(site: &Site, sluice: Sluice) -> Result<Arc<TempDir>> {
    site.mocked()?.stop()?;
    sluice.kill()
}

#[test]
fn a_restart_in_an_outage_serves_the_snapshot() -> Result<()> {
    let site = Site::mock_with_route()?;
    for route in ["gone", "moved"] {
        site.route(route, "web")?;
    }
    let first = site.serve()?;
    for route in ["a", "gone", "moved"] {
        site.wait_for_admitted(route, "True")?;
    }
    let writes = site.status_writes()?;
    let state = kill_in_outage(&site, first)?;

    site.service("other", TWO)?;
    site.route("moved", "other")?;
    site.delete_route("gone")?;
    let begin = Instant::now();
    // The killed router's Lease is held for 30 s.
    let second = site.serve_after(Some(state), &["--lease", "sluice-second"])?;
    for host in ["a.apps.test", "gone.apps.test", "moved.apps.test"] {
        assert_eq!(site.get(host)?, (200, "one".to_owned()), "{host}");
    }
    ensure!(begin.elapsed() < START, "served after {:?}", begin.elapsed());
    ensure!(second.has_line("the snapshot of an earlier agent serves age_in_seconds="), "{:#?}", second.output());
    let status = second.get("status")?;
    let age = status["snapshot"]["age"].as_str().context("the snapshot has an age")?;
    let problems = status["problems"].as_array().context("problems")?;
    let names_age = |problem: &Value| problem.as_str().is_some_and(|text| text.contains(age));
    ensure!(age.ends_with('s') && problems.iter().any(names_age), "{status}");

    site.mocked()?.resume()?;
    site.wait_for("moved.apps.test", "two")?;
    assert_eq!(site.get("a.apps.test")?, (200, "one".to_owned()));
    assert_eq!(site.get("gone.apps.test")?.0, 503);
    assert_eq!(second.get("status")?["snapshot"], Value::Null);
    wait_until_it_leads(&second)?;
    hold(CALM, || {
        let all = site.status_writes()?;
        ensure!(all == writes, "{all} writes, of which {writes} before the outage");
        Ok(())
    })?;

    // The snapshot is that of the second router from then on.
    let state = kill_in_outage(&site, second)?;
    let _third = site.serve_after(Some(state), &[])?;
    assert_eq!(site.get("moved.apps.test")?, (200, "two".to_owned()));
    assert_eq!(site.get("gone.apps.test")?.0, 503);
    Ok(())
}

#[test]
fn a_damaged_snapshot_serves_what_precedes_the_damage() -> Result<()> {
    let site = Site::mock_with_route()?;
    let first = site.serve()?;
    let state = kill_in_outage(&site, first)?;
    let file = state.path().join("objects");
    let mut snapshot = fs::read(&file)?;
    // EndpointSlices are listed after what references them.
    let slice = b"[\"EndpointSlice\"";
    let begin = snapshot.windows(slice.len()).position(|text| text == slice).context("a slice is in the snapshot")?;
    *snapshot.get_mut(begin + 100).context("the slice is longer")? ^= 1;
    fs::write(&file, snapshot)?;
    let second = site.serve_after(Some(state), &[])?;
    ensure!(second.has_line("the snapshot is damaged"), "{:#?}", second.output());
    assert_eq!(second.get("status")?["routes"], 1);
    assert_eq!(site.get("a.apps.test")?.0, 503);
    site.mocked()?.resume()?;
    site.wait_for("a.apps.test", "one")
}

/// Starts a router with the snapshot of another source: it waits for the API server's Services, and serves nothing before.
fn snapshot_is_not_used(site: &Site, state: Arc<TempDir>, arguments: &[&str]) -> Result<Sluice> {
    let held = site.mocked()?.fault(When::verbs(&[Verb::StreamingList]).of("services"), Then::Hold);
    let mut sluice = site.spawn_after(Some(state), arguments)?;
    let rejected = || sluice.has_line("the snapshot is of another API server");
    wait_until("the snapshot is rejected", PATIENCE, rejected)?;
    ensure!(held.met() > 0, "{:#?}", sluice.output());
    // A snapshot that is used serves in this time.
    hold(START, || {
        ensure!(!sluice.has_line("sluice: ready"), "{:#?}", sluice.output());
        Ok(())
    })?;
    held.release();
    sluice.wait_until_ready()?;
    ensure!(!sluice.has_line("the snapshot of an earlier agent serves"), "{:#?}", sluice.output());
    Ok(sluice)
}

#[test]
fn another_clusters_snapshot_does_not_serve() -> Result<()> {
    let other = Site::mock_with_route()?;
    let state = other.serve()?.kill()?;
    let site = Site::mock()?;
    let _sluice = snapshot_is_not_used(&site, state, &[])?;
    assert_eq!(site.get("a.apps.test")?.0, 503);
    Ok(())
}

#[test]
fn a_snapshot_of_other_namespaces_does_not_serve() -> Result<()> {
    let site = Site::mock_with_route()?;
    let state = site.serve()?.kill()?;
    let _sluice = snapshot_is_not_used(&site, state, &["--namespaces", "openshift-ingress-operator"])?;
    assert_eq!(site.get("a.apps.test")?.0, 503);
    Ok(())
}
