//! Statuses of IngressRoutes, word for word, each beside a valid neighbour.

use super::*;

const ORPHAN: &str = "orphaned: this IngressRoute is not part of a delegation chain from a root IngressRoute";
const VALID: &str = "valid: valid IngressRoute";

/// A root `a/root` of www.example.com with this `spec` beside its virtual host.
fn root(spec: Value) -> Value {
    let mut object = ingress_route("a/root", json!({ "virtualhost": { "fqdn": "www.example.com" } }));
    for (member, value) in spec.as_object().expect("a mapping") {
        object["spec"][member] = value.clone();
    }
    object
}

fn routes(routes: Value) -> Value {
    json!({ "routes": routes })
}

/// The status of an IngressRoute, beside services `a/web` and `a/two`, the Secret `a/tls`, and these objects.
fn status_of(id: &str, objects: Vec<Value>) -> String {
    World::new(with_backends(objects)).ingress(id)
}

fn with_backends(mut objects: Vec<Value>) -> Vec<Value> {
    objects.extend(backends(&["a/web", "a/two", "b/web"]));
    objects.push(secret("a/tls", &["www.example.com"]));
    objects.push(secret("c/tls", &["www.example.com"]));
    objects
}

#[test]
fn the_status_of_a_root_names_its_violation() {
    let delegate = |name: &str| json!([{ "match": "/", "delegate": { "name": name } }]);
    let tls = |secret: &str| json!({ "virtualhost": { "fqdn": "www.example.com", "tls": { "secretName": secret } } });
    let web = json!([{ "match": "/", "services": to("web") }]);
    let port = |port: i64| routes(json!([{ "match": "/", "services": [{ "name": "web", "port": port }] }]));
    let validated = |validation: Value| {
        let service = json!({ "name": "tls", "port": 443, "validation": validation });
        routes(json!([{ "match": "/", "services": [service] }]))
    };
    let tcp = |tcp: Value| json!({ "virtualhost": { "fqdn": "www.example.com", "tls": { "secretName": "tls" } }, "tcpproxy": tcp });
    let table: Vec<(Value, Vec<Value>, &str)> = vec![
        (routes(web.clone()), vec![], VALID),
        (json!({ "virtualhost": {} }), vec![], "invalid: Spec.VirtualHost.Fqdn must be specified"),
        (
            json!({ "virtualhost": { "fqdn": "*.example.com" } }),
            vec![],
            "invalid: Spec.VirtualHost.Fqdn \"*.example.com\" cannot use wildcards",
        ),
        (
            routes(web.clone()),
            vec![ingress_route("b/other", json!({ "virtualhost": { "fqdn": "WWW.example.com" } }))],
            "invalid: fqdn \"www.example.com\" is used in multiple IngressRoutes: a/root, b/other",
        ),
        (
            routes(web.clone()),
            vec![ingress_route("b/other", json!({ "virtualhost": { "fqdn": "w.example.com" } }))],
            VALID,
        ),
        (tls("tls"), vec![], VALID),
        (tls("a/tls"), vec![], VALID),
        (tls("none"), vec![], "invalid: TLS Secret [none] not found or is malformed"),
        (tls("c/tls"), vec![], "invalid: c/tls: certificate delegation not permitted"),
        (tls("c/none"), vec![], "invalid: c/none: certificate delegation not permitted"),
        (
            tls("c/tls"),
            vec![delegation("c", "tls", json!(["b"]))],
            "invalid: c/tls: certificate delegation not permitted",
        ),
        (
            tls("c/tls"),
            vec![delegation("c", "other", json!(["a"]))],
            "invalid: c/tls: certificate delegation not permitted",
        ),
        (
            tls("c/tls"),
            vec![delegation("b", "tls", json!(["a"]))],
            "invalid: c/tls: certificate delegation not permitted",
        ),
        (tls("c/tls"), vec![delegation("c", "tls", json!([]))], "invalid: c/tls: certificate delegation not permitted"),
        (tls("c/tls"), vec![delegation("c", "tls", json!(["b", "a"]))], VALID),
        (tls("c/tls"), vec![delegation("c", "tls", json!(["b", "*"]))], VALID),
        (
            tls("c/none"),
            vec![delegation("c", "none", json!(["a"]))],
            "invalid: TLS Secret [c/none] not found or is malformed",
        ),
        (
            routes(json!([{ "match": "/x", "services": to("web"), "delegate": { "name": "b" } }])),
            vec![],
            "invalid: route \"/x\": cannot specify services and delegate in the same route",
        ),
        (
            routes(
                json!([{ "match": "/ws", "enableWebsockets": true, "services": [{ "name": "web", "port": 80 }, { "name": "two", "port": 80 }] }]),
            ),
            vec![],
            "invalid: route \"/ws\": cannot specify multiple services and enable websockets",
        ),
        (routes(json!([{ "match": "/ws", "enableWebsockets": true, "services": to("web") }])), vec![], VALID),
        (port(0), vec![], "invalid: route \"/\": service \"web\": port must be in the range 1-65535"),
        (port(65536), vec![], "invalid: route \"/\": service \"web\": port must be in the range 1-65535"),
        (port(81), vec![], "invalid: Service [web:81] is invalid or missing"),
        (
            routes(json!([{ "match": "/", "services": to("none") }])),
            vec![],
            "invalid: Service [none:80] is invalid or missing",
        ),
        (
            routes(delegate("other")),
            vec![ingress_route("a/other", json!({ "virtualhost": { "fqdn": "o.example.com" } }))],
            "invalid: root ingressroute cannot delegate to another root ingressroute",
        ),
        (routes(delegate("nobody")), vec![], VALID),
        (
            validated(json!({ "caSecret": "nobody", "subjectName": "web.a" })),
            tls_service(),
            "invalid: route \"/\": service \"tls\": upstreamValidation requested but secret not found or misconfigured",
        ),
        (
            validated(json!({ "caSecret": "ca", "subjectName": "" })),
            tls_service(),
            "invalid: route \"/\": service \"tls\": upstreamValidation requested but subject alt name not found or misconfigured",
        ),
        (validated(json!({ "caSecret": "ca", "subjectName": "web.a" })), tls_service(), VALID),
        (
            validated(json!(null)),
            tls_service(),
            "invalid: route \"/\": service \"tls\": TLS without validation is not supported; add validation with caSecret \
             and subjectName",
        ),
        (tcp(json!({ "services": to("web") })), vec![], VALID),
        (
            tcp(json!({ "services": to("web"), "delegate": { "name": "x" } })),
            vec![],
            "invalid: tcpproxy: cannot specify services and delegate in the same tcpproxy",
        ),
        (tcp(json!({ "services": to("none") })), vec![], "invalid: tcpproxy: service a/none/80: not found"),
        (tcp(json!({})), vec![], "invalid: tcpproxy: either services or delegate must be specified"),
        (tcp(json!({ "delegate": { "name": "none" } })), vec![], "invalid: tcpproxy: delegate a/none not found"),
        (
            json!({ "tcpproxy": { "services": to("web") } }),
            vec![],
            "invalid: Spec.TCPProxy requires that either Spec.TLS.Passthrough or Spec.TLS.SecretName be set",
        ),
        (
            json!({ "virtualhost": { "fqdn": "www.example.com", "tls": { "passthrough": true } }, "routes": web.clone() }),
            vec![],
            "invalid: Spec.VirtualHost.TLS.Passthrough requires that Spec.TCPProxy be set",
        ),
        (
            json!({ "virtualhost": { "fqdn": "www.example.com", "tls": { "passthrough": true, "secretName": "tls" } } }),
            vec![],
            "invalid: Spec.VirtualHost.TLS: both Passthrough and SecretName were specified",
        ),
        (
            json!({ "virtualhost": { "fqdn": "www.example.com", "tls": {} } }),
            vec![],
            "invalid: TLS Secret [] not found or is malformed",
        ),
        (
            routes(
                json!([{ "match": "/", "services": to("web"), "retryPolicy": { "count": 3, "perTryTimeout": "soon" } }]),
            ),
            vec![],
            "invalid: spec.routes[0].retryPolicy.perTryTimeout: \"soon\" is not a valid duration; write one such as 30s or 1m30s, or infinity",
        ),
        (
            routes(json!([{ "match": "/", "services": to("web"), "timeoutPolicy": { "request": "soon" } }])),
            vec![],
            "invalid: spec.routes[0].timeoutPolicy.request: \"soon\" is not a valid duration; write one such as 30s or 1m30s, or infinity",
        ),
    ];
    for (spec, mut others, expected) in table {
        others.push(root(spec.clone()));
        assert_eq!(status_of("a/root", others), expected, "{spec}");
    }
}

/// A Service `a/tls` whose port 443 uses TLS by annotation, and a CA.
fn tls_service() -> Vec<Value> {
    let mut service = service("a/tls", json!([{ "name": "https", "port": 443 }]));
    service["metadata"]["annotations"] = json!({ "contour.heptio.com/upstream-protocol.tls": "443,https" });
    let ca = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "namespace": "a", "name": "ca" },
        "stringData": { "ca.crt": router_api::testing::authority("ca") },
    });
    let mut slice = slice("a/tls", &["10.0.0.9"], 8443);
    slice["ports"] = json!([{ "name": "https", "port": 8443 }]);
    vec![service, slice, ca]
}

#[test]
fn a_violation_of_a_delegate_is_in_its_own_status_only() {
    let delegating =
        |at: &str| root(routes(json!([{ "match": at, "delegate": { "name": "team", "namespace": "b" } }])));
    let team = |spec: Value| ingress_route("b/team", spec);
    let web = |at: &str| routes(json!([{ "match": at, "services": to("web") }]));
    let deeper = |at: &str| routes(json!([{ "match": at, "delegate": { "name": "leaf" } }]));
    let table = [
        ("/a", web("/a"), VALID),
        ("/a", web("/a/b"), VALID),
        ("/a", web("/ab"), "invalid: the path prefix \"/ab\" does not match the parent's path prefix \"/a\""),
        ("/a", web("/"), "invalid: the path prefix \"/\" does not match the parent's path prefix \"/a\""),
        ("/a", deeper("/b"), "invalid: the path prefix \"/b\" does not match the parent's path prefix \"/a\""),
        ("/a", deeper("/a/b"), VALID),
        (
            "/",
            routes(json!([{ "match": "/", "services": to("none") }])),
            "invalid: Service [none:80] is invalid or missing",
        ),
    ];
    for (at, spec, expected) in table {
        let objects = vec![delegating(at), team(spec.clone())];
        assert_eq!(status_of("b/team", objects.clone()), expected, "{at} {spec}");
        assert_eq!(status_of("a/root", objects), VALID, "{at} {spec}");
    }
    assert_eq!(status_of("b/team", vec![team(web("/"))]), ORPHAN);
    // A delegate of an orphaned object.
    let leaf = ingress_route("b/leaf", web("/a"));
    assert_eq!(status_of("b/leaf", vec![team(deeper("/a")), leaf]), ORPHAN);
    // A root that is invalid as a whole has no delegates.
    let broken = root(json!({
        "virtualhost": { "fqdn": "www.example.com", "tls": { "secretName": "none" } },
        "routes": [{ "match": "/a", "delegate": { "name": "team", "namespace": "b" } }],
    }));
    assert_eq!(status_of("b/team", vec![broken, team(web("/a"))]), ORPHAN);
}

#[test]
fn a_cycle_is_cut_where_it_closes() {
    let link = |id: &str, target: &str| {
        ingress_route(
            id,
            routes(
                json!([{ "match": "/x", "delegate": { "name": target } }, { "match": "/y", "services": to("web") }]),
            ),
        )
    };
    let start = root(routes(json!([
        { "match": "/x", "delegate": { "name": "x" } },
        { "match": "/w", "services": to("web") },
    ])));
    let world = World::new(with_backends(vec![start, link("a/x", "y"), link("a/y", "x")]));
    assert_eq!(world.ingress("a/root"), VALID);
    assert_eq!(world.ingress("a/y"), "invalid: route creates a delegation cycle: a/root -> a/x -> a/y -> a/x");
    // Routes before the invalid one are served, those after it are not (`/y` is not below `/x` in any case).
    assert_eq!(world.get("http://www.example.com/w"), "a/web");
    assert_eq!(world.get("http://www.example.com/x"), "404");
    let itself = root(routes(json!([{ "match": "/", "delegate": { "name": "root" } }])));
    assert_eq!(status_of("a/root", vec![itself]), "invalid: route creates a delegation cycle: a/root -> a/root");
    let tls = json!({ "fqdn": "www.example.com", "tls": { "passthrough": true } });
    let tcp = |target: &str| json!({ "delegate": { "name": target } });
    let objects = vec![
        root(json!({ "virtualhost": tls, "tcpproxy": tcp("x") })),
        ingress_route("a/x", json!({ "tcpproxy": tcp("y") })),
        ingress_route("a/y", json!({ "tcpproxy": tcp("x") })),
    ];
    assert_eq!(status_of("a/y", objects), "invalid: tcpproxy creates a delegation cycle: a/root -> a/x -> a/y -> a/x");
}

#[test]
fn a_diamond_is_not_a_cycle_and_every_path_has_its_line() {
    let objects = vec![
        root(routes(json!([
            { "match": "/a", "delegate": { "name": "left" } },
            { "match": "/b", "delegate": { "name": "right" } },
        ]))),
        ingress_route("a/left", routes(json!([{ "match": "/a", "delegate": { "name": "leaf" } }]))),
        ingress_route("a/right", routes(json!([{ "match": "/b", "delegate": { "name": "leaf" } }]))),
        ingress_route("a/leaf", routes(json!([{ "match": "/a/x", "services": to("web") }]))),
    ];
    let world = World::new(with_backends(objects));
    assert_eq!(world.ingress("a/leaf"), "valid: valid IngressRoute (1 of 2 paths)");
    assert_eq!(
        world.paths("a/leaf"),
        [
            "a/root /a -> a/left /a -> a/leaf: valid: valid IngressRoute",
            "a/root /b -> a/right /b -> a/leaf: invalid: the path prefix \"/a/x\" does not match the parent's path prefix \"/b\"",
        ]
    );
    assert_eq!(world.get("http://www.example.com/a/x"), "a/web");
    assert_eq!(world.get("http://www.example.com/b/x"), "404");
}

#[test]
fn roots_stay_in_their_namespaces() {
    let settings = Settings { root_namespaces: vec!["b".to_owned()], ..Settings::default() };
    let web = routes(json!([{ "match": "/", "services": to("web") }]));
    let status_of =
        |objects: Vec<Value>, id: &str| World::with(&settings, &LostHosts::new(), with_backends(objects)).ingress(id);
    assert_eq!(
        status_of(vec![root(web.clone())], "a/root"),
        "invalid: root IngressRoute cannot be defined in this namespace"
    );
    let mut other = root(web);
    other["metadata"]["namespace"] = json!("b");
    // A root in a namespace that may have no roots claims no name.
    assert_eq!(status_of(vec![other.clone(), root(json!({}))], "b/root"), VALID);
    let suffix = ingress_route(
        "a/suffix",
        json!({
            "virtualhost": { "fqdn": ".example.com" },
            "subdomains": [{ "subdomain": "www.example.com", "delegate": { "name": "x" } }],
        }),
    );
    assert_eq!(
        status_of(vec![other.clone(), suffix.clone()], "a/suffix"),
        "invalid: root IngressRoute cannot be defined in this namespace"
    );
    assert_eq!(status_of(vec![other, suffix], "b/root"), VALID);
}

#[test]
fn tls_redirects_clear_text_unless_it_is_permitted() {
    let spec = json!({
        "virtualhost": { "fqdn": "www.example.com", "tls": { "secretName": "tls", "minimumProtocolVersion": "1.3" } },
        "routes": [
            { "match": "/", "services": to("web") },
            { "match": "/open", "permitInsecure": true, "services": to("two"), "prefixRewrite": "/" },
        ],
    });
    let world = World::new(with_backends(vec![root(spec)]));
    for (url, expected) in [
        ("http://www.example.com/", "301 https"),
        ("http://www.example.com/open/x", "a/two /open→/"),
        ("http://www.example.com/opened", "301 https"),
        ("https://www.example.com/", "a/web"),
        ("https://www.example.com/open", "a/two /open→/"),
        ("https://other.example.com/", "-"),
    ] {
        assert_eq!(world.get(url), expected, "{url}");
    }
    assert_eq!(world.certificate("www.example.com"), "a/tls");
    let host_rules = world.host("www.example.com").and_then(|host| host.rules.as_ref()).expect("host rules");
    assert_eq!(
        host_rules.tls.as_ref().and_then(|tls| tls.minimum),
        Some(router_table::policy::tls_profile::TlsVersion::Tls13)
    );
}

#[test]
fn tcp_and_routes_share_a_host() {
    let spec = |tls: Value| {
        json!({
            "virtualhost": { "fqdn": "www.example.com", "tls": tls },
            "tcpproxy": { "services": [{ "name": "web", "port": 80, "weight": 3 }, { "name": "two", "port": 80, "weight": 1 }] },
            "routes": [{ "match": "/", "services": to("two") }],
        })
    };
    let world = World::new(with_backends(vec![root(spec(json!({ "passthrough": true })))]));
    assert_eq!(world.get("https://www.example.com/"), "passthrough a/web=3,two=1");
    assert_eq!(world.get("http://www.example.com/"), "a/two");
    let world = World::new(with_backends(vec![root(spec(json!({ "secretName": "tls" })))]));
    assert_eq!(world.get("https://www.example.com/"), "tcp a/web=3,two=1");
    assert_eq!(world.get("http://www.example.com/"), "a/two");
}

#[test]
fn weights_share_requests() {
    let services = |weights: [u32; 2]| {
        json!([
            { "name": "web", "port": 80, "weight": weights[0] },
            { "name": "two", "port": 80, "weight": weights[1] },
        ])
    };
    for (weights, expected) in [([0, 0], "a/web=1,two=1"), ([9, 1], "a/web=9,two=1"), ([0, 5], "a/two")] {
        let spec = routes(json!([{ "match": "/", "services": services(weights) }]));
        let world = World::new(with_backends(vec![root(spec)]));
        assert_eq!(world.get("http://www.example.com/"), expected);
    }
}

#[test]
fn routes_after_an_invalid_one_are_not_served_and_the_longest_prefix_serves() {
    let spec = routes(json!([
        { "match": "/", "services": to("web") },
        { "match": "/a", "services": to("two") },
        { "match": "/b", "services": to("none") },
        { "match": "/c", "services": to("two") },
    ]));
    let world = World::new(with_backends(vec![root(spec)]));
    for (path, expected) in [("/", "a/web"), ("/a/x", "a/two"), ("/ab", "a/web"), ("/b", "a/web"), ("/c", "a/web")] {
        assert_eq!(world.get(&format!("http://www.example.com{path}")), expected, "{path}");
    }
}

#[test]
fn objects_of_another_class_are_neither_served_nor_reported() {
    let mut other = root(routes(json!([{ "match": "/", "services": to("two") }])));
    other["metadata"]["name"] = json!("other");
    other["metadata"]["annotations"] = json!({ "kubernetes.io/ingress.class": "nginx" });
    let world = World::new(with_backends(vec![other, root(routes(json!([{ "match": "/", "services": to("web") }])))]));
    assert_eq!(world.ingress("a/root"), VALID);
    assert_eq!(world.get("http://www.example.com/"), "a/web");
    assert!(world.translated.statuses.keys().all(|object| *object.key.name != *"other"));
}

#[test]
fn a_host_lost_to_another_kind_is_not_served_and_the_status_names_the_kind_only() {
    let host = HostMatch::Exact(Hostname::parse("www.example.com").expect("a host"));
    let winner = ObjectRef { kind: Kind::Route, key: ObjectKey::new("secretive", "shop") };
    let with = HostOwner { object: winner.clone(), created: Created("2000-01-01T00:00:00Z".parse().ok()) };
    let lost = LostHosts::from([((RouterName("default".into()), host), with)]);
    let objects = with_backends(vec![root(routes(json!([{ "match": "/", "services": to("web") }])))]);
    let world = World::with(&Settings::default(), &lost, objects);
    assert_eq!(
        world.ingress("a/root"),
        "invalid: a Route in another namespace holds www.example.com and is older than root"
    );
    assert_eq!(world.get("http://www.example.com/"), "-");
    let status = world.translated.statuses.values().next().expect("a status");
    assert_eq!(status.rows[0].winners, [winner]);
}

#[test]
fn certificate_delegations_get_a_status() {
    let world = World::new(vec![
        secret("a/tls", &["x.test"]),
        delegation("a", "tls", json!(["b"])),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "a", "name": "ca"},
            "stringData": {"ca.crt": authority("the CA of the backends")}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "a", "name": "opaque"},
            "stringData": {"password": "none"}}),
        delegation("a", "ca", json!(["b"])),
        delegation("a", "opaque", json!(["b"])),
        delegation("a", "none", json!(["b"])),
        delegation("a", "empty", json!([])),
    ]);
    for (name, status, message) in [
        ("lend-tls", "True", "Valid TLSCertificateDelegation"),
        ("lend-ca", "True", "Valid TLSCertificateDelegation"),
        ("lend-opaque", "False", "delegations[0]: TLS Secret [opaque] not found or is malformed"),
        ("lend-none", "False", "delegations[0]: TLS Secret [none] not found or is malformed"),
        ("lend-empty", "False", "delegations[0]: targetNamespaces is empty, so no namespace may use the Secret"),
    ] {
        let value = world.status_value(Kind::TlsCertificateDelegation, &format!("a/{name}"));
        assert_eq!(value["conditions"][0]["status"], status, "{name}");
        assert_eq!(value["conditions"][0]["message"], message, "{name}");
    }
}
