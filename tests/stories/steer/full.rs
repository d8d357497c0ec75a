//! Full maps and removed handshakes: the relay serves the connection, and no byte is lost.

use std::io::Write;

use anyhow::{Context, Result, ensure};
use router_common::maps::{MAX_HELLOS, SHORT_FLIGHT};
use rustix::process::Signal;
use tests::hello::{client_hello, short_hello};
use tests::pinned::{Flows, Handshakes, Hellos, ShortHellos};
use tests::sluice::DataPath;
use tests::steering::{Family, HOST, Setup, Stage};
use tests::stream::{self, Pair};

const LENGTH: u64 = 200_000;

/// How a client sends its hello.
const CUTS: [usize; 3] = [0, 100, 1000];

/// Connects while the agent is stopped, so that maps are not swept: the kernel decides by their current content. Then
/// the agent resumes and serves the connection.
fn relayed(stage: &Stage, hello: &[u8], cut: usize, between: impl FnOnce() -> Result<()>) -> Result<()> {
    let (first, second) = hello.split_at(cut);
    let mut client = stream::open(&stage.client, stage.address)?;
    client.write_all(first)?;
    between()?;
    client.write_all(second)?;
    stage.sluice.signal(Signal::CONT)?;
    let origin = stream::accept_with(&stage.listener, hello)?;
    let pair = Pair { client, origin };
    ensure!(stage.check(&pair).is_err(), "the kernel has dialed, though it could not know enough");
    pair.exchange(cut as u64, LENGTH, LENGTH)
}

#[test]
fn no_room_for_first_flights() -> Result<()> {
    let stage = Stage::new(DataPath::Kernel, Setup::new(Family::V4))?;
    let (hello, mut hellos) = (client_hello(HOST)?, Hellos::of(&stage.sluice)?);
    for cut in CUTS {
        stage.sluice.signal(Signal::STOP)?;
        let filled = hellos.fill()?;
        ensure!(filled.len() <= MAX_HELLOS && hellos.count()? == MAX_HELLOS, "{} entries fill it", filled.len());
        relayed(&stage, &hello, cut, || Ok(())).with_context(|| format!("cut after {cut} bytes"))?;
        filled.iter().try_for_each(|key| hellos.delete(key))?;
    }
    stage.connect()?.exchange(9, LENGTH, LENGTH).context("once there is room again")
}

#[test]
fn no_room_for_short_first_flights() -> Result<()> {
    let stage = Stage::new(DataPath::Kernel, Setup::new(Family::V4))?;
    let (hello, mut hellos) = (short_hello(HOST)?, ShortHellos::of(&stage.sluice)?);
    ensure!(hello.len() <= SHORT_FLIGHT as usize, "{} bytes", hello.len());
    for cut in [0, 100] {
        stage.sluice.signal(Signal::STOP)?;
        let filled = hellos.fill()?;
        ensure!(filled.len() <= MAX_HELLOS && hellos.count()? == MAX_HELLOS, "{} entries fill it", filled.len());
        relayed(&stage, &hello, cut, || Ok(())).with_context(|| format!("cut after {cut} bytes"))?;
        filled.iter().try_for_each(|key| hellos.delete(key))?;
    }
    stage.connect()?.exchange(9, LENGTH, LENGTH).context("once there is room again")
}

#[test]
fn no_room_for_flows() -> Result<()> {
    let stage = Stage::new(DataPath::Kernel, Setup::new(Family::V6))?;
    let carried = stage.connect()?;
    let mut flows = Flows::of(&stage.sluice)?;
    stage.sluice.signal(Signal::STOP)?;
    let filled = flows.fill()?;
    carried.greet().context("a connection that has its entries")?;
    relayed(&stage, &client_hello(HOST)?, CUTS[2], || Ok(()))?;
    filled.iter().try_for_each(|key| flows.delete(key))?;
    carried.exchange(8, LENGTH, LENGTH)?;
    stage.connect()?.exchange(9, LENGTH, LENGTH).context("once there is room again")
}

#[test]
fn forgotten_handshakes() -> Result<()> {
    let stage = Stage::new(DataPath::Kernel, Setup::new(Family::V4))?;
    for cut in CUTS {
        let mut handshakes = Handshakes::of(&stage.sluice)?;
        relayed(&stage, &client_hello(HOST)?, cut, || handshakes.clear())
            .with_context(|| format!("forgotten after {cut} bytes"))?;
    }
    stage.connect()?.exchange(9, LENGTH, LENGTH)
}
