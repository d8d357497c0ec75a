//! TLS to backends, from manifests to a backend that speaks TLS: BackendTLSPolicy, and Contour's `tcpproxy`.

use std::net::SocketAddr;
use std::sync::Arc;

use router_model::kind::Kind;
use router_proxy::ProxyConfig;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::gateways::{ca_map, gateway, route, speaking, tls_policy, to, web};
use crate::manifests::{World, root, service};
use crate::pki::Ca;
use crate::tables::{PATIENCE, eventually};
use crate::{backends, client, log, pki};

/// A `validation` with this host name and ConfigMap `ca`.
fn usual(hostname: &str) -> Value {
    json!({ "hostname": hostname, "caCertificateRefs": [{ "group": "", "kind": "ConfigMap", "name": "ca" }] })
}

fn with_names(hostname: &str, names: &[&str]) -> Value {
    let mut validation = usual(hostname);
    validation["subjectAltNames"] = names.iter().map(|name| json!({ "type": "Hostname", "hostname": name })).collect();
    validation
}

/// `status/reason` of a policy's condition Accepted.
fn accepted(world: &World, policy: &str) -> String {
    world.condition(Kind::BackendTlsPolicy, &format!("test/{policy}"), "Accepted").0
}

/// Sends four bytes to a terminating TLS listener and reads the response of a [`backends::tls_echo`] backend.
async fn ping(world: &World, host: &str) -> std::io::Result<Vec<u8>> {
    let mut stream = client::tls(world.rig.https, Some(host), &[]).await;
    let mut bytes = vec![0; 10];
    // A reset shows as an error when reading.
    let _ = stream.write_all(b"ping").await;
    timeout(PATIENCE, stream.read_exact(&mut bytes)).await.expect("an echo or an end").map(|_| bytes)
}

#[tokio::test]
async fn hostname_is_the_name_to_verify_unless_names_are_given() {
    let ca = Ca::new("backends");
    let backend = backends::https("secure", pki::server_config(ca.leaf(&["app.internal", "*.wild.internal"]))).await;
    let cases = [
        ("usual", usual("app.internal"), 200),
        ("wild", usual("x.wild.internal"), 200),
        ("deeper", usual("x.y.wild.internal"), 502),
        ("other", usual("other.internal"), 502),
        ("listed", with_names("other.internal", &["no.internal", "app.internal"]), 200),
        ("unlisted", with_names("app.internal", &["no.internal"]), 502),
    ];
    let mut objects = web();
    objects.push(ca_map("ca", &ca));
    for (name, validation, _) in &cases {
        objects.extend(speaking(name, "HTTPS", &[backend]));
        objects.extend([tls_policy(name, validation.clone()), route("HTTPRoute", name, to(&[name]))]);
    }
    let world = World::of(objects).await;
    for (name, validation, status) in &cases {
        let host = format!("{name}.world.test");
        let answer = client::get(world.rig.http, &host, "/x").await;
        assert_eq!(answer.status, *status, "{name}: {answer:?}");
        if *status == 200 {
            let sni = validation["hostname"].as_str().unwrap();
            assert!(answer.body.starts_with(&format!("secure GET /x\nsni: {sni}\n")), "{name}: {answer:?}");
        } else {
            assert_eq!(log::line("host", &host).await["flags"], "UV", "{name}");
        }
        assert_eq!(accepted(&world, name), "True/Accepted", "{name}");
        assert!(world.explain(&format!("http://{host}/x")).served, "{name}");
    }
}

#[tokio::test]
async fn hostname_is_verified_by_the_systems_roots_as_well() {
    let ca = Ca::new("system");
    let backend = backends::https("secure", pki::server_config(ca.leaf(&["app.internal"]))).await;
    let mut objects = web();
    for (name, hostname) in [("system", "app.internal"), ("system-other", "other.internal")] {
        let validation = json!({ "hostname": hostname, "wellKnownCACertificates": "System" });
        objects.extend(service(name, &[backend]));
        objects.extend([tls_policy(name, validation), route("HTTPRoute", name, to(&[name]))]);
    }
    let config = ProxyConfig { system_roots: Some(ca.roots()), ..ProxyConfig::default() };
    let world = World::with(config, objects).await;
    for (name, status) in [("system", 200), ("system-other", 502)] {
        assert_eq!(client::get(world.rig.http, &format!("{name}.world.test"), "/").await.status, status, "{name}");
    }
}

#[tokio::test]
async fn grpc_is_sent_over_tls_where_a_policy_requires_it() {
    let ca = Ca::new("grpc");
    let config = pki::server_config_for(ca.leaf(&["app.internal"]), &["h2"]);
    let backend = backends::https_any("secure", config).await;
    let mut objects = web();
    objects.extend(speaking("calls", "https", &[backend]));
    objects.extend([
        ca_map("ca", &ca),
        tls_policy("calls", usual("app.internal")),
        route("GRPCRoute", "calls", to(&["calls"])),
    ]);
    let world = World::of(objects).await;
    let request = "POST /a.B/C HTTP/1.1\r\nHost: calls.world.test\r\nConnection: close\r\n\r\n";
    let answer = client::request(world.rig.http, request).await;
    assert!(answer.body.starts_with("secure POST /a.B/C\nHTTP/2.0\n"), "{answer:?}");
    assert_eq!(world.condition(Kind::GrpcRoute, "test/calls", "ResolvedRefs").0, "True/ResolvedRefs");
}

/// A TLS mirror that reports what it received.
async fn mirror(ca: &Ca) -> (SocketAddr, mpsc::UnboundedReceiver<String>) {
    let config = pki::server_config(ca.leaf(&["app.internal"]));
    let (log, copies) = mpsc::unbounded_channel();
    let address = backends::serve(move |stream| {
        let (acceptor, log) = (TlsAcceptor::from(Arc::clone(&config)), log.clone());
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            let mut bytes = [0; 64];
            let read = stream.read(&mut bytes).await.unwrap_or(0);
            log.send(String::from_utf8_lossy(&bytes[..read]).into_owned()).unwrap();
            let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
        }
    })
    .await;
    (address, copies)
}

/// A policy's status covers mirrors as it does backends; a lost copy is counted and logged.
#[tokio::test]
async fn copies_go_over_tls_and_those_that_are_lost_are_seen() {
    let ca = Ca::new("mirrors");
    let (mirror, mut copies) = mirror(&ca).await;
    let mut objects = web();
    objects.push(ca_map("ca", &ca));
    objects.extend(service("main", &[backends::http("main").await]));
    for (name, mirrored, hostname) in [("copied", "good", "app.internal"), ("lost", "bad", "other.internal")] {
        let mut rule = to(&["main"]);
        let backend = json!({ "backendRef": { "name": mirrored, "port": 80 } });
        rule["filters"] = json!([{ "type": "RequestMirror", "requestMirror": backend }]);
        objects.extend(service(mirrored, &[mirror]));
        objects.extend([tls_policy(mirrored, usual(hostname)), route("HTTPRoute", name, rule)]);
    }
    let world = World::of(objects).await;
    for host in ["copied.world.test", "lost.world.test", "lost.world.test"] {
        assert_eq!(client::get(world.rig.http, host, "/m").await.status, 200);
    }
    let copy = timeout(PATIENCE, copies.recv()).await.expect("a copy").unwrap();
    assert!(copy.starts_with("GET /m HTTP/1.1\r\nhost: copied.world.test"), "{copy}");
    for name in ["good", "bad"] {
        assert_eq!(accepted(&world, name), "True/Accepted", "{name}");
    }
    let counted = |name: &str| {
        let counters = world.rig.proxy.counters();
        counters.into_iter().find(|it| &*it.route.name == name).map(|it| (it.copies, it.copies_lost))
    };
    eventually("the copies' ends", async || counted("lost") == Some((2, 2))).await;
    assert_eq!(counted("copied"), Some((1, 0)));
    let is_told = |line: &Value| {
        line["message"] == "mirrored requests were lost"
            && line["route"].as_str().is_some_and(|it| it.contains("test/lost"))
    };
    let line = log::line_where("a line about lost copies", is_told).await;
    assert_eq!((&line["service"], &line["count"]), (&"bad".into(), &1.into()), "{line}");
    assert!(line["why"].as_str().unwrap().starts_with("backend-certificate"), "{line}");
}

#[tokio::test]
async fn what_is_inside_of_tls_goes_on_inside_of_tls() {
    let ca = Ca::new("bytes");
    let backend = backends::tls_echo("secure", pki::server_config_for(ca.leaf(&["app.internal"]), &[])).await;
    let clear = backends::named_echo("clear").await;
    let terminate = json!({ "mode": "Terminate", "certificateRefs": [{ "name": "own" }] });
    let mut objects = gateway(json!([{ "name": "raw", "port": 443, "protocol": "TLS", "tls": terminate }]));
    objects.extend([pki::secret("own", &["*.world.test"]), ca_map("ca", &ca)]);
    for (name, hostname) in [("bytes", "app.internal"), ("other-bytes", "other.internal")] {
        objects.extend(speaking(name, "tls", &[backend]));
        objects.extend([tls_policy(name, usual(hostname)), route("TLSRoute", name, to(&[name]))]);
    }
    objects.extend(speaking("bare-bytes", "tls", &[clear]));
    objects.push(route("TLSRoute", "bare-bytes", to(&["bare-bytes"])));
    let world = World::of(objects).await;
    assert_eq!(ping(&world, "bytes.world.test").await.unwrap(), b"secureping");
    // The certificate has another name; and without a policy, TLS is not replaced by clear text.
    for host in ["other-bytes.world.test", "bare-bytes.world.test"] {
        assert!(ping(&world, host).await.is_err(), "{host}");
    }
    assert_eq!(log::line("host", "other-bytes.world.test").await["flags"], "UV");
    for name in ["bytes", "other-bytes"] {
        let of_route = |condition: &str| world.condition(Kind::TlsRoute, &format!("test/{name}"), condition);
        assert_eq!(of_route("Accepted"), ("True/Accepted".to_owned(), String::new()), "{name}");
        assert_eq!(of_route("ResolvedRefs").0, "True/ResolvedRefs", "{name}");
        assert_eq!(accepted(&world, name), "True/Accepted", "{name}");
    }
    let told = world.condition(Kind::TlsRoute, "test/bare-bytes", "ResolvedRefs");
    assert_eq!(told.0, "False/UnsupportedProtocol", "{told:?}");
}

/// A passthrough connection carries the client's own TLS: neither a policy nor the port's protocol applies.
#[tokio::test]
async fn policies_are_not_about_what_is_passed_through() {
    let ca = Ca::new("passed through");
    let backend = backends::tls_echo("secure", pki::server_config_for(ca.leaf(&["app.internal"]), &[])).await;
    let mut objects =
        gateway(json!([{ "name": "raw", "port": 443, "protocol": "TLS", "tls": { "mode": "Passthrough" } }]));
    objects.extend(speaking("passed", "kubernetes.io/wss", &[backend]));
    objects.extend([tls_policy("passed", usual("other.internal")), route("TLSRoute", "passed", to(&["passed"]))]);
    let world = World::of(objects).await;
    assert_eq!(ping(&world, "passed.world.test").await.unwrap(), b"secureping");
    assert_eq!(world.condition(Kind::TlsRoute, "test/passed", "ResolvedRefs").0, "True/ResolvedRefs");
    assert_eq!(accepted(&world, "passed"), "-", "no Gateway is its ancestor");
}

/// A URI of `subjectAltNames` is looked up in the certificate.
#[tokio::test]
async fn a_peer_may_be_known_by_a_uri() {
    let ca = Ca::new("uris");
    let backend = backends::https("secure", pki::server_config(ca.leaf_with_uri("spiffe://shop.test/app"))).await;
    let by = |uri: &str| {
        let mut validation = usual("app.internal");
        let hostname = json!({ "type": "Hostname", "hostname": "no.test" });
        validation["subjectAltNames"] = json!([{ "type": "URI", "uri": uri }, hostname]);
        validation
    };
    let mut objects = web();
    objects.push(ca_map("ca", &ca));
    for (name, uri) in [("uri", "spiffe://shop.test/app"), ("other-uri", "spiffe://shop.test/another")] {
        objects.extend(service(name, &[backend]));
        objects.extend([tls_policy(name, by(uri)), route("HTTPRoute", name, to(&[name]))]);
    }
    let world = World::of(objects).await;
    for (name, status) in [("uri", 200), ("other-uri", 502)] {
        assert_eq!(client::get(world.rig.http, &format!("{name}.world.test"), "/").await.status, status, "{name}");
        assert_eq!(accepted(&world, name), "True/Accepted", "{name}");
    }
}

/// Contour's `tcpproxy` to services that speak TLS, by `protocol` or by the Service's annotation.
#[tokio::test]
async fn a_tcpproxy_speaks_tls_with_services_that_do() {
    let leaf = pki::ca().leaf(&["app.internal"]);
    let backend = backends::tls_echo("secure", pki::server_config_for(leaf, &[])).await;
    let proxy = |name: &str, service: Value, subject: &str| {
        let mut service = service;
        service["port"] = json!(80);
        service["validation"] = json!({ "caSecret": "ca", "subjectName": subject });
        let tls = json!({ "secretName": "own" });
        root(name, json!({ "virtualhost": { "tls": tls }, "tcpproxy": { "services": [service] } }))
    };
    let by_field = || json!({ "name": "app", "protocol": "tls" });
    let mut objects = service("app", &[backend]);
    let mut annotated = service("annotated", &[backend]);
    annotated[0]["metadata"]["annotations"] = json!({ "projectcontour.io/upstream-protocol.tls": "80" });
    objects.extend(annotated);
    objects.extend([
        pki::secret("own", &["*.test"]),
        pki::ca_secret("ca"),
        proxy("tcp-field", by_field(), "app.internal"),
        proxy("tcp-annotation", json!({ "name": "annotated" }), "app.internal"),
        proxy("tcp-other", by_field(), "other.internal"),
    ]);
    let world = World::of(objects).await;
    for name in ["tcp-field", "tcp-annotation"] {
        let told = world.status(Kind::HttpProxy, &format!("test/{name}"));
        assert_eq!(told["currentStatus"], "valid", "{told:#}");
        assert_eq!(ping(&world, &format!("{name}.test")).await.unwrap(), b"secureping", "{name}");
    }
    assert!(ping(&world, "tcp-other.test").await.is_err());
}
