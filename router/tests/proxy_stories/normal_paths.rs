//! Normalized paths: what protects a path protects all its spellings; always for Contour's objects, and for Routes and
//! Gateway API if the router enables it. Bytes of the client, bytes at the endpoint, and `explain` for the same.

use std::net::SocketAddr;

use crate::client::{get, get_h2, get_tls, request};
use crate::folder::{Folder, backend, secret};
use crate::log;
use crate::recorder::Recorder;

/// Spellings of `/admin`.
const ADMIN: [&str; 10] = [
    "/admin",
    "/x/../admin",
    "//admin",
    "/./admin",
    "/x/%2e%2e/admin",
    "/x/.%2E/admin",
    "/%61dmin",
    "/../admin",
    "/x\\..\\admin",
    "/x/y/../..//./admin/.",
];
/// Spellings of other paths, and the paths that endpoints receive.
const OTHERS: [(&str, &str); 9] = [
    ("/", "/"),
    ("/a/b?x=/../y//z&%2e%2e", "/a/b?x=/../y//z&%2e%2e"),
    ("/a//b/./c/../d/?q", "/a/b/d/?q"),
    ("/%7Euser", "/~user"),
    ("/administrator/..", "/"),
    ("/admin/../public", "/public"),
    // Outside of the router's normalization: an endpoint that takes these for `/admin` has to protect it itself.
    ("/x%2F..%2Fadmin", "/x%2F..%2Fadmin"),
    ("/x/..;/admin", "/x/..;/admin"),
    ("/%252e%252e/admin", "/%252e%252e/admin"),
];

/// The request lines that an endpoint received since the last call, without their version.
fn got(endpoint: &Recorder) -> Vec<String> {
    endpoint.take().into_iter().map(|message| message.request).collect()
}

/// Sends a request with this target, verbatim.
async fn ask(to: SocketAddr, host: &str, target: &str) -> u16 {
    get(to, host, target).await.status
}

fn proxy(host: &str, rest: &str) -> String {
    let name = host.replace('.', "-");
    format!(
        "apiVersion: projectcontour.io/v1\nkind: HTTPProxy\nmetadata: {{namespace: shop, name: {name}}}\n\
         spec:\n  virtualhost: {{fqdn: {host}}}\n{rest}"
    )
}

const GUARDED: &str = "  routes:
  - conditions: [{prefix: /admin}]
    directResponsePolicy: {statusCode: 403}
  - services: [{name: web, port: 80}]
";

#[tokio::test]
async fn a_prefix_of_an_http_proxy_is_not_passed_by_another_spelling() {
    let web = Recorder::start("web").await;
    let tls = format!(
        "apiVersion: projectcontour.io/v1\nkind: HTTPProxy\nmetadata: {{namespace: shop, name: tls}}\n\
         spec:\n  virtualhost: {{fqdn: tls.norm.test, tls: {{secretName: cert}}}}\n{GUARDED}"
    );
    let folder = Folder::of(&[
        backend("shop/web", web.address),
        secret("shop/cert", &["tls.norm.test"]),
        proxy("clear.norm.test", GUARDED),
        tls,
    ]);
    let rig = folder.serve().await;
    for target in ADMIN {
        assert_eq!(ask(rig.http, "clear.norm.test", target).await, 403, "{target}");
        let answer = get_tls(rig.https, Some("tls.norm.test"), "tls.norm.test", target).await;
        assert_eq!(answer.status, 403, "{target} over TLS");
        let absolute = format!(
            "GET http://clear.norm.test{target} HTTP/1.1\r\nHost: clear.norm.test\r\nConnection: close\r\n\r\n"
        );
        if !target.starts_with("//") {
            assert_eq!(request(rig.http, &absolute).await.status, 403, "{target} in absolute form");
        }
        let explained = folder.explain(&format!("http://clear.norm.test{target}"));
        assert!(explained.verdict.ends_with(" answers 403 itself"), "{target}: {explained}");
    }
    let over_h2: Vec<_> = ADMIN.iter().map(|target| ("tls.norm.test", *target)).collect();
    for ((status, _), target) in get_h2(rig.https, "tls.norm.test", &over_h2).await.iter().zip(ADMIN) {
        assert_eq!(*status, 403, "{target} over HTTP/2");
    }
    assert_eq!(got(&web), [""; 0], "no spelling reaches the endpoint");
    for (target, forwarded) in OTHERS {
        let expected = [format!("GET {forwarded}")];
        assert_eq!(ask(rig.http, "clear.norm.test", target).await, 200, "{target}");
        assert_eq!(got(&web), expected, "{target}");
        let (status, _) = get_h2(rig.https, "tls.norm.test", &[("tls.norm.test", target)]).await.remove(0);
        assert_eq!((status.as_u16(), got(&web)), (200, expected.to_vec()), "{target} over HTTP/2");
        let explained = folder.explain(&format!("http://clear.norm.test{target}"));
        assert!(explained.served, "{target}: {explained}");
    }
    let explained = folder.explain("http://clear.norm.test/x/../admin").to_string();
    assert!(explained.contains("a rule takes /admin, the normal form of /x/../admin"), "{explained}");
    // The log shows the path as sent.
    assert_eq!(log::line("path", "/x/y/../..//./admin/.").await["status"], 403);
    // Without a path there is nothing to normalize.
    assert_eq!(
        request(rig.http, "OPTIONS * HTTP/1.1\r\nHost: clear.norm.test\r\nConnection: close\r\n\r\n").await.status,
        200
    );
    assert_eq!(
        request(rig.http, "GET * HTTP/1.1\r\nHost: clear.norm.test\r\nConnection: close\r\n\r\n").await.status,
        400
    );
}

#[tokio::test]
async fn conditions_of_every_kind_look_at_the_normal_path() {
    let (web, other) = (Recorder::start("web").await, Recorder::start("other").await);
    let include = "  includes: [{name: part, conditions: [{prefix: /team}]}]\n";
    let part = "apiVersion: projectcontour.io/v1\nkind: HTTPProxy\nmetadata: {namespace: shop, name: part}\n\
                spec:\n  routes:\n  - conditions: [{prefix: /../secret}]\n    services: [{name: other, port: 80}]\n";
    let rules = "  routes:
  - conditions: [{exact: /exact}]
    directResponsePolicy: {statusCode: 401}
  - conditions: [{regex: '/[0-9]+/.*'}]
    directResponsePolicy: {statusCode: 402}
  - conditions: [{prefix: /%77ritten//so/}]
    directResponsePolicy: {statusCode: 404}
  - conditions: [{prefix: /from}]
    requestRedirectPolicy: {hostname: to.test, prefix: /there}
  - conditions: [{prefix: /old}]
    pathRewritePolicy: {replacePrefix: [{replacement: /new}]}
    services: [{name: web, port: 80}, {name: other, port: 80, mirror: true}]
  - services: [{name: web, port: 80}]
";
    let folder = Folder::of(&[
        backend("shop/web", web.address),
        backend("shop/other", other.address),
        proxy("kinds.norm.test", rules),
        proxy("parts.norm.test", include),
        part.to_owned(),
    ]);
    let rig = folder.serve().await;
    let host = "kinds.norm.test";
    for (target, status) in [
        ("/a/../exact", 401),
        ("/exact/", 200),
        ("/exact/.", 200),
        ("//1/x", 402),
        ("/%31/", 402),
        ("/1/../x", 200),
        ("/written/so", 404),
        ("/written/./so/on", 404),
        ("/%77ritten//so/", 404),
        ("/written/sofa", 200),
    ] {
        assert_eq!(ask(rig.http, host, target).await, status, "{target}");
        let explained = folder.explain(&format!("http://{host}{target}"));
        let is_answered = explained.verdict.ends_with(&format!(" answers {status} itself"));
        assert_eq!((explained.served, is_answered), (true, status != 200), "{target}: {explained}");
    }
    got(&web);
    let redirect = get(rig.http, host, "/x/..//from/./a?b=//").await;
    assert_eq!(redirect.field("location"), Some(&*format!("http://to.test:{}/there/a?b=//", rig.http.port())));
    assert_eq!(ask(rig.http, host, "/old/a/..//b?c").await, 200);
    assert_eq!(got(&web), ["GET /new/b?c"]);
    crate::tables::eventually("the copy", async || got(&other).contains(&"GET /new/b?c".to_owned())).await;

    // Included routes stay below their prefix, in requests and in conditions.
    let host = "parts.norm.test";
    for (target, status) in
        [("/team/secret/x", 200), ("/x/../team/./secret", 200), ("/team/../secret", 404), ("/secret", 404)]
    {
        assert_eq!(ask(rig.http, host, target).await, status, "{target}");
    }
    assert_eq!(got(&other), ["GET /team/secret/x", "GET /team/secret"]);
    let warned: Vec<String> = folder.problems().into_iter().filter(|text| text.contains("normal form")).collect();
    assert_eq!(warned.len(), 2, "{warned:?}");
    assert!(
        warned[0].contains(
            "spec.routes[2].conditions[0].prefix: paths are compared in normal form, in which \
                               \"/%77ritten//so/\" is \"/written//so/\"; write that"
        ),
        "{warned:?}"
    );
}

#[tokio::test]
async fn a_delegate_of_an_ingress_route_cannot_leave_its_part() {
    let (own, red) = (Recorder::start("own").await, Recorder::start("red").await);
    let root = "apiVersion: contour.heptio.com/v1beta1\nkind: IngressRoute\nmetadata: {namespace: shop, name: root}\n\
                spec:\n  virtualhost: {fqdn: ir.norm.test}\n  routes:\n\
                \x20 - {match: /, services: [{name: own, port: 80}]}\n\
                \x20 - {match: /red, delegate: {namespace: red, name: part}}\n\
                \x20 - {match: /blue, delegate: {namespace: red, name: greedy}}\n";
    let part = |name: &str, prefix: &str| {
        format!(
            "apiVersion: contour.heptio.com/v1beta1\nkind: IngressRoute\nmetadata: {{namespace: red, name: {name}}}\n\
             spec:\n  routes:\n  - {{match: {prefix}, services: [{{name: red, port: 80}}]}}\n"
        )
    };
    let folder = Folder::of(&[
        backend("shop/own", own.address),
        backend("red/red", red.address),
        root.to_owned(),
        part("part", "/red"),
        part("greedy", "/blue/../own"),
    ]);
    let rig = folder.serve().await;
    for (target, by) in [
        ("/red/a", &red),
        ("/x/../red/./a", &red),
        ("//red//a", &red),
        ("/red/../own", &own),
        ("/red/%2e%2e/own", &own),
        ("/blue/../own", &own),
        ("/own", &own),
    ] {
        assert_eq!(ask(rig.http, "ir.norm.test", target).await, 200, "{target}");
        assert_eq!(got(by).len(), 1, "{target}");
    }
    assert_eq!((got(&own), got(&red)), (Vec::new(), Vec::new()));
    let greedy = folder.problems().join("\n");
    assert!(greedy.contains("in which \"/blue/../own\" is \"/own\"; write that"), "{greedy}");
}

#[tokio::test]
async fn upgrades_and_redirects_to_https_have_normal_paths() {
    let web = Recorder::start("web").await;
    let tls = "apiVersion: projectcontour.io/v1\nkind: HTTPProxy\nmetadata: {namespace: shop, name: tls}\n\
               spec:\n  virtualhost: {fqdn: up.norm.test, tls: {secretName: cert}}\n  routes:\n\
               \x20 - {conditions: [{prefix: /open}], permitInsecure: true, services: [{name: web, port: 80}]}\n\
               \x20 - {services: [{name: web, port: 80}], enableWebsockets: true}\n";
    let folder =
        Folder::of(&[backend("shop/web", web.address), secret("shop/cert", &["up.norm.test"]), tls.to_owned()]);
    let rig = folder.serve().await;
    let redirect = get(rig.http, "up.norm.test", "/open/../closed//a?b").await;
    assert_eq!((redirect.status, redirect.field("location")), (301, Some("https://up.norm.test/closed/a?b")));
    assert_eq!(ask(rig.http, "up.norm.test", "/closed/../open/x").await, 200);
    assert_eq!(got(&web), ["GET /open/x"]);
    let upgrade = "GET /a/../ws//x HTTP/1.1\r\nHost: up.norm.test\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let stream = crate::client::tls(rig.https, Some("up.norm.test"), &["http/1.1"]).await;
    assert_eq!(crate::client::exchange(stream, upgrade).await.status, 200, "the endpoint declines");
    assert_eq!(got(&web), ["GET /ws/x"]);
}

/// An IngressController with these annotations.
fn router(annotations: &str) -> String {
    format!(
        "apiVersion: operator.openshift.io/v1\nkind: IngressController\n\
         metadata: {{namespace: openshift-ingress-operator, name: default, annotations: {{{annotations}}}}}\n\
         spec: {{domain: apps.localhost}}"
    )
}

const ROUTES: &str = "apiVersion: route.openshift.io/v1
kind: Route
metadata: {namespace: shop, name: all}
spec: {host: route.norm.test, to: {name: web}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {namespace: shop, name: admin}
spec: {host: route.norm.test, path: /admin, to: {name: guard}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: sluice}
spec: {controllerName: sluice.dev/gateway-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: shop, name: gw}
spec:
  parentRefs: [{name: gw}]
  hostnames: [gw.norm.test]
  rules:
  - matches: [{path: {value: /admin}}]
    backendRefs: [{name: guard, port: 80}]
  - backendRefs: [{name: web, port: 80}]
";

fn gateway(annotations: &str) -> String {
    format!(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\n\
         metadata: {{namespace: shop, name: gw, annotations: {{{annotations}}}}}\n\
         spec: {{gatewayClassName: sluice, listeners: [{{name: web, port: 80, protocol: HTTP}}]}}"
    )
}

#[tokio::test]
async fn routes_and_gateways_compare_what_was_sent_unless_the_router_says_otherwise() {
    const NORMAL: &str = "router.sluice.dev/normalize-path: \"true\"";
    const SENT: &str = "router.sluice.dev/normalize-path: \"false\"";
    const KEPT: &str = "router.sluice.dev/merge-slashes: \"false\"";
    let both = format!("{NORMAL}, {KEPT}");
    // Settings of the router and the Gateway; whether Routes and Gateways use the normalized path, and whether slashes
    // are merged.
    for (of_router, of_gateway, routes, gateways, merged) in [
        ("", "", false, false, true),
        (NORMAL, "", true, true, true),
        (NORMAL, SENT, true, false, true),
        ("", NORMAL, false, true, true),
        (both.as_str(), "", true, true, false),
        (KEPT, "", false, false, false),
    ] {
        let (web, guard) = (Recorder::start("web").await, Recorder::start("guard").await);
        let folder = Folder::of(&[
            router(of_router),
            gateway(of_gateway),
            ROUTES.to_owned(),
            backend("shop/web", web.address),
            backend("shop/guard", guard.address),
            proxy("always.norm.test", "  routes: [{services: [{name: web, port: 80}]}]"),
        ]);
        let rig = folder.serve().await;
        for (host, is_normal) in [("route.norm.test", routes), ("gw.norm.test", gateways)] {
            let context = format!("{host} with {of_router:?} and {of_gateway:?}");
            for target in ADMIN {
                assert_eq!(ask(rig.http, host, target).await, 200);
                let is_guarded = (is_normal && (merged || !target.contains("//"))) || target == "/admin";
                let (at, elsewhere) = if is_guarded { (&guard, &web) } else { (&web, &guard) };
                let forwarded = got(at);
                assert_eq!((forwarded.len(), got(elsewhere).len()), (1, 0), "{target} of {context}");
                if !is_normal {
                    assert_eq!(forwarded, [format!("GET {target}")], "{context}");
                } else {
                    assert!(
                        ["GET /admin", "GET /admin/", "GET //admin", "GET //admin/"].contains(&&*forwarded[0]),
                        "{forwarded:?}"
                    );
                }
                let explained = folder.explain(&format!("http://{host}{target}")).to_string();
                let service = if is_guarded { "service guard" } else { "service web" };
                assert!(explained.contains(service), "{target} of {context}: {explained}");
            }
        }
        assert_eq!(ask(rig.http, "always.norm.test", "/a/..//b").await, 200);
        assert_eq!(got(&web), [if merged { "GET /b" } else { "GET //b" }], "HTTPProxies with {of_router:?}");
    }
}

#[tokio::test]
async fn a_setting_that_cannot_be_read_is_refused_by_name() {
    let folder = Folder::of(&[
        router("router.sluice.dev/normalize-path: yes please, router.sluice.dev/normalise-path: \"true\""),
        gateway("router.sluice.dev/merge-slashes: maybe"),
    ]);
    let problems = folder.problems().join("\n");
    for expected in [
        "all.yaml:3:114: IngressController openshift-ingress-operator/default: \
         metadata.annotations[router.sluice.dev/normalize-path]: Invalid value: \"yes please\"; write \"true\" or \"false\"",
        "metadata.annotations[router.sluice.dev/normalise-path]: unknown annotation, ignored; known are \
         router.sluice.dev/normalize-path and router.sluice.dev/merge-slashes",
        "Gateway shop/gw: metadata.annotations[router.sluice.dev/merge-slashes]: Invalid value: \"maybe\"; write \
         \"true\" or \"false\"",
    ] {
        assert!(problems.contains(expected), "{expected}\n{problems}");
    }
}
