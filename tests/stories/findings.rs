//! `sluice get status` shows the connections that the kernel data path leaves to the agent, why, and the remedy.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tests::command;
use tests::netns::Netns;
use tests::sluice::{self, DataPath, Options, Sluice};
use tests::steering::{BACK, BACKEND_PORT, Family, ROUTER_PORT, Setup, Stage};
use tests::tunnel::Tunnel;
use tests::wait::{PATIENCE, wait_until};

use crate::instances;

/// Names of the findings with this reason.
fn names_of(sluice: &Sluice, what: &str, why: &str) -> Result<Vec<String>> {
    let status = sluice.get("status")?;
    let findings = status["findings"].as_array().context("findings")?.iter();
    let mut found =
        findings.filter(|it| it["what"] == what && it["why"].as_str().is_some_and(|text| text.contains(why)));
    let names = found.next().and_then(|found| found["names"].as_array()).into_iter().flatten();
    Ok(names.filter_map(Value::as_str).map(str::to_owned).collect())
}

/// Waits until these have the given reason.
fn reported(sluice: &Sluice, what: &str, why: &str, names: &[&str]) -> Result<()> {
    let mut found = Vec::new();
    wait_until("a finding", PATIENCE, || {
        found = names_of(sluice, what, why).unwrap_or_default();
        names.iter().all(|name| found.iter().any(|found| found == name))
    })
    .map(drop)
    .with_context(|| format!("{why:?} of {found:?} instead of {names:?}"))
}

#[test]
fn everything_relayed_is_reported_with_rule_and_remedy() -> Result<()> {
    let stage = Stage::new(DataPath::Kernel, Setup::new(Family::V4))?;
    stage.connect()?;
    ensure!(names_of(&stage.sluice, "endpoint", "")?.is_empty(), "{}", stage.sluice.get("status")?);
    let _tunnel = Tunnel::lay((&stage.router, "tun0", &["10.81.7.1/24"]), (&stage.backend, "tun0", &["10.81.7.2/24"]))?;
    stage.router.ip(&["link", "add", "br0", "type", "bridge"])?;
    stage.router.ip(&["link", "add", "port", "type", "veth", "peer", "name", "pod"])?;
    stage.router.ip(&["link", "set", "port", "master", "br0"])?;
    stage.router.ip(&["link", "add", "link", "pod", "name", "shared", "type", "macvtap"])?;
    stage.router.set("ipv4/conf/back/rp_filter", "1")?;
    let endpoint = stage.family.address(BACK, 2);
    let rules = format!(
        "table inet story {{
            chain out {{ type filter hook output priority 0; ip daddr {endpoint} drop; }}
            chain pre {{ type nat hook prerouting priority 0; ip daddr {0} tcp dport {ROUTER_PORT} redirect to :1; }}
        }}",
        stage.address.ip()
    );
    stage.router.feed(&["nft", "-f", "-"], &rules)?;

    let sluice = &stage.sluice;
    reported(
        sluice,
        "endpoint",
        "of chain out in table inet story may drop packets to it",
        &[&format!("{endpoint}:9000")],
    )?;
    reported(sluice, "listener", "of chain pre in table inet story may translate", &[&stage.address.to_string()])?;
    reported(sluice, "interface", "it has a master", &["port"])?;
    reported(sluice, "interface", "no Ethernet headers", &["tun0"])?;
    reported(sluice, "interface", "shares the link of another", &["shared"])?;
    reported(sluice, "setting", "routes of IPv6", &["net.ipv6.conf.all.forwarding=0"])?;
    reported(sluice, "setting", "reverse path filter", &["net.ipv4.conf.back.rp_filter=1"])?;

    let output = command::output(
        Command::new(sluice::binary()?).args(["get", "status", "-o", "wide", "--state"]).arg(sluice.state()),
    )?;
    let text = String::from_utf8(output.stdout)?;
    let line = text.lines().find(|line| line.starts_with("endpoint")).with_context(|| text.clone())?;
    ensure!(line.contains("no-endpoint") && line.contains("--host-firewall bypass"), "{text}");

    stage.router.feed(&["nft", "-f", "-"], "flush ruleset")?;
    wait_until("nothing is relayed", PATIENCE, || {
        ["endpoint", "listener"].iter().all(|what| names_of(sluice, what, "").is_ok_and(|names| names.is_empty()))
    })?;
    Ok(())
}

#[test]
fn another_instance_and_an_agent_without_programs_are_reported() -> Result<()> {
    let netns = Netns::new("instances")?;
    let endpoint = SocketAddr::from((Ipv4Addr::LOCALHOST, BACKEND_PORT));
    let manifests = (0..3u16).map(|_| tempfile::TempDir::new()).collect::<std::io::Result<Vec<_>>>()?;
    let start = |number: u16, data_path| {
        let folder = manifests[usize::from(number)].path();
        instances::manifests(folder, endpoint, [8080 + number, 8443 + number])?;
        Sluice::start(&netns, folder, &Options::network(data_path))
    };
    let first = start(0, DataPath::Kernel)?;
    let second = start(1, DataPath::Kernel)?;
    for (one, other) in [(&first, &second), (&second, &first)] {
        reported(one, "instance", "it dials from the ports", &[other.instance()])?;
    }
    let relay = start(2, DataPath::UserSpace)?;
    reported(&relay, "host", "--data-path userspace", &["all connections"])
}
