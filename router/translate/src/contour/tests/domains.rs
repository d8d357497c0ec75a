//! Subdomain delegation, rule by rule (docs/delegation.md#subdomains): what each rule accepts and rejects.

use super::*;

const ORPHAN: &str = "orphaned: this IngressRoute is not part of a delegation chain from a root IngressRoute";
const VALID: &str = "valid: valid IngressRoute";

/// The root `corp/root` of `.corp.test` with the Secret `corp/wild`; subdomains as `name → namespace/name`.
fn domain(subdomains: &[(&str, &str)]) -> Value {
    delegated_domain("corp/root", ".corp.test", json!({ "secretName": "wild" }), subdomains)
}

fn delegated_domain(id: &str, fqdn: &str, tls: Value, subdomains: &[(&str, &str)]) -> Value {
    let subdomains = subdomains.iter().map(|(name, delegate)| {
        let (namespace, object) = delegate.split_once('/').expect("namespace/name");
        json!({ "subdomain": name, "delegate": { "name": object, "namespace": namespace } })
    });
    let subdomains: Vec<Value> = subdomains.collect();
    ingress_route(id, json!({ "virtualhost": { "fqdn": fqdn, "tls": tls }, "subdomains": subdomains }))
}

/// An IngressRoute that sends all paths to the Service `web` of its namespace.
fn team(id: &str, virtual_host: Value) -> Value {
    let mut object = ingress_route(id, json!({ "routes": [{ "match": "/", "services": to("web") }] }));
    if !virtual_host.is_null() {
        object["spec"]["virtualhost"] = virtual_host;
    }
    object
}

fn world(objects: Vec<Value>) -> World {
    with(&Settings::default(), objects)
}

fn with(settings: &Settings, mut objects: Vec<Value>) -> World {
    objects.extend(backends(&["corp/web", "team/web", "other/web"]));
    objects.extend([
        secret("corp/wild", &["*.corp.test"]),
        secret("team/own", &["own.corp.test"]),
        secret("corp/lent", &["lent.corp.test"]),
    ]);
    World::with(settings, &LostHosts::new(), objects)
}

#[test]
fn s1_a_domain_serves_nothing_itself() {
    let valid = domain(&[("a.corp.test", "team/a")]);
    let served = world(vec![valid.clone(), team("team/a", json!(null))]);
    assert_eq!(served.ingress("corp/root"), "valid: valid IngressRoute (1 of 1 subdomains)");
    assert_eq!(served.domains(), ["corp.test"]);
    for (url, expected) in [
        ("https://a.corp.test/", "team/web"),
        ("http://a.corp.test/", "301 https"),
        ("https://corp.test/", "-"),
        ("https://b.corp.test/", "-"),
        ("https://b.a.corp.test/", "-"),
    ] {
        assert_eq!(served.get(url), expected, "{url}");
    }
    let mut with_routes = valid.clone();
    with_routes["spec"]["routes"] = json!([{ "match": "/", "services": to("web") }]);
    let mut with_tcp = valid.clone();
    with_tcp["spec"]["tcpproxy"] = json!({ "services": to("web") });
    for object in [with_routes, with_tcp] {
        let rejected = world(vec![object, team("team/a", json!(null))]);
        assert_eq!(rejected.ingress("corp/root"), "invalid: domain root cannot define routes");
        assert_eq!(rejected.ingress("team/a"), ORPHAN);
        assert_eq!(rejected.get("https://a.corp.test/"), "-");
        assert!(rejected.domains().is_empty());
    }
    let mut empty = valid.clone();
    empty["spec"]["subdomains"] = json!([]);
    let message = "invalid: Spec.Subdomains must be specified for a Fqdn that begins with a dot";
    assert_eq!(world(vec![empty]).ingress("corp/root"), message);
    let mut no_suffix = valid.clone();
    no_suffix["spec"]["virtualhost"] = json!({ "fqdn": "corp.test" });
    let message = "invalid: Spec.Subdomains needs a Spec.VirtualHost.Fqdn that begins with a dot, such as .example.com";
    assert_eq!(world(vec![no_suffix]).ingress("corp/root"), message);
    for (fqdn, message) in [
        (
            "..corp.test",
            "invalid: Spec.VirtualHost.Fqdn \"..corp.test\" is not a valid domain; write one such as .example.com",
        ),
        (".", "invalid: Spec.VirtualHost.Fqdn \".\" is not a valid domain; write one such as .example.com"),
        (".*.test", "invalid: Spec.VirtualHost.Fqdn \".*.test\" cannot use wildcards"),
    ] {
        assert_eq!(
            world(vec![delegated_domain("corp/root", fqdn, json!(null), &[("a.corp.test", "team/a")])])
                .ingress("corp/root"),
            message
        );
    }
    let settings = Settings { root_namespaces: vec!["elsewhere".to_owned()], ..Settings::default() };
    let rejected = with(&settings, vec![valid, team("team/a", json!(null))]);
    assert_eq!(rejected.ingress("corp/root"), "invalid: root IngressRoute cannot be defined in this namespace");
    assert_eq!(rejected.ingress("team/a"), ORPHAN);
}

#[test]
fn s2_subdomains_are_names_inside_of_the_domain() {
    for (name, problem) in [
        ("a.corp.test", None),
        ("a.b.c.corp.test", None),
        ("corp.test", Some("subdomain corp.test is not within .corp.test")),
        ("acorp.test", Some("subdomain acorp.test is not within .corp.test")),
        ("a.other.test", Some("subdomain a.other.test is not within .corp.test")),
        ("a..corp.test", Some("subdomain a..corp.test is not within .corp.test")),
        ("*.x.corp.test", Some("subdomain *.x.corp.test cannot use wildcards")),
        ("A.corp.test", Some("subdomain A.corp.test must be in lower case")),
    ] {
        let world = world(vec![
            domain(&[(name, "team/a"), ("good.corp.test", "team/b")]),
            team("team/a", json!(null)),
            team("team/b", json!(null)),
        ]);
        let covered = name != "a.b.c.corp.test";
        let expected = match problem {
            None if covered => "valid: valid IngressRoute (2 of 2 subdomains)".to_owned(),
            None => {
                format!("valid: valid IngressRoute (2 of 2 subdomains); certificate corp/wild does not cover {name}")
            }
            Some(problem) => format!("valid: valid IngressRoute (1 of 2 subdomains); {problem}"),
        };
        assert_eq!(world.ingress("corp/root"), expected);
        assert_eq!(world.ingress("team/a"), if problem.is_none() { VALID } else { ORPHAN }, "{name}");
        assert_eq!(world.get("https://good.corp.test/"), "team/web");
    }
    let twice = world(vec![
        domain(&[("a.corp.test", "team/a"), ("a.corp.test", "team/b")]),
        team("team/a", json!(null)),
        team("team/b", json!(null)),
    ]);
    let message = "invalid: no valid subdomain (0 of 2 subdomains); subdomain a.corp.test is listed more than once; \
                   subdomain a.corp.test is listed more than once";
    assert_eq!(twice.ingress("corp/root"), message);
    assert_eq!(twice.get("https://a.corp.test/"), "-");
}

#[test]
fn s3_the_fqdn_of_a_delegate_is_the_host_or_empty() {
    for (virtual_host, problem) in [
        (json!(null), None),
        (json!({}), None),
        (json!({ "fqdn": "a.corp.test" }), None),
        (json!({ "fqdn": "A.Corp.Test" }), None),
        (json!({ "fqdn": "b.corp.test" }), Some("delegate team/a has fqdn b.corp.test, expected a.corp.test")),
        (json!({ "fqdn": ".corp.test" }), Some("delegate team/a has fqdn .corp.test, expected a.corp.test")),
    ] {
        let world = world(vec![domain(&[("a.corp.test", "team/a")]), team("team/a", virtual_host.clone())]);
        if let Some(problem) = problem {
            assert_ne!(world.ingress("team/a"), VALID, "{virtual_host}");
            assert_eq!(world.get("https://a.corp.test/"), "-", "{virtual_host}");
            // A root for `.corp.test` itself contests both names.
            if virtual_host["fqdn"] != ".corp.test" {
                let expected = format!("invalid: no valid subdomain (0 of 1 subdomains); {problem}");
                assert_eq!(world.ingress("corp/root"), expected);
            }
        } else {
            assert_eq!(world.ingress("team/a"), VALID, "{virtual_host}");
            assert_eq!(world.get("https://a.corp.test/"), "team/web", "{virtual_host}");
        }
    }
}

#[test]
fn s3_without_a_virtual_host_a_delegate_serves_many_names_and_with_one_only_one() {
    let root = domain(&[("a.corp.test", "team/a"), ("b.corp.test", "team/a")]);
    let aliases = world(vec![root.clone(), team("team/a", json!(null))]);
    assert_eq!(aliases.ingress("corp/root"), "valid: valid IngressRoute (2 of 2 subdomains)");
    assert_eq!(aliases.get("https://b.corp.test/"), "team/web");
    assert_eq!(
        aliases.paths("team/a"),
        [
            "corp/root a.corp.test -> team/a: valid: valid IngressRoute",
            "corp/root b.corp.test -> team/a: valid: valid IngressRoute",
        ]
    );
    let one = world(vec![root, team("team/a", json!({}))]);
    assert_eq!(one.get("https://a.corp.test/"), "team/web");
    assert_eq!(one.get("https://b.corp.test/"), "-");
    assert_eq!(
        one.ingress("corp/root"),
        "valid: valid IngressRoute (1 of 2 subdomains); b.corp.test: delegate team/a has a virtualhost, and serves another \
         name already"
    );
    // A younger domain cannot delegate to an object that serves a name of an older one.
    let older = of_year(2020, domain(&[("a.corp.test", "team/a")]));
    let younger = of_year(2021, delegated_domain("aaa/root", ".evil.test", json!(null), &[("a.evil.test", "team/a")]));
    let both = world(vec![younger, older, team("team/a", json!({}))]);
    assert_eq!(both.get("https://a.corp.test/"), "team/web");
    assert_eq!(both.get("http://a.evil.test/"), "-");
}

#[test]
fn s3_a_domain_is_delegated_by_a_name_with_a_dot() {
    let outer = domain(&[(".in.corp.test", "team/inner"), ("a.corp.test", "corp/a")]);
    let inner = |fqdn: &str| delegated_domain("team/inner", fqdn, json!(null), &[("x.in.corp.test", "other/x")]);
    let settings = Settings { root_namespaces: vec!["corp".to_owned()], ..Settings::default() };
    let objects =
        |fqdn: &str| vec![outer.clone(), inner(fqdn), team("corp/a", json!(null)), team("other/x", json!(null))];
    let valid = with(&settings, objects(".in.corp.test"));
    // Inner domains inherit the certificate; only the status of the root that names it has the warning.
    assert_eq!(
        valid.ingress("corp/root"),
        "valid: valid IngressRoute (2 of 2 subdomains); certificate corp/wild does not cover x.in.corp.test"
    );
    assert_eq!(valid.ingress("team/inner"), "valid: valid IngressRoute (1 of 1 subdomains)");
    assert_eq!(valid.get("https://x.in.corp.test/"), "other/web");
    assert_eq!(valid.domains(), ["corp.test", "in.corp.test"]);
    assert_eq!(valid.certificate("x.in.corp.test"), "corp/wild");
    assert!(
        !valid.status_value(Kind::IngressRoute, "team/inner").to_string().contains("wild"),
        "names an inherited Secret"
    );
    let other = with(&settings, objects(".out.corp.test"));
    assert_eq!(
        other.ingress("corp/root"),
        "valid: valid IngressRoute (1 of 2 subdomains); delegate team/inner has fqdn \".out.corp.test\", expected \
         \".in.corp.test\""
    );
    assert_eq!(other.get("https://x.in.corp.test/"), "-");
    // The outer domain cannot delegate names of the inner one.
    let both = world(vec![
        domain(&[(".in.corp.test", "team/inner"), ("y.in.corp.test", "corp/a")]),
        inner(".in.corp.test"),
        team("corp/a", json!(null)),
        team("other/x", json!(null)),
    ]);
    assert_eq!(
        both.ingress("corp/root"),
        "valid: valid IngressRoute (1 of 2 subdomains); y.in.corp.test is within .in.corp.test owned by team/inner and not \
         delegated; certificate corp/wild does not cover x.in.corp.test"
    );
}

#[test]
fn s4_other_namespaces_need_no_consent_and_a_missing_delegate_gets_502() {
    let settings = Settings { root_namespaces: vec!["corp".to_owned()], ..Settings::default() };
    let world = with(
        &settings,
        vec![
            domain(&[("a.corp.test", "team/a"), ("gone.corp.test", "team/gone")]),
            team("team/a", json!({ "fqdn": "a.corp.test" })),
        ],
    );
    assert_eq!(world.ingress("team/a"), VALID);
    assert_eq!(
        world.ingress("corp/root"),
        "valid: valid IngressRoute (1 of 2 subdomains); gone.corp.test: delegate team/gone not found"
    );
    assert_eq!(world.get("https://gone.corp.test/x"), "502");
    assert_eq!(world.get("http://gone.corp.test/x"), "301 https");
    assert_eq!(world.certificate("gone.corp.test"), "corp/wild");
}

#[test]
fn s5_tls_is_the_delegates_own_as_a_whole_or_the_domains() {
    let root = |minimum: &str| {
        delegated_domain(
            "corp/root",
            ".corp.test",
            json!({ "secretName": "wild", "minimumProtocolVersion": minimum }),
            &[("own.corp.test", "team/a")],
        )
    };
    let minimum = |world: &World| {
        let host_rules = world.host("own.corp.test").and_then(|host| host.rules.as_ref()).expect("host rules");
        format!("{:?}", host_rules.tls.as_ref().and_then(|tls| tls.minimum).expect("a minimum"))
    };
    for (of_root, own, certificate, expected) in [
        ("1.2", json!({}), "corp/wild", "Tls12"),
        ("1.3", json!({}), "corp/wild", "Tls13"),
        ("1.2", json!({ "tls": { "secretName": "own" } }), "team/own", "Tls12"),
        ("1.2", json!({ "tls": { "secretName": "own", "minimumProtocolVersion": "1.3" } }), "team/own", "Tls13"),
        ("1.3", json!({ "tls": { "secretName": "own", "minimumProtocolVersion": "1.2" } }), "team/own", "Tls13"),
        ("1.3", json!({ "tls": { "secretName": "own" } }), "team/own", "Tls13"),
    ] {
        let world = world(vec![root(of_root), team("team/a", own.clone())]);
        assert_eq!(world.ingress("team/a"), VALID, "{own}");
        assert_eq!(world.certificate("own.corp.test"), certificate, "{own}");
        assert_eq!(minimum(&world), expected, "{own}");
    }
    // A delegate's own `secretName` is resolved in its own namespace, and another namespace's Secret needs a
    // TLSCertificateDelegation: being a delegate gives no right to the domain's Secrets.
    for (name, grant, expected) in [
        ("wild", None, "invalid: TLS Secret [wild] not found or is malformed"),
        ("corp/wild", None, "invalid: corp/wild: certificate delegation not permitted"),
        ("corp/lent", None, "invalid: corp/lent: certificate delegation not permitted"),
        ("corp/lent", Some("team"), VALID),
        ("corp/lent", Some("other"), "invalid: corp/lent: certificate delegation not permitted"),
    ] {
        let mut objects = vec![root("1.2"), team("team/a", json!({ "tls": { "secretName": name } }))];
        objects.extend(grant.map(|namespace| delegation("corp", "lent", json!([namespace]))));
        let world = world(objects);
        assert_eq!(world.ingress("team/a").split("; ").next(), Some(expected), "{name} {grant:?}");
        if expected != VALID {
            assert_eq!(world.get("https://own.corp.test/"), "-", "never the domain's instead");
            assert_eq!(
                world.ingress("corp/root"),
                "invalid: no valid subdomain (0 of 1 subdomains); own.corp.test: delegate team/a is invalid"
            );
        }
    }
    // A domain without TLS delegates clear text only.
    let plain = delegated_domain("corp/root", ".corp.test", json!(null), &[("own.corp.test", "team/a")]);
    let world = world(vec![plain, team("team/a", json!(null))]);
    assert_eq!(
        (world.get("http://own.corp.test/"), world.get("https://own.corp.test/")),
        ("team/web".into(), "-".into())
    );
}

#[test]
fn s5_a_delegate_learns_nothing_of_the_certificate_it_inherits() {
    for tls in [json!({ "secretName": "wild" }), json!({ "secretName": "nothing-there" })] {
        let root = delegated_domain(
            "corp/root",
            ".corp.test",
            tls,
            &[("deep.a.corp.test", "team/a"), ("b.corp.test", "team/a")],
        );
        let world = world(vec![root, team("team/a", json!(null))]);
        let status =
            &world.translated.statuses[&ObjectRef { kind: Kind::IngressRoute, key: ObjectKey::new("team", "a") }];
        let all = format!("{} {:?}", status.status(), status.rows);
        assert!(!all.contains("wild") && !all.contains("nothing-there") && !all.contains("Secret"), "{all}");
    }
}

#[test]
fn s6_passthrough_is_inherited_or_the_delegates_own() {
    let tcp = json!({ "services": to("web") });
    let with_tcp = |mut object: Value| {
        object["spec"]["tcpproxy"] = tcp.clone();
        object
    };
    let passing =
        delegated_domain("corp/root", ".corp.test", json!({ "passthrough": true }), &[("a.corp.test", "team/a")]);
    let inherited = world(vec![passing.clone(), with_tcp(team("team/a", json!(null)))]);
    assert_eq!(inherited.ingress("team/a"), VALID);
    assert_eq!(inherited.get("https://a.corp.test/"), "passthrough team/web");
    assert_eq!(inherited.get("http://a.corp.test/"), "team/web");
    let without = world(vec![passing.clone(), team("team/a", json!(null))]);
    assert_eq!(
        without.ingress("team/a"),
        "invalid: TLS of the domain is passed through, which requires that Spec.TCPProxy be set"
    );
    assert_eq!(without.get("https://a.corp.test/"), "-");
    let own_certificate = world(vec![passing, team("team/a", json!({ "tls": { "secretName": "own" } }))]);
    assert_eq!(own_certificate.get("https://a.corp.test/"), "team/web");

    let terminating = domain(&[("a.corp.test", "team/a"), ("b.corp.test", "other/b")]);
    let own = world(vec![
        terminating.clone(),
        with_tcp(team("team/a", json!({ "tls": { "passthrough": true } }))),
        with_tcp(team("other/b", json!(null))),
    ]);
    assert_eq!(own.get("https://a.corp.test/"), "passthrough team/web");
    assert_eq!(own.get("https://b.corp.test/"), "tcp other/web");
    assert_eq!(own.certificate("b.corp.test"), "corp/wild");
    let both = json!({ "tls": { "passthrough": true, "secretName": "own" } });
    let rejected = world(vec![terminating, with_tcp(team("team/a", both))]);
    assert_eq!(
        rejected.ingress("team/a"),
        "invalid: Spec.VirtualHost.TLS: both Passthrough and SecretName were specified"
    );
}

#[test]
fn s7_a_certificate_that_does_not_cover_a_name_is_served_with_a_warning() {
    let root = domain(&[("a.corp.test", "team/a"), ("x.y.corp.test", "team/b")]);
    let inherited = world(vec![root, team("team/a", json!(null)), team("team/b", json!(null))]);
    assert_eq!(
        inherited.ingress("corp/root"),
        "valid: valid IngressRoute (2 of 2 subdomains); certificate corp/wild does not cover x.y.corp.test"
    );
    assert_eq!(inherited.ingress("team/b"), VALID);
    assert_eq!(inherited.get("https://x.y.corp.test/"), "team/web");
    let own = team("team/a", json!({ "tls": { "secretName": "own" } }));
    let own = world(vec![domain(&[("a.corp.test", "team/a")]), own]);
    assert_eq!(own.ingress("corp/root"), "valid: valid IngressRoute (1 of 1 subdomains)");
    assert_eq!(own.ingress("team/a"), "valid: valid IngressRoute; certificate team/own does not cover a.corp.test");
}

#[test]
fn s8_two_roots_of_one_domain_are_both_invalid() {
    let world = world(vec![
        of_year(2020, domain(&[("a.corp.test", "team/a")])),
        of_year(2021, delegated_domain("other/root", ".CORP.test", json!(null), &[("b.corp.test", "other/b")])),
        team("team/a", json!({ "fqdn": "a.corp.test" })),
        team("other/b", json!(null)),
    ]);
    let message = "invalid: fqdn \".corp.test\" is used in multiple IngressRoutes: corp/root, other/root";
    assert_eq!(world.ingress("corp/root"), message);
    assert_eq!(world.ingress("other/root"), message);
    assert_eq!(world.ingress("other/b"), ORPHAN);
    assert_eq!(
        world.ingress("team/a"),
        "invalid: a.corp.test is within .corp.test owned by corp/root, other/root and not delegated"
    );
    assert!(world.translated.hosts.is_empty() && world.domains().is_empty());
}

#[test]
fn s8_a_root_with_a_delegated_name_conflicts_with_the_domain() {
    let objects = vec![
        domain(&[("a.corp.test", "team/a"), ("b.corp.test", "team/b")]),
        team("team/a", json!(null)),
        team("team/b", json!(null)),
        team("other/a", json!({ "fqdn": "a.corp.test" })),
    ];
    for lenient in [false, true] {
        let settings = Settings { allow_undelegated_subdomains: lenient, ..Settings::default() };
        let world = with(&settings, objects.clone());
        let message = "fqdn \"a.corp.test\" is used in multiple IngressRoutes: corp/root, other/a";
        assert_eq!(world.ingress("other/a"), format!("invalid: {message}"));
        assert_eq!(world.ingress("team/a"), format!("invalid: {message}"));
        assert_eq!(world.ingress("corp/root"), format!("valid: valid IngressRoute (1 of 2 subdomains); {message}"));
        assert_eq!(world.get("https://a.corp.test/"), "-");
        assert_eq!(world.get("https://b.corp.test/"), "team/web");
    }
}

#[test]
fn s8_a_name_inside_of_a_domain_is_delegated_or_rejected() {
    let objects = vec![
        domain(&[("a.corp.test", "team/a")]),
        team("team/a", json!(null)),
        team("other/b", json!({ "fqdn": "b.corp.test" })),
        team("other/apex", json!({ "fqdn": "corp.test" })),
        team("other/near", json!({ "fqdn": "acorp.test" })),
        proxy("other/p", json!({ "virtualhost": { "fqdn": "p.corp.test" }, "routes": [{ "services": to("web") }] })),
        proxy("other/star", json!({ "virtualhost": { "fqdn": "*.corp.test" }, "routes": [{ "services": to("web") }] })),
    ];
    let strict = world(objects.clone());
    let within = |name: &str| format!("{name} is within .corp.test owned by corp/root and not delegated");
    assert_eq!(strict.ingress("other/b"), format!("invalid: {}", within("b.corp.test")));
    assert_eq!(strict.errors("other/p"), [format!("VirtualHostError/NotDelegated: {}", within("p.corp.test"))]);
    assert_eq!(strict.errors("other/star"), [format!("VirtualHostError/NotDelegated: {}", within("*.corp.test"))]);
    // Neither the domain itself nor a name that merely ends with the same text is inside.
    assert_eq!(strict.ingress("other/apex"), VALID);
    assert_eq!(strict.ingress("other/near"), VALID);
    for name in ["b", "p", "z"] {
        assert_eq!(strict.get(&format!("https://{name}.corp.test/")), "-");
        assert_eq!(strict.certificate(&format!("{name}.corp.test")), "-");
    }
    let settings = Settings { allow_undelegated_subdomains: true, ..Settings::default() };
    let lenient = with(&settings, objects);
    assert_eq!(lenient.ingress("other/b"), VALID);
    assert_eq!(lenient.get("http://b.corp.test/"), "other/web");
    assert_eq!(lenient.get("http://p.corp.test/"), "other/web");
    assert_eq!(lenient.get("http://z.corp.test/"), "other/web");
    assert_eq!(lenient.get("https://b.corp.test/"), "-", "the domain's certificate is for its delegates");
}

#[test]
fn s8_a_domain_inside_of_another_needs_the_same_namespace() {
    let outer = domain(&[("a.corp.test", "team/a")]);
    let inner = |namespace: &str| {
        delegated_domain(&format!("{namespace}/inner"), ".in.corp.test", json!(null), &[("x.in.corp.test", "team/x")])
    };
    let objects = |namespace: &str| {
        vec![outer.clone(), inner(namespace), team("team/a", json!(null)), team("team/x", json!(null))]
    };
    let same = world(objects("corp"));
    assert_eq!(same.ingress("corp/inner"), "valid: valid IngressRoute (1 of 1 subdomains)");
    assert_eq!(same.get("http://x.in.corp.test/"), "team/web");
    assert_eq!(same.get("https://x.in.corp.test/"), "-", "a domain of its own inherits nothing");
    let foreign = world(objects("other"));
    assert_eq!(
        foreign.ingress("other/inner"),
        "invalid: .in.corp.test is within .corp.test owned by corp/root and not delegated"
    );
    assert_eq!(foreign.get("http://x.in.corp.test/"), "-");
    // The outer domain cannot delegate names of the inner one.
    let mut objects = objects("other");
    objects[0] = domain(&[("x.in.corp.test", "team/x")]);
    assert_eq!(world(objects).get("https://x.in.corp.test/"), "team/web");
}

#[test]
fn s8_the_older_kind_owns_a_host_that_two_kinds_claim() {
    let route = |year| of_year(year, team("team/a", json!({ "fqdn": "www.test" })));
    let other = |year| {
        of_year(
            year,
            proxy("other/p", json!({ "virtualhost": { "fqdn": "www.test" }, "routes": [{ "services": to("web") }] })),
        )
    };
    let first = world(vec![route(2020), other(2021)]);
    assert_eq!(first.get("http://www.test/"), "team/web");
    assert_eq!(
        first.errors("other/p"),
        [
            "VirtualHostError/HostAlreadyClaimed: an IngressRoute in another namespace holds www.test and is older than p"
        ]
    );
    let row =
        &first.translated.statuses[&ObjectRef { kind: Kind::HttpProxy, key: ObjectKey::new("other", "p") }].rows[0];
    let winner = ObjectRef { kind: Kind::IngressRoute, key: ObjectKey::new("team", "a") };
    assert_eq!((&row.hosts[..], &row.winners[..]), (&["www.test".to_owned()][..], &[winner][..]));
    let second = world(vec![route(2021), other(2020)]);
    assert_eq!(second.get("http://www.test/"), "other/web");
    assert_eq!(
        second.ingress("team/a"),
        "invalid: an HTTPProxy in another namespace holds www.test and is older than a"
    );
}

#[test]
fn s8_objects_of_both_kinds_report_the_route_that_owns_the_host() {
    let host = HostMatch::Exact(Hostname::parse("www.test").expect("a host"));
    let winner = ObjectRef { kind: Kind::Route, key: ObjectKey::new("secretive", "shop") };
    let with = HostOwner { object: winner.clone(), created: Created("2000-01-01T00:00:00Z".parse().ok()) };
    let lost = LostHosts::from([((RouterName("default".into()), host), with)]);
    let spec = json!({ "virtualhost": { "fqdn": "www.test" }, "routes": [{ "services": to("web") }] });
    let mut objects = backends(&["team/web", "other/web"]);
    objects.push(of_year(2020, team("team/a", json!({ "fqdn": "www.test" }))));
    objects.push(of_year(2021, proxy("other/p", spec)));
    let world = World::with(&Settings::default(), &lost, objects);
    assert_eq!(world.ingress("team/a"), "invalid: a Route in another namespace holds www.test and is older than a");
    assert_eq!(
        world.errors("other/p"),
        ["VirtualHostError/HostAlreadyClaimed: a Route in another namespace holds www.test and is older than p"]
    );
    let rows = world.translated.statuses.values().flat_map(|status| &status.rows);
    assert_eq!(rows.map(|row| &row.winners[..]).collect::<Vec<_>>(), [[winner.clone()], [winner]]);
}

#[test]
fn a_denied_domain_applies_to_roots_and_delegates() {
    use crate::domain_lists::DomainLists;
    let domains = DomainLists { denied: vec!["bad.corp.test".to_owned()], allowed: vec!["corp.test".to_owned()] };
    let settings = Settings { domains, ..Settings::default() };
    let world = with(
        &settings,
        vec![
            domain(&[("a.corp.test", "team/a"), ("x.bad.corp.test", "team/a")]),
            team("team/a", json!(null)),
            team("other/out", json!({ "fqdn": "www.test" })),
        ],
    );
    assert_eq!(
        world.ingress("corp/root"),
        "valid: valid IngressRoute (1 of 2 subdomains); fqdn \"x.bad.corp.test\" cannot be served: host in list of denied \
         domains"
    );
    assert_eq!(
        world.ingress("other/out"),
        "invalid: fqdn \"www.test\" cannot be served: host not in the allowed list of domains"
    );
    assert_eq!(world.get("https://a.corp.test/"), "team/web");
    assert_eq!(world.get("https://x.bad.corp.test/"), "-");
    assert_eq!(world.get("http://www.test/"), "-");
}

#[test]
fn s9_hosts_are_exact() {
    let served = world(vec![
        domain(&[("a.corp.test", "team/a"), ("b.a.corp.test", "other/b")]),
        team("team/a", json!(null)),
        team("other/b", json!(null)),
    ]);
    assert_eq!(served.get("https://a.corp.test/"), "team/web");
    assert_eq!(served.get("https://b.a.corp.test/"), "other/web");
    assert_eq!(served.get("https://c.a.corp.test/"), "-");
    assert!(served.translated.hosts.iter().all(|(_, host)| matches!(host.host, HostMatch::Exact(_))));
}

#[test]
fn s10_a_status_has_a_line_for_each_path() {
    let world = world(vec![
        domain(&[
            ("a.corp.test", "team/a"),
            ("b.corp.test", "team/b"),
            ("gone.corp.test", "team/gone"),
            ("B.corp.test", "team/b"),
        ]),
        ingress_route("team/a", json!({ "routes": [{ "match": "/", "delegate": { "name": "leaf" } }] })),
        ingress_route("team/b", json!({ "routes": [{ "match": "/b", "delegate": { "name": "leaf" } }] })),
        team("team/leaf", json!(null)),
        team("team/orphan", json!(null)),
    ]);
    assert_eq!(
        world.ingress("corp/root"),
        "valid: valid IngressRoute (2 of 4 subdomains); gone.corp.test: delegate team/gone not found; subdomain B.corp.test \
         must be in lower case"
    );
    assert_eq!(world.ingress("team/leaf"), "valid: valid IngressRoute (1 of 2 paths)");
    assert_eq!(
        world.paths("team/leaf"),
        [
            "corp/root a.corp.test -> team/a / -> team/leaf: valid: valid IngressRoute",
            "corp/root b.corp.test -> team/b /b -> team/leaf: invalid: the path prefix \"/\" does not match the parent's path \
         prefix \"/b\"",
        ]
    );
    assert_eq!(world.ingress("team/orphan"), ORPHAN);
    assert!(world.paths("team/orphan").is_empty());
    let parent = &world.status_value(Kind::IngressRoute, "team/a")["parents"][0];
    assert_eq!(
        *parent,
        json!({
            "parentRef": {
                "group": "contour.heptio.com", "kind": "IngressRoute", "namespace": "corp", "name": "root",
                "sectionName": "a.corp.test",
            },
            "controllerName": "sluice.dev/gateway-controller",
            "fqdn": "a.corp.test",
            "path": "corp/root a.corp.test -> team/a",
            "currentStatus": "valid",
            "description": "valid IngressRoute",
        })
    );
}

#[test]
fn each_name_of_a_domain_that_is_not_served_has_a_row_with_the_winners() {
    let rival = team("other/b", json!({ "fqdn": "b.corp.test" }));
    let root = domain(&[("a.corp.test", "team/a"), ("b.corp.test", "team/a"), ("*.c.corp.test", "team/a")]);
    let world = world(vec![root, team("team/a", json!(null)), rival]);
    let object =
        |namespace: &str, name: &str| ObjectRef { kind: Kind::IngressRoute, key: ObjectKey::new(namespace, name) };
    let rows = |object: &ObjectRef| {
        let rows = world.translated.statuses[object].rows.iter();
        rows.map(|row| (row.hosts.join(","), row.admitted, row.winners.clone())).collect::<Vec<_>>()
    };
    assert_eq!(
        rows(&object("corp", "root")),
        [
            ("a.corp.test".to_owned(), true, vec![]),
            ("b.corp.test".to_owned(), false, vec![object("other", "b")]),
            ("*.c.corp.test".to_owned(), false, vec![]),
        ]
    );
    assert_eq!(rows(&object("other", "b")), [("b.corp.test".to_owned(), false, vec![object("corp", "root")])]);
}
