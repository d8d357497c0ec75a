//! Status files: written when something changes, kept over restarts, removed with their objects.

use std::fs;

use router_core::certificate::MaterialCache;
use router_core::object::{ObjectKey, Origin};
use router_core::parse::{Defaults, Outcome, parse};
use router_core::translate::{Settings, translate};

use super::*;

fn input(values: Vec<Value>) -> Arc<StatusInput> {
    let mut resources = Resources::default();
    for value in values {
        let parsed = parse(value, Origin::default(), &Defaults::default(), &mut MaterialCache::new());
        let Outcome::Good(object) = parsed.outcome else { panic!("{parsed:?}") };
        resources.insert(&object);
    }
    let report = translate(&resources, &Settings::default()).report;
    Arc::new(StatusInput { report, resources: Arc::new(resources) })
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
    let mut writer = StatusWriter::open(state.path());
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
    StatusWriter::open(state.path()).write(&objects(), time(1));
    let mut restarted = StatusWriter::open(state.path());
    assert_eq!(restarted.write(&objects(), time(2)), Round::default());

    assert_eq!(restarted.write(&objects(), time(2)), Round::default());

    // `a` goes, so `b` is admitted: its condition flips now.
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
    StatusWriter::open(state.path()).write(&input(vec![object]), time(1));
    let ingress = read(state.path(), "route.shop.a.yaml")["status"]["ingress"].clone();
    assert_eq!(ingress[0], foreign);
    assert_eq!((ingress[1]["host"].clone(), ingress.as_array().unwrap().len()), (json!("h.test"), 2));
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
    let mut writer = StatusWriter::open(state.path());
    writer.write(&input(vec![controller.clone()]), time(1));
    let status = read(state.path(), "ingresscontroller.openshift-ingress-operator.shard.yaml")["status"].clone();
    assert_eq!(status["domain"], "shard.test");
    let conditions = status["conditions"].as_array().unwrap();
    let texts: Vec<_> = conditions.iter().map(|c| format!("{}={}", c["type"], c["status"]).replace('"', "")).collect();
    assert_eq!(texts, ["DNSReady=True", "Admitted=True", "Available=True", "Degraded=False"]);
    assert_eq!(StatusWriter::open(state.path()).write(&input(vec![controller]), time(2)), Round::default());
}

#[test]
fn a_failed_write_is_tried_again() {
    let state = tempfile::tempdir().unwrap();
    let mut writer = StatusWriter::open(state.path());
    fs::write(state.path().join("status"), "in the way").unwrap();
    let objects = input(vec![route("a", "h.test")]);
    assert_eq!(writer.write(&objects, time(1)), Round { written: 0, removed: 0, failed: 1 });
    fs::remove_file(state.path().join("status")).unwrap();
    assert_eq!(writer.write(&objects, time(2)), Round { written: 1, removed: 0, failed: 0 });
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
    let task = tokio::spawn(StatusWriter::open(state.path()).run(receiver));
    let path = state.path().join("status/route.shop.a.yaml");
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while !path.exists() {
        assert!(std::time::Instant::now() < deadline, "no status file");
        tokio::task::yield_now().await;
    }
    drop(sender);
    tokio::time::timeout(Duration::from_secs(20), task).await.expect("ends in time").unwrap();
}
