//! Annotations of Routes, from the manifest to their effects on clients and endpoints.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use tests::nginx::Nginx;

use super::stage::{HTTP, HTTPS, Stage, Tls, at};

#[test]
fn balance_hsts_and_limits_are_what_the_annotations_say() -> Result<()> {
    let stage = Stage::new("annotations", "")?;
    let servers = [9001, 9002].map(at);
    let block = |server| format!("server {{ listen {server}; location / {{ return 200 \"{server} $uri\"; }} }}");
    let _nginx = Nginx::with(&stage.netns, &servers, &servers.map(block).concat())?;
    stage.service("shop", &servers)?;
    let name = |of: &str| format!("haproxy.router.openshift.io/{of}");
    let route = |name: &str, annotations: &[(String, &str)]| {
        let annotations: Vec<(&str, &str)> = annotations.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        stage.route(name, "shop", Tls::Edge, &annotations)
    };
    let turns = route("turns", &[(name("balance"), "roundrobin"), (name("hsts_header"), "max-age=31536000;preload")])?;
    let same = route("same", &[(name("balance"), "source"), (name("rewrite-target"), "/inner")])?;
    let limit = "rate-limit-connections";
    let few = route("few", &[(name(limit), "true"), (name(&format!("{limit}.rate-http")), "3")])?;
    let _sluice = stage.serve()?;
    let ask = |host: &str| stage.curl(&format!("https://{host}:{HTTPS}/x"), &[]);

    let mut by_turn = BTreeMap::<String, usize>::new();
    for _ in 0..6 {
        let answer = ask(&turns)?;
        ensure!(answer.header("strict-transport-security") == Some("max-age=31536000;preload"), "{answer:?}");
        *by_turn.entry(answer.body).or_default() += 1;
    }
    assert_eq!(by_turn.into_values().collect::<Vec<_>>(), [3, 3]);

    let first = ask(&same)?;
    ensure!(first.body.ends_with(" /inner/x") && first.header("strict-transport-security").is_none(), "{first:?}");
    for _ in 0..6 {
        assert_eq!(ask(&same)?.body, first.body);
    }

    // Three are admitted in 10 s, whichever endpoint serves them.
    let statuses = (0..5).map(|_| Ok(ask(&few)?.status)).collect::<Result<Vec<_>>>()?;
    assert_eq!(statuses, [200, 200, 200, 429, 429]);
    // Responses in clear text, for which the route does not serve, are not affected.
    let clear = stage.curl(&format!("http://{turns}:{HTTP}/"), &[])?;
    assert_eq!((clear.status, clear.header("strict-transport-security")), (503, None));
    Ok(())
}
