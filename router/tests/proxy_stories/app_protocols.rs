//! `appProtocol` of Service ports and slices (GEP-1911): the protocols spoken with backends, and rejected ones.

use router_model::kind::Kind;
use serde_json::{Value, json};

use crate::gateways::{route, speaking, to, web};
use crate::manifests::{World, object, proxy, service};
use crate::{backends, client};

const REFUSED: &str = "False/UnsupportedProtocol";

/// `ResolvedRefs` of a route, and its message.
fn resolved(world: &World, kind: Kind, name: &str) -> (String, String) {
    world.condition(kind, &format!("test/{name}"), "ResolvedRefs")
}

#[tokio::test]
async fn a_backend_that_cannot_be_spoken_to_is_refused_and_answered_500() {
    let (http1, http2) = (backends::http("one").await, backends::h2c("two").await);
    let tls = "takes TLS; write a BackendTLSPolicy for the Service";
    let other = "is not done for HTTPRoutes; write http, kubernetes.io/h2c, kubernetes.io/ws, or leave it out";
    // Protocol, endpoint, and the route's condition.
    let cases = [
        ("", http1, ""),
        ("http", http1, ""),
        ("kubernetes.io/ws", http1, ""),
        ("kubernetes.io/h2c", http2, ""),
        ("h2c", http2, ""),
        ("grpc", http2, ""),
        ("kubernetes.io/wss", http1, tls),
        ("https", http1, tls),
        ("HTTPS", http1, tls),
        ("redis", http1, other),
        ("tcp", http1, other),
        ("example.com/own", http1, other),
    ];
    let mut objects = web();
    for (n, (protocol, endpoint, _)) in cases.iter().enumerate() {
        let name = format!("spoken-{n}");
        objects.extend(speaking(&name, protocol, &[*endpoint]));
        objects.push(route("HTTPRoute", &name, to(&[&name])));
    }
    let world = World::of(objects).await;
    for (n, (protocol, _, told)) in cases.iter().enumerate() {
        let (name, is_good) = (format!("spoken-{n}"), told.is_empty());
        let host = format!("{name}.world.test");
        let answer = client::get(world.rig.http, &host, "/").await;
        assert_eq!(answer.status, if is_good { 200 } else { 500 }, "{protocol}: {answer:?}");
        let (verdict, message) = resolved(&world, Kind::HttpRoute, &name);
        assert_eq!(verdict, if is_good { "True/ResolvedRefs" } else { REFUSED }, "{protocol}: {message}");
        assert!(message.contains(told), "{protocol}: {message}");
        assert_eq!(world.explain(&format!("http://{host}/")).served, is_good, "{protocol}");
    }
}

#[tokio::test]
async fn only_the_share_of_the_refused_backend_fails() {
    let backend = backends::http("good").await;
    let mut objects = web();
    objects.extend(service("good", &[backend]));
    objects.extend(speaking("bad", "kubernetes.io/wss", &[backend]));
    objects.push(route("HTTPRoute", "mixed", to(&["good", "bad"])));
    let world = World::of(objects).await;
    let mut statuses = Vec::new();
    for _ in 0..6 {
        statuses.push(client::get(world.rig.http, "mixed.world.test", "/").await.status);
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 200, 500, 500, 500]);
    let (verdict, message) = resolved(&world, Kind::HttpRoute, "mixed");
    assert_eq!(verdict, REFUSED);
    assert!(message.contains("Service test/bad, port 80") && !message.contains("test/good"), "{message}");
}

#[tokio::test]
async fn grpc_routes_speak_http2_alone() {
    let backend = backends::h2c("calls").await;
    let cases = [("", true), ("http", true), ("grpc", true), ("kubernetes.io/h2c", true), ("kubernetes.io/ws", false)];
    let mut objects = web();
    for (n, (protocol, _)) in cases.iter().enumerate() {
        let name = format!("call-{n}");
        objects.extend(speaking(&name, protocol, &[backend]));
        objects.push(route("GRPCRoute", &name, to(&[&name])));
    }
    let world = World::of(objects).await;
    for (n, (protocol, is_good)) in cases.iter().enumerate() {
        let request = format!("POST /a.B/C HTTP/1.1\r\nHost: call-{n}.world.test\r\nConnection: close\r\n\r\n");
        let answer = client::request(world.rig.http, &request).await;
        assert_eq!(answer.status, if *is_good { 200 } else { 500 }, "{protocol}");
        let verdict = resolved(&world, Kind::GrpcRoute, &format!("call-{n}")).0;
        assert_eq!(verdict, if *is_good { "True/ResolvedRefs" } else { REFUSED }, "{protocol}");
    }
}

/// The slices' protocol applies if the Service has none.
#[tokio::test]
async fn the_services_app_protocol_goes_before_that_of_its_slices() {
    let backend = backends::http("good").await;
    let mut objects = web();
    for (name, protocol) in [("silent", ""), ("says", "http")] {
        let mut of_service = speaking(name, protocol, &[backend]);
        of_service[1]["ports"][0]["appProtocol"] = json!("kubernetes.io/wss");
        objects.extend(of_service);
        objects.push(route("HTTPRoute", &format!("{name}-service"), to(&[name])));
    }
    let world = World::of(objects).await;
    for (name, status, expected) in [("silent", 500, REFUSED), ("says", 200, "True/ResolvedRefs")] {
        let answer = client::get(world.rig.http, &format!("{name}-service.world.test"), "/").await;
        assert_eq!(answer.status, status, "{name}");
        assert_eq!(resolved(&world, Kind::HttpRoute, &format!("{name}-service")).0, expected, "{name}");
    }
}

/// A mirror with an unsupported protocol gets no copies, and the route's status reports it.
#[tokio::test]
async fn a_mirror_with_an_unsupported_protocol_is_reported() {
    let backend = backends::http("good").await;
    let mut objects = web();
    objects.extend(service("good", &[backend]));
    objects.extend(speaking("bad", "https", &[backend]));
    let mut rule = to(&["good"]);
    let mirror = json!({ "backendRef": { "name": "bad", "port": 80 } });
    rule["filters"] = json!([{ "type": "RequestMirror", "requestMirror": mirror }]);
    objects.push(route("HTTPRoute", "mirrored", rule));
    let world = World::of(objects).await;
    assert_eq!(client::get(world.rig.http, "mirrored.world.test", "/").await.status, 200);
    let (verdict, message) = resolved(&world, Kind::HttpRoute, "mirrored");
    assert_eq!(verdict, REFUSED);
    assert!(message.contains("RequestMirror: Service test/bad"), "{message}");
}

/// Routes and Contour's objects define backends' protocols in their own fields: this one is not rejected for them.
#[tokio::test]
async fn routes_and_contours_objects_are_served_as_ever() {
    let backend = backends::http("good").await;
    let spec = json!({ "host": "plain.world.test", "to": { "kind": "Service", "name": "app" } });
    let mut objects: Vec<Value> = speaking("app", "https", &[backend]);
    objects.push(proxy("plain-proxy", json!({ "services": crate::manifests::to(&["app"]) })));
    objects.push(object("route.openshift.io/v1", "Route", "plain", spec));
    let world = World::of(objects).await;
    for host in ["plain-proxy.test", "plain.world.test"] {
        assert_eq!(client::get(world.rig.http, host, "/").await.status, 200, "{host}");
    }
}
