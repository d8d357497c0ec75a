//! An API server as the source: what it has is served, whatever it answers.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use http::StatusCode;
use serde_json::json;
use tests::cluster::Definitions;
use tests::cluster::mock::{Interrupt, Then, Verb, When};
use tests::command;
use tests::sluice::binary;
use tests::wait::{PATIENCE, wait_until};

use super::site::{ONE, Site, TWO};

/// Objects are served, changes are followed, and verbs of the command line read the same objects.
fn objects_are_served(site: &Site) -> Result<()> {
    site.service("web", ONE)?;
    site.route("a", "web")?;
    let sluice = site.serve()?;
    assert_eq!(site.get("a.apps.test")?, (200, "one".to_owned()));
    site.route("b", "late")?;
    site.service("late", TWO)?;
    site.wait_for("b.apps.test", "two")?;
    site.service("web", TWO)?;
    site.wait_for("a.apps.test", "two")?;

    let run = |arguments: &[&str]| -> Result<String> {
        let mut command = site.netns.command(binary()?)?;
        command.args(arguments).args(["--kubernetes", "--kubeconfig"]).arg(site.kubeconfig());
        Ok(String::from_utf8(command::output(&mut command)?.stdout)?)
    };
    let explained = run(&["explain", "http://a.apps.test:8080/"])?;
    ensure!(explained.contains("Route test/a"), "{explained}");
    let translated = run(&["translate"])?;
    ensure!(translated.contains("Route test/b"), "{translated}");
    run(&["validate"])?;
    let live = command::output(
        Command::new(binary()?).args(["explain", "http://a.apps.test:8080/", "--state"]).arg(sluice.state()),
    )?;
    ensure!(String::from_utf8(live.stdout)?.contains("Route test/a"));
    Ok(())
}

#[test]
fn objects_of_the_real_api_server_are_served() -> Result<()> {
    objects_are_served(&Site::real()?)
}

#[test]
fn objects_of_the_mock_are_served() -> Result<()> {
    let site = Site::mock()?;
    objects_are_served(&site)
}

#[test]
fn all_watches_share_one_connection() -> Result<()> {
    let site = Site::mock()?;
    site.service("web", ONE)?;
    site.route("a", "web")?;
    let _sluice = site.serve()?;
    site.wait_for_admitted("a", "True")?;
    assert_eq!(site.mocked()?.connections().len(), 1);
    Ok(())
}

#[test]
fn an_outage_changes_nothing_and_its_end_brings_what_changed() -> Result<()> {
    let site = Site::mock()?;
    site.service("web", ONE)?;
    site.route("a", "web")?;
    let _sluice = site.serve()?;
    let server = site.mocked()?;
    server.stop()?;
    server.cut_connections();
    site.service("web", TWO)?;
    for _ in 0..20 {
        assert_eq!(site.get("a.apps.test")?, (200, "one".to_owned()));
    }
    server.resume()?;
    site.wait_for("a.apps.test", "two")
}

#[test]
fn what_is_not_listed_at_a_start_is_waited_for() -> Result<()> {
    let site = Site::mock()?;
    site.service("web", ONE)?;
    site.route("a", "web")?;
    let server = site.mocked()?;
    let held = server.fault(When::verbs(&[Verb::StreamingList]).of("services"), Then::Hold);
    let release = {
        let held = held.clone();
        std::thread::spawn(move || {
            let met = wait_until("Services are listed", PATIENCE, || held.met() > 0);
            held.release();
            met
        })
    };
    let sluice = site.serve()?;
    assert_eq!(site.get("a.apps.test")?, (200, "one".to_owned()));
    release.join().ok().context("the thread ends")??;
    drop(sluice);
    Ok(())
}

#[test]
fn a_kind_that_is_denied_or_not_installed_holds_nothing_back() -> Result<()> {
    let site = Site::mock()?;
    site.service("web", ONE)?;
    site.route("a", "web")?;
    let server = site.mocked()?;
    server.fault(When::default().of("routeslots"), Then::fail(StatusCode::FORBIDDEN));
    let sluice = site.serve()?;
    assert_eq!(site.get("a.apps.test")?, (200, "one".to_owned()));
    let is_named = |line: &String| line.contains("RouteSlot") && line.contains("denies");
    ensure!(sluice.output().iter().any(is_named), "{:#?}", sluice.output());

    // A kind appears with its definition, and goes with it.
    server.install(Definitions::Contour)?;
    let proxy = json!({
        "apiVersion": "projectcontour.io/v1",
        "kind": "HTTPProxy",
        "metadata": {"namespace": "test", "name": "p"},
        "spec": {
            "virtualhost": {"fqdn": "p.apps.test"},
            "routes": [{"services": [{"name": "web", "port": 80}]}],
        },
    });
    server.apply(&proxy)?;
    site.wait_for("p.apps.test", "one")
}

/// Changes the endpoint of a Service until the change has arrived.
fn follows(site: &Site, what: &str) -> Result<()> {
    for (port, backend) in [(TWO, "two"), (ONE, "one")] {
        site.service("web", port)
            .and_then(|()| site.wait_for("a.apps.test", backend))
            .with_context(|| what.to_owned())?;
    }
    Ok(())
}

#[test]
fn a_watch_recovers_from_every_fault() -> Result<()> {
    let site = Site::mock()?;
    site.service("web", ONE)?;
    site.route("a", "web")?;
    let _sluice = site.serve()?;
    let server = site.mocked()?;
    let slices = Some("endpointslices");
    let lists = || When::verbs(&[Verb::StreamingList, Verb::List, Verb::Watch]).of("endpointslices");

    server.compact(slices);
    server.interrupt(slices, Interrupt::Expire);
    follows(&site, "410 in a watch")?;
    server.fault(lists().times(1), Then::fail(StatusCode::GONE));
    server.interrupt(slices, Interrupt::End);
    follows(&site, "410 at the start of a watch")?;
    let refused = server
        .fault(When::verbs(&[Verb::StreamingList]).of("endpointslices"), Then::fail(StatusCode::UNPROCESSABLE_ENTITY));
    server.compact(slices);
    server.interrupt(slices, Interrupt::Expire);
    follows(&site, "streaming lists are rejected")?;
    ensure!(refused.met() == 1, "a rejected streaming list is asked for again: {}", refused.met());
    server.fault(lists().times(1), Then::too_many(1));
    server.interrupt(slices, Interrupt::End);
    follows(&site, "429")?;
    server.fault(lists().times(1), Then::fail(StatusCode::INTERNAL_SERVER_ERROR));
    server.interrupt(slices, Interrupt::End);
    follows(&site, "500")?;
    server.fault(lists().times(1), Then::Answer("{\"type\": \"ADDED\", \"object\": [\n".into()));
    server.interrupt(slices, Interrupt::End);
    follows(&site, "invalid JSON")?;
    server.fault(lists().times(1), Then::Cut(10));
    server.interrupt(slices, Interrupt::End);
    follows(&site, "a response that breaks off")?;
    server.drain_connections();
    follows(&site, "GOAWAY")?;
    server.cut_connections();
    follows(&site, "connections that break off")?;
    Ok(())
}

#[test]
fn a_malformed_object_is_rejected_alone() -> Result<()> {
    let site = Site::mock()?;
    site.service("web", ONE)?;
    site.route("a", "web")?;
    let route = json!({
        "apiVersion": "route.openshift.io/v1",
        "kind": "Route",
        "metadata": {"namespace": "test", "name": "bad"},
        "spec": {"host": ["list"], "to": {"name": "web"}},
    });
    site.mocked()?.apply(&route)?;
    let sluice = site.serve()?;
    assert_eq!(site.get("a.apps.test")?, (200, "one".to_owned()));
    let is_named = |line: &String| line.contains("Route test/bad: spec.host: ");
    ensure!(sluice.output().iter().any(is_named), "{:#?}", sluice.output());
    Ok(())
}
