//! `sluice explain` and `sluice get conflicts` ask the running router.

use std::ffi::OsStr;
use std::fs;
use std::net::Ipv4Addr;

use anyhow::{Context, Result};
use serde_json::Value;
use tests::folder;
use tests::netns::Netns;
use tests::sluice::{self, DataPath, Options, Sluice};

#[test]
fn explain_names_the_route_the_kernels_verdict_and_who_holds_a_host() -> Result<()> {
    let netns = Netns::new("explain")?;
    let manifests = folder::quickstart(Ipv4Addr::LOCALHOST.into())?;
    let late = folder::route("late", "edge.apps.localhost", "nobody", "");
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

fn explain(router: &Sluice, query: &str) -> Result<(Option<i32>, Value)> {
    let arguments = ["explain", query, "-o", "json", "--state"].map(OsStr::new);
    let output = sluice::run(&[&arguments[..], &[router.state().as_os_str()]].concat())?;
    let explanation =
        serde_json::from_slice(&output.stdout).with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    Ok((output.status.code(), explanation))
}

fn step<'e>(explanation: &'e Value, stage: &str) -> Result<&'e Value> {
    let steps = explanation["steps"].as_array().context("steps")?;
    steps.iter().find(|step| step["stage"] == stage).with_context(|| format!("no {stage} in {explanation:#}"))
}
