//! Faults of the mock, as a client sees them.

use anyhow::{Context, Result, ensure};
use http::{Method, StatusCode, header};
use serde_json::{Value, json};
use tests::cluster::mock::{Interrupt, MockApiServer, Options, Then, Verb, When};
use tests::netns::Netns;
use tests::wait::{PATIENCE, wait_until};

use super::client::Client;

const MAPS: &str = "/api/v1/configmaps";
const WATCH: &str = "/api/v1/configmaps?watch=1&allowWatchBookmarks=1";

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}})
}

/// A mock with three ConfigMaps, and a client.
fn start() -> Result<(MockApiServer, Client)> {
    let mock = MockApiServer::start(None, Options::default())?;
    for name in ["one", "two", "three"] {
        mock.apply(&map(name))?;
    }
    let client = Client::connect(&mock)?;
    Ok((mock, client))
}

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().into_iter().flatten().filter_map(|item| item["metadata"]["name"].as_str()).collect()
}

fn event(what: &str, name: &str) -> Option<(String, String)> {
    Some((what.to_owned(), name.to_owned()))
}

#[test]
fn requests_fail_as_the_test_says() -> Result<()> {
    let (mock, mut client) = start()?;
    mock.fault(When::verbs(&[Verb::List]).of("configmaps").times(1), Then::too_many(7));
    let answer = client.get(MAPS)?;
    let seconds = answer.head.headers().get(header::RETRY_AFTER).context("Retry-After is there")?.clone();
    assert_eq!((answer.head.status(), seconds.to_str()?), (StatusCode::TOO_MANY_REQUESTS, "7"));
    assert_eq!(names(&client.json(MAPS)?), ["one", "three", "two"]);
    let refused = mock.fault(When::verbs(&[Verb::StreamingList]), Then::fail(StatusCode::UNPROCESSABLE_ENTITY));
    let streaming = format!("{WATCH}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
    assert_eq!(client.get(&streaming)?.head.status(), StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(client.get(WATCH)?.head.status(), StatusCode::OK);
    refused.release();
    assert_eq!((client.get(&streaming)?.head.status(), refused.met()), (StatusCode::OK, 1));
    mock.accept_only(Some("new"));
    assert_eq!(client.get_with(MAPS, "old")?.head.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(client.get_with(MAPS, "new")?.head.status(), StatusCode::OK);
    mock.accept_only(None);
    mock.fault(When::default().of("secrets"), Then::fail(StatusCode::FORBIDDEN));
    assert_eq!(client.get("/api/v1/secrets")?.head.status(), StatusCode::FORBIDDEN);
    let netns = Netns::new("mock-client")?;
    ensure!(mock.client(&netns)?.get(MAPS).is_err(), "the mock listens in another namespace");
    Ok(())
}

#[test]
fn answers_are_held_stopped_and_cut() -> Result<()> {
    let (mock, mut client) = start()?;
    let once = || When::verbs(&[Verb::List]).times(1);
    mock.fault(once(), Then::Answer("{\"items\": [".into()));
    let answer = client.get(MAPS)?;
    assert_eq!(client.rest(answer)?, "{\"items\": [");
    mock.fault(once(), Then::Cut(20));
    // The reset of the stream may overtake the answer's begin.
    let cut = client.get(MAPS).and_then(|answer| client.rest(answer));
    assert!(cut.is_err(), "an answer that breaks off is whole: {cut:?}");
    let held = mock.fault(once(), Then::Hold);
    client.get_nothing(MAPS)?;
    mock.log().wait_for("the held request", |all| all.last()?.answer.is_none().then_some(()))?;
    held.release();
    let stalled = mock.fault(once(), Then::Stall(20));
    let mut answer = client.get(MAPS)?;
    client.no_event(&mut answer)?;
    stalled.release();
    let whole = client.rest(answer)?;
    let version = mock.version().to_string();
    assert!(whole.ends_with(b"]}") && String::from_utf8_lossy(&whole).contains(&version));
    mock.fault(once(), Then::Keep(1));
    assert_eq!(names(&client.json(MAPS)?), ["one"]);
    mock.fault(once(), Then::Insert("{\"metadata\": {\"name\": []}}".into()));
    let list = client.json(MAPS)?;
    assert_eq!((&list["items"][0], names(&list).len()), (&json!({"metadata": {"name": []}}), 3));
    Ok(())
}

#[test]
fn versions_and_pages_expire() -> Result<()> {
    let (mock, mut client) = start()?;
    let version = mock.version();
    let page = client.json(&format!("{MAPS}?limit=2"))?;
    let next = format!("{MAPS}?continue={}", page["metadata"]["continue"].as_str().context("there are more")?);
    assert_eq!(names(&client.json(&next)?), ["two"]);
    mock.expire_pages();
    assert_eq!(client.get(&next)?.head.status(), StatusCode::GONE);
    let from = format!("{WATCH}&resourceVersion={version}");
    let mut watch = client.get(&from)?;
    mock.apply(&map("four"))?;
    assert_eq!(client.event(&mut watch)?, event("ADDED", "four"));
    mock.delete(&map("four"))?;
    assert_eq!(client.event(&mut watch)?, event("DELETED", "four"));
    mock.compact(Some("configmaps"));
    client.no_event(&mut watch)?;
    let mut late = client.get(&from)?;
    assert_eq!((client.event(&mut late)?, client.event(&mut late)?), (event("ERROR", ""), None));
    mock.fault(When::verbs(&[Verb::Watch]).times(1), Then::fail(StatusCode::GONE));
    assert_eq!(client.get(WATCH)?.head.status(), StatusCode::GONE);
    mock.interrupt(Some("configmaps"), Interrupt::Expire);
    assert_eq!((client.event(&mut watch)?, client.event(&mut watch)?), (event("ERROR", ""), None));
    wait_until("no watch is open", PATIENCE, || mock.watches("configmaps") == 0)?;
    Ok(())
}

#[test]
fn connections_are_drained_stalled_and_cut() -> Result<()> {
    let (mock, mut client) = start()?;
    let from = format!("{WATCH}&resourceVersion={}", mock.version());
    let mut watches = [client.get(&from)?, client.get(&from)?];
    assert_eq!((mock.connections(), mock.watches("configmaps")), (vec![1], 2));
    mock.drain_connections();
    // The client knows of it when a request is refused, and its open ones go on.
    wait_until("the connection takes no more requests", PATIENCE, || client.get(MAPS).is_err())?;
    mock.apply(&map("four"))?;
    for watch in &mut watches {
        assert_eq!(client.event(watch)?, event("ADDED", "four"));
    }
    let mut next = Client::connect(&mock)?;
    let mut watch = next.get(&from)?;
    assert_eq!(next.event(&mut watch)?, event("ADDED", "four"));
    assert_eq!((mock.connections_made(), mock.log().requests().last().map(|it| it.connection)), (2, Some(2)));
    mock.cut_connections();
    assert!(next.event(&mut watch).is_err() && client.event(&mut watches[0]).is_err());
    wait_until("no connection is open", PATIENCE, || mock.connections().is_empty())?;
    let mut stalled = Client::connect(&mock)?;
    let mut watch = stalled.get(&from)?;
    assert_eq!(stalled.event(&mut watch)?, event("ADDED", "four"));
    mock.stall_connections();
    mock.apply(&map("five"))?;
    stalled.no_event(&mut watch)?;
    stalled.get_nothing(MAPS)?;
    assert_eq!(names(&Client::connect(&mock)?.json(MAPS)?).len(), 5, "other connections work");
    mock.stop()?;
    assert!(Client::connect(&mock).is_err(), "a server that is down takes connections");
    mock.resume()?;
    assert_eq!(names(&Client::connect(&mock)?.json(MAPS)?).len(), 5);
    Ok(())
}

#[test]
fn kinds_come_and_go_and_writes_are_logged() -> Result<()> {
    let netns = Netns::new("mock")?;
    let mock = MockApiServer::start(Some(&netns), Options { protocols: &["http/1.1"], ..Options::default() })?;
    let api = mock.client(&netns)?;
    let things = "/apis/example.test/v1/namespaces/default/things";
    assert_eq!(api.request(Method::GET, things, "", String::new())?.0, StatusCode::NOT_FOUND);
    mock.apply_yaml(
        "# A kind.
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.test}
spec:
  group: example.test
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions: [{name: v1, served: true, storage: true, subresources: {status: {}}}]
---
apiVersion: example.test/v1
kind: Thing
metadata: {name: one}
",
    )?;
    let after = mock.log().count();
    api.patch(&format!("{things}/one/status"), &json!({"status": {"ready": true}}))?;
    let patch = mock.log().next(after, "a patch of the status", |it| it.is(Verb::Patch, "things"))?;
    assert_eq!((patch.json()["status"]["ready"].clone(), patch.agent.as_str()), (json!(true), "tests"));
    assert!(patch.path.ends_with("/status") && patch.answer.is_some());
    let thing = json!({"apiVersion": "example.test/v1", "kind": "Thing", "metadata": {"name": "one"}});
    assert_eq!(mock.get(&thing)?["status"], json!({"ready": true}));
    let review = |verb: &str| {
        let asked = json!({"spec": {"resourceAttributes": {"verb": verb, "resource": "things"}}});
        let reviewed = api.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &asked)?;
        reviewed["status"]["allowed"].as_bool().context("a review says what is allowed")
    };
    let forbidden = mock.fault(When::verbs(&[Verb::Patch]).of("things"), Then::fail(StatusCode::FORBIDDEN));
    assert!(!review("patch")? && review("list")?);
    forbidden.release();
    assert!(review("patch")?);
    api.delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.test")?;
    assert_eq!(api.request(Method::GET, things, "", String::new())?.0, StatusCode::NOT_FOUND);
    assert!(mock.get(&thing).is_err());
    Ok(())
}
