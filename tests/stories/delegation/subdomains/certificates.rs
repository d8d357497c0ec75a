//! The certificate of a subdomain, its TLS endpoint, and its TLS versions (S5 – S7).

use serde_json::{Value, json};

use super::domains::{Domains, domain, lend, team, to, with, zone};
use super::*;

#[test]
fn s5_tls_is_the_delegates_own_as_a_whole_or_the_domains() -> Result<()> {
    // The domain's minimum version, the delegate's TLS, whose certificate is presented, and whether TLS 1.2 is
    // accepted.
    let cases: [(&str, Value, &str, bool); 7] = [
        ("1.2", json!(null), "domain", true),
        ("1.3", json!(null), "domain", false),
        ("1.3", json!({}), "domain", false),
        ("1.2", json!({ "tls": { "secretName": "own" } }), "team/own", true),
        ("1.2", json!({ "tls": { "secretName": "own", "minimumProtocolVersion": "1.3" } }), "team/own", false),
        ("1.3", json!({ "tls": { "secretName": "own", "minimumProtocolVersion": "1.2" } }), "team/own", false),
        ("1.3", json!({ "tls": { "secretName": "own" } }), "team/own", false),
    ];
    let (mut objects, mut secrets) = (Vec::new(), vec![("team/own".to_owned(), "own.test".to_owned())]);
    for (i, (least, own, ..)) in cases.iter().enumerate() {
        let name = format!("tls{i}.test");
        let tls = json!({ "secretName": name, "minimumProtocolVersion": least });
        let delegate = format!("team/tls{i}");
        objects.push(zone(&format!("corp/{name}"), &format!(".{name}"), &tls, &[(&format!("a.{name}"), &delegate)]));
        objects.push(team(&delegate, own));
        secrets.push((format!("corp/{name}"), format!("*.{name}")));
    }
    // A domain without TLS serves clear text.
    objects.push(zone("corp/clear", ".clear.test", &json!(null), &[("a.clear.test", "team/clear")]));
    objects.push(team("team/clear", &json!(null)));
    let secrets: Vec<(&str, &str)> = secrets.iter().map(|(id, name)| (&**id, &**name)).collect();
    let stage = Domains::new(&objects, &secrets, &[])?;
    for (i, (_, own, whose, older)) in cases.iter().enumerate() {
        let whose = if *whose == "domain" { format!("corp/tls{i}.test") } else { (*whose).to_owned() };
        let (url, served) = (format!("https://a.tls{i}.test/"), format!("team with {whose}"));
        stage.expect(&[(&url, &served), (&format!("http://a.tls{i}.test/"), "301")])?;
        let found = stage.ask(&url, &["--tls-max", "1.2"])?;
        ensure!(found == if *older { &*served } else { "-" }, "{own}: TLS 1.2 comes to {found}");
        let told = stage.status(&format!("team/tls{i}"))?;
        ensure!(!told.contains("Secret") && told.contains("currentStatus: valid"), "{told}");
    }
    stage.expect(&[("http://a.clear.test/", "team"), ("https://a.clear.test/", "404 with default")])
}

#[test]
fn s5_a_secret_that_a_delegate_names_is_its_own_or_delegated_to_it() -> Result<()> {
    // The Secret that the delegate of `NAME.named.test` names, the namespaces that may use it, and whether it is
    // served.
    let cases = [
        ("own", "own", None, Some("team/own")),
        ("missing", "named.test", None, None),
        ("domain", "corp/named.test", None, None),
        ("kept", "corp/kept", None, None),
        ("lent", "corp/lent", Some("team"), Some("corp/lent")),
        ("elsewhere", "corp/elsewhere", Some("other"), None),
    ];
    let names: Vec<[String; 2]> =
        cases.iter().map(|(name, ..)| [format!("{name}.named.test"), format!("team/{name}")]).collect();
    let entries: Vec<(&str, &str)> = names.iter().map(|[name, delegate]| (&**name, &**delegate)).collect();
    let mut objects = vec![domain("named.test", &entries)];
    for (name, secret, lent, _) in &cases {
        objects.push(team(&format!("team/{name}"), &json!({ "tls": { "secretName": secret } })));
        objects.extend(lent.map(|namespace| lend(name, namespace)));
    }
    let secrets = [
        ("corp/named.test", "*.named.test"),
        ("team/own", "own.named.test"),
        ("corp/kept", "kept.named.test"),
        ("corp/lent", "lent.named.test"),
        ("corp/elsewhere", "elsewhere.named.test"),
    ];
    let stage = Domains::new(&objects, &secrets, &[])?;
    for (name, _, _, served) in &cases {
        // Never the domain's certificate instead.
        let expected = served.map_or("404 with default".to_owned(), |secret| format!("team with {secret}"));
        stage.expect(&[(&format!("https://{name}.named.test/"), &expected)])?;
    }
    Ok(())
}

#[test]
fn s6_a_session_is_passed_through_or_ended_as_domain_and_delegate_say() -> Result<()> {
    let (none, passing) = (json!(null), json!({ "passthrough": true }));
    let tcp = |service: &str| json!({ "services": to(service) });
    let objects = [
        zone(
            "corp/passing",
            ".passing.test",
            &passing,
            &[
                ("a.passing.test", "team/inherits"),
                ("b.passing.test", "team/without"),
                ("c.passing.test", "team/terminates"),
            ],
        ),
        with(team("team/inherits", &none), "tcpproxy", &tcp("raw")),
        team("team/without", &none),
        team("team/terminates", &json!({ "tls": { "secretName": "own" } })),
        domain(
            "ending.test",
            &[
                ("a.ending.test", "team/passes"),
                ("b.ending.test", "other/bytes"),
                ("c.ending.test", "team/both"),
                ("d.ending.test", "team/served"),
                ("e.ending.test", "team/idle"),
            ],
        ),
        with(team("team/passes", &json!({ "tls": passing })), "tcpproxy", &tcp("raw")),
        with(team("other/bytes", &none), "tcpproxy", &tcp("web")),
        with(
            team("team/both", &json!({ "tls": { "passthrough": true, "secretName": "own" } })),
            "tcpproxy",
            &tcp("raw"),
        ),
        team("team/served", &none),
        // Passthrough needs a backend.
        team("team/idle", &json!({ "tls": passing })),
        // Both at once are invalid in a domain as well.
        zone(
            "corp/mixed",
            ".mixed.test",
            &json!({ "passthrough": true, "secretName": "ending.test" }),
            &[("a.mixed.test", "team/mixed")],
        ),
        with(team("team/mixed", &none), "tcpproxy", &tcp("raw")),
    ];
    let secrets = [("corp/ending.test", "*.ending.test"), ("team/own", "c.passing.test")];
    Domains::new(&objects, &secrets, &[])?.expect(&[
        // Inherited: TLS ends at the endpoint, and clear text uses the routes.
        ("https://a.passing.test/", "team with raw"),
        ("http://a.passing.test/", "team"),
        ("https://b.passing.test/", "404 with default"),
        ("http://b.passing.test/", "404"),
        ("https://c.passing.test/", "team with team/own"),
        // By its own choice, in a domain that terminates TLS.
        ("https://a.ending.test/", "team with raw"),
        ("https://b.ending.test/", "other by tcp with corp/ending.test"),
        ("https://c.ending.test/", "404 with default"),
        ("https://d.ending.test/", "team with corp/ending.test"),
        ("https://e.ending.test/", "404 with default"),
        ("https://a.mixed.test/", "404 with default"),
    ])
}

#[test]
fn s7_a_name_that_the_certificate_does_not_cover_is_served_all_the_same() -> Result<()> {
    let objects = [
        domain("s7.test", &[("a.s7.test", "team/a"), ("x.y.s7.test", "team/b"), ("own.s7.test", "team/own")]),
        team("team/a", &json!(null)),
        team("team/b", &json!(null)),
        team("team/own", &json!({ "tls": { "secretName": "own" } })),
    ];
    let secrets = [("corp/s7.test", "*.s7.test"), ("team/own", "another.s7.test")];
    let stage = Domains::new(&objects, &secrets, &[])?;
    stage.expect(&[
        ("https://a.s7.test/", "team with corp/s7.test"),
        ("https://x.y.s7.test/", "team with corp/s7.test"),
        ("https://own.s7.test/", "team with team/own"),
    ])?;
    // Only the owner of the certificate gets the warning.
    for (id, said) in [
        ("corp/s7.test", "certificate corp/s7.test does not cover x.y.s7.test"),
        ("team/own", "certificate team/own does not cover own.s7.test"),
    ] {
        let told = stage.status(id)?.split_whitespace().collect::<Vec<_>>().join(" ");
        ensure!(told.contains(said), "{id}: {told}");
    }
    let told = stage.status("team/b")?;
    ensure!(!told.contains("does not cover"), "{told}");
    Ok(())
}
