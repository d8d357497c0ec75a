//! Strategies for objects of all kinds that conflict, refer to each other and depend on each other.

mod gateway_api;

use std::sync::LazyLock;

use proptest::prelude::*;
use router_api::testing::{authority, config_map, controller, route, slice};
use serde_json::{Value, json};

/// An object of any kind, created `age` seconds into 2024.
pub fn named(api_version: &str, kind: &str, (namespace, name): (&str, &str), age: u32, spec: Value) -> Value {
    let mut object = route(&format!("{namespace}/{name}"), age, json!({}));
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(kind);
    object["metadata"]["uid"] = json!(format!("{namespace}{kind}{name}"));
    object["spec"] = spec;
    object
}

fn routes() -> impl Strategy<Value = Value> {
    let host = prop_oneof![
        Just("a.x.test"),
        Just("b.x.test"),
        Just("x.test"),
        Just("a.y.test"),
        Just("localhost"),
        Just("intranet"),
        Just("deep.a.x.test"),
    ];
    let tls = prop_oneof![
        2 => Just(None),
        2 => Just(Some(json!({ "termination": "edge" }))),
        2 => Just(Some(json!({ "termination": "passthrough" }))),
        1 => Just(Some(json!({ "termination": "edge", "externalCertificate": { "name": "cert" } }))),
        1 => Just(Some(json!({ "termination": "edge", "externalCertificate": { "name": "other" } }))),
    ];
    let path = prop_oneof![Just(""), Just("/"), Just("/p")];
    (0..2usize, 0..5usize, 0..8u32, host, tls, path, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(namespace, name, age, host, tls, path, wildcard, subdomain, labelled)| {
            let mut spec = json!({});
            if subdomain && !wildcard {
                spec["subdomain"] = json!("sub");
            } else {
                spec["host"] = json!(host);
            }
            if wildcard {
                spec["wildcardPolicy"] = json!("Subdomain");
            }
            if tls.as_ref().is_none_or(|tls| tls["termination"] != "passthrough") {
                spec["path"] = json!(path);
            }
            if let Some(tls) = tls {
                spec["tls"] = tls;
            }
            if age % 2 == 0 {
                spec["to"] = json!({ "name": "api" });
            }
            let mut object = route(&format!("{}/r{name}", ["red", "green"][namespace]), age, spec);
            object["metadata"]["uid"] = json!(format!("{namespace}{name}"));
            if labelled {
                object["metadata"]["labels"] = json!({ "shard": "one" });
            }
            object
        },
    )
}

/// An object of any kind.
pub fn objects() -> impl Strategy<Value = Value> {
    let protocols = prop_oneof![4 => Just(None), 1 => Just(Some("h2c")), 1 => Just(Some("other.example/x"))];
    let slices = (any::<bool>(), 1..4u8, protocols).prop_map(|(api, n, protocol)| {
        let mut slice = slice(if api { "red/api" } else { "red/web" }, &[&format!("10.0.0.{n}")], 8080);
        slice["ports"][0]["appProtocol"] = json!(protocol);
        slice
    });
    let controllers = (any::<bool>(), any::<bool>(), any::<bool>(), 0..3u8, any::<bool>()).prop_map(
        |(second, shared, wildcards, shard, tls)| {
            let mut spec = json!({
                "domain": if second { "two.test" } else { "one.test" },
                "endpointPublishingStrategy": { "hostNetwork": {
                    "httpPort": if second { 81 } else { 80 },
                    "httpsPort": if second { 444 } else { 443 },
                } },
                "httpErrorCodePages": { "name": if shared { "pages" } else { "others" } },
                "routeAdmission": {
                    "namespaceOwnership": if shared { "InterNamespaceAllowed" } else { "Strict" },
                    "wildcardPolicy": if wildcards { "WildcardsAllowed" } else { "WildcardsDisallowed" },
                },
            });
            if shard == 1 {
                spec["routeSelector"] = json!({ "matchLabels": { "shard": "one" } });
            }
            if shard > 0 {
                spec["namespaceSelector"] = json!({ "matchLabels": { "team": "red" } });
            }
            if tls {
                spec["defaultCertificate"] = json!({ "name": "cert" });
                spec["clientTLS"] = json!({ "clientCertificatePolicy": "Optional", "clientCA": { "name": "pages" } });
            }
            controller(if second { "second" } else { "default" }, spec)
        },
    );
    // Boxed: all strategies inline would not fit on the stack of a test thread.
    prop_oneof![
        8 => routes().boxed(),
        4 => slices.boxed(),
        2 => controllers.boxed(),
        2 => namespaces().boxed(),
        2 => config_maps().boxed(),
        3 => secrets().boxed(),
        8 => gateway_api::objects().boxed(),
        1 => services().boxed(),
        4 => contour().boxed(),
    ]
}

/// Namespaces, with a label that selectors match, and one that none matches.
fn namespaces() -> impl Strategy<Value = Value> {
    (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(red, team, other)| {
        json!({ "apiVersion": "v1", "kind": "Namespace",
            "metadata": { "name": if red { "red" } else { "green" },
                "labels": { "team": if team { "red" } else { "none" }, "unread": other.to_string() } } })
    })
}

/// Error pages and CAs of controllers, and CAs of BackendTLSPolicies.
fn config_maps() -> impl Strategy<Value = Value> {
    let namespace = prop_oneof![2 => Just("openshift-config"), 2 => Just("red"), 1 => Just("other")];
    (namespace, any::<bool>(), 0..3u8, any::<bool>()).prop_map(|(namespace, named, n, second)| {
        let page = format!("HTTP/1.0 503 Busy\n\n{n}");
        let ca = &AUTHORITIES[usize::from(second)];
        config_map(
            &format!("{namespace}/{}", if named { "pages" } else { "else" }),
            json!({ "error-page-503.http": page, "ca-bundle.pem": ca, "ca.crt": ca }),
        )
    })
}

static AUTHORITIES: LazyLock<[String; 2]> = LazyLock::new(|| ["one", "two"].map(authority));

/// Two certificates with their keys.
static PAIRS: LazyLock<[(String, String); 2]> = LazyLock::new(|| {
    [["a.x.test", "x.test"], ["a.y.test", "*.x.test"]].map(|names| {
        let made = rcgen::generate_simple_self_signed(names.map(str::to_owned)).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    })
});

/// Certificates and CAs, in namespaces of routes, Gateways and controllers.
fn secrets() -> impl Strategy<Value = Value> {
    let namespace = prop_oneof![3 => Just("red"), 2 => Just("green"), 2 => Just("openshift-ingress"),
        1 => Just("openshift-ingress-operator")];
    let name = prop_oneof![3 => Just("cert"), 1 => Just("other")];
    (namespace, name, any::<bool>(), any::<bool>()).prop_map(|(namespace, name, is_pair, second)| {
        let (certificate, key) = &PAIRS[usize::from(second)];
        let mut data = json!({ "ca.crt": AUTHORITIES[usize::from(second)] });
        if is_pair {
            data["tls.crt"] = json!(certificate);
            data["tls.key"] = json!(key);
        }
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "namespace": namespace, "name": name },
            "type": if is_pair { "kubernetes.io/tls" } else { "Opaque" }, "stringData": data })
    })
}

fn services() -> impl Strategy<Value = Value> {
    (any::<bool>(), any::<bool>()).prop_map(|(api, named_port)| {
        let port = if named_port { json!({ "name": "http", "port": 8080 }) } else { json!({ "port": 8080 }) };
        json!({ "apiVersion": "v1", "kind": "Service",
            "metadata": { "namespace": "red", "name": if api { "api" } else { "web" } },
            "spec": { "ports": [port] } })
    })
}

/// Roots, their delegates, and TLSCertificateDelegations.
fn contour() -> impl Strategy<Value = Value> {
    let fqdn =
        prop_oneof![Just("a.x.test"), Just("x.test"), Just("a.y.test"), Just(".x.test"), Just("*.x.test"), Just("")];
    let secret = prop_oneof![3 => Just(None), 1 => Just(Some("cert")), 1 => Just(Some("red/cert")), 1 => Just(Some("red/other"))];
    let proxies = (any::<bool>(), 0..2u32, 0..8u32, fqdn, any::<bool>(), secret, any::<bool>()).prop_map(
        |(red, name, age, fqdn, delegates, secret, verified)| {
            let namespace = if red { "red" } else { "green" };
            let mut spec = json!({});
            if !fqdn.is_empty() {
                spec["virtualhost"] = json!({ "fqdn": fqdn });
            }
            if let Some(secret) = secret.filter(|_| !fqdn.is_empty()) {
                spec["virtualhost"]["tls"] = json!({ "secretName": secret });
            }
            let delegate = json!({ "name": format!("i{}", 1 - name), "namespace": "red" });
            let own_name = format!("i{name}");
            let own = (namespace, &*own_name);
            if fqdn.starts_with('*') || (fqdn.is_empty() && verified) {
                let mut service = json!({ "name": "web", "port": 8080 });
                if verified {
                    service["protocol"] = json!("tls");
                    service["validation"] = json!({ "caSecret": "cert", "subjectName": "web.test" });
                }
                spec["routes"] = json!([{ "services": [service] }]);
                return named("projectcontour.io/v1", "HTTPProxy", own, age, spec);
            }
            if fqdn.starts_with('.') {
                spec["subdomains"] = json!([{ "subdomain": "deep.a.x.test", "delegate": delegate }]);
            } else if delegates {
                spec["routes"] = json!([{ "match": "/", "delegate": delegate }]);
            } else {
                spec["routes"] = json!([{ "match": "/", "services": [{ "name": "web", "port": 8080 }] }]);
            }
            named("contour.heptio.com/v1beta1", "IngressRoute", own, age, spec)
        },
    );
    let delegations = any::<bool>().prop_map(|all| {
        let targets = if all { json!(["*"]) } else { json!(["blue"]) };
        let spec = json!({ "delegations": [{ "secretName": "cert", "targetNamespaces": targets }] });
        named("projectcontour.io/v1", "TLSCertificateDelegation", ("red", "lend"), 1, spec)
    });
    prop_oneof![5 => proxies, 1 => delegations]
}
