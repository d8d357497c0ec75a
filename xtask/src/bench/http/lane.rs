//! A way that is open: its router, started and filled.

use std::fs;
use std::net::SocketAddrV4;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::files::Files;
use super::load::client::Client;
use super::load::outcome::Outcome;
use super::load::{handshakes, websocket};
use super::names::{self, Hosts};
use super::ways::{HTTP_PORT, HTTPS_PORT, Router, Way};
use super::{peers, sluice};
use crate::bench::network::{Middle, Network};
use crate::bench::tools::Tools;
use crate::bench::usage::{self, Memory, Processor};
use crate::process::Running;

/// A way that is open.
pub struct Lane {
    /// Which.
    pub way: Way,
    /// The one host, or one of the many.
    pub name: String,
    /// What load tools read.
    pub files: Files,
    /// From the router's start to the first answers.
    pub start: Duration,
    /// Resident bytes of the router when it had started.
    pub resident: i64,
    middle: Middle,
    router: Running,
}

/// How long a router may take from its start to the first answers.
const PATIENCE: Duration = Duration::from_secs(180);

/// Time for which a router must be idle before it is measured.
const QUIET: Duration = Duration::from_secs(1);
/// Share of a processor that counts as idle: periodic work that does not depend on load.
const IDLE: f64 = 0.03;

impl Lane {
    /// Starts the router and waits until everything that is measured works.
    ///
    /// # Errors
    /// It cannot be started, or something does not work; the error says what.
    pub fn open(tools: &Tools, network: &Network, way: Way) -> Result<Lane> {
        let number = Way::all().position(|one| one == way).context("a way has a number")?;
        let middle = network.middle(u8::try_from(number)? + 1)?;
        let folder = tools.work.join(format!("router-{number}"));
        fs::create_dir_all(&folder)?;
        let requested = names::requested(way.hosts);
        let name = names::one(way.hosts);
        let files = Files::write(&folder, *middle.listener().ip(), &name, &requested)?;
        let begin = Instant::now();
        let router = start(tools, way, &middle, &folder)?;
        let mut lane = Lane { way, name, files, start: Duration::ZERO, resident: 0, middle, router };
        while let Err(error) = network.client.run(|| lane.probe(&requested)) {
            ensure!(lane.router.is_alive(), "the router has ended; what it said is above");
            if begin.elapsed() > PATIENCE {
                return Err(error.context("requests are not answered"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        lane.start = begin.elapsed();
        lane.resident = Memory::of(&lane.processes()?, None)?.rss;
        Ok(lane)
    }

    /// The router's processes.
    pub fn processes(&self) -> Result<Vec<u32>> {
        usage::family(self.router.id())
    }

    /// Waits for the end of work after the start: Sluice writes a status for each object.
    pub fn settle(&self) -> Result<()> {
        let begin = Instant::now();
        loop {
            let before = self.used()?;
            std::thread::sleep(QUIET);
            if self.used()? - before < QUIET.as_secs_f64() * IDLE {
                return Ok(());
            }
            ensure!(begin.elapsed() < PATIENCE, "{} does not come to rest", self.way.name());
        }
    }

    /// Seconds of processor time of the router so far.
    fn used(&self) -> Result<f64> {
        let used = Processor::of(&self.processes()?)?;
        Ok(used.user + used.system)
    }

    /// Where the router listens.
    pub fn address(&self, port: u16) -> SocketAddrV4 {
        SocketAddrV4::new(*self.middle.listener().ip(), port)
    }

    /// A handshake with each of some names, and a WebSocket.
    fn probe(&self, requested: &[String]) -> Result<()> {
        let client = |port| Client { to: self.address(port), connections: 1, milliseconds: 1 };
        let fine = |outcome: Outcome| {
            ensure!(outcome.errors == 0, "{} requests failed", outcome.errors);
            Ok(())
        };
        for name in [Some(&self.name), requested.last()].into_iter().flatten() {
            fine(handshakes::run(client(HTTPS_PORT), &[name])?)?;
        }
        if self.way.hosts == Hosts::One {
            fine(websocket::run(client(HTTP_PORT), &self.name)?)?;
        }
        Ok(())
    }
}

fn start(tools: &Tools, way: Way, middle: &Middle, folder: &Path) -> Result<Running> {
    match way.router {
        Router::Sluice => sluice::start(tools, way.hosts, middle, folder),
        Router::Peer(peer) => peers::start(tools, peer, way.hosts, middle, folder),
    }
}
