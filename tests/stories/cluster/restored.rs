//! An API server whose objects are suddenly others: etcd is restored from a backup, or empty.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use tests::cluster::{ControlPlane, Definitions};
use tests::command;
use tests::wait::{PATIENCE, hold, wait_until};

use super::site::{ONE, ROUTES, Site, TWO, route_object};

/// Time for which a list that lacks most objects is not believed, at least.
const DOUBT: Duration = Duration::from_secs(25);

/// Stops the API server and etcd, does something, and starts them again.
fn while_down(plane: &mut ControlPlane, act: impl FnOnce(&ControlPlane) -> Result<()>) -> Result<()> {
    plane.kill_api_server()?;
    plane.kill_etcd()?;
    act(plane)?;
    plane.start_etcd()?;
    plane.start_api_server(&[]).map(drop)
}

/// Number of writes after a backup.
const WRITES: usize = 600;

#[test]
fn a_backup_that_is_restored_is_followed() -> Result<()> {
    let mut site = Site::real()?;
    site.service("web", ONE)?;
    for route in ["a", "deleted"] {
        site.route(route, "web")?;
    }
    let sluice = site.serve()?;
    for route in ["a", "deleted"] {
        site.wait_for_admitted(route, "True")?;
    }
    let backup = site.plane()?.data().with_extension("backup");
    while_down(site.plane()?, |plane| {
        command::output(Command::new("cp").arg("-a").arg(plane.data()).arg(&backup)).map(drop)
    })?;
    // After the backup: more writes than a start of the API server makes, and a version that the agent sees.
    let map = |number: usize| json!({"metadata": {"name": format!("later-{number}")}});
    let maps: Vec<_> = (0..WRITES).map(map).collect();
    site.plane()?.create_all("/api/v1/namespaces/test/configmaps", &maps)?;
    site.api()?.patch("/api/v1/namespaces/test", &json!({"metadata": {"labels": {"later": "true"}}}))?;
    // A change, a deletion, a new Route.
    site.service("web", TWO)?;
    site.api()?.delete(&format!("{ROUTES}/deleted"))?;
    site.route("new", "web")?;
    for route in ["a", "new"] {
        site.wait_for(&format!("{route}.apps.test"), "two")?;
    }
    let serves = |host: &str, status: u16| site_serves(&site, host, status);
    wait_until("the Route is deleted", PATIENCE, || serves("deleted", 503))?;

    while_down(site.plane()?, |plane| {
        fs::remove_dir_all(plane.data())?;
        Ok(fs::rename(&backup, plane.data())?)
    })?;
    let within = Duration::from_secs(90);
    wait_until("the Route is there again", within, || site_serves(&site, "deleted", 200))?;
    wait_until("the new Route is gone", within, || site_serves(&site, "new", 503))?;
    site.wait_for("a.apps.test", "one")?;
    // What happens now is followed, though its versions are older than those before the backup was restored.
    site.service("web", TWO)?;
    site.wait_for("a.apps.test", "two")?;
    ensure!(sluice.has_line("older versions than before"), "{:#?}", sluice.output());
    Ok(())
}

/// Whether `/` of a host below `apps.test` has a response of this status.
fn site_serves(site: &Site, route: &str, status: u16) -> bool {
    site.get(&format!("{route}.apps.test")).is_ok_and(|(found, _)| found == status)
}

#[test]
fn a_cluster_that_is_suddenly_empty_is_believed_after_a_while() -> Result<()> {
    let mut site = Site::real()?;
    site.service("web", ONE)?;
    let routes: Vec<_> = (0..150).map(|i| route_object(&format!("r{i}"), "web")).collect();
    site.plane()?.create_all(ROUTES, &routes)?;
    let sluice = site.serve()?;
    assert_eq!(site.get("r0.apps.test")?, (200, "one".to_owned()));

    while_down(site.plane()?, |plane| Ok(fs::remove_dir_all(plane.data())?))?;
    wait_until("the empty list is noticed", PATIENCE, || sluice.has_line("lacks most objects"))?;
    hold(DOUBT, || {
        ensure!(site.get("r149.apps.test")? == (200, "one".to_owned()), "{:#?}", sluice.output());
        Ok(())
    })?;
    wait_until("it is believed", PATIENCE, || !site_serves(&site, "r149", 200))?;
    // Objects of the new cluster serve.
    site.define(Definitions::Sluice)?;
    let api = site.api()?;
    for namespace in ["test", "openshift-ingress-operator"] {
        api.create("/api/v1/namespaces", &json!({"metadata": {"name": namespace}}))?;
    }
    site.apply(&tests::folder::router())?;
    site.service("web", TWO)?;
    site.route("again", "web")?;
    site.wait_for("again.apps.test", "two")
}
