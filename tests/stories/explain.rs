//! `sluice explain` and `sluice get conflicts` on the running router.

use std::ffi::OsStr;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;
use tempfile::TempDir;
use tests::command;
use tests::folder;
use tests::netns::Netns;
use tests::sluice::{self, DataPath, Options, Sluice};

#[test]
fn explain_names_the_route_the_kernels_verdict_and_who_holds_a_host() -> Result<()> {
    let netns = Netns::new("explain")?;
    let manifests = folder::quickstart(Ipv4Addr::LOCALHOST.into())?;
    // Neither has a creation time, so names decide.
    let late = folder::route("late", "edge.apps.localhost", "nobody", "")
        .replace(", creationTimestamp: \"2026-01-01T00:00:00Z\"", "");
    fs::write(manifests.path().join("late.yaml"), late)?;
    let router = Sluice::start(&netns, manifests.path(), &Options::loopback(DataPath::Kernel))?;

    let (code, explanation) = explain(&router, "passthrough.apps.localhost:8443")?;
    assert_eq!(code, Some(0), "{explanation:#}");
    let route = step(&explanation, "route")?;
    assert_eq!([&route["kind"], &route["namespace"], &route["name"]], ["Route", "demo", "passthrough"]);
    let data_path = step(&explanation, "dataPath")?;
    assert_eq!(data_path["mode"], "kernel");
    assert!(data_path["verdict"].as_str().is_some_and(|text| text.ends_with("(passthrough)")), "{data_path}");
    let keys = data_path["keys"].as_array().context("keys")?;
    let in_map = |map: &str| keys.iter().find(|key| key["map"] == map && key["host"] == "passthrough.apps.localhost");
    let entry = in_map("tcp_be").context("a key of tcp_be")?;
    assert!(entry["value"].as_str().is_some_and(|text| text.starts_with("be_tcp:demo:passthrough")), "{entry}");

    let (code, explanation) = explain(&router, "https://nowhere.apps.localhost:8443/a b")?;
    assert_eq!((code, &explanation["served"]), (Some(4), &Value::Bool(false)), "{explanation:#}");

    let conflicts = router.get("conflicts")?;
    let lost = conflicts.as_array().into_iter().flatten().find(|row| row["name"] == "late").context("late lost")?;
    assert_eq!(lost["host"], "edge.apps.localhost");
    assert_eq!(lost["winner"]["object"], "Route demo/edge", "{lost}");
    Ok(())
}

#[test]
fn explain_shows_what_the_maps_really_hold() -> Result<()> {
    let netns = Netns::new("explain-maps")?;
    let manifests = folder::quickstart(Ipv4Addr::LOCALHOST.into())?;
    let router = Sluice::start(&netns, manifests.path(), &Options::loopback(DataPath::Kernel))?;
    let host = "passthrough.apps.localhost";
    let in_map = |map: &str| -> Result<(Value, String)> {
        let (_, explanation) = explain(&router, host)?;
        let data_path = step(&explanation, "dataPath")?;
        let keys = data_path["keys"].as_array().context("keys")?;
        let key = keys.iter().find(|key| key["map"] == map && key["host"] == host).context("a key")?;
        Ok((key.clone(), data_path["verdict"].as_str().unwrap_or_default().to_owned()))
    };
    let (key, verdict) = in_map("tcp_be")?;
    let dump = router.dump("tcp_be")?;
    assert!(dump.as_array().into_iter().flatten().any(|entry| *entry == key["entry"]), "{key} is not in {dump}");
    assert_eq!((&key["problem"], verdict.contains("they do not")), (&Value::Null, false), "{verdict}");

    // Without notifying the router.
    let dump = router.bpftool_json("dump", "tcp_be")?;
    let entries = dump.as_array().context("a list")?;
    let entry = entries.iter().find(|entry| entry["formatted"]["key"]["host"] == host).context("the entry")?;
    let bytes = entry["key"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut delete = Command::new("bpftool");
    delete.args(["map", "delete", "pinned"]).arg(router.pin("tcp_be")).args(["key", "hex"]);
    command::output(delete.args(bytes.map(|byte| byte.trim_start_matches("0x"))))?;
    let (key, verdict) = in_map("tcp_be")?;
    assert_eq!((&key["value"], &key["entry"]), (&Value::Null, &Value::Null));
    let problem = key["problem"].as_str().context("a problem")?;
    assert!(problem.starts_with("missing: should be be_tcp:demo:passthrough, route "), "{problem}");
    assert!(verdict.contains("they do not"), "{verdict}");
    Ok(())
}

#[test]
fn explain_says_whether_a_client_may_connect() -> Result<()> {
    let netns = Netns::new("explain-from")?;
    let manifests = folder::quickstart(Ipv4Addr::LOCALHOST.into())?;
    let path = manifests.path().join("40-passthrough.yaml");
    let list = "metadata:\n  annotations: {haproxy.router.openshift.io/ip_allowlist: 192.0.2.0/24}\n";
    let text = fs::read_to_string(&path)?;
    let (before, route) = text.split_once("kind: Route\nmetadata:\n").context("the route")?;
    fs::write(&path, format!("{before}kind: Route\n{list}{route}"))?;
    let router = Sluice::start(&netns, manifests.path(), &Options::loopback(DataPath::Kernel))?;
    for (client, code, admitted, verdict) in
        [("192.0.2.7", Some(0), true, "(passthrough)"), ("198.51.100.7", Some(4), false, "(source-not-allowed)")]
    {
        let (found, explanation) = explain_to(&router, "passthrough.apps.localhost", &["--from", client])?;
        assert_eq!(found, code, "{explanation:#}");
        assert_eq!(step(&explanation, "filter")?["client"]["admitted"], admitted, "{explanation:#}");
        let data_path = step(&explanation, "dataPath")?;
        assert!(data_path["verdict"].as_str().is_some_and(|text| text.ends_with(verdict)), "{data_path}");
        let nets = data_path["allow"].as_array().context("networks")?;
        let nets: Vec<_> = nets.iter().map(|net| (&net["source"], &net["problem"])).collect();
        assert_eq!(nets, [(&Value::from("192.0.2.0/24"), &Value::Null)]);
    }
    Ok(())
}

/// The complete output of `sluice get` for humans.
#[test]
fn get_prints_routes_conflicts_and_listeners_as_tables() -> Result<()> {
    let netns = Netns::new("get")?;
    let manifests = TempDir::new()?;
    let route = |name, host, spec| {
        folder::route(name, host, "web", spec).replace(", creationTimestamp: \"2026-01-01T00:00:00Z\"", "")
    };
    let objects = folder::router()
        + &folder::service("web", SocketAddr::from((Ipv4Addr::new(10, 0, 0, 7), 8080)))
        + &route("a", "shop.apps.test", folder::PASSTHROUGH)
        + &route("b", "shop.apps.test", folder::PASSTHROUGH)
        + &route("c", "home.apps.test", "  path: /c\n  tls: {termination: edge}\n")
        + &route("d", "www.apps.test", "  wildcardPolicy: Subdomain\n");
    fs::write(manifests.path().join("all.yaml"), objects)?;
    let router = Sluice::start(&netns, manifests.path(), &Options::loopback(DataPath::UserSpace))?;
    for (what, expected) in [
        (
            "routes",
            "
KIND    NAMESPACE   NAME   PARENT    HOST             PATH   TERMINATION   STATE      REASON
Route   test        a      default   shop.apps.test   -      passthrough   admitted   -
Route   test        b      default   shop.apps.test   -      -             rejected   HostAlreadyClaimed
Route   test        c      default   home.apps.test   /c     edge          admitted   -
Route   test        d      default   www.apps.test    -      -             rejected   RouteNotAdmitted",
        ),
        (
            "conflicts",
            "
KIND    NAMESPACE   NAME   PARENT    HOST             WINNER         WINNER'S AGE
Route   test        b      default   shop.apps.test   Route test/a   -",
        ),
        (
            "listeners",
            "
ROUTER    PROTOCOL   ADDRESS        STATE   LISTENER   HOSTNAME   ROUTES   REASON
default   http       0.0.0.0:8080   bound   -          -          -        -
default   http       [::]:8080      bound   -          -          -        -
default   https      0.0.0.0:8443   bound   -          -          -        -
default   https      [::]:8443      bound   -          -          -        -",
        ),
    ] {
        let arguments = ["get", what, "--state"].map(OsStr::new);
        let output = sluice::run(&[&arguments[..], &[router.state().as_os_str()]].concat())?;
        let found = String::from_utf8(output.stdout)?;
        assert_eq!(found.trim_end(), expected.trim_start_matches('\n'), "found:\n{found}");
    }
    Ok(())
}

fn explain(router: &Sluice, query: &str) -> Result<(Option<i32>, Value)> {
    explain_to(router, query, &[])
}

fn explain_to(router: &Sluice, query: &str, options: &[&str]) -> Result<(Option<i32>, Value)> {
    let arguments = [&["explain", query, "-o", "json"], options, &["--state"]].concat();
    let arguments: Vec<&OsStr> = arguments.into_iter().map(OsStr::new).collect();
    let output = sluice::run(&[&arguments[..], &[router.state().as_os_str()]].concat())?;
    let explanation =
        serde_json::from_slice(&output.stdout).with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    Ok((output.status.code(), explanation))
}

fn step<'e>(explanation: &'e Value, stage: &str) -> Result<&'e Value> {
    let steps = explanation["steps"].as_array().context("steps")?;
    steps.iter().find(|step| step["stage"] == stage).with_context(|| format!("no {stage} in {explanation:#}"))
}
