//! A status with entries of two controllers whose writers race.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tests::cluster::mock::{Request, Verb};
use tests::cluster::site::Server;
use tests::cluster::{Api, Write};
use tests::stream::joined;
use tests::wait::{PATIENCE, wait_until};

use super::gateways::{GATEWAY_API, OURS, of, with_class};
use super::site::Site;

const THEIRS: &str = "theirs.test/controller";

/// Number of writers of the other controller's entry, each with a connection of its own.
const WRITERS: u64 = 100;

/// Each write of the other controller adds one to a count in its entry, while changes of the object make the agent write.
pub fn outlast_races(site: &Site) -> Result<()> {
    let api = site.api()?;
    for (name, controller, port) in [("race-ours", OURS, 8093), ("race-theirs", THEIRS, 8094)] {
        with_class(site, name, controller)?;
        let listener = json!({"name": "web", "port": port, "protocol": "HTTP"});
        let gateway = json!({"metadata": {"name": name}, "spec": {"gatewayClassName": name, "listeners": [listener]}});
        api.create(&format!("{GATEWAY_API}/v1/namespaces/test/gateways"), &of("v1", "Gateway", gateway))?;
    }
    let routes = format!("{GATEWAY_API}/v1/namespaces/test/httproutes");
    let path = format!("{routes}/shared");
    let spec = json!({"parentRefs": [{"name": "race-ours"}, {"name": "race-theirs"}], "hostnames": ["h.test"]});
    api.create(&routes, &of("v1", "HTTPRoute", json!({"metadata": {"name": "shared"}, "spec": spec})))?;
    let condition = json!({
        "type": "Accepted", "status": "True", "reason": "Accepted", "message": "0", "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let entry = json!({"controllerName": THEIRS, "parentRef": {"name": "race-theirs"}, "conditions": [condition]});
    api.patch(&format!("{path}/status"), &json!({"status": {"parents": [entry]}}))?;
    let _sluice = site.serve()?;
    wait_until("our entry is written", PATIENCE, || api.get(&path).is_ok_and(|route| is_current(&route)))?;

    let is_enough = AtomicBool::new(false);
    let counted = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (path, is_enough) = (&path, &is_enough);
                scope.spawn(move || counts(&site.api()?, path, writer, is_enough))
            })
            .collect();
        let mut changes = 0;
        let mut change = || {
            changes += 1;
            thread::sleep(Duration::from_millis(100));
            api.patch(&path, &json!({"spec": {"hostnames": [format!("h{changes}.test")]}})).map(drop)
        };
        let conflicted = wait_until("a write of the agent conflicts", PATIENCE, || {
            change().is_ok() && conflicts(site).is_ok_and(|conflicts| conflicts > 0)
        });
        is_enough.store(true, Ordering::Relaxed);
        while !writers.iter().all(ScopedJoinHandle::is_finished) {
            change()?;
        }
        conflicted?;
        println!("{changes} changes of the object");
        writers.into_iter().map(joined).sum::<Result<u64>>()
    })?;
    wait_until("our entry is of the last change", PATIENCE, || api.get(&path).is_ok_and(|route| is_current(&route)))?;
    let route = api.get(&path)?;
    println!("{counted} writes of theirs, {} conflicts of ours", conflicts(site)?);
    ensure!(counted >= WRITERS && count_in(&route)? == counted, "{counted} writes, but {route:#}");
    Ok(())
}

/// Whether the entries are one of each controller, and ours is of the present generation.
fn is_current(route: &Value) -> bool {
    let entries = route["status"]["parents"].as_array().map_or(&[][..], Vec::as_slice);
    let ours = entries.iter().find(|entry| entry["controllerName"] == OURS);
    let conditions = ours.and_then(|entry| entry["conditions"].as_array());
    let is_accepted = |it: &Value| {
        it["type"] == "Accepted"
            && it["status"] == "True"
            && it["observedGeneration"] == route["metadata"]["generation"]
    };
    entries.len() == 2 && conditions.is_some_and(|all| all.iter().any(is_accepted))
}

/// The count in the other controller's entry.
fn count_in(route: &Value) -> Result<u64> {
    let entries = route["status"]["parents"].as_array().context("a status has entries")?;
    let theirs = entries.iter().find(|entry| entry["controllerName"] == THEIRS).context("their entry is lost")?;
    Ok(theirs["conditions"][0]["message"].as_str().context("a condition has a message")?.parse()?)
}

/// Adds one to the count until it is enough, and at least once; returns how often. As controllers do, it writes what it has
/// read with the version that it has read, and begins anew after a conflict.
fn counts(api: &Api, path: &str, writer: u64, is_enough: &AtomicBool) -> Result<u64> {
    let mut counted = 0;
    while counted == 0 || !is_enough.load(Ordering::Relaxed) {
        let mut route = api.get(path)?;
        let count = count_in(&route)? + 1;
        let entries = route["status"]["parents"].as_array_mut().context("a status has entries")?;
        for entry in entries.iter_mut().filter(|entry| entry["controllerName"] == THEIRS) {
            entry["conditions"][0]["message"] = json!(count.to_string());
        }
        let version = json!({"resourceVersion": route["metadata"]["resourceVersion"]});
        let patch = json!({"metadata": version, "status": {"parents": route["status"]["parents"]}});
        let media = "application/merge-patch+json";
        let (status, answer) = api.request(Method::PATCH, &format!("{path}/status"), media, patch.to_string())?;
        match status {
            StatusCode::OK => counted += 1,
            StatusCode::CONFLICT => {}
            _ => bail!("{status}: {}", String::from_utf8_lossy(&answer)),
        }
        // Without pauses nearly every write conflicts.
        thread::sleep(Duration::from_millis(100 + 7 * writer));
    }
    Ok(counted)
}

/// Number of conflicts that the agent's writes of the status have met.
fn conflicts(site: &Site) -> Result<usize> {
    Ok(match &site.server {
        Server::Mock(server) => {
            let is_conflict = |it: &&Request| {
                it.is(Verb::Patch, "httproutes")
                    && it.agent.starts_with("sluice/")
                    && it.answer == Some(StatusCode::CONFLICT)
            };
            server.log().requests().iter().filter(is_conflict).count()
        }
        Server::Real(plane) => {
            let is_conflict =
                |it: &&Write| it.resource == "httproutes/status" && it.agent.starts_with("sluice/") && it.code == 409;
            plane.writes()?.iter().filter(is_conflict).count()
        }
    })
}
