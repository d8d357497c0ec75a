//! A router that starts while the API server cannot be reached.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::cluster::mock::{Then, Verb, When};
use tests::sluice::Sluice;
use tests::wait::{PATIENCE, hold, wait_until};

use super::site::{CALM, Site, TWO, route_object, wait_until_it_leads};

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

/// A file system in memory, of limited size.
struct Memory(PathBuf);

impl Memory {
    fn mount(folder: &Path) -> Result<Memory> {
        mount(c"tmpfs", folder, c"tmpfs", MountFlags::empty(), c"size=256k")?;
        Ok(Memory(folder.to_owned()))
    }

    /// Fills it up by a file; returns that.
    fn fill(&self) -> Result<PathBuf> {
        let path = self.0.join("full");
        let mut file = File::create(&path)?;
        loop {
            match file.write(&[0; 4096]) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => return Ok(path),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // What an agent that has not ended has open is unmounted with its end.
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}

#[test]
fn a_full_run_time_folder_costs_the_snapshot_and_nothing_else() -> Result<()> {
    /// Length of an annotation in bytes, so that a few objects outgrow the last page of the file.
    const LENGTH: usize = 8 << 10;
    let site = Site::mock_with_route()?;
    let server = site.mocked()?;
    let state = Arc::new(TempDir::new()?);
    let memory = Memory::mount(state.path())?;
    let first = site.serve_after(Some(Arc::clone(&state)), &[])?;
    site.wait_for_admitted("a", "True")?;
    let snapshot = state.path().join("objects");
    let has = |name: &str| {
        let (text, name) = (fs::read(&snapshot).unwrap_or_default(), format!("\"name\":\"{name}\""));
        text.windows(name.len()).any(|text| text == name.as_bytes())
    };
    wait_until("the snapshot has the Route", PATIENCE, || has("a"))?;
    let full = memory.fill()?;
    let failures = || first.output().iter().filter(|line| line.contains("the snapshot cannot be written")).count();
    let change = |name: &str| -> Result<()> {
        let mut route = route_object(name, "web");
        route["metadata"]["annotations"] = json!({"text": "x".repeat(LENGTH)});
        server.apply(&route)?;
        site.wait_for(&format!("{name}.apps.test"), "one")?;
        site.wait_for_admitted(name, "True").map(drop)
    };
    change("b")?;
    wait_until("the log says so", PATIENCE, || failures() > 0)?;
    // Writes are tried once a second, if at all.
    for i in 0..3 {
        change(&format!("c{i}"))?;
        hold(Duration::from_secs(1), || Ok(()))?;
    }
    assert_eq!(failures(), 1, "{:#?}", first.output());
    // Room comes too late for this agent: the snapshot lacks what was lost.
    fs::remove_file(full)?;
    let before = fs::read(&snapshot)?;
    change("late")?;
    hold(Duration::from_secs(2), || {
        ensure!(fs::read(&snapshot)? == before && failures() == 1, "the snapshot is written again");
        Ok(())
    })?;
    // The next one serves what there is of it, and writes another.
    drop(kill_in_outage(&site, first)?);
    let second = site.serve_after(Some(Arc::clone(&state)), &[])?;
    assert_eq!((site.get("a.apps.test")?.0, site.get("late.apps.test")?.0), (200, 503));
    server.resume()?;
    site.wait_for("late.apps.test", "one")?;
    wait_until("the snapshot is written", PATIENCE, || has("late"))?;
    ensure!(!second.has_line("the snapshot cannot be written"), "{:#?}", second.output());
    Ok(())
}
