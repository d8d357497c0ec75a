//! An API server as the source: what it has is served, whatever it answers.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use http::StatusCode;
use serde_json::json;
use tests::cluster::Definitions;
use tests::cluster::mock::{Interrupt, MockApiServer, Request, Then, Verb, When};
use tests::command;
use tests::sluice::binary;
use tests::wait::{PATIENCE, wait_until};

use super::site::{ONE, Site, TWO, route_object};

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
    let site = Site::mock_with_route()?;
    let _sluice = site.serve()?;
    site.wait_for_admitted("a", "True")?;
    assert_eq!(site.mocked()?.connections().len(), 1);
    Ok(())
}

#[test]
fn an_outage_changes_nothing_and_its_end_brings_what_changed() -> Result<()> {
    let site = Site::mock_with_route()?;
    let sluice = site.serve()?;
    let server = site.mocked()?;
    server.stop()?;
    wait_until("the outage is logged", PATIENCE, || sluice.has_line("the API server cannot be read"))?;
    site.service("web", TWO)?;
    for _ in 0..20 {
        assert_eq!(site.get("a.apps.test")?, (200, "one".to_owned()));
    }
    server.resume()?;
    site.wait_for("a.apps.test", "two")
}

#[test]
fn what_is_not_listed_at_a_start_is_waited_for() -> Result<()> {
    let site = Site::mock_with_route()?;
    let server = site.mocked()?;
    let held = server.fault(When::verbs(&[Verb::StreamingList]).of("services"), Then::Hold);
    let mut sluice = site.spawn_after(None, &[])?;
    wait_until("Services are listed", PATIENCE, || held.met() > 0)?;
    ensure!(!sluice.has_line("sluice: ready"), "{:#?}", sluice.output());
    held.release();
    sluice.wait_until_ready()?;
    assert_eq!(site.get("a.apps.test")?, (200, "one".to_owned()));
    Ok(())
}

#[test]
fn a_kind_that_is_denied_or_not_installed_holds_nothing_back() -> Result<()> {
    let site = Site::mock_with_route()?;
    let server = site.mocked()?;
    server.fault(When::default().of("routeslots"), Then::fail(StatusCode::FORBIDDEN));
    let sluice = site.serve()?;
    assert_eq!(site.get("a.apps.test")?, (200, "one".to_owned()));
    let is_named = |line: &String| line.contains("RouteSlot") && line.contains("denies");
    ensure!(sluice.output().iter().any(is_named), "{:#?}", sluice.output());

    // A kind appears with its definition, goes with it, and comes again.
    let proxy = json!({
        "apiVersion": "projectcontour.io/v1",
        "kind": "HTTPProxy",
        "metadata": {"namespace": "test", "name": "p"},
        "spec": {
            "virtualhost": {"fqdn": "p.apps.test"},
            "routes": [{"services": [{"name": "web", "port": 80}]}],
        },
    });
    for _ in 0..2 {
        server.install(Definitions::Contour)?;
        server.apply(&proxy)?;
        site.wait_for("p.apps.test", "one")?;
        // A real API server deletes a kind's objects before its definition.
        server.delete(&proxy)?;
        let is_gone = || site.get("p.apps.test").is_ok_and(|(status, _)| status == 503);
        wait_until("p.apps.test is not served", PATIENCE, is_gone)?;
        server.delete(&json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "httpproxies.projectcontour.io"},
        }))?;
        server.interrupt(Some("httpproxies"), Interrupt::End);
        wait_until("HTTPProxies are watched no longer", PATIENCE, || server.watches("httpproxies") == 0)?;
    }
    Ok(())
}

/// The collection whose watches are disturbed.
const SLICES: &str = "endpointslices";

/// Interrupts the open watch of EndpointSlices.
fn interrupt(server: &MockApiServer, what: Interrupt) -> Result<()> {
    wait_until("EndpointSlices are watched", PATIENCE, || server.watches(SLICES) > 0)?;
    server.interrupt(Some(SLICES), what);
    Ok(())
}

/// Changes the endpoint of a Service until the change has arrived.
fn follows(site: &Site) -> Result<()> {
    for (port, backend) in [(TWO, "two"), (ONE, "one")] {
        site.service("web", port)?;
        site.wait_for("a.apps.test", backend)?;
    }
    Ok(())
}

#[test]
fn a_watch_recovers_from_every_answer() -> Result<()> {
    let site = Site::mock_with_route()?;
    let _sluice = site.serve()?;
    let server = site.mocked()?;
    let after = server.log().count();
    interrupt(server, Interrupt::Expire)?;
    server.log().next(after, "EndpointSlices are listed again", |it| it.is(Verb::StreamingList, SLICES))?;
    follows(&site).context("410 in a watch")?;

    let lists = |verbs: &[Verb]| When::verbs(verbs).of(SLICES);
    let refused = server.fault(lists(&[Verb::StreamingList]), Then::fail(StatusCode::UNPROCESSABLE_ENTITY));
    interrupt(server, Interrupt::Expire)?;
    wait_until("a streaming list is rejected", PATIENCE, || refused.met() > 0)?;
    follows(&site).context("streaming lists are rejected")?;
    for (what, then) in [
        ("410 at the start of a watch", Then::fail(StatusCode::GONE)),
        ("429", Then::too_many(1)),
        ("500", Then::fail(StatusCode::INTERNAL_SERVER_ERROR)),
        ("invalid JSON", Then::Answer("{\"type\": \"ADDED\", \"object\": [\n".into())),
        ("a response that breaks off", Then::Cut(10)),
    ] {
        let fault = server.fault(lists(&[Verb::Watch]).times(1), then);
        interrupt(server, Interrupt::End)?;
        wait_until(what, PATIENCE, || fault.met() == 1)?;
        follows(&site).context(what)?;
    }
    ensure!(refused.met() == 1, "a rejected streaming list is asked for again: {}", refused.met());
    Ok(())
}

#[test]
fn a_watch_goes_on_over_another_connection() -> Result<()> {
    let site = Site::mock_with_route()?;
    let _sluice = site.serve()?;
    let server = site.mocked()?;
    let is_on_another =
        |all: &[Request], before| all.iter().any(|it| it.plural == SLICES && it.connection > before).then_some(());
    let before = server.connections_made();
    server.drain_connections();
    server.log().wait_for("EndpointSlices are read on another connection after GOAWAY", |all| {
        // Open watches go on, and one may begin before the client has received GOAWAY.
        server.interrupt(Some(SLICES), Interrupt::End);
        is_on_another(all, before)
    })?;
    follows(&site).context("GOAWAY")?;
    let before = server.connections_made();
    server.cut_connections();
    server.log().wait_for("EndpointSlices are read on another connection", |all| is_on_another(all, before))?;
    follows(&site).context("connections that break off")
}

#[test]
fn a_malformed_object_is_rejected_alone() -> Result<()> {
    let site = Site::mock_with_route()?;
    let mut route = route_object("bad", "web");
    route["spec"]["host"] = json!(["list"]);
    site.mocked()?.apply(&route)?;
    let sluice = site.serve()?;
    assert_eq!(site.get("a.apps.test")?, (200, "one".to_owned()));
    ensure!(sluice.has_line("Route test/bad: spec.host: "), "{:#?}", sluice.output());
    Ok(())
}
