//! The folders of `router/tests/manifests`, each served by an agent: `maps.txt` is the content of the kernel's maps.
//!
//! `router/tests/manifest_stories` compares the other golden files of these folders, without root. Here `explain` on
//! the running agent must agree with `explain` on the folder, and name the endpoints in the maps. `UPDATE_GOLDENS=1
//! cargo test -p tests --test stories manifests::` rewrites `maps.txt`.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use router_common::maps::names;
use serde_json::Value;
use similar::TextDiff;
use tests::netns::Netns;
use tests::sluice::{self, DataPath, Options, Sluice};
use tests::workspace;

/// Configuration maps, which an agent fills from its manifests.
const MAPS: [&str; 10] = [
    names::LISTENERS,
    names::HTTP_BE,
    names::EDGE_REENCRYPT,
    names::SNI_PASSTHROUGH,
    names::TCP_BE,
    names::ALLOWLISTS,
    names::ROUTES,
    names::POOLS,
    names::SLOTS,
    names::ENDPOINTS,
];
/// A story whose IngressControllers are all rejected: its agent never becomes ready.
const UNSERVED: &str = "refused-controllers";
/// The prompt before the arguments of a question in `explain.txt`.
const QUESTION: &str = "$ sluice ";
/// The addresses of endpoints.
const ENDPOINTS: [&str; 6] =
    ["10.1.0.1/24", "10.1.0.2/24", "10.1.0.3/24", "10.1.0.4/24", "fd00:1::2/64", "fd00:1::3/64"];
/// The ports of endpoints.
const PORTS: [u16; 4] = [5432, 8080, 8443, 50_051];
/// Time-out for maps to become equal to the golden file.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time for which maps must stay the same before they are written to a golden file.
const SETTLED: Duration = Duration::from_secs(2);

#[test]
fn the_maps_of_contours_objects() -> Result<()> {
    serve_all("contour")
}

#[test]
fn the_maps_of_gateway_api() -> Result<()> {
    serve_all("gateway-api")
}

#[test]
fn the_maps_of_openshifts_routes() -> Result<()> {
    serve_all("openshift")
}

/// Serves every story of an API; fails with the differences of all of them.
fn serve_all(api: &str) -> Result<()> {
    let folder = workspace().join("router/tests/manifests").join(api);
    let mut stories: Vec<PathBuf> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    stories.sort();
    ensure!(stories.len() >= 5, "stories are missing: {stories:?}");
    let mut faults = String::new();
    for story in stories.iter().filter(|story| !story.ends_with(UNSERVED)) {
        let found = serve(story).with_context(|| story.display().to_string())?;
        if !found.is_empty() {
            faults += &format!("{}\n{found}", story.display());
        }
    }
    ensure!(faults.is_empty(), "UPDATE_GOLDENS=1 rewrites golden files:\n{faults}");
    Ok(())
}

/// Serves a folder; returns differences from its golden file, and between `explain` and the maps.
fn serve(story: &Path) -> Result<String> {
    let (router, backends) = (Netns::new("manifests")?, Netns::new("backends")?);
    for machine in [&router, &backends] {
        // Without link-local addresses, which would differ at each run.
        machine.set("ipv6/conf/default/addr_gen_mode", "1")?;
    }
    router.link(("eth0", &["10.1.0.254/24", "fd00:1::fe/64"]), &backends, ("eth0", &ENDPOINTS))?;
    // Without listeners, the endpoints would fail health checks, which only the running agent reports.
    let _listeners =
        backends.run(|| PORTS.iter().map(|port| Ok(TcpListener::bind(("::", *port))?)).collect::<Result<Vec<_>>>())?;
    let sluice = Sluice::start(&router, story, &Options::network(DataPath::Kernel))?;

    let golden_file = story.join("maps.txt");
    let golden = fs::read_to_string(&golden_file).unwrap_or_default();
    let is_update = std::env::var_os("UPDATE_GOLDENS").is_some();
    let questions = questions(story);
    let found = settled(&sluice, &questions, (!is_update).then_some(&golden))?;
    let mut faults = agreement(&sluice, story, &questions)?;
    if is_update {
        fs::write(&golden_file, found)?;
    } else if golden != found {
        let diff = TextDiff::from_lines(&golden, &found);
        faults += &diff.unified_diff().header("maps.txt", "what the kernel has").to_string();
    }
    Ok(faults)
}

/// The maps and verdicts, once they are as expected or stable.
fn settled(sluice: &Sluice, questions: &[String], expected: Option<&String>) -> Result<String> {
    let (began, mut since) = (Instant::now(), Instant::now());
    let mut last = maps(sluice, questions)?;
    loop {
        let is_over = if expected.is_some() { began.elapsed() > PATIENCE } else { since.elapsed() > SETTLED };
        if is_over || expected == Some(&last) {
            return Ok(last);
        }
        std::thread::sleep(Duration::from_millis(50));
        let found = maps(sluice, questions)?;
        if found != last {
            (last, since) = (found, Instant::now());
        }
    }
}

/// Entries of the maps, and the programs' decision on each query.
fn maps(sluice: &Sluice, questions: &[String]) -> Result<String> {
    let mut text = String::new();
    for map in MAPS {
        text += &format!("$ sluice bpf dump {map}\n");
        for entry in sluice.dump(map)?.as_array().context("a dump is a list")? {
            text += &format!("{entry}\n");
        }
    }
    for question in questions {
        let explanation = explain(question, &["--state".as_ref(), sluice.state()])?;
        let verdict = step(&explanation, "dataPath").and_then(|step| step["verdict"].as_str());
        text += &format!("{QUESTION}{question}\n{}\n", verdict.unwrap_or("no listener"));
    }
    Ok(text)
}

/// Differences between the running agent's answers and those for the folder, or the kernel's maps.
fn agreement(sluice: &Sluice, story: &Path, questions: &[String]) -> Result<String> {
    let mut faults = String::new();
    let [bpf, diff, instance] = ["bpf", "diff", "--instance"].map(OsStr::new);
    let name = OsStr::new(sluice.instance());
    let diff = sluice::run(&[bpf, diff, instance, name, "--state".as_ref(), sluice.state().as_os_str()])?;
    if !diff.status.success() {
        faults += &format!("the kernel has not what the agent intends:\n{}", String::from_utf8_lossy(&diff.stdout));
    }
    for question in questions {
        let mut live = explain(question, &["--state".as_ref(), sluice.state()])?;
        let offline = explain(question, &["--manifests".as_ref(), story])?;
        let steered = steered_to(sluice, &live)?;
        let told = endpoints(&live);
        if steered.as_ref().is_some_and(|steered| *steered != told) {
            faults += &format!("{question}: the kernel has endpoints {steered:?}, explain says {told:?}\n");
        }
        live["steps"].as_array_mut().context("steps")?.retain(|step| step["stage"] != "dataPath");
        if live != offline {
            let (offline, live) = (format!("{offline:#}\n"), format!("{live:#}\n"));
            let diff = TextDiff::from_lines(&offline, &live);
            faults += &diff.unified_diff().header(&format!("{question} --manifests"), "of the agent").to_string();
        }
    }
    Ok(faults)
}

/// The queries in `explain.txt`; empty without such a file.
fn questions(story: &Path) -> Vec<String> {
    let text = fs::read_to_string(story.join("explain.txt")).unwrap_or_default();
    text.lines().filter_map(|line| line.strip_prefix(QUESTION)).map(str::to_owned).collect()
}

/// The answer to a question, in JSON.
fn explain(question: &str, of: &[&Path]) -> Result<Value> {
    let arguments = shlex::split(question).with_context(|| format!("{question} is no command"))?;
    let mut command = Command::new(sluice::binary()?);
    let output = command.args(arguments).args(["-o", "json"]).args(of).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    // Exit code 4: the query is not served.
    ensure!(matches!(output.status.code(), Some(0 | 4)), "{command:?}: {said}");
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn step<'e>(explanation: &'e Value, stage: &str) -> Option<&'e Value> {
    explanation["steps"].as_array()?.iter().find(|step| step["stage"] == stage)
}

/// Endpoints that `explain` names.
fn endpoints(explanation: &Value) -> BTreeSet<String> {
    let services = step(explanation, "backends").and_then(|step| step["services"].as_array());
    let with_share = services.into_iter().flatten().filter(|service| service["weight"] != 0);
    let endpoints = with_share.flat_map(|service| service["endpoints"].as_array().into_iter().flatten());
    endpoints.filter_map(|endpoint| Some(endpoint.as_str()?.to_owned())).collect()
}

/// Endpoints that the kernel dials for a question; `None` if it passes the connection to the agent.
fn steered_to(sluice: &Sluice, explanation: &Value) -> Result<Option<BTreeSet<String>>> {
    let Some(path) = step(explanation, "dataPath") else { return Ok(None) };
    if !path["verdict"].as_str().is_some_and(|verdict| verdict.starts_with("steer")) {
        return Ok(None);
    }
    let keys = path["keys"].as_array().context("keys")?;
    let route = keys.iter().find_map(|key| key["entry"]["route"].as_u64()).context("a key leads to a route")?;
    let rows = |map: &str, member: &str, value: &Value| -> Result<Vec<Value>> {
        let dump = sluice.dump(map)?;
        Ok(dump.as_array().into_iter().flatten().filter(|row| row[member] == *value).cloned().collect())
    };
    let mut dialed = BTreeSet::new();
    for pool in rows(names::POOLS, "route", &route.into())? {
        for slot in rows(names::SLOTS, "pool", &pool["pool"])? {
            let endpoints = rows(names::ENDPOINTS, "endpoint", &slot["endpoint"])?;
            dialed.extend(endpoints.iter().filter_map(|row| Some(row["address"].as_str()?.to_owned())));
        }
    }
    Ok(Some(dialed))
}
