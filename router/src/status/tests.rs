//! Status files: written on changes, kept over restarts, removed with their objects.

use std::fs;

use router_api::defaults::Defaults;
use router_api::parse::{ParseOutcome, parse};
use router_model::certificate::MaterialCache;
use router_model::object::{ObjectKey, Origin};
use router_translate::settings::Settings;
use router_translate::translate::translate;
use serde_json::json;

use super::*;

/// An input of these objects.
pub fn input(values: Vec<Value>) -> Arc<StatusInput> {
    let mut resources = Resources::default();
    for value in values {
        let parsed = parse(value, Origin::default(), &Defaults::default(), &mut MaterialCache::new());
        let ParseOutcome::Good(object) = parsed.outcome else { panic!("{parsed:?}") };
        resources.insert(&object);
    }
    let report = translate(&resources, &Settings::default()).report;
    Arc::new(StatusInput { report, resources: Arc::new(resources), ..StatusInput::default() })
}

fn route(name: &str, host: &str) -> Value {
    json!({
        "apiVersion": "route.openshift.io/v1", "kind": "Route",
        "metadata": { "namespace": "shop", "name": name, "creationTimestamp": "2024-01-01T00:00:00Z", "uid": name },
        "spec": { "host": host, "to": { "name": "web" } },
    })
}

fn time(day: u8) -> Timestamp {
    format!("2024-05-{day:02}T12:00:00.5Z").parse().unwrap()
}

fn read(state: &Path, name: &str) -> Value {
    serde_saphyr::from_str(&fs::read_to_string(state.join("status").join(name)).unwrap()).unwrap()
}

#[test]
fn a_status_file_is_what_a_cluster_would_show() {
    let state = tempfile::tempdir().unwrap();
    let mut writer = StatusWriter::new(state.path());
    let round = writer.write(&input(vec![route("cart", "cart.test")]), time(1));
    assert_eq!(round, Round { written: 1, removed: 0, failed: 0 });
    let expected = json!({
        "apiVersion": "route.openshift.io/v1",
        "kind": "Route",
        "metadata": { "name": "cart", "namespace": "shop" },
        "status": { "ingress": [{
            "conditions": [{ "lastTransitionTime": "2024-05-01T12:00:00Z", "status": "True", "type": "Admitted" }],
            "host": "cart.test",
            "routerCanonicalHostname": "router-default.apps.localhost",
            "routerName": "default",
            "wildcardPolicy": "None",
        }] },
    });
    assert_eq!(read(state.path(), "route.shop.cart.yaml"), expected);
    let names: Vec<_> = fs::read_dir(state.path().join("status")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["route.shop.cart.yaml"]);
}

#[test]
fn nothing_is_written_when_only_time_passes_and_times_outlive_a_restart() {
    let state = tempfile::tempdir().unwrap();
    let objects = || input(vec![route("a", "h.test"), route("b", "h.test")]);
    StatusWriter::new(state.path()).write(&objects(), time(1));
    let mut restarted = StatusWriter::new(state.path());
    assert_eq!(restarted.write(&objects(), time(2)), Round::default());

    assert_eq!(restarted.write(&objects(), time(2)), Round::default());

    // `a` is removed, so `b` is admitted: its condition changes now.
    let round = restarted.write(&input(vec![route("b", "h.test")]), time(3));
    assert_eq!(round, Round { written: 1, removed: 1, failed: 0 });
    let condition = read(state.path(), "route.shop.b.yaml")["status"]["ingress"][0]["conditions"][0].clone();
    assert_eq!(
        condition,
        json!({ "lastTransitionTime": "2024-05-03T12:00:00Z", "status": "True", "type": "Admitted" })
    );
    assert!(!state.path().join("status/route.shop.a.yaml").exists());
    assert_eq!(restarted.write(&Arc::default(), time(4)), Round { written: 0, removed: 1, failed: 0 });
}

#[test]
fn entries_of_other_routers_are_kept_and_stale_ones_of_ours_replaced() {
    let state = tempfile::tempdir().unwrap();
    let mut object = route("a", "h.test");
    let foreign = json!({ "routerName": "another", "host": "x.test" });
    object["status"] = json!({ "ingress": [{ "routerName": "default", "host": "stale.test" }, foreign] });
    StatusWriter::new(state.path()).write(&input(vec![object]), time(1));
    let ingress = read(state.path(), "route.shop.a.yaml")["status"]["ingress"].clone();
    assert_eq!(ingress[1], foreign);
    assert_eq!((ingress[0]["host"].clone(), ingress.as_array().unwrap().len()), (json!("h.test"), 2));
}

#[test]
fn controllers_have_a_status_file_too() {
    let state = tempfile::tempdir().unwrap();
    let controller = json!({
        "apiVersion": "operator.openshift.io/v1", "kind": "IngressController",
        "metadata": { "namespace": "openshift-ingress-operator", "name": "shard" },
        "spec": { "domain": "shard.test" },
        "status": { "conditions": [{ "type": "DNSReady", "status": "True" }] },
    });
    let mut writer = StatusWriter::new(state.path());
    writer.write(&input(vec![controller.clone()]), time(1));
    let status = read(state.path(), "ingresscontroller.openshift-ingress-operator.shard.yaml")["status"].clone();
    assert_eq!(status["domain"], "shard.test");
    let conditions = status["conditions"].as_array().unwrap();
    let texts: Vec<_> = conditions.iter().map(|c| format!("{}={}", c["type"], c["status"]).replace('"', "")).collect();
    assert_eq!(texts, ["DNSReady=True", "Admitted=True", "Available=True", "Degraded=False"]);
    assert_eq!(StatusWriter::new(state.path()).write(&input(vec![controller]), time(2)), Round::default());
}

#[test]
fn a_failed_write_is_tried_again() {
    let state = tempfile::tempdir().unwrap();
    let mut writer = StatusWriter::new(state.path());
    fs::write(state.path().join("status"), "in the way").unwrap();
    let objects = input(vec![route("a", "h.test")]);
    assert_eq!(writer.write(&objects, time(1)), Round { written: 0, removed: 0, failed: 1 });
    fs::remove_file(state.path().join("status")).unwrap();
    assert_eq!(writer.write(&objects, time(2)), Round { written: 1, removed: 0, failed: 0 });
}

/// Host, and time of the condition, of the route `b`.
fn entry_of_b(state: &Path) -> (Value, Value) {
    let entry = read(state, "route.shop.b.yaml")["status"]["ingress"][0].clone();
    (entry["host"].clone(), entry["conditions"][0]["lastTransitionTime"].clone())
}

#[test]
fn times_outlive_changes_restarts_and_failed_writes() {
    let state = tempfile::tempdir().unwrap();
    let mut writer = StatusWriter::new(state.path());
    let since = |day: u8| json!(format!("2024-05-{day:02}T12:00:00Z"));
    writer.write(&input(vec![route("b", "one.test")]), time(1));
    writer.write(&input(vec![route("b", "two.test")]), time(2));
    assert_eq!(entry_of_b(state.path()), (json!("two.test"), since(1)));

    let mut restarted = StatusWriter::new(state.path());
    assert_eq!(restarted.write(&input(vec![route("b", "three.test")]), time(3)).written, 1);
    assert_eq!(entry_of_b(state.path()), (json!("three.test"), since(1)));

    let blocked = state.path().join("status/.route.shop.b.yaml.new");
    fs::create_dir(&blocked).unwrap();
    let four = input(vec![route("b", "four.test")]);
    for _ in 0..2 {
        assert_eq!(restarted.write(&four, time(4)), Round { written: 0, removed: 0, failed: 1 });
        assert_eq!(entry_of_b(state.path()), (json!("three.test"), since(1)));
    }
    fs::remove_dir(&blocked).unwrap();
    assert_eq!(restarted.write(&four, time(5)), Round { written: 1, removed: 0, failed: 0 });
    assert_eq!(entry_of_b(state.path()), (json!("four.test"), since(1)));

    // `a` is older, so the condition of `b` changes.
    let mut both = vec![route("a", "four.test"), route("b", "four.test")];
    both[1]["metadata"]["creationTimestamp"] = json!("2024-02-01T00:00:00Z");
    assert_eq!(restarted.write(&input(both), time(6)).written, 2);
    assert_eq!(entry_of_b(state.path()), (json!("four.test"), since(6)));
}

#[test]
fn a_file_that_is_gone_or_damaged_is_written_when_its_object_changes() {
    let state = tempfile::tempdir().unwrap();
    let mut writer = StatusWriter::new(state.path());
    let objects = |host: &str| input(vec![route("a", "a.test"), route("b", host)]);
    writer.write(&objects("one.test"), time(1));
    let path = state.path().join("status/route.shop.b.yaml");
    for (day, damage) in [(2, None), (4, Some("")), (6, Some("kind: [")), (8, Some("kind: Route"))] {
        match damage {
            None => fs::remove_file(&path).unwrap(),
            Some(text) => fs::write(&path, text).unwrap(),
        }
        let host = format!("host-{day}.test");
        assert_eq!(writer.write(&objects(&host), time(day)), Round { written: 1, removed: 0, failed: 0 });
        assert_eq!(entry_of_b(state.path()), (json!(host), json!(format!("2024-05-{day:02}T12:00:00Z"))));
        assert_eq!(writer.write(&objects(&host), time(day + 1)), Round::default());
    }
}

#[test]
fn files_that_are_not_the_writers_own_stay() {
    let state = tempfile::tempdir().unwrap();
    StatusWriter::new(state.path()).write(&input(vec![route("a", "a.test"), route("b", "b.test")]), time(1));
    let folder = state.path().join("status");
    fs::copy(folder.join("route.shop.a.yaml"), folder.join("copy.yaml")).unwrap();
    fs::write(folder.join("notes.txt"), "mine").unwrap();
    let round = StatusWriter::new(state.path()).write(&input(vec![route("b", "b.test")]), time(2));
    assert_eq!(round, Round { written: 0, removed: 1, failed: 0 });
    let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["copy.yaml", "notes.txt", "route.shop.b.yaml"]);
}

#[test]
fn no_name_leads_out_of_the_folder_or_is_too_long() {
    let name = |namespace: &str, name: &str| {
        files::file_name(&ObjectRef { kind: Kind::Route, key: ObjectKey::new(namespace, name) })
    };
    assert_eq!(name("shop", "a.b"), "route.shop.a.b.yaml");
    assert_eq!(name("../..", "A/b"), "route.%2E%2E%2F%2E%2E.%41%2Fb.yaml");
    let (long, longer) = (name("shop", &"a".repeat(253)), name("shop", &format!("{}b", "a".repeat(252))));
    assert_ne!(long, longer);
    assert!(long.len() <= 205 && longer.len() <= 205);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_writer_follows_its_inputs_until_they_end() {
    let state = tempfile::tempdir().unwrap();
    let (sender, receiver) = watch::channel(input(vec![route("a", "h.test")]));
    let task = tokio::spawn(StatusWriter::new(state.path()).run(receiver));
    let path = state.path().join("status/route.shop.a.yaml");
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while !path.exists() {
        assert!(std::time::Instant::now() < deadline, "no status file");
        tokio::task::yield_now().await;
    }
    drop(sender);
    tokio::time::timeout(Duration::from_secs(20), task).await.expect("ends in time").unwrap();
}

#[test]
fn objects_of_other_kinds_have_files_too() {
    use router_translate::status::object_status::ObjectStatus;
    let class = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass",
        "metadata": { "name": "sluice" }, "spec": { "controllerName": "sluice.dev/gateway-controller" },
    });
    let httproute = |foreign: &str| {
        json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
            "metadata": { "namespace": "shop", "name": "store" },
            "spec": { "parentRefs": [{ "name": "public" }], "rules": [{}] },
            "status": { "parents": [{ "parentRef": { "name": "theirs" }, "controllerName": foreign, "conditions": [] }] },
        })
    };
    let with = |foreign: &str, reason: &str| {
        let mut input = Arc::unwrap_or_clone(input(vec![class.clone(), httproute(foreign)]));
        let condition = json!({ "type": "Accepted", "status": "True", "reason": reason, "message": "" });
        let parent = json!({ "parentRef": { "name": "public" }, "controllerName": "sluice.dev/gateway-controller",
            "conditions": [condition] });
        let told = |status: Value| Arc::new(ObjectStatus::new(&status, Vec::new()));
        let object = |kind, namespace, name| ObjectRef { kind, key: ObjectKey::new(namespace, name) };
        let statuses = [
            (object(Kind::GatewayClass, "", "sluice"), told(json!({ "conditions": [condition] }))),
            (object(Kind::HttpRoute, "shop", "store"), told(json!({ "parents": [parent] }))),
        ];
        input.report.others = statuses.into_iter().collect();
        Arc::new(input)
    };
    let state = tempfile::tempdir().unwrap();
    let mut writer = StatusWriter::new(state.path());
    assert_eq!(writer.write(&with("example.com/a", "Accepted"), time(1)).written, 2);
    let class = read(state.path(), "gatewayclass.sluice.yaml");
    assert_eq!(class["metadata"], json!({ "name": "sluice" }));
    assert_eq!(class["status"]["conditions"][0]["lastTransitionTime"], "2024-05-01T12:00:00Z");
    let parents = |state: &Path| read(state, "httproute.shop.store.yaml")["status"]["parents"].clone();
    let names = |parents: &Value| -> Vec<String> {
        parents.as_array().unwrap().iter().map(|p| p["controllerName"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&parents(state.path())), ["example.com/a", "sluice.dev/gateway-controller"]);

    // After a restart, only changed statuses are written, and times are kept.
    let mut restarted = StatusWriter::new(state.path());
    assert_eq!(restarted.write(&with("example.com/a", "Accepted"), time(2)), Round::default());
    assert_eq!(restarted.write(&with("example.com/b", "Accepted"), time(2)).written, 1, "another controller wrote");
    assert_eq!(restarted.write(&with("example.com/b", "Pending"), time(3)).written, 2);
    assert_eq!(names(&parents(state.path())), ["example.com/b", "sluice.dev/gateway-controller"]);
    assert_eq!(parents(state.path())[1]["conditions"][0]["lastTransitionTime"], "2024-05-01T12:00:00Z");
    assert_eq!(restarted.write(&input(vec![]), time(4)).removed, 2);
}

#[test]
fn a_writer_without_a_past_looks_at_every_object_reported_or_not() {
    let input = input(vec![route("a", "a.test")]);
    let unreported = StatusInput { report: StatusReport::default(), ..StatusInput::clone(&input) };
    let looked_at = changed_since(&StatusInput::default(), &unreported);
    assert_eq!(looked_at, [ObjectRef { kind: Kind::Route, key: ObjectKey::new("shop", "a") }]);
}
