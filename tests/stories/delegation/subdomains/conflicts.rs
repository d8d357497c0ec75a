//! Precedence among several claims on a name (S8), other APIs beside a domain (S9), and several paths to one object
//! (S10).

use serde_json::{Value, json};

use super::domains::{Domains, domain, ingress, proxy, team, to, zone};
use super::*;

#[test]
fn s8_names_of_a_domain_are_delegated_or_nobodys() -> Result<()> {
    let none = json!(null);
    let www = |fqdn: &str| json!({ "virtualhost": { "fqdn": fqdn }, "routes": [{ "services": to("web") }] });
    let objects = [
        // Two roots for one domain.
        domain("twins.test", &[("a.twins.test", "team/a")]),
        zone("other/twins", ".TWINS.test", &json!(null), &[("b.twins.test", "other/b")]),
        // A root elsewhere with a delegated name.
        domain("rival.test", &[("a.rival.test", "team/a"), ("b.rival.test", "team/a")]),
        team("other/rival", &json!({ "fqdn": "a.rival.test" })),
        // Roots elsewhere with names that are not delegated.
        domain("strict.test", &[("a.strict.test", "team/a")]),
        team("other/strict", &json!({ "fqdn": "b.strict.test" })),
        proxy("other/proxy", &www("p.strict.test")),
        proxy("other/star", &www("*.strict.test")),
        team("other/apex", &json!({ "fqdn": "strict.test" })),
        team("other/near", &json!({ "fqdn": "astrict.test" })),
        // Domains inside a domain: in the same namespace, and in another.
        domain("nest.test", &[("a.nest.test", "team/a")]),
        domain("in.nest.test", &[("x.in.nest.test", "team/a")]),
        zone("other/nest", ".out.nest.test", &json!(null), &[("x.out.nest.test", "other/b")]),
        team("team/a", &none),
        team("other/b", &none),
    ];
    let names = ["twins.test", "rival.test", "strict.test", "nest.test", "in.nest.test"];
    let secrets = names.map(|name| (format!("corp/{name}"), format!("*.{name}")));
    let secrets = secrets.each_ref().map(|(id, name)| (&**id, &**name));
    let nobody = ["a.twins.test", "b.twins.test", "a.rival.test", "b.strict.test", "p.strict.test", "z.strict.test"];
    for lenient in [false, true] {
        let arguments: &[&str] = if lenient { &["--allow-undelegated-subdomains"] } else { &[] };
        let stage = Domains::new(&objects, &secrets, arguments)?;
        for name in nobody {
            let elsewhere = lenient && name.ends_with("strict.test");
            stage.expect(&[
                // Never with the domain's certificate, although it would cover the name.
                (&format!("https://{name}/"), "404 with default"),
                (&format!("http://{name}/"), if elsewhere { "other" } else { "404" }),
            ])?;
        }
        stage.expect(&[
            ("https://b.rival.test/", "team with corp/rival.test"),
            ("https://a.strict.test/", "team with corp/strict.test"),
            // Neither the domain itself nor a name with the same suffix is inside.
            ("http://strict.test/", "other"),
            ("http://astrict.test/", "other"),
            ("https://a.nest.test/", "team with corp/nest.test"),
            ("https://x.in.nest.test/", "team with corp/in.nest.test"),
            ("http://x.out.nest.test/", "404"),
        ])?;
    }
    Ok(())
}

/// Beside Routes, whose unclaimed hosts get 503, unclaimed names of a domain get 404.
#[test]
fn s8_unclaimed_names_are_not_found() -> Result<()> {
    let route = json!({
        "apiVersion": "route.openshift.io/v1",
        "kind": "Route",
        "metadata": { "namespace": "corp", "name": "www" },
        "spec": { "host": "www.route.test", "to": { "kind": "Service", "name": "web" } },
    });
    let (root, delegate) = (domain("found.test", &[("a.found.test", "team/a")]), team("team/a", &json!(null)));
    let stage =
        Domains::new(&[route.clone(), root.clone(), delegate.clone()], &[("corp/found.test", "*.found.test")], &[])?;
    let others = [
        ("http://www.route.test/", "corp"),
        ("http://any.route.test/", "503"),
        ("http://found.test/", "503"),
        ("https://any.route.test/", "503 with default"),
    ];
    stage.expect(&others)?;
    stage.expect(&[
        ("https://a.found.test/", "team with corp/found.test"),
        ("http://b.found.test/", "404"),
        ("http://c.b.found.test/", "404"),
        ("https://b.found.test/", "404 with default"),
    ])?;
    // Without the domain they get 503 like all others, and 404 again when the domain returns.
    stage.change(&[route.clone(), delegate.clone()])?;
    stage.becomes("http://b.found.test/", "503")?;
    stage.expect(&others)?;
    stage.change(&[route, root, delegate])?;
    stage.becomes("http://b.found.test/", "404")?;
    stage.expect(&others)
}

#[test]
fn s8_a_rival_takes_a_domain_off_the_air_while_it_is_there() -> Result<()> {
    let own = [
        domain("live.test", &[("a.live.test", "team/a"), ("b.live.test", "team/a")]),
        team("team/a", &json!(null)),
        // Another host, which is served all the time.
        team("corp/plain", &json!({ "fqdn": "www.plain.test" })),
    ];
    let stage = Domains::new(&own, &[("corp/live.test", "*.live.test")], &[])?;
    let [a, b] = ["https://a.live.test/", "https://b.live.test/"];
    let (served, gone) = ("team with corp/live.test", "404 with default");
    stage.expect(&[(a, served), (b, served)])?;
    for (rival, b_is) in [
        (zone("other/rival", ".live.test", &json!(null), &[("c.live.test", "team/a")]), gone),
        (team("other/rival", &json!({ "fqdn": "a.live.test" })), served),
    ] {
        stage.change(&[&own[..], &[rival]].concat())?;
        stage.becomes(a, gone)?;
        stage.expect(&[(b, b_is)])?;
        stage.change(&own)?;
        stage.becomes(a, served)?;
        stage.expect(&[(b, served)])?;
    }
    // A name whose delegation is removed is unclaimed at once.
    stage.change(&[domain("live.test", &[("b.live.test", "team/a")]), own[1].clone(), own[2].clone()])?;
    stage.becomes(a, gone)?;
    stage.expect(&[(b, served)])
}

/// A Gateway of `other` with a listener for every name below a domain, and a route for all of them.
fn gateway(name: &str, hostname: &str) -> [Value; 2] {
    let of = |api_kind: &str, spec: Value| {
        json!({
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": api_kind,
            "metadata": { "namespace": "other", "name": name },
            "spec": spec,
        })
    };
    let listener = |name: &str, port: u16, protocol: &str| json!({ "name": name, "port": port, "protocol": protocol, "hostname": hostname });
    let mut secure = listener("secure", 8443, "HTTPS");
    secure["tls"] = json!({ "certificateRefs": [{ "name": "gateway" }] });
    [
        of("Gateway", json!({ "gatewayClassName": "sluice", "listeners": [listener("web", 8080, "HTTP"), secure] })),
        of(
            "HTTPRoute",
            json!({ "parentRefs": [{ "name": name }], "rules": [{ "backendRefs": [{ "name": "web", "port": 80 }] }] }),
        ),
    ]
}

#[test]
fn s9_an_exact_name_comes_before_a_listeners_wildcard() -> Result<()> {
    let class = json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "GatewayClass",
        "metadata": { "name": "sluice" },
        "spec": { "controllerName": "sluice.dev/gateway-controller" },
    });
    let objects = [
        &[
            class,
            domain("s9.test", &[("a.s9.test", "team/a"), ("b.a.s9.test", "team/a")]),
            team("team/a", &json!(null)),
            team("corp/plain", &json!({ "fqdn": "www.plain.test" })),
        ],
        &gateway("below", "*.s9.test")[..],
        &gateway("plain", "*.plain.test")[..],
    ]
    .concat();
    let secrets = [("corp/s9.test", "*.s9.test"), ("other/gateway", "*.s9.test")];
    let stage = Domains::new(&objects, &secrets, &[])?;
    stage.expect(&[
        ("https://a.s9.test/", "team with corp/s9.test"),
        ("http://a.s9.test/", "301"),
        ("https://b.a.s9.test/", "team with corp/s9.test"),
        // Names without a delegation fall to the listener, with its own certificate.
        ("https://c.s9.test/", "other with other/gateway"),
        ("https://c.a.s9.test/", "other with other/gateway"),
        ("http://c.s9.test/", "other"),
        ("https://s9.test/", "404 with default"),
        ("http://www.plain.test/", "corp"),
        ("http://any.plain.test/", "other"),
    ])?;
    // If the domain is removed, its names fall to the listener as well.
    let rest: Vec<Value> = objects.iter().filter(|object| object["metadata"]["name"] != "s9.test").cloned().collect();
    stage.change(&rest)?;
    stage.becomes("https://a.s9.test/", "other with other/gateway")?;
    stage.change(&objects)?;
    stage.becomes("https://a.s9.test/", "team with corp/s9.test")
}

#[test]
fn s10_an_object_serves_on_each_way_that_is_good() -> Result<()> {
    let delegates = |id: &str, path: &str| {
        let routes = json!([{ "match": path, "delegate": { "name": "leaf", "namespace": "team" } }]);
        ingress(id, &json!({ "routes": routes }))
    };
    let objects = [
        domain("s10.test", &[("a.s10.test", "team/a"), ("b.s10.test", "team/b"), ("gone.s10.test", "team/gone")]),
        delegates("team/a", "/"),
        delegates("team/b", "/b"),
        team("team/leaf", &json!(null)),
        team("team/orphan", &json!(null)),
    ];
    let stage = Domains::new(&objects, &[("corp/s10.test", "*.s10.test")], &[])?;
    stage.expect(&[
        ("https://a.s10.test/x", "team with corp/s10.test"),
        // The leaf's `/` is outside of its part below `/b`, so that path is invalid.
        ("https://b.s10.test/b", "404 with corp/s10.test"),
        ("https://gone.s10.test/", "502 with corp/s10.test"),
    ])?;
    for (id, status) in [
        ("corp/s10.test", "valid IngressRoute (2 of 3 subdomains); gone.s10.test: delegate team/gone not found"),
        ("team/leaf", "valid IngressRoute (1 of 2 paths)"),
        ("team/orphan", "this IngressRoute is not part of a delegation chain from a root IngressRoute"),
    ] {
        let told = stage.status(id)?.split_whitespace().collect::<Vec<_>>().join(" ");
        ensure!(told.contains(status), "{id}: {told}");
    }
    Ok(())
}
