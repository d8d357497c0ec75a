//! The same requests to the real API server and to the mock: equal answers, but for times, versions and ids.

use std::cell::RefCell;
use std::sync::Arc;
use std::thread;

use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::{Map, Value, json};
use tests::cluster::mock::{MockApiServer, Options};
use tests::cluster::{Api, ControlPlane, Definitions, aggregated};
use tests::netns::Netns;
use tests::stream::joined;
use tests::wait::PATIENCE;

/// Media type of metadata alone; before it `List` for lists.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json";
const MAPS: &str = "/api/v1/namespaces/alike/configmaps";
const ROUTES: &str = "/apis/route.openshift.io/v1/namespaces/alike/routes";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/alike/leases";

/// A real server and a mock.
struct Both {
    servers: [Api; 2],
    /// Differences so far.
    different: RefCell<Vec<String>>,
    _mock: MockApiServer,
    _netns: Netns,
    _plane: Arc<ControlPlane>,
}

impl Both {
    fn start() -> Result<Both> {
        let plane = ControlPlane::shared()?;
        plane.define(Definitions::Sluice)?;
        let netns = Netns::new("mock")?;
        let mock = MockApiServer::start(Some(&netns), Options::default())?;
        mock.install(Definitions::Sluice)?;
        let servers = [plane.client(plane.netns())?, mock.client(&netns)?];
        Ok(Both { servers, different: RefCell::default(), _mock: mock, _netns: netns, _plane: plane })
    }

    /// Sends the same request to both, and compares the outlines of the answers; returns the answers.
    fn ask(&self, method: Method, path: &str, media: &str, body: &Value) -> Result<[Value; 2]> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.compare(JSON, &method, [path, path], media, [body.clone(), body])
    }

    fn get(&self, path: &str) -> Result<[Value; 2]> {
        self.ask(Method::GET, path, "", &Value::Null)
    }

    fn create(&self, collection: &str, object: &Value) -> Result<[Value; 2]> {
        self.ask(Method::POST, collection, JSON, object)
    }

    /// As [`Both::ask`], with paths and bodies of each.
    fn compare(
        &self,
        accept: &str,
        method: &Method,
        paths: [&str; 2],
        media: &str,
        bodies: [String; 2],
    ) -> Result<[Value; 2]> {
        let [real, mock] = &self.servers;
        let [one, two] = bodies;
        let (real, mock) = thread::scope(|scope| {
            let real = scope.spawn(|| real.request_as(accept, method.clone(), paths[0], media, one));
            let mock = mock.request_as(accept, method.clone(), paths[1], media, two);
            (joined(real), mock)
        });
        let ((code, real), (mocked, mock)) = (real?, mock?);
        let (real, mock) = (lines(&real), lines(&mock));
        let (expected, found) = (outline(&real), outline(&mock));
        if code != mocked || expected != found {
            let difference = format!("{method} {}: {code} {expected:#}\nThe mock answers {mocked} {found:#}", paths[0]);
            self.different.borrow_mut().push(difference);
        }
        Ok([real, mock])
    }

    /// Reads for a second from a watch; `after` are lists or objects from whose version it goes on.
    fn watch(&self, accept: &str, path: &str, after: Option<&[Value; 2]>) -> Result<[Value; 2]> {
        let path = |server: usize| {
            let version = after.map_or(Ok(""), |after| version(&after[server]))?;
            Ok::<_, anyhow::Error>(format!("{path}&watch=true&timeoutSeconds=1&resourceVersion={version}"))
        };
        let (real, mock) = (path(0)?, path(1)?);
        self.compare(accept, &Method::GET, [&real, &mock], "", Default::default())
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn version(of: &Value) -> Result<&str> {
    of["metadata"]["resourceVersion"].as_str().context("a resource version")
}

/// One document, or several of a watch as an array.
fn lines(bytes: &[u8]) -> Value {
    let documents = serde_json::Deserializer::from_slice(bytes).into_iter().collect::<Result<Vec<Value>, _>>();
    let Ok(mut documents) = documents else { return Value::from(text(bytes)) };
    let is_watch = documents.first().is_some_and(|first| first["object"].is_object());
    if is_watch { documents.into() } else { documents.pop().unwrap_or_default() }
}

/// What must be equal of an answer: no times, versions and ids, and of a failure no message.
fn outline(answer: &Value) -> Value {
    /// Members that differ from server to server, and those that the mock does not know.
    const DIFFERENT: [&str; 10] = [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "managedFields",
        "generation",
        "resourceVersion",
        "message",
        "details",
        "deletionGracePeriodSeconds",
        "remainingItemCount",
    ];
    match answer {
        // An open watch may be sent further bookmarks at its end.
        Value::Array(values) => {
            values.iter().filter(|it| !is_plain_bookmark(it)).map(outline).collect::<Vec<_>>().into()
        }
        Value::Object(members) => {
            let mut same: Map<String, Value> = Map::new();
            for (name, member) in members.iter().filter(|(name, _)| !DIFFERENT.contains(&name.as_str())) {
                let is_token = name == "continue";
                same.insert(name.clone(), if is_token { json!(member != "") } else { outline(member) });
            }
            // Bookmarks of built-in kinds have the members of their kind, empty.
            if members.get("type").is_some_and(|it| it == "BOOKMARK") {
                same.insert("object".to_owned(), json!({"annotations": members["object"]["metadata"]["annotations"]}));
            }
            Value::Object(same)
        }
        other => other.clone(),
    }
}

fn is_plain_bookmark(event: &Value) -> bool {
    event["type"] == "BOOKMARK" && event["object"]["metadata"]["annotations"].is_null()
}

fn map(name: &str, label: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"app": label}}, "data": {"key": name}})
}

fn route(name: &str) -> Value {
    let to = json!({"kind": "Service", "name": "web", "weight": 100});
    let spec = json!({"host": format!("{name}.alike.test"), "to": to, "wildcardPolicy": "None"});
    json!({"apiVersion": "route.openshift.io/v1", "kind": "Route", "metadata": {"name": name}, "spec": spec})
}

#[test]
fn the_mock_answers_as_the_real_server() -> Result<()> {
    let both = Both::start()?;
    for server in &both.servers {
        server.create("/api/v1/namespaces", &json!({"metadata": {"name": "alike"}}))?;
    }
    lists_and_objects(&both)?;
    writes(&both)?;
    watches(&both)?;
    deletions(&both)?;
    let different = both.different.take();
    ensure!(different.is_empty(), "{} answers differ:\n{}", different.len(), different.join("\n\n"));
    Ok(())
}

fn lists_and_objects(both: &Both) -> Result<()> {
    for (name, label) in [("a", "x"), ("b", "y"), ("c", "x")] {
        both.create(MAPS, &map(name, label))?;
    }
    both.create(ROUTES, &route("one"))?;
    both.create(MAPS, &map("a", "x"))?;
    both.get(&format!("{MAPS}/a"))?;
    both.get(&format!("{MAPS}/none"))?;
    both.get("/api/v1/nothing")?;
    both.get("/apis/nothing.test/v1/things")?;
    let selector = "labelSelector=app%20in%20(x,z)";
    for query in [
        "",
        "limit=2",
        "fieldSelector=metadata.name%3Db",
        "labelSelector=app%3Dx",
        selector,
        "labelSelector=!app&fieldSelector=metadata.name%3Da",
    ] {
        // What the cluster itself puts there has no such label.
        both.get(&format!("{MAPS}?{query}{}", if query.contains("app") { "" } else { "&labelSelector=app" }))?;
    }
    for query in ["fieldSelector=spec.nothing%3Da", "labelSelector=a%20b", "continue=x", "limit=x", "resourceVersion=x"]
    {
        both.get(&format!("{MAPS}?{query}"))?;
    }
    both.get(ROUTES)?;
    let pages = both.get(&format!("{MAPS}?limit=1&labelSelector=app"))?;
    let next = |page: &Value| {
        format!(
            "{MAPS}?limit=5&labelSelector=app&continue={}",
            page["metadata"]["continue"].as_str().unwrap_or_default()
        )
    };
    let [real, mock] = [next(&pages[0]), next(&pages[1])];
    both.compare(JSON, &Method::GET, [&real, &mock], "", Default::default())?;
    for (accept, path) in [
        (METADATA, format!("{MAPS}/a")),
        (METADATA_LIST, format!("{MAPS}?labelSelector=app")),
        (METADATA_LIST, ROUTES.to_owned()),
    ] {
        both.compare(accept, &Method::GET, [&path, &path], "", Default::default())?;
    }
    both.get(&format!("{MAPS}?resourceVersion=999999999&resourceVersionMatch=NotOlderThan"))?;
    let [real, mock] = [0, 1].map(|server| both.servers[server].get("/apis/route.openshift.io/v1"));
    let named = |document: &Value| -> Vec<(Value, Value)> {
        let resources = document["resources"].as_array().into_iter().flatten();
        resources.map(|it| (it["name"].clone(), it["namespaced"].clone())).collect()
    };
    assert_eq!(named(&real?), named(&mock?));
    Ok(())
}

fn writes(both: &Both) -> Result<()> {
    let one = format!("{ROUTES}/one");
    let stale = json!({"metadata": {"resourceVersion": "1"}, "status": {"ingress": []}});
    both.ask(Method::PATCH, &format!("{one}/status"), MERGE, &stale)?;
    let row = json!({"host": "one.alike.test", "routerName": "default"});
    let status =
        json!({"metadata": {"labels": {"not": "kept"}}, "spec": {"path": "/not"}, "status": {"ingress": [row]}});
    let written = both.ask(Method::PATCH, &format!("{one}/status"), MERGE, &status)?;
    let again = both.ask(Method::PATCH, &format!("{one}/status"), MERGE, &status)?;
    for server in [0, 1] {
        assert_eq!(version(&written[server])?, version(&again[server])?, "a write of nothing is a version of {server}");
        assert_eq!(written[server]["metadata"]["generation"], 1);
    }
    let changed =
        both.ask(Method::PATCH, &one, MERGE, &json!({"spec": {"path": "/a"}, "status": {"ingress": null}}))?;
    assert_eq!([0, 1].map(|server| &changed[server]["metadata"]["generation"]), [&json!(2), &json!(2)]);
    both.ask(Method::PATCH, &one, "text/plain", &json!({}))?;
    both.ask(Method::PATCH, &one, MERGE, &json!([]))?;
    both.ask(Method::PATCH, &format!("{ROUTES}/none"), MERGE, &json!({}))?;
    both.ask(Method::PUT, &one, JSON, &route("one"))?;
    both.ask(Method::PUT, &format!("{ROUTES}/none"), JSON, &route("none"))?;
    both.ask(
        Method::POST,
        ROUTES,
        JSON,
        &json!({"apiVersion": "route.openshift.io/v1", "kind": "Route", "spec": route("x")["spec"]}),
    )?;
    let elsewhere = json!({"metadata": {"name": "x", "namespace": "elsewhere"}});
    both.create(MAPS, &elsewhere)?;
    let lease = |holder: &str| json!({"metadata": {"name": "leader"}, "spec": {"holderIdentity": holder, "leaseDurationSeconds": 30}});
    let held = both.create(LEASES, &lease("one"))?;
    both.ask(Method::PUT, &format!("{LEASES}/leader"), JSON, &lease("two"))?;
    let with = |held: &Value, holder: &str| {
        let mut lease = held.clone();
        lease["spec"]["holderIdentity"] = json!(holder);
        lease.to_string()
    };
    let leader = format!("{LEASES}/leader");
    for holder in ["two", "three"] {
        // The second one has a version that is gone.
        let bodies = [with(&held[0], holder), with(&held[1], holder)];
        both.compare(JSON, &Method::PUT, [&leader, &leader], JSON, bodies)?;
    }
    Ok(())
}

fn watches(both: &Both) -> Result<()> {
    let listed = both.get(&format!("{MAPS}?labelSelector=app"))?;
    for (name, label) in [("b", "x"), ("b", "y"), ("d", "x")] {
        let path = format!("{MAPS}/{name}");
        if name == "d" {
            both.create(MAPS, &map(name, label))?
        } else {
            both.ask(Method::PATCH, &path, MERGE, &map(name, label))?
        };
    }
    both.ask(Method::DELETE, &format!("{MAPS}/d"), "", &Value::Null)?;
    let events = both.watch(JSON, &format!("{MAPS}?labelSelector=app"), Some(&listed))?;
    assert_eq!(events[1].as_array().map(Vec::len), Some(4), "{:#}", events[1]);
    // The selection is entered and left.
    both.watch(JSON, &format!("{MAPS}?labelSelector=app%3Dx"), Some(&listed))?;
    both.watch(METADATA, &format!("{MAPS}?labelSelector=app"), Some(&listed))?;
    both.watch(JSON, &format!("{ROUTES}?"), None)?;
    let streaming = "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan";
    both.watch(JSON, &format!("{ROUTES}?{streaming}"), None)?;
    both.watch(JSON, &format!("{MAPS}?labelSelector=app&{streaming}"), None)?;
    both.watch(METADATA, &format!("{MAPS}?labelSelector=app&{streaming}"), None)?;
    both.watch(JSON, &format!("{ROUTES}?sendInitialEvents=true"), None)?;
    both.get(&format!("{ROUTES}?watch=true&resourceVersion=1&timeoutSeconds=1"))?;
    Ok(())
}

fn deletions(both: &Both) -> Result<()> {
    let held = json!({"metadata": {"name": "held", "finalizers": ["alike.test/held"]}});
    both.create(MAPS, &held)?;
    let path = format!("{MAPS}/held");
    both.ask(Method::DELETE, &path, JSON, &json!({"preconditions": {"uid": "other"}}))?;
    both.ask(Method::DELETE, &path, "", &Value::Null)?;
    let deleting = both.get(&path)?;
    assert!(deleting.iter().all(|object| object["metadata"]["deletionTimestamp"].is_string()));
    both.ask(Method::PATCH, &path, MERGE, &json!({"metadata": {"finalizers": null}}))?;
    both.get(&path)?;
    both.ask(Method::DELETE, &path, "", &Value::Null)?;
    both.ask(Method::DELETE, &format!("{ROUTES}/one"), "", &Value::Null)?;
    both.get(ROUTES)?;
    Ok(())
}

#[test]
fn the_mock_serves_a_group_behind_the_real_server() -> Result<()> {
    let plane = ControlPlane::start()?;
    let netns = Netns::new("aggregated")?;
    let address = (plane.network().join(&netns, "eth0")?, 8443).into();
    let names = vec![aggregated::host("route.openshift.io")];
    let mock = MockApiServer::start(Some(&netns), Options { address, names, ..Options::default() })?;
    mock.install(Definitions::Sluice)?;
    aggregated::register(plane.api(), "route.openshift.io", "v1", address, &mock.ca_pem())?;
    let created = plane.api().create("/apis/route.openshift.io/v1/namespaces/default/routes", &route("one"))?;
    assert_eq!(created["spec"], route("one")["spec"]);
    let mut waited = plane.api().wait_for("/apis/route.openshift.io/v1/routes", "one", PATIENCE, |_| true)?;
    assert_eq!(waited["spec"].take(), route("one")["spec"]);
    Ok(())
}
