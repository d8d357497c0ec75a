//! Checks of the data path of connections, and of remaining state.

use std::collections::{HashMap, HashSet};

use anyhow::{Context, Result, ensure};
use router_common::maps::names;
use router_common::verdict::DialCounter;
use serde_json::Value;

use super::stage::Stage;
use crate::pinned;
use crate::stream::Pair;
use crate::{command, wait};

impl Stage {
    /// Checks which data path opened a connection to the backend: the stack takes its ports from one range, the kernel
    /// program from another.
    ///
    /// # Errors
    /// It is the wrong one.
    pub fn check(&self, pair: &Pair) -> Result<()> {
        self.check_port(pair.origin.peer_addr()?.port())
    }

    /// As [`Stage::check`], for the port that the backend sees.
    ///
    /// # Errors
    /// When it is not of the right range.
    pub fn check_port(&self, port: u16) -> Result<()> {
        let by_stack = self.stack_ports.contains(&port);
        ensure!(
            by_stack != self.steers(),
            "port {port}, with the data path {:?}: not who should has dialed",
            self.data_path
        );
        Ok(())
    }

    /// Connections that the program passed to the agent, by reason.
    ///
    /// # Errors
    /// The counters cannot be read.
    pub fn passed_up(&self) -> Result<HashMap<String, u64>> {
        if !self.steers() {
            return Ok(HashMap::new());
        }
        let stats = self.sluice.dump(names::REASON_STATS)?;
        let passed = stats.as_array().context("a list")?.iter().filter(|row| row["verdict"] == "pass");
        let count = |row: &Value| Some((row["reason"].as_str()?.to_owned(), row["connections"].as_u64()?));
        passed.map(|row| count(row).with_context(|| format!("{row}"))).collect()
    }

    /// A counter of the programs; 0 without the kernel's data path.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn dial_counter(&self, counter: DialCounter) -> Result<u64> {
        if self.steers() { pinned::dial_counter(&self.sluice, counter) } else { Ok(0) }
    }

    /// Checks that these were all the connections so far, each on the expected data path, and each with its line in the
    /// access log.
    ///
    /// # Errors
    /// When there were more or others, or a line is missing.
    pub fn carried(&self, connections: u64) -> Result<()> {
        let lines = |datapath: &str| {
            let ended = format!("datapath=\"{datapath}\"");
            let output = self.sluice.output();
            output.iter().filter(|line| line.contains(" access: ") && line.contains(&ended)).count() as u64
        };
        let (own, others) = if self.steers() { ("kernel", "relay") } else { ("relay", "kernel") };
        wait::wait_until("the access log has every connection", wait::PATIENCE, || lines(own) >= connections)
            .with_context(|| format!("{} of {connections} lines", lines(own)))?;
        ensure!((lines(own), lines(others)) == (connections, 0), "{} lines, {} of others", lines(own), lines(others));
        if self.steers() {
            for counter in [DialCounter::Dialed, DialCounter::Confirmed] {
                let count = self.dial_counter(counter)?;
                ensure!(count == connections, "{counter:?}: {count} instead of {connections}");
            }
        }
        Ok(())
    }

    /// Waits until the kernel has processed the end of every connection. Their entries linger.
    ///
    /// # Errors
    /// When some go on.
    pub fn all_ended(&self) -> Result<()> {
        if !self.steers() {
            return Ok(());
        }
        let mut living = Vec::new();
        wait::wait_until("the kernel has seen every connection's end", wait::PATIENCE / 4, || {
            let flows = self.sluice.dump(names::FLOWS).ok().and_then(|dump| dump.as_array().cloned());
            living = flows.unwrap_or_else(|| vec!["no dump".into()]);
            living.retain(|flow| flow["state"] != "closing");
            living.is_empty()
        })
        .with_context(|| format!("these go on: {living:#?}"))
        .map(drop)
    }

    /// Waits until no flow and no first flight is left: every connection has ended, and its entry has expired.
    ///
    /// # Errors
    /// When some stay.
    pub fn nothing_is_left(&self) -> Result<()> {
        if !self.steers() {
            return Ok(());
        }
        pinned::nothing_is_left(&self.sluice)
    }

    /// Connected TCP sockets of the router's machine, as `ss` prints them, without those in TIME-WAIT.
    ///
    /// # Errors
    /// When `ss` fails.
    pub fn router_sockets(&self) -> Result<HashSet<String>> {
        let output =
            command::output(self.router.command("ss")?.args(["-tnH", "state", "connected", "exclude", "time-wait"]))?;
        Ok(String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect())
    }
}
