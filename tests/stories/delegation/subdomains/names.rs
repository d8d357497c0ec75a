//! The names that a domain delegates, and the delegates (S1 – S4).

use serde_json::json;

use super::domains::{Domains, domain, ingress, team, to, with, zone};
use super::*;

#[test]
fn s1_a_domain_serves_nothing_itself() -> Result<()> {
    let none = json!(null);
    let root = |name: &str| domain(name, &[(&*format!("a.{name}"), "team/a")]);
    let objects = [
        team("team/a", &none),
        root("plain.test"),
        with(root("routes.test"), "routes", &json!([{ "match": "/", "services": to("web") }])),
        with(root("tcp.test"), "tcpproxy", &json!({ "services": to("web") })),
        with(root("empty.test"), "subdomains", &json!([])),
        // `subdomains` requires the dot, and the dot requires `subdomains`.
        zone("corp/dotless", "dotless.test", &json!({ "secretName": "plain.test" }), &[("a.dotless.test", "team/a")]),
        zone("corp/dots", "..dots.test", &json!({ "secretName": "plain.test" }), &[("a.dots.test", "team/a")]),
    ];
    let secrets = [
        ("corp/plain.test", "*.plain.test"),
        ("corp/routes.test", "*.routes.test"),
        ("corp/tcp.test", "*.tcp.test"),
        ("corp/empty.test", "*.empty.test"),
    ];
    let stage = Domains::new(&objects, &secrets, &[])?;
    stage.expect(&[("https://a.plain.test/", "team with corp/plain.test"), ("http://a.plain.test/", "301")])?;
    for host in [
        "plain.test",
        "b.plain.test",
        "b.a.plain.test",
        "a.routes.test",
        "routes.test",
        "a.tcp.test",
        "a.empty.test",
        "a.dotless.test",
        "dotless.test",
        "a.dots.test",
    ] {
        stage.expect(&[(&format!("https://{host}/"), "404 with default"), (&format!("http://{host}/"), "404")])?;
    }
    Ok(())
}

#[test]
fn s1_and_s4_roots_stay_in_their_namespaces_and_delegates_are_anywhere() -> Result<()> {
    let objects = [
        domain("corp.test", &[("a.corp.test", "team/a"), ("gone.corp.test", "team/gone")]),
        zone("team/root", ".team.test", &json!({ "secretName": "own" }), &[("b.team.test", "team/b")]),
        team("team/a", &json!({ "fqdn": "a.corp.test" })),
        team("team/b", &json!(null)),
        team("other/www", &json!({ "fqdn": "www.other.test" })),
    ];
    let secrets = [("corp/corp.test", "*.corp.test"), ("team/own", "*.team.test")];
    let stage = Domains::new(&objects, &secrets, &["--ingressroute-root-namespaces", "corp"])?;
    stage.expect(&[
        // The delegate's consent is not needed, and no list of namespaces restricts it.
        ("https://a.corp.test/", "team with corp/corp.test"),
        // Requests for a missing delegate get a response with the domain's certificate.
        ("https://gone.corp.test/x", "502 with corp/corp.test"),
        ("http://gone.corp.test/x", "301"),
        ("https://b.team.test/", "404 with default"),
        ("http://b.team.test/", "404"),
        ("http://www.other.test/", "404"),
    ])
}

#[test]
fn s2_a_name_that_is_not_the_domains_to_give_serves_nothing_and_harms_no_other() -> Result<()> {
    // The entry, a name that it might cover, and whether that is served.
    let cases = [
        ("a.DOMAIN", "a.DOMAIN", true),
        ("a.b.c.DOMAIN", "a.b.c.DOMAIN", true),
        ("DOMAIN", "DOMAIN", false),
        ("aDOMAIN", "aDOMAIN", false),
        ("a.other.test", "a.other.test", false),
        ("a..DOMAIN", "a.DOMAIN", false),
        ("*.DOMAIN", "any.DOMAIN", false),
        ("*.x.DOMAIN", "any.x.DOMAIN", false),
        ("A.DOMAIN", "a.DOMAIN", false),
    ];
    let name = |case: usize, text: &str| text.replace("DOMAIN", &format!("case{case}.test"));
    let mut objects = vec![team("team/a", &json!(null)), team("other/b", &json!(null))];
    let mut secrets = Vec::new();
    for (i, (entry, ..)) in cases.iter().enumerate() {
        let [entry, good, domain_name] = [entry, "good.DOMAIN", "DOMAIN"].map(|text| name(i, text));
        objects.push(domain(&domain_name, &[(&entry, "team/a"), (&good, "other/b")]));
        secrets.push((format!("corp/{domain_name}"), format!("*.{domain_name}")));
    }
    // A name that is listed twice is not served.
    objects.push(domain(
        "twice.test",
        &[("a.twice.test", "team/a"), ("a.twice.test", "other/b"), ("good.twice.test", "other/b")],
    ));
    secrets.push(("corp/twice.test".to_owned(), "*.twice.test".to_owned()));
    let secrets: Vec<(&str, &str)> = secrets.iter().map(|(id, name)| (&**id, &**name)).collect();
    let stage = Domains::new(&objects, &secrets, &[])?;
    for (i, (_, host, served)) in cases.iter().enumerate() {
        let [host, good, domain_name] = [host, "good.DOMAIN", "DOMAIN"].map(|text| name(i, text));
        let expected = [format!("team with corp/{domain_name}"), "404 with default".to_owned()];
        let other = format!("other with corp/{domain_name}");
        stage.expect(&[
            (&format!("https://{host}/"), &expected[usize::from(!served)]),
            (&format!("http://{host}/"), if *served { "301" } else { "404" }),
            (&format!("https://{good}/"), &other),
        ])?;
    }
    stage.expect(&[
        ("https://a.twice.test/", "404 with default"),
        ("http://a.twice.test/", "404"),
        ("https://good.twice.test/", "other with corp/twice.test"),
    ])
}

#[test]
fn s3_a_delegate_names_the_host_or_nothing() -> Result<()> {
    let objects = [
        domain(
            "s3.test",
            &[
                ("none.s3.test", "team/none"),
                ("nameless.s3.test", "team/nameless"),
                ("named.s3.test", "team/named"),
                ("upper.s3.test", "team/upper"),
                ("wrong.s3.test", "team/wrong"),
                ("domain.s3.test", "team/domain"),
                // Several names of one object: without a virtual host all are served, with one only the first.
                ("alias.s3.test", "team/none"),
                ("second.s3.test", "team/nameless"),
            ],
        ),
        team("team/none", &json!(null)),
        team("team/nameless", &json!({})),
        team("team/named", &json!({ "fqdn": "named.s3.test" })),
        team("team/upper", &json!({ "fqdn": "Upper.S3.Test" })),
        team("team/wrong", &json!({ "fqdn": "right.s3.test" })),
        team("team/domain", &json!({ "fqdn": ".domain.s3.test" })),
    ];
    let stage = Domains::new(&objects, &[("corp/s3.test", "*.s3.test")], &[])?;
    for (name, served) in [
        ("none", true),
        ("alias", true),
        ("nameless", true),
        ("second", false),
        ("named", true),
        ("upper", true),
        ("wrong", false),
        ("right", false),
        ("domain", false),
    ] {
        let expected = if served { "team with corp/s3.test" } else { "404 with default" };
        stage.expect(&[
            (&format!("https://{name}.s3.test/"), expected),
            (&format!("http://{name}.s3.test/"), if served { "301" } else { "404" }),
        ])?;
    }
    Ok(())
}

#[test]
fn s3_a_domain_is_delegated_by_a_name_with_a_dot() -> Result<()> {
    let inner = |id: &str, fqdn: &str, name: &str| zone(id, fqdn, &json!(null), &[(name, "other/x")]);
    let objects = [
        domain(
            "outer.test",
            &[(".in.outer.test", "team/inner"), ("a.outer.test", "team/a"), ("y.in.outer.test", "team/a")],
        ),
        inner("team/inner", ".in.outer.test", "x.in.outer.test"),
        // Another domain than the delegated one.
        domain("else.test", &[(".in.else.test", "team/else"), ("a.else.test", "team/a")]),
        inner("team/else", ".out.else.test", "x.out.else.test"),
        // A whole domain for an object that is not a domain root.
        domain("flat.test", &[(".in.flat.test", "team/a"), ("a.flat.test", "team/a")]),
        team("team/a", &json!(null)),
        team("other/x", &json!(null)),
        ingress("other/idle", &json!({})),
    ];
    let secrets =
        [("corp/outer.test", "*.outer.test"), ("corp/else.test", "*.else.test"), ("corp/flat.test", "*.flat.test")];
    Domains::new(&objects, &secrets, &[])?.expect(&[
        // Names of the outer domain's certificate are inherited by delegates of the inner one.
        ("https://x.in.outer.test/", "other with corp/outer.test"),
        ("http://x.in.outer.test/", "301"),
        ("https://a.outer.test/", "team with corp/outer.test"),
        // The outer domain cannot delegate names of the inner domain.
        ("https://y.in.outer.test/", "404 with default"),
        ("https://in.outer.test/", "404 with default"),
        ("https://x.in.else.test/", "404 with default"),
        ("https://x.out.else.test/", "404 with default"),
        ("https://a.else.test/", "team with corp/else.test"),
        ("https://in.flat.test/", "404 with default"),
        ("https://x.in.flat.test/", "404 with default"),
        ("https://a.flat.test/", "team with corp/flat.test"),
    ])
}
