//! Statuses in an API server: one write for a change, by one writer.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use http::StatusCode;
use serde_json::{Value, json};
use tests::cluster::mock::{Then, Verb, When};
use tests::wait::{PATIENCE, hold, wait_until};

use super::site::{CALM, ONE, Site, route_object, wait_until_it_leads};
use super::writers::TAKEN_OVER;

fn statuses_are_written_once(site: &Site) -> Result<()> {
    site.service("web", ONE)?;
    site.route("a", "web")?;
    site.route("b", "web")?;
    let sluice = site.serve()?;
    let route = site.wait_for_admitted("a", "True")?;
    site.wait_for_admitted("b", "True")?;
    assert_eq!(route["status"]["ingress"][0]["routerName"], "default");
    assert_eq!(route["status"]["ingress"][0]["host"], "a.apps.test");
    assert_eq!(site.wait_for_status_writes(2)?, 2);
    // A younger Route for a host that another one has.
    site.apply(&tests::folder::route("c", "a.apps.test", "web", "").replace("2026-01-01", "2026-02-01"))?;
    let lost = site.wait_for_admitted("c", "False")?;
    let reason = lost.pointer("/status/ingress/0/conditions/0/reason");
    assert_eq!(reason, Some(&json!("HostAlreadyClaimed")), "{lost}");
    let stay_at_three = || {
        let writes = site.status_writes()?;
        ensure!(writes == 3, "{writes} writes");
        Ok(())
    };
    site.wait_for_status_writes(3)?;
    hold(CALM, stay_at_three)?;
    sluice.stop()?;
    let again = site.serve()?;
    site.wait_for("b.apps.test", "one")?;
    wait_until_it_leads(&again)?;
    hold(CALM, stay_at_three).context("after a restart")
}

#[test]
fn statuses_in_the_real_api_server_are_written_once() -> Result<()> {
    statuses_are_written_once(&Site::real()?)
}

#[test]
fn statuses_in_the_mock_are_written_once() -> Result<()> {
    statuses_are_written_once(&Site::mock()?)
}

#[test]
fn entries_of_other_controllers_stay_and_a_conflict_is_resolved() -> Result<()> {
    let site = Site::mock()?;
    site.service("web", ONE)?;
    let foreign = json!({"routerName": "theirs", "host": "a.apps.test", "conditions": []});
    let mut route = route_object("a", "web");
    route["status"] = json!({"ingress": [foreign]});
    let server = site.mocked()?;
    server.apply(&route)?;
    let conflict = server.fault(When::verbs(&[Verb::Patch]).of("routes").times(1), Then::fail(StatusCode::CONFLICT));
    let _sluice = site.serve()?;
    let ours = |stored: &Value| {
        let entries = stored["status"]["ingress"].as_array().cloned().unwrap_or_default();
        entries.len() == 2 && entries[0] == foreign && entries[1]["routerName"] == "default"
    };
    wait_until("the entry is beside the other", PATIENCE, || site.stored_route("a").is_ok_and(|stored| ours(&stored)))?;
    assert_eq!(conflict.met(), 1);
    Ok(())
}

#[test]
fn one_agent_writes_and_another_follows_it() -> Result<()> {
    let site = Site::mock_with_route()?;
    let first = site.serve_with(&["--lease", "sluice-shared"])?;
    wait_until_it_leads(&first)?;
    site.wait_for_admitted("a", "True")?;
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"namespace": "default", "name": "sluice-shared"},
    });
    let holder = |lease: &Value| lease["spec"]["holderIdentity"].as_str().map(str::to_owned);
    let first_holder = holder(&site.mocked()?.get(&lease)?).context("somebody leads")?;
    let begin = Instant::now();
    drop(first.kill()?);
    let second = site.serve_with(&["--lease", "sluice-shared"])?;
    wait_until_it_leads(&second)?;
    ensure!(begin.elapsed() < TAKEN_OVER, "another leads after {:?}", begin.elapsed());
    ensure!(holder(&site.mocked()?.get(&lease)?).is_some_and(|holder| holder != first_holder));
    assert_eq!(site.wait_for_status_writes(1)?, 1);
    site.route("b", "web")?;
    site.wait_for_admitted("b", "True")?;
    assert_eq!(site.wait_for_status_writes(2)?, 2);
    Ok(())
}

/// The Routes `r0`, `r1` and so on.
fn routes(site: &Site, number: usize) -> Result<Vec<String>> {
    let names: Vec<String> = (0..number).map(|number| format!("r{number}")).collect();
    names.iter().try_for_each(|name| site.route(name, "web"))?;
    Ok(names)
}

fn admitted(site: &Site, names: &[String]) -> usize {
    let is_admitted = |name: &&String| {
        let route = site.stored_route(name).unwrap_or_default();
        route.pointer("/status/ingress/0/conditions/0/status") == Some(&json!("True"))
    };
    names.iter().filter(is_admitted).count()
}

#[test]
fn an_api_server_that_asks_for_fewer_requests_gets_one_after_each_pause() -> Result<()> {
    const PAUSE: u64 = 2;
    let site = Site::mock()?;
    let names = routes(&site, 30)?;
    let server = site.mocked()?;
    let busy = server.fault(When::verbs(&[Verb::Patch]).of("routes"), Then::too_many(PAUSE));
    let _sluice = site.serve()?;
    wait_until("a write is refused", PATIENCE, || busy.met() > 0)?;
    let begin = Instant::now();
    let is_patient = || {
        let met = busy.met();
        // Those that were sent before the first answer, and one after each pause.
        let most = 4 + usize::try_from(begin.elapsed().as_secs() / PAUSE)? + 1;
        ensure!(met <= most, "{met} requests in {:?}", begin.elapsed());
        Ok(())
    };
    hold(Duration::from_secs(PAUSE) / 2, is_patient)?;
    let burst = busy.met();
    hold(Duration::from_secs(2 * PAUSE), is_patient)?;
    busy.release();
    let refused = busy.met();
    ensure!(refused > burst, "nothing is written after the pause that follows {burst} requests");
    wait_until("every Route is admitted", PATIENCE, || admitted(&site, &names) == names.len())?;
    hold(CALM, || {
        let writes = site.status_writes()?;
        ensure!(writes == refused + names.len(), "{writes} writes, of which {refused} were refused");
        Ok(())
    })
}

#[test]
fn a_slow_write_and_a_kind_that_fails_delay_no_other() -> Result<()> {
    let site = Site::mock()?;
    let names = routes(&site, 20)?;
    let server = site.mocked()?;
    let held = server.fault(When::verbs(&[Verb::Patch]).of("routes").times(1), Then::Hold);
    let kind = When::verbs(&[Verb::Patch]).of("ingresscontrollers");
    let failing = server.fault(kind, Then::fail(StatusCode::INTERNAL_SERVER_ERROR));
    let _sluice = site.serve()?;
    wait_until("a write is held", PATIENCE, || held.met() == 1)?;
    let begin = Instant::now();
    wait_until("the others are written", PATIENCE, || admitted(&site, &names) == names.len() - 1)?;
    // The time after which the agent gives a request up.
    ensure!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    ensure!(failing.met() > 0, "no write of an IngressController's status");
    held.release();
    failing.release();
    wait_until("the held one is written", PATIENCE, || admitted(&site, &names) == names.len())?;
    assert_eq!(site.status_writes()?, names.len());
    let controller = json!({
        "apiVersion": "operator.openshift.io/v1",
        "kind": "IngressController",
        "metadata": {"namespace": "openshift-ingress-operator", "name": "default"},
    });
    let has_status = || server.get(&controller).is_ok_and(|controller| controller["status"]["conditions"].is_array());
    wait_until("the failed one is written", PATIENCE, has_status).map(drop)
}

/// Writes whose connection ends wait together, with one line in the log, until the API server answers.
#[test]
fn an_outage_pauses_all_writes_and_is_logged_once() -> Result<()> {
    const ROUTES: usize = 20;
    let site = Site::mock()?;
    site.service("web", ONE)?;
    (0..ROUTES).try_for_each(|i| site.route(&format!("r{i}"), "web"))?;
    let server = site.mocked()?;
    let held = server.fault(When::verbs(&[Verb::Patch]).of("routes"), Then::Hold);
    let sluice = site.serve()?;
    wait_until("writes are on their way", PATIENCE, || held.met() > 1)?;
    server.stop()?;
    wait_until("the outage is noticed", PATIENCE, || sluice.has_line("the API server does not answer"))?;
    // Longer than a pause: it is tried again.
    hold(Duration::from_secs(3), || Ok(()))?;
    held.release();
    server.resume()?;
    (0..ROUTES).try_for_each(|i| site.wait_for_admitted(&format!("r{i}"), "True").map(drop))?;
    let count = |text: &str| sluice.output().iter().filter(|line| line.contains(text)).count();
    assert_eq!((count("the API server does not answer"), count("a status was not written")), (1, 0));
    Ok(())
}

#[test]
fn an_outage_of_a_busy_api_server_is_logged_once() -> Result<()> {
    let site = Site::mock_with_route()?;
    let server = site.mocked()?;
    let busy = server.fault(When::verbs(&[Verb::Patch]).of("routes"), Then::Busy(1));
    let sluice = site.serve()?;
    wait_until("a write is rejected", PATIENCE, || busy.met() > 0)?;
    server.stop()?;
    wait_until("the outage is noticed", PATIENCE, || sluice.has_line("the API server does not answer"))?;
    // Longer than a pause: it is tried again.
    hold(Duration::from_secs(3), || Ok(()))?;
    busy.release();
    server.resume()?;
    site.wait_for_admitted("a", "True")?;
    let count = |text: &str| sluice.output().iter().filter(|line| line.contains(text)).count();
    assert_eq!((count("the API server does not answer"), count("a status was not written")), (1, 0));
    Ok(())
}
