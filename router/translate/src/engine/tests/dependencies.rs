//! A changed Secret, Namespace, ConfigMap or IngressController rebuilds only the objects that use it.

use router_api::testing::{config_map, controller, good, route};
use serde_json::{Value, json};

use super::super::*;

/// A Secret with a new certificate.
fn secret(namespace: &str, name: &str) -> Value {
    let made = rcgen::generate_simple_self_signed(["a.test".to_owned()]).unwrap();
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "namespace": namespace, "name": name },
        "type": "kubernetes.io/tls",
        "stringData": { "tls.crt": made.cert.pem(), "tls.key": made.signing_key.serialize_pem() } })
}

fn namespace(name: &str, labels: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name, "labels": labels } })
}

/// The router `default`, with a certificate and pages, and the router `second`, for namespaces of team red.
fn routers() -> [Value; 2] {
    let ports = json!({ "hostNetwork": { "httpPort": 81, "httpsPort": 444 } });
    [
        controller(
            "default",
            json!({ "domain": "one.test", "defaultCertificate": { "name": "cert" },
                "httpErrorCodePages": { "name": "pages" } }),
        ),
        controller(
            "second",
            json!({ "domain": "two.test", "endpointPublishingStrategy": ports,
                "namespaceSelector": { "matchLabels": { "team": "red" } } }),
        ),
    ]
}

/// Two routers, and three Routes: `a/secure` with a certificate of Secret `a/cert`, `a/plain` and `b/plain`.
struct World {
    engine: Engine,
    resources: Resources,
    table: RoutingTable,
    report: StatusReport,
}

impl World {
    fn new() -> Self {
        let tls = json!({ "termination": "edge", "externalCertificate": { "name": "cert" } });
        let mut objects = vec![
            route("a/secure", 1, json!({ "host": "secure.test", "tls": tls })),
            route("a/plain", 2, json!({ "host": "a.test" })),
            route("b/plain", 3, json!({ "host": "b.test" })),
            namespace("a", &json!({ "team": "red" })),
        ];
        objects.extend(routers());
        let resources = router_api::testing::resources(objects);
        let mut engine = Engine::new(Settings::default());
        let (table, report) = engine.apply(&resources);
        World { engine, resources, table, report }
    }

    /// Applies an object. Returns `router: host` of each virtual host that differs, the routers whose other settings
    /// do, and the Routes whose status does.
    fn put(&mut self, object: Value) -> Vec<String> {
        self.resources.insert(&good(object));
        let (table, report) = self.engine.apply(&self.resources);
        let mut differ = Vec::new();
        for (new, old) in table.routers.iter().zip(&self.table.routers) {
            assert_eq!(new.name, old.name);
            let before = differ.len();
            differ.extend(new.hosts.changes_since(&old.hosts).map(|changed| format!("{}: {}", new.name, changed.key)));
            if differ.len() == before && !Arc::ptr_eq(new, old) {
                assert_eq!(new.routes.changes_since(&old.routes).count(), 0);
                differ.push(new.name.to_string());
            }
        }
        differ.extend(report.routes.changes_since(&self.report.routes).map(|changed| changed.key.to_string()));
        (self.table, self.report) = (table, report);
        differ
    }
}

#[test]
fn a_secret_changes_the_routes_that_use_it() {
    let mut world = World::new();
    let secure = |world: &World| world.report.routes[&ObjectKey::new("a", "secure")].to_vec()[0].conditions[0].clone();
    assert_eq!(secure(&world).reason, "ExternalCertificateGetFailed");
    let users = ["default: secure.test", "second: secure.test", "a/secure"];
    assert_eq!(world.put(secret("a", "cert")), users);
    assert_eq!(secure(&world).status(), "True");
    let certificate =
        |world: &World| world.table.routers[0].hosts.exact.get("secure.test").unwrap().certificate.clone().unwrap();
    let before = certificate(&world);
    assert_eq!(world.put(secret("a", "cert"))[..2], users[..2]);
    assert!(certificate(&world) != before);
    for other in [secret("a", "other"), secret("b", "cert")] {
        assert_eq!(world.put(other), Vec::<String>::new());
    }
    // The route names another Secret.
    let tls = json!({ "termination": "edge", "externalCertificate": { "name": "other" } });
    world.put(route("a/secure", 1, json!({ "host": "secure.test", "tls": tls })));
    assert_eq!(world.put(secret("a", "cert")), Vec::<String>::new());
    assert_eq!(world.put(secret("a", "other"))[..2], users[..2]);
}

#[test]
fn a_secret_or_a_config_map_of_a_router_changes_its_settings_and_no_route() {
    let mut world = World::new();
    assert_eq!(world.put(secret("openshift-ingress", "cert")), ["default"]);
    assert!(world.table.routers[0].default_certificate.is_some());
    let pages = |page: &str| json!({ "error-page-503.http": format!("HTTP/1.0 503 {page}\n\n") });
    assert_eq!(world.put(config_map("openshift-config/pages", pages("Busy"))), ["default"]);
    assert_eq!(world.put(config_map("openshift-config/pages", pages("Away"))), ["default"]);
    assert_eq!(world.put(config_map("openshift-config/other", pages("Busy"))), Vec::<String>::new());
    assert_eq!(world.put(config_map("a/pages", pages("Busy"))), Vec::<String>::new());
}

#[test]
fn labels_of_a_namespace_change_its_routes_on_routers_that_select_by_them() {
    let mut world = World::new();
    assert_eq!(world.put(namespace("a", &json!({ "team": "red", "unread": "x" }))), Vec::<String>::new());
    assert_eq!(world.put(namespace("b", &json!({ "team": "blue" }))), Vec::<String>::new());
    assert_eq!(world.put(namespace("b", &json!({ "team": "red" }))), ["second: b.test", "b/plain"]);
    assert_eq!(world.report.routes[&ObjectKey::new("b", "plain")].to_vec().len(), 2);
    assert_eq!(world.put(namespace("b", &json!({}))), ["second: b.test", "b/plain"]);
    assert_eq!(world.report.routes[&ObjectKey::new("b", "plain")].to_vec().len(), 1);
    // A namespace without Routes.
    world.put(namespace("c", &json!({ "team": "red" })));
    world.put(route("c/late", 4, json!({ "host": "c.test" })));
    assert_eq!(world.put(namespace("c", &json!({ "team": "none" }))), ["second: c.test", "c/late"]);
}

#[test]
fn an_ingress_controller_changes_its_own_router() {
    let mut world = World::new();
    let [_, mut second] = routers();
    second["spec"]["tuningOptions"] = json!({ "clientTimeout": "7s" });
    assert_eq!(world.put(second.clone()), ["second"]);
    assert_eq!(world.table.routers[1].policy.timeouts.client.as_secs(), 7);
    second["spec"]["routeSelector"] = json!({ "matchLabels": { "shard": "none" } });
    assert_eq!(world.put(second), ["second: a.test", "a/plain", "a/secure"]);
    assert!(world.table.routers[1].routes.is_empty());
}
