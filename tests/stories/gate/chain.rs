//! The gate beside programs of libxdp, whose dispatcher has the interface.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use aya::maps::{Map, MapData, PerCpuArray};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tests::command;
use tests::netns::Netns;
use tests::sluice::{self, DataPath};
use tests::steering::{FRONT, Family, Setup, Stage};
use tests::wait::{PATIENCE, wait_until};

use super::common::{guard, is_closed, is_open};

/// A filter of xdp-tools that passes everything, and counts it.
const FILTER: &str = "/usr/lib/x86_64-linux-gnu/bpf/xdpfilt_alw_all.o";
/// Another one.
const OTHER: &str = "/usr/lib/x86_64-linux-gnu/bpf/xdpfilt_alw_tcp.o";
const XDP_PASS: u32 = 2;

/// The programs on the router's front interface that are not Sluice's.
struct Strangers {
    router: Netns,
    client: Netns,
    address: IpAddr,
    maps: PathBuf,
}

impl Strangers {
    fn load(stage: &Stage) -> Result<Strangers> {
        let maps = Path::new("/sys/fs/bpf").join(format!("strangers-{}", stage.sluice.instance()));
        std::fs::create_dir(&maps)?;
        let (router, client) = (stage.router.clone(), stage.client.clone());
        let strangers = Strangers { router, client, address: stage.address.ip(), maps };
        strangers.add(FILTER)?;
        Ok(strangers)
    }

    fn add(&self, object: &str) -> Result<()> {
        let maps = self.maps.to_str().context("a path")?;
        self.loader(&["load", "--mode", "native", "--pin-path", maps, "front", object]).map(drop)
    }

    fn loader(&self, arguments: &[&str]) -> Result<String> {
        let output = command::output(self.router.command("xdp-loader")?.args(arguments))?;
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Names and ids of the programs in the chain, in their order.
    fn chain(&self) -> Result<Vec<(String, String)>> {
        let said = self.loader(&["status", "front"])?;
        let rows = said.lines().filter_map(|line| line.trim_start().strip_prefix("=>"));
        let row = |row: &str| {
            let mut words = row.split_whitespace().skip(1);
            Some((words.next()?.to_owned(), words.next()?.to_owned()))
        };
        rows.map(|text| row(text).with_context(|| said.clone())).collect()
    }

    fn is_chain(&self, expected: &[&str]) -> Result<()> {
        let chain = self.chain()?;
        let names: Vec<&str> = chain.iter().map(|(name, _)| name.as_str()).collect();
        ensure!(names == expected, "{names:?}");
        Ok(())
    }

    fn passed(&self) -> Result<u64> {
        let map = Map::from_map_data(MapData::from_pin(self.maps.join("xdp_stats_map"))?)?;
        let counts: PerCpuArray<_, [u64; 2]> = PerCpuArray::try_from(map)?;
        Ok(counts.get(&XDP_PASS, 0)?.iter().map(|[packets, _]| packets).sum())
    }

    /// Checks that the filter sees what the gate passes: a SYN to a port without a listener.
    fn run(&self) -> Result<()> {
        let (before, address) = (self.passed()?, SocketAddr::new(self.address, 9));
        let refused = self.client.run(|| Ok(TcpStream::connect_timeout(&address, PATIENCE)))?;
        ensure!(refused.as_ref().is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused), "{refused:?}");
        ensure!(self.passed()? > before, "the filter sees nothing");
        Ok(())
    }
}

impl Drop for Strangers {
    fn drop(&mut self) {
        // The interface goes with its namespace; pins do not.
        let _ = self.loader(&["unload", "--all", "front"]);
        let _ = std::fs::remove_dir_all(&self.maps);
    }
}

fn stage(kept: bool) -> Result<Stage> {
    let arguments = ["--xdp", "native"].map(str::to_owned).to_vec();
    Stage::new(DataPath::Kernel, Setup { arguments, kept, ..Setup::new(Family::V4) })
}

fn deny() -> String {
    format!("gate.sluice.dev/deny: \"{}\"", Family::V4.network(FRONT, 0))
}

fn is_beside(gate: &Value) -> bool {
    gate["attached"] == json!(["back (native)", "front (native, beside libxdp's dispatcher)"])
}

/// Kills the agent, and waits until the next one has the gate.
fn succeed(stage: &Stage) -> Result<()> {
    let agents = stage.sluice.agents()?;
    for agent in &agents {
        kill_process(Pid::from_raw(i32::try_from(*agent)?).context("a process id")?, Signal::KILL)?;
    }
    is_closed(stage, "source-denied")?;
    let is_another = || stage.sluice.agents().is_ok_and(|now| !now.is_empty() && now != agents);
    wait_until("the keeper starts another agent", PATIENCE, is_another)?;
    guard(stage, &deny(), |gate| is_beside(gate) && gate["networks"] == json!(1))
}

#[test]
#[ignore = "needs a kernel that lets programs replace functions; run by `cargo xtask verify --kernels`"]
fn the_gate_joins_a_chain_outlives_its_agent_and_leaves() -> Result<()> {
    let stage = stage(true)?;
    let strangers = Strangers::load(&stage)?;
    strangers.is_chain(&["xdpfilt_alw_all"])?;
    strangers.run()?;
    guard(&stage, &deny(), is_beside)?;
    strangers.is_chain(&["sluice_chained", "xdpfilt_alw_all"])?;
    is_closed(&stage, "source-denied")?;
    strangers.run()?;

    succeed(&stage)?;
    strangers.is_chain(&["sluice_chained", "xdpfilt_alw_all"])?;
    is_closed(&stage, "source-denied")?;

    // libxdp makes another dispatcher, and carries the gate on.
    strangers.add(OTHER)?;
    strangers.is_chain(&["sluice_chained", "xdpfilt_alw_all", "xdpfilt_alw_tcp"])?;
    is_closed(&stage, "source-denied")?;
    strangers.run()?;
    let chain = strangers.chain()?;
    let gate = &chain[0].1;
    strangers.loader(&["unload", "--id", gate, "front"])?;
    let is_back = || strangers.chain().is_ok_and(|chain| chain.iter().any(|(name, _)| name == "sluice_chained"));
    wait_until("the gate is back", PATIENCE, is_back)?;
    is_closed(&stage, "source-denied")?;

    guard(&stage, "", Value::is_null)?;
    strangers.is_chain(&["xdpfilt_alw_all", "xdpfilt_alw_tcp"])?;
    strangers.run()?;
    is_open(&stage)
}

#[test]
#[ignore = "needs a kernel that lets programs replace functions; run by `cargo xtask verify --kernels`"]
fn the_gate_goes_on_as_the_last_of_a_chain() -> Result<()> {
    let stage = stage(true)?;
    let strangers = Strangers::load(&stage)?;
    guard(&stage, &deny(), is_beside)?;
    let filter = &strangers.chain()?[1].1;
    strangers.loader(&["unload", "--id", filter, "front"])?;
    strangers.is_chain(&["sluice_chained"])?;
    succeed(&stage)?;
    strangers.is_chain(&["sluice_chained"])?;
    is_closed(&stage, "source-denied")?;
    stage.sluice.stop()?;
    strangers.is_chain(&[])
}

#[test]
#[ignore = "needs a kernel that lets programs replace functions; run by `cargo xtask verify --kernels`"]
fn cleanup_removes_the_gate_from_a_chain_and_nothing_else() -> Result<()> {
    let mut stage = stage(false)?;
    let strangers = Strangers::load(&stage)?;
    guard(&stage, &deny(), is_beside)?;
    stage.sluice.crash()?;
    strangers.is_chain(&["sluice_chained", "xdpfilt_alw_all"])?;
    let cleanup = ["bpf", "cleanup", "--instance", stage.sluice.instance()];
    command::output(stage.router.command(sluice::binary()?)?.args(cleanup))?;
    strangers.is_chain(&["xdpfilt_alw_all"])?;
    strangers.run()
}
