//! Clients notice neither a failed agent, nor a replaced one, nor very many connections.

mod churn;
mod load;
mod stage;

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tests::wait::{self, PATIENCE};

use load::{Load, Newcomers};
use stage::Stage;

/// Duration without an agent.
const ALONE: Duration = Duration::from_secs(60);

/// The keeper is stopped while no agent is to run.
#[test]
fn for_a_minute_without_an_agent_transfers_go_on_and_connections_are_made() -> Result<()> {
    let stage = Stage::new()?;
    let load = Load::new(&stage, Newcomers { passthrough: 100, terminated: 0, downloads: 0 })?;
    load.run(|| {
        load.goes_on(100)?;
        let killed = stage.agent()?;
        stage.sluice.signal(Signal::STOP)?;
        let pid = i32::try_from(killed).ok().and_then(Pid::from_raw).context("a process id is positive")?;
        kill_process(pid, Signal::KILL)?;
        wait::wait_until("the killed agent is gone", PATIENCE, || {
            stage.sluice.agents().is_ok_and(|all| all.is_empty())
        })?;
        let (moved, served) = (load.moved(), load.served());
        wait::hold(ALONE, || {
            ensure!(stage.sluice.agents()?.is_empty(), "no agent was to run");
            load.check()
        })?;
        let served = load.served() - served;
        // Those of one second may be in flight.
        let expected = 100 * (ALONE.as_secs() - 1);
        ensure!(served >= expected, "{served} connections were made without an agent, not {expected}");
        let stalled = load.moved().iter().zip(&moved).filter(|(now, then)| now <= then).count();
        ensure!(stalled == 0, "{stalled} transfers moved nothing without an agent");

        stage.sluice.signal(Signal::CONT)?;
        wait::wait_until("the next agent is ready", PATIENCE, || stage.readies() == 2)?;
        ensure!(stage.agent()? != killed, "the killed agent runs");
        // It counts the connections that it has adopted.
        wait::wait_until("the new agent counts the transfers", PATIENCE, || {
            stage.connections().is_ok_and(|connections| connections >= load::TRANSFERS)
        })?;
        load.goes_on(300)
    })?;
    // Records that the killed agent had read from the ring may be lost: one batch.
    stage.tells_of(&load.clients(), 30)?;
    stage.nothing_is_left()
}

#[test]
fn ten_upgrades_under_load_refuse_and_break_nothing() -> Result<()> {
    let stage = Stage::new()?;
    let load = Load::new(&stage, Newcomers { passthrough: 70, terminated: 30, downloads: 10 })?;
    load.run(|| {
        load.goes_on(50)?;
        for upgrade in 1..=10 {
            let old = stage.sluice.agents()?;
            let downloads = load.downloading();
            stage.upgrade().with_context(|| format!("upgrade {upgrade}"))?;
            let new = stage.sluice.agents()?;
            ensure!(new.last().is_some_and(|new| !old.contains(new)), "upgrade {upgrade}: {old:?} became {new:?}");
            // Downloads that began at the previous agent, which stays until they end.
            let going_on = downloads.iter().zip(load.downloading()).any(|(then, now)| now.is_some() && *then == now);
            ensure!(!going_on || old.iter().any(|agent| new.contains(agent)), "upgrade {upgrade}: nobody drains");
            load.goes_on(100)?;
        }
        Ok(())
    })?;
    stage.tells_of(&load.clients(), 0)?;
    wait::wait_until("the older agents have drained", PATIENCE * 2, || stage.agent().is_ok())?;
    stage.nothing_is_left()
}

/// Sleeps until a preset time, to keep a rate.
fn pace(until: Instant) {
    thread::sleep(until.saturating_duration_since(Instant::now()));
}
