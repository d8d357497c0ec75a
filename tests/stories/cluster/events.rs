//! Events in an API server, and fights for a status.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Result, ensure};
use http::StatusCode;
use rcgen::CertificateParams;
use serde_json::{Value, json};
use tests::cluster::mock::{Interrupt, Then, Verb, When};
use tests::pki::{Ca, Leaf};
use tests::wait::{PATIENCE, hold, wait_until};

use super::references;
use super::site::{CALM, ONE, Site, route_object, wait_until_it_leads};

/// The Events of a namespace with this reason.
fn events(site: &Site, namespace: &str, reason: &str) -> Result<Vec<Value>> {
    let path = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
    let list = site.api()?.get(&path)?;
    let mut events = list["items"].as_array().cloned().unwrap_or_default();
    events.retain(|event| event["reason"] == reason);
    Ok(events)
}

/// Waits for an Event of this reason.
fn wait_for_event(site: &Site, namespace: &str, reason: &str) -> Result<Value> {
    let found = || events(site, namespace, reason).is_ok_and(|events| !events.is_empty());
    wait_until(&format!("an Event {reason}"), PATIENCE, found)?;
    Ok(events(site, namespace, reason)?.remove(0))
}

fn stay_at_one(site: &Site, reason: &str) -> Result<()> {
    hold(CALM, || {
        let events = events(site, "test", reason)?;
        ensure!(events.len() == 1, "{events:#?}");
        Ok(())
    })
}

fn a_route_that_loses_has_one_event(site: &Site) -> Result<()> {
    site.service("web", ONE)?;
    site.route("a", "web")?;
    let sluice = site.serve()?;
    site.wait_for_admitted("a", "True")?;
    site.apply(&tests::folder::route("c", "a.apps.test", "web", "").replace("2026-01-01", "2026-02-01"))?;
    let lost = site.wait_for_admitted("c", "False")?;
    let event = wait_for_event(site, "test", "HostAlreadyClaimed")?;
    assert_eq!((&event["type"], &event["reportingController"]), (&json!("Warning"), &json!("sluice")), "{event}");
    let regarding = &event["regarding"];
    assert_eq!((&regarding["kind"], &regarding["name"]), (&json!("Route"), &json!("c")), "{event}");
    assert_eq!(regarding["uid"], lost["metadata"]["uid"], "{event}");
    assert_eq!(event["note"], lost["status"]["ingress"][0]["conditions"][0]["message"], "{event}");
    sluice.stop()?;
    let again = site.serve()?;
    wait_until_it_leads(&again)?;
    stay_at_one(site, "HostAlreadyClaimed")
}

#[test]
fn a_route_that_loses_has_one_event_in_the_real_api_server() -> Result<()> {
    a_route_that_loses_has_one_event(&Site::real()?)
}

#[test]
fn a_route_that_loses_has_one_event_in_the_mock() -> Result<()> {
    a_route_that_loses_has_one_event(&Site::mock()?)
}

#[test]
fn invalid_objects_with_and_without_a_status_have_an_event() -> Result<()> {
    let site = Site::mock_with_route()?;
    let _sluice = site.serve()?;
    site.wait_for_admitted("a", "True")?;
    let server = site.mocked()?;
    let mut route = route_object("a", "web");
    route["spec"]["to"]["weight"] = json!("much");
    server.apply(&route)?;
    let event = wait_for_event(&site, "test", "InvalidManifest")?;
    assert_eq!(event["regarding"]["kind"], "Route", "{event}");
    ensure!(event["note"].as_str().is_some_and(|note| note.contains("spec.to.weight")), "{event}");
    let metadata = json!({"namespace": "test", "name": "bad"});
    server.apply(&json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": 1}}))?;
    let kinds = || {
        let events = events(&site, "test", "InvalidManifest").unwrap_or_default();
        events.iter().any(|event| event["regarding"]["kind"] == "Service")
    };
    wait_until("an Event of the Service", PATIENCE, kinds).map(drop)
}

/// A certificate that is valid for some days from now.
fn valid(ca: &Ca, days: u64) -> Result<Leaf> {
    let mut params = CertificateParams::new(["a.test".to_owned()])?;
    let end = SystemTime::now().duration_since(UNIX_EPOCH)? + Duration::from_secs(days * 24 * 3600);
    params.not_after = rcgen::date_time_ymd(1970, 1, 1) + end;
    ca.sign(params)
}

#[test]
fn a_certificate_in_use_that_expires_soon_has_one_event() -> Result<()> {
    let site = Site::mock_with_route()?;
    let (server, ca) = (site.mocked()?, Ca::new()?);
    let secret = |name: &str, days: u64| -> Result<()> {
        let mut secret = references::secret(name, &valid(&ca, days)?);
        secret["metadata"]["namespace"] = json!("test");
        (secret["apiVersion"], secret["kind"]) = (json!("v1"), json!("Secret"));
        server.apply(&secret).map(drop)
    };
    let route = |name: &str, tls: Value| -> Result<()> {
        let mut route = route_object(name, "web");
        route["spec"]["tls"] = tls;
        server.apply(&route).map(drop)
    };
    let own = valid(&ca, 13)?;
    route("own", json!({"termination": "edge", "certificate": own.certificate, "key": own.key}))?;
    for (name, days) in [("soon", 13), ("later", 15)] {
        secret(name, days)?;
        route(name, json!({"termination": "edge", "externalCertificate": {"name": name}}))?;
    }
    secret("unused", 1)?;
    let _sluice = site.serve()?;
    let regarding = || -> Result<Vec<String>> {
        let events = events(&site, "test", "CertificateExpiresSoon")?;
        let names = events.iter().map(|event| format!("{} {}", event["regarding"]["kind"], event["regarding"]["name"]));
        let mut names: Vec<String> = names.map(|name| name.replace('"', "")).collect();
        names.sort();
        Ok(names)
    };
    let are = |expected: &[&str]| {
        wait_until(&format!("Events about {expected:?}"), PATIENCE, || regarding().is_ok_and(|it| it == expected))?;
        hold(CALM, || {
            let found = regarding()?;
            ensure!(found == expected, "{found:?}");
            Ok(())
        })
    };
    site.wait_for_admitted("later", "True")?;
    are(&["Route own", "Secret soon"])?;
    let event = wait_for_event(&site, "test", "CertificateExpiresSoon")?;
    ensure!(event["note"].as_str().is_some_and(|note| note.contains("expires at 2")), "{event}");
    // Neither another change nor a renewal repeats one; a renewal may bring one.
    site.route("b", "web")?;
    site.wait_for_admitted("b", "True")?;
    secret("soon", 90)?;
    secret("later", 3)?;
    are(&["Route own", "Secret later", "Secret soon"])
}

#[test]
fn events_that_fail_or_are_slow_delay_no_status() -> Result<()> {
    let site = Site::mock_with_route()?;
    let server = site.mocked()?;
    let sent = When::verbs(&[Verb::Create]).of("events");
    let failed = server.fault(sent.clone().times(1), Then::fail(StatusCode::INTERNAL_SERVER_ERROR));
    let held = server.fault(sent, Then::Hold);
    let _sluice = site.serve()?;
    site.wait_for_admitted("a", "True")?;
    let lose = |name: &str| -> Result<()> {
        site.apply(&tests::folder::route(name, "a.apps.test", "web", "").replace("2026-01-01", "2026-02-01"))?;
        site.wait_for_admitted(name, "False").map(drop)
    };
    lose("c")?;
    wait_until("an Event fails", PATIENCE, || failed.met() == 1)?;
    let begin = Instant::now();
    lose("d")?;
    wait_until("an Event is held", PATIENCE, || held.met() == 1)?;
    lose("e")?;
    // The time after which the agent gives a request up.
    ensure!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    assert_eq!(site.status_writes()?, 4);
    held.release();
    Ok(())
}

#[test]
fn a_list_that_lacks_most_objects_has_an_event() -> Result<()> {
    let site = Site::mock_with_route()?;
    let server = site.mocked()?;
    for number in 0..150 {
        server.apply(&route_object(&format!("r{number}"), "web"))?;
    }
    let _sluice = site.serve()?;
    site.wait_for_admitted("a", "True")?;
    site.wait_for_admitted("r149", "True")?;
    let short = server.fault(When::verbs(&[Verb::List, Verb::StreamingList]).of("routes"), Then::Keep(10));
    server.compact(Some("routes"));
    server.interrupt(Some("routes"), Interrupt::Expire);
    let event = wait_for_event(&site, "default", "SourceShrunk")?;
    ensure!(short.met() > 0, "no list was read");
    let regarding = &event["regarding"];
    ensure!(regarding["kind"] == "Lease" && regarding["name"].as_str().is_some(), "{event}");
    ensure!(event["note"].as_str().is_some_and(|note| note.contains("lacks 141 of 151 objects")), "{event}");
    assert_eq!(site.get("r149.apps.test")?, (200, "one".to_owned()));
    Ok(())
}

/// Changes the entry of a Route's status as a controller with another opinion does.
fn rewrite(site: &Site, name: &str) -> Result<()> {
    let mut route = site.stored_route(name)?;
    for member in ["apiVersion", "kind"] {
        route[member] = route_object(name, "web")[member].clone();
    }
    route["status"]["ingress"][0]["conditions"][0]["status"] = json!("False");
    let entry = |manager: &str, subresource: &str, time: &str| {
        json!({
            "manager": manager, "operation": "Update", "apiVersion": "route.openshift.io/v1", "subresource": subresource,
            "time": time, "fieldsType": "FieldsV1", "fieldsV1": {},
        })
    };
    route["metadata"]["managedFields"] = json!([
        entry("sluice", "status", "2026-01-01T00:00:02Z"),
        entry("their-operator", "status", "2026-01-01T00:00:02Z"),
        entry("kubectl", "", "2026-01-01T00:00:03Z"),
    ]);
    site.mocked()?.apply(&route).map(drop)
}

#[test]
fn a_status_that_another_writer_changes_twice_is_left_alone() -> Result<()> {
    let site = Site::mock_with_route()?;
    let sluice = site.serve()?;
    site.wait_for_admitted("a", "True")?;
    rewrite(&site, "a")?;
    site.wait_for_admitted("a", "True")?;
    assert_eq!(site.wait_for_status_writes(2)?, 2);
    rewrite(&site, "a")?;
    let event = wait_for_event(&site, "test", "StatusContended")?;
    ensure!(event["note"].as_str().is_some_and(|note| note.contains("\"their-operator\"")), "{event}");
    assert_eq!(event["regarding"]["name"], "a", "{event}");
    ensure!(sluice.has_line("another writer changes this status again and again"), "{:#?}", sluice.output());
    // Neither a change of theirs nor one of ours is written.
    rewrite(&site, "a")?;
    hold(CALM, || {
        let writes = site.status_writes()?;
        ensure!(writes == 2, "{writes} writes");
        Ok(())
    })?;
    stay_at_one(&site, "StatusContended")?;
    // Other objects are not affected.
    site.route("b", "web")?;
    site.wait_for_admitted("b", "True")?;
    assert_eq!(site.wait_for_status_writes(3)?, 3);
    Ok(())
}
