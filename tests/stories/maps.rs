//! The kernel maps of a running router, read with `bpftool` and with `sluice bpf`.

use std::net::Ipv4Addr;

use anyhow::{Context, Result, ensure};
use router_common::maps::names;
use serde_json::Value;
use tests::client::Client;
use tests::netns::Netns;
use tests::nginx::{self, Nginx};
use tests::sluice::{DataPath, Options, Sluice};
use tests::wait::{PATIENCE, wait_for};
use tests::workspace;

/// Every map of interest to operators.
const MAPS: [&str; 13] = [
    names::LISTENERS,
    names::HTTP_BE,
    names::EDGE_REENCRYPT,
    names::TCP_BE,
    names::SNI_PASSTHROUGH,
    names::ALLOWLISTS,
    names::HANDSHAKES,
    names::HELLOS,
    names::SHORT_HELLOS,
    names::VERDICTS,
    names::ROUTE_STATS,
    names::REASON_STATS,
    names::EVENTS,
];

#[test]
fn bpftool_lists_the_maps_and_shows_the_hosts_as_text() -> Result<()> {
    let netns = Netns::new("maps")?;
    let sluice = quickstart(&netns)?;
    for map in MAPS {
        let shown = sluice.bpftool_json("show", map)?;
        assert_eq!(shown["name"], map, "{shown}");
    }
    for (map, hosts, others) in [
        (names::HTTP_BE, &["hello", "edge"][..], &["reencrypt", "passthrough"][..]),
        (names::EDGE_REENCRYPT, &["edge", "reencrypt"], &["hello", "passthrough"]),
        (names::TCP_BE, &["passthrough"], &["hello", "edge", "reencrypt"]),
        (names::SNI_PASSTHROUGH, &["passthrough"], &["hello", "edge", "reencrypt"]),
    ] {
        let dump = sluice.bpftool("dump", map)?;
        let quoted = |name: &str| format!("\"{name}.apps.localhost\"");
        for host in hosts {
            assert!(dump.contains(&quoted(host)), "{host} is not in {map}:\n{dump}");
        }
        for other in others {
            assert!(!dump.contains(&quoted(other)), "{other} is in {map}:\n{dump}");
        }
    }
    // The backend names that OpenShift's support procedure greps for.
    assert!(sluice.bpftool("dump", names::TCP_BE)?.contains("\"be_tcp:demo:passthrough\""));
    assert!(sluice.bpftool("dump", names::HTTP_BE)?.contains("\"be_http:demo:hello\""));
    Ok(())
}

#[test]
fn each_connection_leaves_its_verdict_and_counts_for_its_route() -> Result<()> {
    let netns = Netns::new("verdicts")?;
    let _nginx = Nginx::start(&netns, &nginx::quickstart(Ipv4Addr::LOCALHOST.into()))?;
    let sluice = quickstart(&netns)?;
    let client = Client::of(&netns, Ipv4Addr::LOCALHOST.into());
    let cases = [
        ("https://passthrough.apps.localhost:8443/", "passthrough", "steer"),
        ("https://edge.apps.localhost:8443/", "tls-terminate", "pass"),
        ("https://reencrypt.apps.localhost:8443/", "tls-terminate", "pass"),
        ("http://nobody.apps.localhost:8080/", "unknown-host", "pass"),
        // Redirects are answered by the proxy.
        ("http://edge.apps.localhost:8080/", "needs-proxy", "pass"),
    ];
    for (i, (url, reason, verdict)) in cases.iter().enumerate() {
        client.get(url)?;
        let seen = entries(&sluice, names::VERDICTS)?;
        assert_eq!(seen.len(), i + 1, "one more verdict after {url}: {seen:?}");
        let newest = seen.iter().max_by_key(|entry| entry["atNs"].as_u64()).context("a verdict")?;
        assert_eq!(
            (&newest["reason"], &newest["verdict"]),
            (&Value::from(*reason), &Value::from(*verdict)),
            "{newest}"
        );
    }
    let reasons = entries(&sluice, names::REASON_STATS)?;
    let count = |reason: &str| reasons.iter().find(|e| e["reason"] == reason).and_then(|e| e["connections"].as_u64());
    assert_eq!(
        (count("passthrough"), count("tls-terminate"), count("unknown-host"), count("needs-proxy")),
        (Some(1), Some(2), Some(1), Some(1))
    );
    // Counters per route: each of the four that matched a route counts one; edge counts two.
    let route_of = |map: &str, host: &str| -> Result<u64> {
        let found = entries(&sluice, map)?.into_iter().find(|entry| entry["host"] == host);
        found.and_then(|entry| entry["route"].as_u64()).with_context(|| format!("{host} in {map}"))
    };
    let stats = entries(&sluice, names::ROUTE_STATS)?;
    for (map, name, field, connections) in [
        (names::TCP_BE, "passthrough", "steer", 1),
        (names::EDGE_REENCRYPT, "reencrypt", "pass", 1),
        (names::EDGE_REENCRYPT, "edge", "pass", 2),
    ] {
        let route = route_of(map, &format!("{name}.apps.localhost"))?;
        let counted = stats.iter().find(|entry| entry["route"] == route).and_then(|entry| entry[field].as_u64());
        assert_eq!(counted, Some(connections), "{field} of {name}: {stats:?}");
    }
    Ok(())
}

#[test]
fn the_maps_follow_the_folder() -> Result<()> {
    let netns = Netns::new("follow")?;
    let manifests = tests::folder::quickstart(Ipv4Addr::LOCALHOST.into())?;
    let sluice = Sluice::start(&netns, manifests.path(), &Options::loopback(DataPath::Kernel))?;
    let file = manifests.path().join("40-passthrough.yaml");
    let text = std::fs::read_to_string(&file)?.replace("passthrough.apps.localhost", "renamed.apps.localhost");
    tests::folder::replace(&file, &text)?;
    let hosts = || -> Result<Vec<Value>> {
        Ok(entries(&sluice, names::SNI_PASSTHROUGH)?.into_iter().map(|entry| entry["host"].clone()).collect())
    };
    wait_for("the new host has taken the old one's place", PATIENCE, || {
        hosts().ok().filter(|hosts| *hosts == ["renamed.apps.localhost"])
    })?;
    std::fs::remove_file(&file)?;
    wait_for("the host is gone", PATIENCE, || hosts().ok().filter(Vec::is_empty))?;
    Ok(())
}

fn quickstart(netns: &Netns) -> Result<Sluice> {
    Sluice::start(netns, &workspace().join("examples/quickstart"), &Options::loopback(DataPath::Kernel))
}

fn entries(sluice: &Sluice, map: &str) -> Result<Vec<Value>> {
    let dump = sluice.dump(map)?;
    let entries = dump.as_array().or_else(|| dump["entries"].as_array());
    ensure!(entries.is_some(), "`sluice bpf dump {map} -o json` prints a list: {dump}");
    Ok(entries.cloned().unwrap_or_default())
}
