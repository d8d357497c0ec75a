//! `sluice run --kernel-log`: the log lines of the kernel program about a connection, and their absence.

use std::io::Write;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tests::hello::client_hello;
use tests::sluice::DataPath;
use tests::steering::{Family, HOST, Setup, Stage};
use tests::{stream, wait};

const ALL: &str = "info,sluice::kernel=trace";

fn setup(log: &'static str) -> Setup {
    Setup { log: Some(log), arguments: vec!["--kernel-log".to_owned()], ..Setup::new(Family::V4) }
}

/// Lines logged by the kernel program so far.
fn lines(stage: &Stage) -> Vec<String> {
    stage.sluice.output().into_iter().filter(|line| line.contains(" sluice::kernel: ")).collect()
}

/// Waits for a line that contains all of these parts.
fn logged(stage: &Stage, parts: &[&str]) -> Result<()> {
    let is_there = || lines(stage).iter().any(|line| parts.iter().all(|part| line.contains(part)));
    wait::wait_until("the line is logged", wait::PATIENCE, is_there)
        .with_context(|| format!("{parts:?} is not in\n{}", lines(stage).join("\n")))?;
    Ok(())
}

#[test]
fn a_connection_is_logged_from_its_decision_to_its_end() -> Result<()> {
    let stage = Stage::new(DataPath::Kernel, setup(ALL))?;
    let pair = stage.connect()?;
    let client = pair.client.local_addr()?.port().to_string();
    pair.exchange(1, 100_000, 100_000)?;
    let host = format!(" host={HOST} ");
    let of_client = format!(" client=::ffff:10.81.1.2 port={client}");
    logged(&stage, &["steer passthrough", &host, &of_client, " listener=::ffff:10.81.1.1 port=8443"])?;
    logged(&stage, &["dial endpoint=::ffff:10.81.2.2 port=9000 ", " attempt=1", &of_client])?;
    logged(&stage, &["carried endpoint=::ffff:10.81.2.2 port=9000 "])?;
    logged(&stage, &["end finished", &of_client, " endpoint=::ffff:10.81.2.2 port=9000 "])?;

    let mut unknown = stream::open(&stage.client, stage.address)?;
    unknown.write_all(&client_hello("unknown.apps.test")?)?;
    logged(&stage, &["pass unknown-sni", " host=unknown.apps.test ", " route=0 "])
}

#[test]
fn levels_that_the_filter_leaves_out_are_not_logged() -> Result<()> {
    let stage = Stage::new(DataPath::Kernel, setup("info,sluice::kernel=debug"))?;
    stage.connect()?.exchange(1, 100_000, 100_000)?;
    logged(&stage, &["end finished"])?;
    ensure!(!lines(&stage).iter().any(|line| line.contains("carried")), "{:?}", lines(&stage));

    let stage = Stage::new(DataPath::Kernel, setup("info"))?;
    ensure!(stage.sluice.output().iter().any(|line| line.contains("--kernel-log has no effect")));
    nothing_is_logged(&stage)
}

#[test]
fn without_the_option_nothing_is_logged() -> Result<()> {
    nothing_is_logged(&Stage::new(DataPath::Kernel, Setup { log: Some(ALL), ..Setup::new(Family::V4) })?)
}

fn nothing_is_logged(stage: &Stage) -> Result<()> {
    stage.connect()?.exchange(1, 100_000, 100_000)?;
    stage.all_ended()?;
    wait::hold(Duration::from_millis(200), || {
        ensure!(lines(stage).is_empty(), "{:?}", lines(stage));
        Ok(())
    })
}

/// The ring is removed with its agent: connections continue, and the next agent's programs log into their own.
#[test]
fn the_next_agent_goes_on_to_log() -> Result<()> {
    let stage = Stage::new(DataPath::Kernel, Setup { kept: true, ..setup(ALL) })?;
    let before = stage.connect()?;
    before.greet()?;
    let agents = stage.sluice.agents()?;
    let [killed] = agents[..] else { bail!("one agent is expected to run: {agents:?}") };
    let pid = i32::try_from(killed).ok().and_then(Pid::from_raw).context("a process id is positive")?;
    kill_process(pid, Signal::KILL)?;
    wait::wait_until("the next agent is ready", wait::PATIENCE, || {
        stage.sluice.output().iter().filter(|line| *line == "sluice: ready").count() == 2
    })?;
    before.exchange(1, 1_000_000, 1_000_000)?;
    let after = stage.connect()?;
    let client = format!(" port={} ", after.client.local_addr()?.port());
    after.exchange(2, 100_000, 100_000)?;
    logged(&stage, &["steer passthrough", &client])
}
