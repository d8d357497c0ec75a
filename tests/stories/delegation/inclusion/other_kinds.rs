//! Trees of other kinds: TLSRoutes, matched by server name, and GRPCRoutes, matched by method.

use anyhow::Context;
use serde_json::json;
use tests::pki::Ca;
use tests::python;

use super::manifests::{WEB, route};
use super::*;

/// A TLSRoute with this parent, these hosts and this backend.
fn tls_route(id: &str, parent: &str, hosts: &str, backend: &str) -> String {
    let rule = format!("{{backendRefs: [{backend}]}}");
    route(id, parent, hosts, &[rule]).replace("kind: HTTPRoute", "kind: TLSRoute")
}

#[test]
fn tls_routes_attach_to_each_other_by_host() -> Result<()> {
    let gateway = "---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: shop, name: raw}
spec:
  gatewayClassName: sluice
  listeners: [{name: raw, port: 9443, protocol: TLS, tls: {mode: Passthrough}, allowedRoutes: {namespaces: {from: All}}}]
";
    let slot = |name: &str| format!("{{group: gateway.sluice.dev, kind: RouteSlot, name: {name}}}");
    let (listener, own) = ("{namespace: shop, name: raw}", "{name: raw, port: 80}");
    let below = |top: &str| format!("{{kind: TLSRoute, namespace: shop, name: {top}}}");
    let objects = [
        gateway.to_owned(),
        service("red", "raw", 9021),
        tls_route("shop/open", listener, "'*.open.test'", &slot("all")),
        tls_route("red/open", &below("open"), "a.open.test", own),
        // A slot that does not admit the namespace, and a host outside of the parent's.
        tls_route("shop/closed", listener, "'*.closed.test'", &slot("same")),
        tls_route("red/closed", &below("closed"), "a.closed.test", own),
        tls_route("shop/apart", listener, "'*.apart.test'", &slot("all")),
        tls_route("red/apart", &below("apart"), "a.elsewhere.test", own),
    ];
    let stage = Stage::of(&objects, &[])?;
    let ca = Ca::new()?;
    let folder = TempDir::new()?;
    let [certificate, _] = ca.leaf("a.open.test")?.write(folder.path(), "raw")?;
    let server = Server { name: "red", listen: at(9021), certificate: Some(certificate) };
    let _nginx = Nginx::start(&stage.netns, &[server])?;
    let file = ca.file();
    let trusted = ["--cacert", file.to_str().context("a path")?];
    let client = Client::of(&stage.netns, Ipv4Addr::LOCALHOST.into());
    let answer = client.curl("https://a.open.test:9443/", &trusted)?;
    ensure!(answer.status == 200 && answer.body.contains("sni=a.open.test"), "{answer:?}");
    for host in ["b.open.test", "a.closed.test", "a.apart.test", "a.elsewhere.test"] {
        let found = client.curl(&format!("https://{host}:9443/"), &["--insecure"]);
        ensure!(!found.as_ref().is_ok_and(|answer| answer.body.contains("nginx")), "{host} is served: {found:?}");
    }
    Ok(())
}

/// A GRPCRoute with this parent and host, whose rule matches these calls.
fn grpc_route(id: &str, parent: &str, hosts: &str, calls: &str, backend: &str) -> String {
    let rule = format!("{{matches: [{calls}], backendRefs: [{backend}]}}");
    route(id, parent, hosts, &[rule]).replace("kind: HTTPRoute\n", "kind: GRPCRoute\n")
}

#[test]
fn grpc_routes_attach_to_each_other_by_call() -> Result<()> {
    let slot = |name: &str| format!("{{group: gateway.sluice.dev, kind: RouteSlot, name: {name}}}");
    let call = |members: &str| format!("{{method: {{{members}}}}}");
    let below = |top: &str| format!("{{kind: GRPCRoute, namespace: shop, name: {top}}}");
    let one = |method: &str| call(&format!("service: stories.Calls, method: {method}"));
    let all = call("service: stories.Calls");
    let own = "{name: calls, port: 80}";
    let spoken = service("red", "calls", 9031).replace("port: 80}", "port: 80, appProtocol: kubernetes.io/h2c}");
    let objects = [
        spoken,
        grpc_route("shop/some", WEB, "some.t.test", &all, &slot("all")),
        grpc_route("red/some", &below("some"), "", &["Unary", "Saw"].map(one).join(", "), own),
        // A slot for calls that the child does not match, one that does not admit its namespace, and one without
        // children.
        grpc_route("shop/other", WEB, "other.t.test", &call("service: stories.Other"), &slot("all")),
        grpc_route("red/other", &below("other"), "", &all, own),
        grpc_route("shop/closed", WEB, "closed.t.test", &all, &slot("same")),
        grpc_route("red/closed", &below("closed"), "", &all, own),
    ];
    let stage = Stage::of(&objects, &[])?;
    let _server = python::server(&stage.netns, "grpc_server", &["9031"])?;
    let calls = |host: &str| {
        python::client(&stage.netns, "grpc_client", &[host, "8080", "-", "each", "Unary", "Saw", "Refuse"])
    };
    for (host, expected) in [
        // A call that the child does not match is unimplemented in gRPC; `Refuse` would respond otherwise.
        ("some.t.test", json!({"Unary": "OK", "Saw": "OK", "Refuse": "UNIMPLEMENTED"})),
        ("other.t.test", json!({"Unary": "UNIMPLEMENTED", "Saw": "UNIMPLEMENTED", "Refuse": "UNIMPLEMENTED"})),
        ("closed.t.test", json!({"Unary": "UNAVAILABLE", "Saw": "UNAVAILABLE", "Refuse": "UNAVAILABLE"})),
    ] {
        let seen = calls(host)?;
        ensure!(seen == expected, "{host}: {seen}");
    }
    Ok(())
}
