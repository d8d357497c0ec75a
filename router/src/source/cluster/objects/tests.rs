//! What is held of a cluster, and which version of it.

use std::collections::BTreeSet;

use serde_json::json;

use super::*;
use crate::source::cluster::snapshot::Place;

/// Objects, and the time of the test.
struct Watched {
    objects: ClusterObjects,
    requests: Requests,
    now: Instant,
}

fn scope(kind: Kind) -> Scope {
    Scope { kind, namespace: None, name: None }
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("shop", name)
}

fn service(name: &str) -> ObjectRef {
    ObjectRef { kind: Kind::Service, key: key(name) }
}

fn route(name: &str, service: &str) -> Value {
    json!({
        "apiVersion": "route.openshift.io/v1",
        "kind": "Route",
        "metadata": {"namespace": "shop", "name": name, "uid": "1"},
        "spec": {"host": format!("{name}.test"), "to": {"kind": "Service", "name": service}},
    })
}

fn slice(name: &str, service: &str, version: u64) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "namespace": "shop",
            "name": name,
            "resourceVersion": version.to_string(),
            "labels": {"kubernetes.io/service-name": service},
        },
        "addressType": "IPv4",
        "ports": [{"port": 8080}],
        "endpoints": [{"addresses": ["10.0.0.1"]}],
    })
}

impl Watched {
    fn new(kinds: &[Kind]) -> Self {
        let mut objects = ClusterObjects::new(Defaults { cluster_domain: "apps.test".to_owned() }, None);
        kinds.iter().for_each(|kind| objects.expect(scope(*kind)));
        Watched { objects, requests: Requests::default(), now: Instant::now() }
    }

    fn apply(&mut self, kind: Kind, event: WatchEvent) -> bool {
        self.objects.apply(Update { scope: scope(kind), event }, self.now, &mut self.requests)
    }

    fn put(&mut self, kind: Kind, value: Value) -> bool {
        let name = value.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        self.apply(kind, WatchEvent::Object { key: key(name), value: Box::new(value) })
    }

    fn list(&mut self, kind: Kind, values: Vec<Value>) {
        self.apply(kind, WatchEvent::Listing);
        for value in values {
            self.put(kind, value);
        }
        self.apply(kind, WatchEvent::Listed);
    }

    fn fetch(&mut self, kind: Kind, value: Value) -> bool {
        let name = value.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        self.apply(kind, WatchEvent::Fetched { key: key(name), value: Box::new(value) })
    }

    fn names(&self, kind: Kind) -> Vec<String> {
        let mut names: Vec<_> = self.objects.known_of(&scope(kind)).iter().map(|key| key.name.to_string()).collect();
        names.sort();
        names
    }
}

#[test]
fn objects_are_complete_when_every_kind_was_listed_or_cannot_be() {
    let mut watched = Watched::new(&[Kind::Route, Kind::Gateway, Kind::HttpProxy, Kind::Service]);
    watched.list(Kind::Route, vec![route("a", "web")]);
    watched.apply(Kind::Gateway, WatchEvent::NotInstalled);
    watched.apply(Kind::HttpProxy, WatchEvent::Failed(WatchFailure::Denied("forbidden".to_owned())));
    watched.apply(Kind::Service, WatchEvent::Failed(WatchFailure::Unreachable("refused".to_owned())));
    let missing: Vec<_> = watched.objects.missing().map(|(scope, _)| scope.kind).collect();
    assert_eq!((watched.objects.is_complete(), missing), (false, vec![Kind::Service]));
    watched.apply(Kind::Service, WatchEvent::Listing);
    assert!(!watched.objects.is_complete());
    watched.apply(Kind::Service, WatchEvent::Listed);
    assert!(watched.objects.is_complete());
}

#[test]
fn only_referenced_objects_are_held() {
    let mut watched = Watched::new(&[Kind::Route, Kind::EndpointSlice, Kind::Secret]);
    watched.list(Kind::Route, vec![route("a", "web")]);
    assert_eq!(watched.requests.referenced, BTreeSet::from([service("web")]));
    watched.list(Kind::EndpointSlice, vec![slice("web-1", "web", 3), slice("other-1", "other", 4)]);
    assert_eq!(watched.names(Kind::EndpointSlice), ["web-1"]);

    watched.put(Kind::Route, route("a", "other"));
    assert_eq!(watched.names(Kind::EndpointSlice), [""; 0]);
    assert!(watched.requests.referenced.contains(&service("other")));
    assert!(watched.fetch(Kind::EndpointSlice, slice("other-1", "other", 4)));
    assert_eq!(watched.names(Kind::EndpointSlice), ["other-1"]);
}

#[test]
fn what_was_read_by_itself_replaces_nothing_newer() {
    let mut watched = Watched::new(&[Kind::Route, Kind::EndpointSlice]);
    watched.list(Kind::EndpointSlice, Vec::new());
    // Not held, so that the watch is the only one who knows of the deletion.
    watched.apply(Kind::EndpointSlice, WatchEvent::Deleted { key: key("web-1"), version: 7 });
    watched.list(Kind::Route, vec![route("a", "web")]);
    watched.put(Kind::EndpointSlice, slice("web-2", "web", 9));
    assert!(!watched.fetch(Kind::EndpointSlice, slice("web-1", "web", 6)));
    assert!(!watched.fetch(Kind::EndpointSlice, slice("web-2", "web", 8)));
    assert!(watched.fetch(Kind::EndpointSlice, slice("web-1", "web", 10)));
    assert_eq!(watched.names(Kind::EndpointSlice), ["web-1", "web-2"]);
}

#[test]
fn a_list_that_is_not_complete_removes_nothing() {
    let mut watched = Watched::new(&[Kind::Route]);
    watched.list(Kind::Route, vec![route("a", "web"), route("b", "web")]);
    watched.apply(Kind::Route, WatchEvent::Listing);
    watched.put(Kind::Route, route("a", "web"));
    watched.apply(Kind::Route, WatchEvent::Failed(WatchFailure::Unreachable("reset".to_owned())));
    watched.list(Kind::Route, vec![route("b", "web"), route("c", "web")]);
    assert_eq!(watched.names(Kind::Route), ["b", "c"]);
}

#[test]
fn a_list_that_lacks_most_objects_is_believed_after_a_while() {
    let mut watched = Watched::new(&[Kind::Route]);
    let all: Vec<_> = (0..300).map(|i| route(&format!("r{i}"), "web")).collect();
    watched.list(Kind::Route, all.clone());
    watched.list(Kind::Route, all[..100].to_vec());
    assert_eq!(watched.names(Kind::Route).len(), 300);
    assert_eq!(std::mem::take(&mut watched.requests.relist), BTreeSet::from([scope(Kind::Route)]));
    let doubts = |watched: &mut Watched| watched.objects.snapshot().doubts.to_vec();
    assert_eq!(doubts(&mut watched), ["Route: a list lacks 200 of 300 objects; they go on serving"]);
    watched.apply(Kind::Route, WatchEvent::NotInstalled);
    assert_eq!(watched.names(Kind::Route).len(), 300);
    watched.now += DOUBT;
    watched.list(Kind::Route, all[..100].to_vec());
    assert_eq!((watched.names(Kind::Route).len(), doubts(&mut watched)), (100, vec![]));
    // Deletions that a watch reports are facts.
    all[..100].iter().for_each(|route| {
        let name = route.pointer("/metadata/name").and_then(Value::as_str).unwrap();
        watched.apply(Kind::Route, WatchEvent::Deleted { key: key(name), version: 1 });
    });
    assert_eq!(watched.names(Kind::Route).len(), 0);
}

#[test]
fn an_invalid_object_is_rejected_alone_and_its_last_good_version_serves() {
    let mut watched = Watched::new(&[Kind::Route]);
    watched.list(Kind::Route, vec![route("a", "web"), route("b", "web")]);
    let mut invalid = route("a", "web");
    invalid["spec"]["to"]["weight"] = json!("much");
    watched.put(Kind::Route, invalid);
    let snapshot = watched.objects.snapshot();
    let versions = snapshot.resources.routes.versions_of(&key("a")).unwrap();
    assert!(versions.accepted.is_some());
    assert_eq!(versions.rejected.as_ref().unwrap().problem, "spec.to.weight: is a text; write a number from 0 to 256",);
    let shown: Vec<_> = snapshot.diagnostics.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["Route shop/a: spec.to.weight: is a text; write a number from 0 to 256"]);
    watched.put(Kind::Route, route("a", "web"));
    assert!(watched.objects.snapshot().diagnostics.is_empty());
}

#[test]
fn config_maps_are_watched_by_name() {
    let controller = |page: Option<&str>| {
        let spec = page.map_or_else(|| json!({}), |page| json!({"httpErrorCodePages": {"name": page}}));
        json!({
            "apiVersion": "operator.openshift.io/v1",
            "kind": "IngressController",
            "metadata": {"namespace": "shop", "name": "c"},
            "spec": spec,
        })
    };
    let mut watched = Watched::new(&[Kind::IngressController]);
    let page = ObjectRef { kind: Kind::ConfigMap, key: ObjectKey::new("openshift-config", "pages") };
    watched.list(Kind::IngressController, vec![controller(Some("pages"))]);
    assert_eq!(std::mem::take(&mut watched.requests.watch), BTreeSet::from([page.clone()]));
    watched.put(Kind::IngressController, controller(None));
    assert_eq!(watched.requests.unwatch, BTreeSet::from([page]));
}

#[test]
fn a_snapshot_replaces_nothing_newer_and_only_the_same_clusters() {
    let folder = tempfile::TempDir::new().unwrap();
    let (path, server) = (folder.path().join("objects"), String::new());
    let place = Place { path, server, namespaces: String::new() };
    let cluster =
        |uid: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": uid}});
    let kube_system = ObjectRef { kind: Kind::Namespace, key: ObjectKey::new("", "kube-system") };
    let mut writer = SnapshotWriter::new(place.clone());
    let route_of = |name: &str| ObjectRef { kind: Kind::Route, key: key(name) };
    let slice_of = |name: &str| ObjectRef { kind: Kind::EndpointSlice, key: key(name) };
    writer.set(&slice_of("web-1"), Some(&slice("web-1", "web", 5)));
    writer.set(&slice_of("unused-1"), Some(&slice("unused-1", "unused", 5)));
    writer.set(&kube_system, Some(&cluster("1")));
    writer.set(&route_of("a"), Some(&route("a", "old")));
    writer.set(&route_of("b"), Some(&route("b", "web")));
    writer.publish();
    drop(writer);
    let snapshot = Snapshot::open(&place).unwrap().unwrap();

    let mut watched = Watched::new(&[Kind::Route, Kind::Namespace]);
    watched.apply(Kind::Route, WatchEvent::Listing);
    watched.put(Kind::Route, route("a", "new"));
    assert!(watched.objects.load(&snapshot, &mut watched.requests));
    assert!(
        watched.objects.referenced.contains(&service("new")) && !watched.objects.referenced.contains(&service("old"))
    );
    assert!(watched.objects.referenced.contains(&service("web")));
    let slices = &watched.objects.snapshot().resources.endpoint_slices;
    assert!(slices.get(&key("web-1")).is_some() && slices.get(&key("unused-1")).is_none());
    // The list that goes on lacks it.
    assert!(watched.apply(Kind::Route, WatchEvent::Listed));
    assert!(!watched.objects.referenced.contains(&service("web")));

    let mut other = Watched::new(&[Kind::Route, Kind::Namespace]);
    other.objects.set(Kind::Namespace, kube_system.key.clone(), Some(cluster("2")), &mut other.requests);
    assert!(!other.objects.load(&snapshot, &mut other.requests));
    assert!(!other.objects.referenced.contains(&service("web")));
}

fn secret(name: &str, kind: &str, version: u64) -> Value {
    let made = rcgen::generate_simple_self_signed(vec!["a.test".to_owned()]).unwrap();
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"namespace": "shop", "name": name, "resourceVersion": version.to_string()},
        "type": kind,
        "stringData": {"tls.crt": made.cert.pem(), "tls.key": made.signing_key.serialize_pem(), "ca.crt": made.cert.pem()},
    })
}

/// An HTTPProxy that shows a Secret, or trusts it.
fn proxy(name: &str, certificate: Option<&str>, authority: Option<&str>) -> Value {
    let tls = certificate.map(|secret| json!({"secretName": secret}));
    let validation = authority.map(|secret| json!({"caSecret": secret, "subjectName": "s.test"}));
    json!({
        "apiVersion": "projectcontour.io/v1",
        "kind": "HTTPProxy",
        "metadata": {"namespace": "shop", "name": name},
        "spec": {
            "virtualhost": {"fqdn": format!("{name}.test"), "tls": tls},
            "routes": [{"services": [{"name": "web", "port": 80, "protocol": "tls", "validation": validation}]}],
        },
    })
}

#[test]
fn a_secret_is_held_as_a_certificate_or_by_its_own_watch() {
    let mut watched = Watched::new(&[Kind::HttpProxy, Kind::Secret]);
    watched.list(Kind::HttpProxy, vec![proxy("a", Some("pair"), None), proxy("b", Some("opaque"), None)]);
    watched.list(Kind::Secret, vec![secret("pair", "kubernetes.io/tls", 2)]);
    // The watch of certificates would not tell of changes of this one.
    assert!(!watched.fetch(Kind::Secret, secret("opaque", "Opaque", 3)));
    assert_eq!(watched.names(Kind::Secret), ["pair"]);

    watched.put(Kind::HttpProxy, proxy("c", None, Some("opaque")));
    watched.put(Kind::HttpProxy, proxy("d", None, Some("pair")));
    let wanted = ["opaque", "pair"].map(|name| ObjectRef { kind: Kind::Secret, key: key(name) });
    assert_eq!(std::mem::take(&mut watched.requests.watch), BTreeSet::from(wanted.clone()));
    for (object, value) in wanted.iter().zip([secret("opaque", "Opaque", 3), secret("pair", "kubernetes.io/tls", 2)]) {
        watched.objects.expect(Scope::of(object));
        let event = WatchEvent::Object { key: object.key.clone(), value: Box::new(value) };
        watched.objects.apply(Update { scope: Scope::of(object), event }, watched.now, &mut watched.requests);
    }
    watched.put(Kind::HttpProxy, proxy("c", None, None));
    watched.put(Kind::HttpProxy, proxy("d", None, None));
    for object in std::mem::take(&mut watched.requests.unwatch) {
        watched.objects.abandon(&Scope::of(&object), &mut watched.requests);
    }
    let held: Vec<_> = watched.objects.snapshot().resources.secrets.iter().map(|it| it.meta.key.clone()).collect();
    assert_eq!(held, [key("pair")]);
}

#[test]
fn a_deleted_object_does_not_come_back_and_an_equal_version_is_no_change() {
    let mut watched = Watched::new(&[Kind::Route, Kind::EndpointSlice]);
    watched.list(Kind::EndpointSlice, Vec::new());
    watched.list(Kind::Route, vec![route("a", "web")]);
    assert!(watched.put(Kind::EndpointSlice, slice("web-1", "web", 5)));
    assert!(!watched.put(Kind::EndpointSlice, slice("web-1", "web", 5)));
    assert!(watched.apply(Kind::EndpointSlice, WatchEvent::Deleted { key: key("web-1"), version: 6 }));
    assert!(!watched.fetch(Kind::EndpointSlice, slice("web-1", "web", 5)));
    assert_eq!(watched.names(Kind::EndpointSlice), [""; 0]);
}

#[test]
fn an_empty_list_is_believed_after_a_while() {
    let mut watched = Watched::new(&[Kind::Route]);
    watched.list(Kind::Route, vec![route("a", "web"), route("b", "web")]);
    watched.list(Kind::Route, vec![route("b", "web")]);
    assert_eq!(watched.names(Kind::Route), ["b"]);
    // Others took its place.
    watched.list(Kind::Route, vec![route("c", "web")]);
    assert_eq!(watched.names(Kind::Route), ["c"]);
    watched.list(Kind::Route, vec![route("b", "web")]);
    watched.list(Kind::Route, Vec::new());
    assert_eq!(watched.names(Kind::Route), ["b"]);
    assert_eq!(std::mem::take(&mut watched.requests.relist), BTreeSet::from([scope(Kind::Route)]));
    watched.now += DOUBT;
    watched.apply(Kind::Route, WatchEvent::NotInstalled);
    assert_eq!(watched.names(Kind::Route), [""; 0]);
}

#[test]
fn versions_of_a_restored_backup_are_those_of_other_objects() {
    let mut watched = Watched::new(&[Kind::Route, Kind::EndpointSlice]);
    watched.list(Kind::EndpointSlice, Vec::new());
    watched.list(Kind::Route, vec![route("a", "web")]);
    assert!(watched.put(Kind::EndpointSlice, slice("web-1", "web", 5)));
    watched.apply(Kind::EndpointSlice, WatchEvent::Deleted { key: key("web-2"), version: 9 });
    watched.apply(Kind::EndpointSlice, WatchEvent::Restored);
    assert_eq!(watched.names(Kind::EndpointSlice), ["web-1"]);
    assert!(watched.put(Kind::EndpointSlice, slice("web-1", "web", 5)));
    assert!(watched.fetch(Kind::EndpointSlice, slice("web-2", "web", 4)));
}
