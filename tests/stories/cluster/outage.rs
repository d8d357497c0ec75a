//! A router that starts while the API server cannot be reached.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use serde_json::{Value, json};
use tests::cluster::mock::{Then, Verb, When};
use tests::sluice::Sluice;
use tests::wait::{PATIENCE, hold, wait_until};

use super::site::{ONE, Site, TWO};

/// Maximum time from a start to serving, in an outage.
const START: Duration = Duration::from_secs(5);
/// Time in which a needless write would have been sent.
const CALM: Duration = Duration::from_millis(500);

/// Stops the API server, and kills a router.
fn kill_in_outage(site: &Site, sluice: &Sluice) -> Result<()> {
    site.mocked()?.stop()?;
    site.mocked()?.cut_connections();
    sluice.signal(Signal::KILL)
}

fn has_line(sluice: &Sluice, text: &str) -> bool {
    sluice.output().iter().any(|line| line.contains(text))
}

#[test]
fn a_restart_in_an_outage_serves_the_snapshot() -> Result<()> {
    let site = Site::mock()?;
    site.service("web", ONE)?;
    for route in ["a", "gone", "moved"] {
        site.route(route, "web")?;
    }
    let first = site.serve()?;
    for route in ["a", "gone", "moved"] {
        site.wait_for_admitted(route, "True")?;
    }
    let (server, writes) = (site.mocked()?, site.status_writes()?);
    kill_in_outage(&site, &first)?;
    let state = first.left_state();
    drop(first);

    site.service("other", TWO)?;
    site.route("moved", "other")?;
    server.delete(&json!({
        "apiVersion": "route.openshift.io/v1",
        "kind": "Route",
        "metadata": {"namespace": "test", "name": "gone"},
    }))?;
    let begin = Instant::now();
    // The killed router's Lease is held for 30 s.
    let second = site.serve_after(Some(state), &["--lease", "sluice-second"])?;
    for host in ["a.apps.test", "gone.apps.test", "moved.apps.test"] {
        assert_eq!(site.get(host)?, (200, "one".to_owned()), "{host}");
    }
    ensure!(begin.elapsed() < START, "served after {:?}", begin.elapsed());
    ensure!(has_line(&second, "the snapshot of an earlier agent serves age_in_seconds="), "{:#?}", second.output());
    let status = second.get("status")?;
    let age = status["snapshot"]["age"].as_str().context("the snapshot has an age")?;
    let problems = status["problems"].as_array().context("problems")?;
    let names_age = |problem: &Value| problem.as_str().is_some_and(|text| text.contains(age));
    ensure!(age.ends_with('s') && problems.iter().any(names_age), "{status}");

    server.resume()?;
    site.wait_for("moved.apps.test", "two")?;
    assert_eq!(site.get("a.apps.test")?, (200, "one".to_owned()));
    assert_eq!(site.get("gone.apps.test")?.0, 503);
    assert_eq!(second.get("status")?["snapshot"], Value::Null);
    wait_until("the router holds the Lease", PATIENCE, || has_line(&second, "holds the Lease"))?;
    let sent = || site.status_writes();
    hold(CALM, || {
        let all = sent()?;
        ensure!(all == writes, "{all} writes, of which {writes} before the outage");
        Ok(())
    })?;

    // The snapshot is that of the second router from then on.
    kill_in_outage(&site, &second)?;
    let state = second.left_state();
    drop(second);
    let _third = site.serve_after(Some(state), &[])?;
    assert_eq!(site.get("moved.apps.test")?, (200, "two".to_owned()));
    assert_eq!(site.get("gone.apps.test")?.0, 503);
    Ok(())
}

#[test]
fn a_damaged_snapshot_serves_what_precedes_the_damage() -> Result<()> {
    let site = Site::mock()?;
    site.service("web", ONE)?;
    site.route("a", "web")?;
    let first = site.serve()?;
    kill_in_outage(&site, &first)?;
    let state = first.left_state();
    drop(first);
    let file = state.path().join("objects");
    let mut snapshot = fs::read(&file)?;
    // EndpointSlices are listed after what references them.
    let slice = b"[\"EndpointSlice\"";
    let begin = snapshot.windows(slice.len()).position(|text| text == slice).context("a slice is in the snapshot")?;
    *snapshot.get_mut(begin + 100).context("the slice is longer")? ^= 1;
    fs::write(&file, snapshot)?;
    let second = site.serve_after(Some(state), &[])?;
    ensure!(has_line(&second, "the snapshot is damaged"), "{:#?}", second.output());
    assert_eq!(second.get("status")?["routes"], 1);
    assert_eq!(site.get("a.apps.test")?.0, 503);
    site.mocked()?.resume()?;
    site.wait_for("a.apps.test", "one")
}

#[test]
fn another_clusters_snapshot_does_not_serve() -> Result<()> {
    let other = Site::mock()?;
    other.service("web", ONE)?;
    other.route("a", "web")?;
    let first = other.serve()?;
    first.signal(Signal::KILL)?;
    let state = first.left_state();
    drop(first);

    let site = Site::mock()?;
    let held = site.mocked()?.fault(When::verbs(&[Verb::StreamingList]).of("services"), Then::Hold);
    let release = {
        let held = held.clone();
        std::thread::spawn(move || {
            let met = wait_until("Services are listed", PATIENCE, || held.met() > 0);
            // A snapshot would serve after 2 s.
            std::thread::sleep(Duration::from_secs(3));
            held.release();
            met
        })
    };
    let second = site.serve_after(Some(state), &[])?;
    release.join().ok().context("the thread ends")??;
    ensure!(has_line(&second, "the snapshot is of another API server"), "{:#?}", second.output());
    ensure!(!has_line(&second, "the snapshot of an earlier agent serves"), "{:#?}", second.output());
    assert_eq!(site.get("a.apps.test")?.0, 503);
    Ok(())
}
