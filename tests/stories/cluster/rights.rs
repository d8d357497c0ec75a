//! Credentials that are not accepted, and rights that are missing.

use std::time::Duration;

use anyhow::{Result, ensure};
use http::StatusCode;
use tempfile::TempDir;
use tests::cluster::mock::{Interrupt, Then, Verb, When, write_token};
use tests::sluice::Sluice;
use tests::wait::{PATIENCE, hold, wait_until};

use super::site::{ONE, Site, TWO};

/// Time in which what was read would have been dropped.
const SOON: Duration = Duration::from_secs(1);

#[test]
fn a_token_that_is_not_accepted_is_an_outage_until_there_is_another() -> Result<()> {
    let folder = TempDir::new()?;
    let token = folder.path().join("token");
    write_token(&token, "old")?;
    let mut site = Site::mock_with_route()?;
    site.mocked()?.accept_only(Some("old"));
    let kubeconfig = site.mocked()?.kubeconfig_of_file(&token)?;
    site.sign_in(kubeconfig);
    let sluice = site.serve()?;
    site.wait_for("a.apps.test", "one")?;
    let server = site.mocked()?;
    server.accept_only(Some("new"));
    server.interrupt(None, Interrupt::End);
    wait_until("an outage is logged", PATIENCE, || sluice.has_line("the API server cannot be read"))?;
    site.service("web", TWO)?;
    hold(SOON, || {
        ensure!(site.get("a.apps.test")? == (200, "one".to_owned()), "what was last read does not serve");
        Ok(())
    })?;
    ensure!(!sluice.has_line("the API server denies"), "{:#?}", sluice.output());
    write_token(&token, "new")?;
    site.wait_for("a.apps.test", "two")
}

/// Number of log lines about the right to read Routes.
fn named(sluice: &Sluice) -> usize {
    let is_about = |line: &&String| (line.contains("denies") || line.contains("403")) && line.contains("scope=Route ");
    sluice.output().iter().filter(is_about).count()
}

#[test]
fn a_start_without_any_right_names_each_once_and_serves_the_snapshot() -> Result<()> {
    let site = Site::mock_with_route()?;
    let state = site.serve()?.kill()?;
    let server = site.mocked()?;
    server.fault(When::default(), Then::fail(StatusCode::FORBIDDEN));
    let asked = || server.log().count_of(Verb::StreamingList, "routes");
    let before = asked();
    let sluice = site.serve_after(Some(state), &[])?;
    assert_eq!(site.get("a.apps.test")?, (200, "one".to_owned()));
    wait_until("the Routes are asked for again", PATIENCE, || asked() - before >= 2)?;
    hold(SOON, || {
        ensure!(named(&sluice) == 1, "{:#?}", sluice.output());
        Ok(())
    })
}

#[test]
fn a_right_that_is_taken_away_is_named_and_the_last_objects_serve() -> Result<()> {
    let mut site = Site::real()?;
    site.service("web", ONE)?;
    site.route("a", "web")?;
    let plane = site.plane()?;
    plane.apply(&std::fs::read_to_string(tests::workspace().join("deploy/kubernetes/rbac.yaml"))?)?;
    let kubeconfig = plane.kubeconfig_of("sluice", "sluice")?;
    site.sign_in(kubeconfig);
    let sluice = site.serve()?;
    site.wait_for_admitted("a", "True")?;
    ensure!(!sluice.has_line("denies"), "{:#?}", sluice.output());

    let role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/sluice";
    let api = site.api()?;
    let mut without = api.get(role)?;
    if let Some(rules) = without["rules"].as_array_mut() {
        rules.retain(|rule| rule["resources"] != serde_json::json!(["routes"]));
    }
    api.replace(role, &without)?;
    // Rights are checked when a watch begins.
    let plane = site.plane()?;
    plane.kill_api_server()?;
    plane.start_api_server(&[])?;
    wait_until("the missing right is named", PATIENCE, || named(&sluice) > 0)?;
    // Others are followed.
    site.service("web", TWO)?;
    site.wait_for("a.apps.test", "two")?;
    assert_eq!(named(&sluice), 1, "{:#?}", sluice.output());
    let of_library = |line: &String| line.contains("kube_runtime") && line.contains("403");
    ensure!(!sluice.output().iter().any(of_library), "{:#?}", sluice.output());
    Ok(())
}
