//! HTTPProxies: errors, conditions, includes and policies.

use router_table::policy::HashedPart;

use super::*;

const VALID: &str = "valid: Valid HTTPProxy";

fn root(spec: Value) -> Value {
    let mut object = proxy("a/root", json!({ "virtualhost": { "fqdn": "www.example.com" } }));
    for (member, value) in spec.as_object().expect("a mapping") {
        object["spec"][member] = value.clone();
    }
    object
}

fn world(mut objects: Vec<Value>) -> World {
    objects.extend(backends(&["a/web", "a/two", "b/web"]));
    objects.extend([secret("a/tls", &["www.example.com"]), secret("c/tls", &["www.example.com"])]);
    World::new(objects)
}

fn status(world: &World, id: &str) -> String {
    world.status(Kind::HttpProxy, id)
}

#[test]
fn a_valid_proxy_has_the_condition_valid() {
    let mut object = root(json!({ "routes": [{ "services": to("web") }] }));
    object["metadata"]["generation"] = json!(7);
    let world = world(vec![object]);
    assert_eq!(
        world.status_value(Kind::HttpProxy, "a/root"),
        json!({
            "currentStatus": "valid",
            "description": "Valid HTTPProxy",
            "conditions": [{
                "type": "Valid",
                "status": "True",
                "reason": "Valid",
                "message": "Valid HTTPProxy",
                "observedGeneration": 7,
            }],
        })
    );
}

#[test]
fn errors_have_types_and_reasons() {
    let web = json!([{ "services": to("web") }]);
    let tls = |tls: Value| json!({ "virtualhost": { "fqdn": "www.example.com", "tls": tls }, "routes": web });
    let tcp = |tcp: Value| json!({ "virtualhost": { "fqdn": "www.example.com", "tls": { "secretName": "tls" } }, "tcpproxy": tcp });
    let route = |member: &str, value: Value| json!({ "routes": [{ "services": to("web"), member: value }] });
    let conditions = |conditions: Value| route("conditions", conditions);
    let table: Vec<(Value, Vec<Value>, &str)> = vec![
        (
            json!({ "virtualhost": {} }),
            vec![],
            "VirtualHostError/FQDNNotSpecified: Spec.VirtualHost.Fqdn must be specified",
        ),
        (
            json!({ "virtualhost": { "fqdn": ".example.com" } }),
            vec![],
            "VirtualHostError/FQDNNotValid: Spec.VirtualHost.Fqdn \".example.com\" is not a valid host name: a label is empty (two dots \
             in a row, or a dot at the start); write one such as www.example.com",
        ),
        (
            json!({ "virtualhost": { "fqdn": "www.*.com" } }),
            vec![],
            "VirtualHostError/WildCardNotAllowed: Spec.VirtualHost.Fqdn \"www.*.com\" cannot use wildcards",
        ),
        (
            json!({ "routes": web }),
            vec![proxy("b/other", json!({ "virtualhost": { "fqdn": "www.example.com" }, "routes": web }))],
            "VirtualHostError/DuplicateVhost: fqdn \"www.example.com\" is used in multiple HTTPProxies: a/root, b/other",
        ),
        (
            tls(json!({ "secretName": "none" })),
            vec![],
            "TLSError/SecretNotValid: Spec.VirtualHost.TLS Secret \"none\" is invalid: not found or is malformed",
        ),
        (
            tls(json!({ "secretName": "c/tls" })),
            vec![],
            "TLSError/DelegationNotPermitted: Spec.VirtualHost.TLS Secret \"c/tls\" certificate delegation not permitted",
        ),
        (
            tls(json!({})),
            vec![],
            "TLSError/TLSConfigNotValid: Spec.VirtualHost.TLS: neither Passthrough nor SecretName were specified",
        ),
        (
            tls(json!({ "secretName": "tls", "passthrough": true })),
            vec![],
            "TLSError/TLSConfigNotValid: Spec.VirtualHost.TLS: both Passthrough and SecretName were specified",
        ),
        (
            tls(json!({ "secretName": "tls", "clientValidation": { "caSecret": "ca" } })),
            vec![],
            "SpecError/UnsupportedField: spec.virtualhost.tls.clientValidation is not supported; remove it",
        ),
        (
            json!({ "tcpproxy": { "services": to("web") } }),
            vec![],
            "TCPProxyError/TLSMustBeConfigured: Spec.TCPProxy requires that either Spec.TLS.Passthrough or Spec.TLS.SecretName be set",
        ),
        (tcp(json!({})), vec![], "TCPProxyError/NothingDefined: either services or inclusion must be specified"),
        (
            tcp(json!({ "services": to("web"), "include": { "name": "x" } })),
            vec![],
            "TCPProxyError/NoServicesAndInclude: cannot specify services and include in the same httpproxy",
        ),
        (
            tcp(json!({ "include": { "name": "x" } })),
            vec![],
            "TCPProxyIncludeError/IncludeNotFound: include a/x not found",
        ),
        (
            tcp(json!({ "include": { "name": "x" } })),
            vec![proxy("a/x", json!({ "virtualhost": { "fqdn": "x.test" }, "routes": web }))],
            "TCPProxyIncludeError/RootIncludesRoot: root httpproxy cannot delegate to another root httpproxy",
        ),
        (
            tcp(json!({ "services": to("none") })),
            vec![],
            "TCPProxyError/ServiceUnresolvedReference: Spec.TCPProxy unresolved service reference: service \"a/none\" has no port 80, or is missing",
        ),
        (json!({ "includes": [{ "name": "x" }] }), vec![], "IncludeError/IncludeNotFound: include a/x not found"),
        (
            json!({ "includes": [{ "name": "x" }] }),
            vec![proxy("a/x", json!({ "virtualhost": { "fqdn": "x.test" }, "routes": web }))],
            "IncludeError/RootIncludesRoot: root httpproxy cannot include another root httpproxy",
        ),
        (
            json!({ "includes": [{ "name": "x", "conditions": [{ "exact": "/a" }] }] }),
            vec![],
            "IncludeError/PathMatchConditionsNotValid: include: exact conditions are not allowed in includes; write a prefix",
        ),
        (
            json!({ "includes": [
                { "name": "x", "conditions": [{ "prefix": "/a" }] },
                { "name": "x", "conditions": [{ "prefix": "/a/" }] },
            ] }),
            vec![proxy("a/x", json!({ "routes": web }))],
            "IncludeError/DuplicateMatchConditions: duplicate conditions defined on an include",
        ),
        (
            conditions(json!([{ "prefix": "/a" }, { "exact": "/b" }])),
            vec![],
            "RouteError/PathMatchConditionsNotValid: route: more than one prefix, exact or regex condition is not allowed; keep one of them",
        ),
        (
            conditions(json!([{ "prefix": "a" }])),
            vec![],
            "RouteError/PathMatchConditionsNotValid: route: prefix conditions must start with /, a was supplied; write /a",
        ),
        (
            conditions(
                json!([{ "header": { "name": "x", "exact": "1" } }, { "header": { "name": "X", "exact": "2" } }]),
            ),
            vec![],
            "RouteError/HeaderMatchConditionsNotValid: cannot specify duplicate header 'exact match' conditions in the same route: x",
        ),
        (
            conditions(json!([{ "header": { "name": "x", "notpresent": true } }])),
            vec![],
            "SpecError/UnsupportedField: spec.routes[0].conditions[0].header.notpresent is not supported; remove it",
        ),
        (
            conditions(json!([{ "regex": "/(" }])),
            vec![],
            "RouteError/PathMatchConditionsNotValid: route: regex condition: \"/(\" is not a valid regular expression; use RE2 syntax",
        ),
        (
            json!({ "routes": [{}] }),
            vec![],
            "RouteError/NoServicesPresent: route.services must have at least one entry",
        ),
        (
            json!({ "routes": [{ "services": to("none") }] }),
            vec![],
            "ServiceError/ServiceUnresolvedReference: Spec.Routes unresolved service reference: service \"a/none\" has no port 80, or is missing",
        ),
        (
            json!({ "routes": [{ "services": [{ "name": "web", "port": 80, "protocol": "tls" }] }] }),
            vec![],
            "ServiceError/UnsupportedField: Service [web:80] TLS without validation is not supported; add validation with caSecret and subjectName",
        ),
        (
            json!({ "routes": [{ "conditions": [{ "exact": "/x" }], "services": to("web"), "pathRewritePolicy": { "replacePrefix": [{ "replacement": "/" }] } }] }),
            vec![],
            "PrefixReplaceError/MustHavePrefix: cannot specify prefix replacements without a prefix condition",
        ),
        (
            route("requestHeadersPolicy", json!({ "set": [{ "name": "x", "value": "%CLIENT_IP%" }] })),
            vec![],
            "RouteError/HeaderPolicyNotValid: spec.routes[0].requestHeadersPolicy.set[0]: dynamic values (%…%) are not supported; write a value as it is",
        ),
        (
            route("requestRedirectPolicy", json!({ "path": "/a" })),
            vec![],
            "RouteError/ActionNotUnique: cannot specify services, requestRedirectPolicy and directResponsePolicy in the same route; keep one of them",
        ),
    ];
    for (spec, mut others, expected) in table {
        others.push(root(spec.clone()));
        let world = world(others);
        assert_eq!(world.errors("a/root"), [expected], "{spec}");
        assert_eq!(status(&world, "a/root"), "invalid: At least one error present, see Errors for details");
    }
}

#[test]
fn unsupported_fields_are_rejected() {
    for member in [
        "authPolicy",
        "cookieRewritePolicies",
        "internalRedirectPolicy",
        "ipAllowPolicy",
        "ipDenyPolicy",
        "jwtVerificationPolicy",
        "rateLimitPolicy",
    ] {
        let world = world(vec![root(json!({ "routes": [{ "services": to("web"), member: { "x": 1 } }] }))]);
        let expected = format!("SpecError/UnsupportedField: spec.routes[0].{member} is not supported; remove it");
        assert_eq!(world.errors("a/root"), [expected]);
        assert_eq!(world.get("http://www.example.com/"), "404", "{member}");
    }
    for member in ["authorization", "rateLimitPolicy", "jwtProviders", "ipAllowPolicy", "ipDenyPolicy"] {
        let spec = json!({
            "virtualhost": { "fqdn": "www.example.com", member: { "x": 1 } },
            "routes": [{ "services": to("web") }],
        });
        let world = world(vec![root(spec)]);
        let expected = format!("SpecError/UnsupportedField: spec.virtualhost.{member} is not supported; remove it");
        assert_eq!(world.errors("a/root"), [expected]);
        assert_eq!(world.get("http://www.example.com/"), "-", "{member}");
    }
}

#[test]
fn conditions_are_appended_from_the_root_to_the_leaf() {
    let objects = vec![
        root(json!({
            "includes": [
                { "name": "team", "namespace": "b", "conditions": [{ "prefix": "/team" }, { "header": { "name": "X-Beta", "present": true } }] },
                { "name": "gone", "conditions": [{ "prefix": "/gone" }] },
            ],
            "routes": [{ "services": to("web") }, { "conditions": [{ "prefix": "/team/own" }], "services": to("two") }],
        })),
        proxy(
            "b/team",
            json!({
                "includes": [{ "name": "leaf", "conditions": [{ "prefix": "/leaf" }] }],
                "routes": [
                    { "conditions": [{ "exact": "/exact" }], "services": to("web") },
                    { "conditions": [{ "regex": "/[0-9]+" }], "services": to("web"), "permitInsecure": true },
                    { "conditions": [{ "prefix": "/api" }], "services": to("web"), "pathRewritePolicy": { "replacePrefix": [
                        { "prefix": "/team/api", "replacement": "/v1" }, { "replacement": "/" },
                    ] } },
                ],
            }),
        ),
        proxy(
            "b/leaf",
            json!({ "routes": [{ "conditions": [{ "header": { "name": "x-kind", "contains": "z" } }], "services": to("web") }] }),
        ),
    ];
    let world = world(objects);
    let beta = [("x-beta", "1")];
    let both = [("x-beta", "1"), ("x-kind", "xyz")];
    type Case<'c> = (&'c str, &'c [(&'c str, &'c str)], &'c str);
    let table: [Case<'_>; 11] = [
        ("/", &[], "a/web"),
        ("/team/exact", &[], "a/web"),
        ("/team/exact", &beta, "b/web"),
        ("/team/exact/", &beta, "a/web"),
        ("/team/42", &beta, "b/web"),
        ("/team/42x", &beta, "a/web"),
        ("/team/api/x", &beta, "b/web /team/api→/v1"),
        ("/team/leaf", &beta, "a/web"),
        ("/team/leaf", &both, "b/web"),
        ("/team/own/exact", &both, "a/two"),
        ("/gone/x", &[], "502"),
    ];
    for (path, headers, expected) in table {
        assert_eq!(world.request(&format!("http://www.example.com{path}"), headers), expected, "{path} {headers:?}");
    }
    assert_eq!(world.errors("a/root"), ["IncludeError/IncludeNotFound: include a/gone not found"]);
    assert_eq!(status(&world, "b/leaf"), VALID);
    let parent = &world.status_value(Kind::HttpProxy, "b/leaf")["parents"][0];
    assert_eq!(parent["path"], "a/root prefix /team, header x-beta -> b/team prefix /leaf -> b/leaf");
}

#[test]
fn a_leaf_that_contradicts_its_parents_conditions_is_invalid_and_not_served() {
    let header = |value: &str| json!([{ "header": { "name": "x", "exact": value } }]);
    let world = world(vec![
        root(json!({
            "includes": [{ "name": "leaf", "conditions": header("1") }],
            "routes": [{ "services": to("two") }],
        })),
        proxy(
            "a/leaf",
            json!({ "routes": [
            { "conditions": header("2"), "services": to("web") },
            { "conditions": [{ "prefix": "/all" }], "services": to("web") },
        ] }),
        ),
    ]);
    let expected = "RouteError/HeaderMatchConditionsNotValid: cannot specify duplicate header 'exact match' conditions in the \
                    same route: x";
    assert_eq!(world.errors("a/leaf"), [expected]);
    // The root does not serve it either: it does not define the path.
    assert_eq!(world.request("http://www.example.com/all", &[("x", "1")]), "502");
    assert_eq!(world.request("http://www.example.com/all", &[]), "a/two");
    assert_eq!(world.errors("a/root"), Vec::<String>::new());
}

#[test]
fn cycles_are_cut_and_orphans_reported() {
    let include = |target: &str| json!({ "includes": [{ "name": target }], "routes": [{ "services": to("web") }] });
    let world = world(vec![
        root(include("x")),
        proxy("a/x", include("y")),
        proxy("a/y", include("x")),
        proxy("a/z", include("y")),
    ]);
    assert_eq!(
        world.errors("a/y"),
        ["IncludeError/IncludeCreatesCycle: include creates an include cycle: a/root -> a/x -> a/y -> a/x"]
    );
    assert_eq!(world.errors("a/root"), Vec::<String>::new());
    assert_eq!(
        world.errors("a/z"),
        ["Orphaned/Orphaned: this HTTPProxy is not part of a delegation chain from a root HTTPProxy"]
    );
    assert_eq!(
        status(&world, "a/z"),
        "orphaned: this HTTPProxy is not part of a delegation chain from a root HTTPProxy"
    );
    assert_eq!(world.get("http://www.example.com/"), "a/web");
}

#[test]
fn a_wildcard_matches_one_label() {
    let spec = json!({ "virtualhost": { "fqdn": "*.example.com" }, "routes": [{ "services": to("web") }] });
    let world = world(vec![proxy("b/star", spec), root(json!({ "routes": [{ "services": to("two") }] }))]);
    for (host, expected) in [("www", "a/two"), ("any", "b/web"), ("a.b", "-")] {
        assert_eq!(world.get(&format!("http://{host}.example.com/")), expected);
    }
}

#[test]
fn routes_redirect_respond_mirror_and_change_headers() {
    let world = world(vec![root(json!({ "routes": [
        { "conditions": [{ "prefix": "/moved" }], "requestRedirectPolicy": { "hostname": "new.example.com", "statusCode": 301 } },
        { "conditions": [{ "prefix": "/closed" }], "directResponsePolicy": { "statusCode": 410 } },
        {
            "services": [{ "name": "web", "port": 80 }, { "name": "two", "port": 80, "mirror": true, "weight": 20 }],
            "timeoutPolicy": { "response": "90s" },
            "loadBalancerPolicy": { "strategy": "Cookie" },
            "requestHeadersPolicy": { "set": [{ "name": "Host", "value": "inner.test" }, { "name": "X-A", "value": "1" }], "remove": ["X-B"] },
            "responseHeadersPolicy": { "set": [{ "name": "X-C", "value": "2" }] },
        },
    ] }))]);
    assert_eq!(world.get("http://www.example.com/moved"), "301 new.example.com");
    assert_eq!(world.get("http://www.example.com/closed"), "410");
    assert_eq!(world.get("http://www.example.com/"), "a/web");
    let host_rules = world.host("www.example.com").and_then(|host| host.rules.as_ref()).expect("host rules");
    let rule = host_rules.cleartext.as_ref().and_then(|rules| rules.last()).expect("a rule");
    let policy = rule.route.rule.as_ref().expect("a policy");
    assert_eq!(policy.rewrite_host.as_ref().map(Hostname::as_str), Some("inner.test"));
    assert_eq!(policy.request_headers[0].set, [("x-a".into(), "1".into())]);
    assert_eq!(policy.request_headers[0].remove, ["x-b".into()]);
    assert_eq!(policy.response_headers[0].set, [("x-c".into(), "2".into())]);
    assert_eq!(policy.request_timeout, Some(std::time::Duration::from_secs(90)));
    assert_eq!(policy.mirrors[0].share, (20, 100));
    let hashed: Vec<&HashedPart> = rule.route.policy.hash.iter().map(|of| &of.part).collect();
    assert_eq!(hashed, [&HashedPart::Cookie("X-Contour-Session-Affinity".into())]);
}

#[test]
fn a_tcpproxy_ignores_strategies_that_hash_requests() {
    for strategy in ["Cookie", "RequestHash"] {
        let policies = json!([{ "hashSourceIP": true }]);
        let balance = json!({ "strategy": strategy, "requestHashPolicies": policies });
        let world = world(vec![root(json!({
            "virtualhost": { "fqdn": "www.example.com", "tls": { "passthrough": true } },
            "tcpproxy": { "services": to("web"), "loadBalancerPolicy": balance },
        }))]);
        assert_eq!(world.get("https://www.example.com/"), "passthrough a/web");
        let warnings = &world.status_value(Kind::HttpProxy, "a/root")["conditions"][0]["warnings"];
        assert_eq!(
            *warnings,
            json!([{
                "type": "TCPProxyError",
                "status": "True",
                "reason": "IgnoredField",
                "message": "ignoring spec.tcpproxy.loadBalancerPolicy: a tcpproxy has no requests to hash; endpoints are \
                            chosen by RoundRobin",
            }])
        );
    }
}

#[test]
fn tcp_includes_are_followed_to_services() {
    let world = world(vec![
        root(json!({
            "virtualhost": { "fqdn": "www.example.com", "tls": { "passthrough": true } },
            "tcpproxy": { "include": { "name": "team", "namespace": "b" } },
        })),
        proxy("b/team", json!({ "tcpproxy": { "services": to("web") } })),
    ]);
    assert_eq!(world.get("https://www.example.com/"), "passthrough b/web");
    assert_eq!(world.get("http://www.example.com/"), "404");
    assert_eq!((status(&world, "a/root"), status(&world, "b/team")), (VALID.into(), VALID.into()));
}

#[test]
fn origins_of_a_cors_policy_are_exact_or_expressions() {
    let with = |policy: Value| {
        let host = json!({ "fqdn": "www.example.com", "corsPolicy": policy });
        world(vec![root(json!({ "virtualhost": host, "routes": [{ "services": to("web") }] }))])
    };
    let valid = with(json!({
        "allowOrigin": ["https://a.test", "https://[a-z]+\\.b\\.test", "app://local.x"], "allowMethods": ["GET"], "maxAge": "10m",
    }));
    let host_rules = valid.host("www.example.com").and_then(|host| host.rules.as_ref()).expect("host rules");
    let rule = host_rules.cleartext.as_ref().and_then(|rules| rules.last()).expect("a rule");
    let policy = rule.route.rule.as_ref().expect("a policy");
    let cors = policy.cors.as_deref().expect("a CORS policy");
    assert_eq!((&*cors.origins[0], cors.origins.len(), cors.max_age), ("https://a.test", 1, 600));
    let like = |text| cors.origins_like.iter().any(|pattern| pattern.is_match(text));
    assert!(like("https://x.b.test") && !like("https://x.b.test.evil.test") && !like("https://xb.test"));
    assert!(like("app://local.x") && !like("app://localyx"));
    for (policy, expected) in [
        (
            json!({ "allowOrigin": ["https://*.b.test"], "allowMethods": ["GET"] }),
            "spec.virtualhost.corsPolicy.allowOrigin[0]: \"https://*.b.test\" is read as a regular expression; write one \
             such as https://[^.]+\\.example\\.com",
        ),
        (
            json!({ "allowOrigin": ["*"], "allowMethods": [] }),
            "spec.virtualhost.corsPolicy.allowMethods: write at least one",
        ),
        (
            json!({ "allowOrigin": ["*"], "allowMethods": ["GET"], "maxAge": "soon" }),
            "spec.virtualhost.corsPolicy.maxAge: \"soon\" is not a valid duration; write one such as 10m, or 0 so that browsers \
             keep nothing",
        ),
    ] {
        let world = with(policy);
        assert_eq!(world.errors("a/root"), [format!("CORSError/PolicyDidNotParse: {expected}")]);
        assert_eq!(world.get("http://www.example.com/"), "-");
    }
}

#[test]
fn a_method_condition_conflicts_like_a_header_condition() {
    let method = |name: &str| json!([{ "header": { "name": ":method", "exact": name } }]);
    let world = world(vec![
        root(json!({ "includes": [{ "name": "leaf", "conditions": method("GET") }] })),
        proxy("a/leaf", json!({ "routes": [{ "conditions": method("POST"), "services": to("web") }] })),
    ]);
    let expected = "RouteError/HeaderMatchConditionsNotValid: cannot specify duplicate header 'exact match' conditions in the \
                    same route: :method";
    assert_eq!(world.errors("a/leaf"), [expected]);
}
