//! Forwarding of established connections in XDP: over two veth pairs, whose other ends have GRO, so that they receive what XDP
//! sends.

use anyhow::{Context, Result, ensure};
use router_common::verdict::DialCounter;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tests::command;
use tests::netns::Netns;
use tests::sluice::DataPath;
use tests::steering::{Family, Setup, Stage, hello};
use tests::stream::{GREETING, Pair};
use tests::wait::{PATIENCE, wait_until};

/// Bytes each way of a transfer.
const LENGTH: u64 = 5_000_000;
/// Packets that XDP forwards before a transfer begins. Of the transfer's a busy machine forwards fewer, as others go by TC: while it
/// finds next hops, on each processor, all that arrive at once; and those after the first FIN.
const MANY: u64 = 100;

/// A router that forwards; with `offloads`, senders leave checksums to their links.
fn stage(family: Family, mode: &str, setup: Setup) -> Result<Stage> {
    let arguments = ["--xdp", mode, "--xdp-forward"].map(str::to_owned).to_vec();
    let stage = Stage::new(DataPath::Kernel, Setup { arguments, ..setup })?;
    stage.router.set(family.forwarding(), "1")?;
    for end in [&stage.client, &stage.backend] {
        set(end, "gro", "on")?;
    }
    Ok(stage)
}

fn set(end: &Netns, feature: &str, value: &str) -> Result<()> {
    command::output(end.command("ethtool")?.args(["-K", "eth0", feature, value])).map(drop)
}

fn bare(family: Family) -> Setup {
    Setup { offloads: false, ..Setup::new(family) }
}

/// Waits until XDP forwards between these interfaces.
fn forwards(stage: &Stage, interfaces: &[&str]) -> Result<()> {
    let in_force = || {
        let status = stage.sluice.get("status");
        status.is_ok_and(|status| status["dataPath"]["gate"]["forwards"] == json!(interfaces))
    };
    let waited = wait_until(&format!("XDP forwards between {interfaces:?}"), PATIENCE, in_force);
    waited.map(drop).with_context(|| format!("{:#?}", stage.sluice.get("status")))
}

/// Has both ends speak in turn until XDP has forwarded many packets; returns how many bytes each end sent.
fn speaks(stage: &Stage, pair: &Pair) -> Result<u64> {
    const TIMES: u64 = 20;
    let before = stage.dial_counter(DialCounter::XdpForwarded)?;
    let (mut bytes, mut result) = (0, Ok(()));
    wait_until("XDP forwards what they say", PATIENCE, || {
        result = (0..TIMES).try_for_each(|_| pair.greet());
        bytes += TIMES * GREETING;
        result.is_err() || stage.dial_counter(DialCounter::XdpForwarded).is_ok_and(|now| now > before + MANY)
    })?;
    result.map(|()| bytes)
}

/// Waits until the status says why XDP does not forward from or to some interfaces.
fn does_not(stage: &Stage, names: &[&str], reason: &str) -> Result<()> {
    let is_it = |finding: &Value| {
        finding["names"] == json!(names) && finding["why"].as_str().is_some_and(|why| why.contains(reason))
    };
    let is_said = || {
        let status = stage.sluice.get("status");
        status.is_ok_and(|status| status["findings"].as_array().is_some_and(|findings| findings.iter().any(is_it)))
    };
    let waited = wait_until(&format!("{names:?}: {reason}"), PATIENCE, is_said);
    waited.map(drop).with_context(|| format!("{:#?}", stage.sluice.get("status")))
}

/// The number behind `field=` in the access log's line of the only connection.
fn logged(stage: &Stage, field: &str) -> Result<u64> {
    let output = stage.sluice.output();
    let line = output.iter().find(|line| line.contains(" access: ")).context("a line")?;
    let number = line.split(&format!("{field}=")).nth(1).and_then(|rest| rest.split(' ').next()).context("a number")?;
    Ok(number.parse()?)
}

#[test]
fn established_connections_are_forwarded_by_xdp() -> Result<()> {
    for family in [Family::V4, Family::V6] {
        let stage = stage(family, "native", bare(family))?;
        forwards(&stage, &["back", "front"])?;
        let pair = stage.connect()?;
        let said = speaks(&stage, &pair).with_context(|| format!("{family:?}"))?;
        pair.exchange(1, LENGTH, LENGTH).with_context(|| format!("{family:?}"))?;
        ensure!(stage.dial_counter(DialCounter::Untranslated)? == 0);
        stage.all_ended()?;
        stage.carried(1)?;
        // With what was sent again.
        for (field, sent) in [("bytes_in", said + LENGTH + hello()?.len() as u64), ("bytes_out", said + LENGTH)] {
            let counted = logged(&stage, field)?;
            ensure!((sent..sent + sent / 10).contains(&counted), "{field}={counted} of {sent}");
        }
        stage.nothing_is_left()?;
    }
    Ok(())
}

#[test]
fn frames_whose_checksum_is_left_to_hardware_go_by_tc() -> Result<()> {
    let stage = stage(Family::V4, "native", Setup::new(Family::V4))?;
    forwards(&stage, &["back", "front"])?;
    stage.connect()?.exchange(1, LENGTH, LENGTH)?;
    let forwarded = stage.dial_counter(DialCounter::XdpForwarded)?;
    ensure!(forwarded == 0, "{forwarded} packets");
    // In one direction only.
    set(&stage.client, "tx", "off")?;
    let pair = stage.connect()?;
    speaks(&stage, &pair)?;
    pair.exchange(2, LENGTH, LENGTH)?;
    stage.carried(2)
}

#[test]
fn forwarding_outlives_its_agent_and_the_next_one_goes_on() -> Result<()> {
    let stage = stage(Family::V4, "native", Setup { kept: true, ..bare(Family::V4) })?;
    forwards(&stage, &["back", "front"])?;
    let pairs = [stage.connect()?, stage.connect()?];
    pairs.iter().try_for_each(|pair| pair.greet())?;
    let agents = stage.sluice.agents()?;
    for agent in &agents {
        kill_process(Pid::from_raw(i32::try_from(*agent)?).context("a process id")?, Signal::KILL)?;
    }
    let [first, second] = pairs;
    speaks(&stage, &first)?;
    first.exchange(1, LENGTH, LENGTH)?;
    let is_another = || stage.sluice.agents().is_ok_and(|now| !now.is_empty() && now != agents);
    wait_until("the keeper starts another agent", PATIENCE, is_another)?;
    forwards(&stage, &["back", "front"])?;
    speaks(&stage, &second)?;
    second.exchange(2, LENGTH, LENGTH)?;
    stage.all_ended()
}

#[test]
fn the_status_says_where_xdp_does_not_forward_and_why() -> Result<()> {
    let stage = stage(Family::V4, "native", bare(Family::V4))?;
    forwards(&stage, &["back", "front"])?;
    let shaped = ["qdisc", "replace", "dev", "back", "root", "tbf", "rate", "1gbit", "burst", "1mb", "latency", "50ms"];
    command::output(stage.router.command("tc")?.args(shaped))?;
    does_not(&stage, &["back"], "its queueing discipline tbf would miss packets")?;
    does_not(&stage, &["front"], "no other interface can")?;
    let before = stage.dial_counter(DialCounter::XdpForwarded)?;
    stage.connect()?.exchange(1, 100_000, 100_000)?;
    ensure!(stage.dial_counter(DialCounter::XdpForwarded)? == before);
    command::output(stage.router.command("tc")?.args(["qdisc", "delete", "dev", "back", "root"]))?;
    forwards(&stage, &["back", "front"])?;
    set(&stage.client, "gro", "off")?;
    does_not(&stage, &["front"], "has neither an XDP program nor GRO")?;
    stage.connect()?.exchange(2, 100_000, 100_000)?;

    for (mode, reason) in
        [("auto", "it is an end of a veth pair"), ("generic", "XDP is not in its driver"), ("off", "`--xdp off`")]
    {
        let stage = self::stage(Family::V4, mode, bare(Family::V4))?;
        does_not(&stage, &["back", "front"], reason)?;
        stage.connect()?.exchange(1, 100_000, 100_000)?;
        ensure!(stage.dial_counter(DialCounter::XdpForwarded)? == 0);
    }
    Ok(())
}
