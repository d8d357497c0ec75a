//! A router with a policy of the gate, and its reports.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::net::{IpAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tests::sluice::{self, DataPath};
use tests::steering::{Family, HOST, ROUTER_PORT, Setup, Stage};
use tests::stream;
use tests::wait::{PATIENCE, wait_until};

/// Time-out of a client that gets no answer.
pub const UNANSWERED: Duration = Duration::from_secs(1);

pub fn stage(family: Family, mode: &str) -> Result<Stage> {
    let arguments = ["--xdp", mode].map(str::to_owned).to_vec();
    Stage::new(DataPath::Kernel, Setup { arguments, ..Setup::new(family) })
}

/// Gives the router a policy, and waits until it is in force; with "" until there is none.
pub fn guard(stage: &Stage, annotations: &str, is_there: impl Fn(&Value) -> bool) -> Result<()> {
    stage.annotate_router(annotations)?;
    let in_force = || stage.sluice.get("status").is_ok_and(|status| is_there(&status["dataPath"]["gate"]));
    let what = format!("the policy {annotations:?} is in force");
    wait_until(&what, PATIENCE, in_force).map(drop).with_context(|| format!("{:#?}", stage.sluice.get("status")))
}

pub fn is_attached(mode: &'static str) -> impl Fn(&Value) -> bool {
    move |gate| gate["attached"] == json!([format!("back ({mode})"), format!("front ({mode})")])
}

/// Checks that a client can connect.
pub fn is_open(stage: &Stage) -> Result<()> {
    stream::open(&stage.client, stage.address).map(drop)
}

/// Checks that a client gets no answer, because its packets are rejected for a reason.
pub fn is_closed(stage: &Stage, reason: &str) -> Result<()> {
    let (before, address) = (rejected(stage, reason)?, stage.address);
    let connected = stage.client.run(|| Ok(TcpStream::connect_timeout(&address, UNANSWERED)))?;
    ensure!(connected.as_ref().is_err_and(|error| error.kind() == ErrorKind::TimedOut), "{connected:?}");
    ensure!(rejected(stage, reason)? > before, "nothing is rejected as {reason}");
    Ok(())
}

/// Number of packets that were rejected for a reason.
pub fn rejected(stage: &Stage, reason: &str) -> Result<u64> {
    let rows = stage.sluice.dump("reason_stats")?;
    let row = rows.as_array().context("rows")?.iter().find(|row| row["reason"] == reason);
    Ok(row.and_then(|row| row["connections"].as_u64()).unwrap_or_default())
}

/// What `sluice explain` says of the stage's host for a client.
pub fn explain(stage: &Stage, client: IpAddr) -> Result<String> {
    explain_host(stage, &format!("{HOST}:{ROUTER_PORT}"), client)
}

pub fn explain_host(stage: &Stage, host: &str, client: IpAddr) -> Result<String> {
    let client = client.to_string();
    let arguments = ["explain", host, "--from", &client, "--state"].map(OsStr::new);
    let output = sluice::run(&[&arguments[..], &[stage.sluice.state().as_os_str()]].concat())?;
    Ok(String::from_utf8(output.stdout)?)
}
