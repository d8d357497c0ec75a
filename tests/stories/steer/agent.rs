//! Connections while the agent is gone or stopped, and while their route changes.

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tests::hello::client_hello;
use tests::sluice::DataPath;
use tests::steering::{BACK, BACKEND_PORT, Family, HOST, Setup, Stage};
use tests::stream::{self, Pair};
use tests::wait;

on_both_data_paths! {
    a_connection_outlives_its_host,
    a_connection_outlives_its_endpoint,
}

/// Bytes each way after the event.
const LENGTH: u64 = 20_000_000;

#[test]
fn connections_go_on_without_an_agent() -> Result<()> {
    for family in [Family::V4, Family::V6] {
        let stage = Stage::new(DataPath::Kernel, Setup::new(family))?;
        let pairs = (0..4).map(|_| stage.connect()).collect::<Result<Vec<_>>>()?;
        pairs.iter().try_for_each(Pair::greet)?;
        // During a transfer.
        thread::scope(|scope| {
            let transfers: Vec<_> =
                (0..).zip(pairs).map(|(seed, pair)| scope.spawn(move || pair.exchange(seed, LENGTH, LENGTH))).collect();
            stage.sluice.signal(Signal::KILL)?;
            transfers.into_iter().try_for_each(stream::joined)
        })?;
    }
    Ok(())
}

/// The next agent adopts the maps of the killed one, and the connections in them.
#[test]
fn a_killed_agents_connections_are_the_next_ones() -> Result<()> {
    let stage = Stage::new(DataPath::Kernel, Setup { kept: true, ..Setup::new(Family::V4) })?;
    let before = stage.connect()?;
    before.greet()?;
    let agents = stage.sluice.agents()?;
    let [killed] = agents[..] else { bail!("one agent is expected to run: {agents:?}") };
    let pid = i32::try_from(killed).ok().and_then(Pid::from_raw).context("a process id is positive")?;
    kill_process(pid, Signal::KILL)?;
    wait::wait_until("the next agent is ready", wait::PATIENCE, || {
        stage.sluice.output().iter().filter(|line| *line == "sluice: ready").count() == 2
    })?;
    ensure!(!stage.sluice.agents()?.contains(&killed), "the killed agent runs");
    before.exchange(1, 1_000_000, 1_000_000)?;
    stage.connect()?.exchange(2, 100_000, 100_000)?;
    stage.nothing_is_left()
}

/// A stopped agent keeps its listening sockets: the kernel program continues to dial, without the agent.
#[test]
fn new_connections_need_no_instruction_of_the_agent() -> Result<()> {
    let stage = Stage::new(DataPath::Kernel, Setup::new(Family::V4))?;
    let before = stage.connect()?;
    stage.sluice.signal(Signal::STOP)?;
    before.exchange(1, LENGTH, LENGTH)?;
    for seed in 0..50 {
        stage.connect()?.exchange(seed, 100_000, 100_000)?;
    }
    stage.sluice.signal(Signal::CONT)?;
    stage.connect()?.greet()
}

fn a_connection_outlives_its_host(data_path: DataPath) -> Result<()> {
    const OTHER: &str = "other.apps.test";
    let setup = Setup::new(Family::V4);
    let endpoints = setup.endpoints.clone();
    let stage = Stage::new(data_path, setup)?;
    let old = stage.connect()?;
    old.greet()?;
    stage.change(OTHER, &endpoints)?;
    wait::wait_for("the new host is served", wait::PATIENCE, || serves(&stage, OTHER).ok().filter(|served| *served))?;
    old.greet()?;
    // The old host is unclaimed now; the old connection continues.
    ensure!(!serves(&stage, HOST)?, "the old host is still served");
    old.exchange(2, LENGTH, LENGTH)
}

/// True if the router's table has a route for a host.
fn serves(stage: &Stage, host: &str) -> Result<bool> {
    let routes = stage.sluice.get("routes")?;
    let routes = routes.as_array().context("a list")?;
    Ok(routes.iter().any(|route| route["host"] == host && route["state"] == "admitted"))
}

fn a_connection_outlives_its_endpoint(data_path: DataPath) -> Result<()> {
    let stage = Stage::new(data_path, Setup::new(Family::V4))?;
    let old = stage.connect()?;
    old.greet()?;
    // Another address replaces the endpoint.
    let new = SocketAddr::new(stage.family.address(BACK, 3), BACKEND_PORT + 1);
    let listener = stage.backend.run(|| Ok(TcpListener::bind(new)?))?;
    stage.change(HOST, &[new])?;
    let hello = client_hello(HOST)?;
    let (replaced, _) = wait::wait_for("connections go to the new endpoint", wait::PATIENCE, || {
        reaches(&stage, &listener, &hello).transpose()
    })?;
    replaced?.exchange(3, 100_000, 100_000)?;
    old.exchange(4, LENGTH, LENGTH)
}

/// A connection if it reaches this listener, and not the stage's own.
fn reaches(stage: &Stage, listener: &TcpListener, hello: &[u8]) -> Result<Option<Pair>> {
    let mut client = stream::open(&stage.client, stage.address)?;
    client.write_all(hello)?;
    let ready = stream::any_ready(&[listener, &stage.listener])?;
    if !ready[0] {
        drop(stream::accept(&stage.listener)?);
        return Ok(None);
    }
    let pair = Pair { client, origin: stream::accept_with(listener, hello)? };
    stage.check(&pair)?;
    Ok(Some(pair))
}
