//! The thread that keeps the kernel maps equal to the routing table.

pub mod cookies;
pub mod gate;
pub mod inputs;
mod known_sockets;
pub mod programmed;
mod state;

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use aya::maps::{HashMap, MapError};
use router_common::maps::names;
use router_sys::batch::MapWalk;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::events;
use super::flow_gc::Sweeper;
use super::host::{HostWatch, Lost, WatchReply};
use super::kernel::{KernelError, KernelPrograms, Mode};
use super::netlink::News;
use super::ports;
use super::redirect_peer::Peers;
use super::taken_flows::TakenFlows;
use gate::GateReconciler;
use inputs::DataPathInputs;
use programmed::Programmed;
use state::ReconcilerState;

/// Interval between two sweeps.
const TICK: Duration = Duration::from_secs(1);
/// Interfaces and routes are read at this interval, in ticks, even if the kernel reports no change…
const LOOK_TICKS: u32 = 30;
/// …and after a reported change, delayed by this, so that related changes are read together.
const GATHER_NEWS: Duration = Duration::from_millis(50);
/// Interval, in ticks, between two sweeps of counted connections.
const COUNT_TICKS: u32 = 2;
/// Interval, in ticks, for re-checking egress hooks; the kernel does not notify for all of them.
const PEER_TICKS: u32 = 5;
/// Minimum pause between two readings, however many changes there are: each looks up the route to every endpoint.
const LOOK_PAUSE: Duration = Duration::from_secs(1);
/// Most connections ended at once because of the host's rules; takes some milliseconds.
const ENDED_AT_ONCE: usize = 100;
/// A client that connected before a rule against it was added may send its hello afterwards. The proxy waits 5 s for a
/// hello, so after this time no such client is left.
const LAST_HELLO: Duration = Duration::from_secs(6);

/// Runs until `mode` ends it, or its sender is dropped. Needs a thread of its own, because the system calls block.
/// Pinned objects stay, unless it ends with [`Mode::Shutdown`].
///
/// One agent at a time writes the maps: a new agent stores its process id in them, and an agent that finds another id
/// does not write until that process has ended.
///
/// # Errors
/// Only while opening the maps; later failures are retried and reported through `programmed`.
pub async fn run(
    mut kernel: KernelPrograms,
    inputs: DataPathInputs,
    programmed: watch::Sender<Arc<Programmed>>,
    mut mode: watch::Receiver<Mode>,
) -> Result<(), KernelError> {
    #[cfg(feature = "kernel-log")]
    let _printing = EventTask(kernel.take_log().map(tokio::task::spawn_local));
    let swept = [names::FLOWS, names::HELLOS, names::SHORT_HELLOS, names::LATER_HEADS];
    let [flows, hellos, short, later] = swept.map(|name| kernel.take(name));
    let flows = flows?;
    let watch = HostWatch::start(inputs.firewall, MapWalk::new(&flows)?).map_err(MapError::IoError)?;
    let sweeper = Sweeper::new(flows, hellos?, short?, later?)?;
    let peers = Peers::new(HashMap::try_from(kernel.take(names::PEERS)?)?, inputs.peers);
    let taken = TakenFlows::new(kernel.take(names::TAKEN)?, kernel.take(names::CLASHES)?)?;
    let ports = ports::choose(inputs.ports, &inputs.pins)?;
    let gate = GateReconciler::new(&mut kernel, inputs.gate, inputs.xdp_forward)?;
    let state = ReconcilerState::new(kernel.take_maps()?, ports, peers, taken, watch, &inputs);
    let mut task =
        ReconcilerTask { state: state.map_err(MapError::IoError)?, gate, kernel, sweeper, inputs, programmed };
    loop {
        let ended = task.work(&mut mode).await;
        events::report_swept(&task.state.reporter).await;
        match ended {
            Err(error) => {
                // Maps that cannot be written must not steer connections.
                task.kernel.remove_pins();
                return Err(error);
            }
            Ok(Ended::Told) => break,
            Ok(Ended::Superseded(pid)) => {
                tracing::info!(pid, "another agent writes the kernel maps now");
                task.publish(|programmed| programmed.superseded = true);
                if task.wait_for_end_of(pid, &mut mode).await {
                    return Ok(());
                }
                tracing::warn!(pid, "the agent that wrote the kernel maps has ended; this agent writes them again");
            }
        }
    }
    if *mode.borrow() == Mode::Shutdown {
        task.give_up().await;
        task.kernel.remove_pins();
    }
    Ok(())
}

/// Why [`ReconcilerTask::work`] ended.
enum Ended {
    /// A mode that ends the task.
    Told,
    /// Another process, with this id, writes the maps.
    Superseded(u32),
}

struct ReconcilerTask {
    kernel: KernelPrograms,
    state: ReconcilerState,
    gate: GateReconciler,
    sweeper: Sweeper,
    inputs: DataPathInputs,
    programmed: watch::Sender<Arc<Programmed>>,
}

impl ReconcilerTask {
    /// Claims the maps for this process, and keeps them equal to the routing table.
    async fn work(&mut self, mode: &mut watch::Receiver<Mode>) -> Result<Ended, KernelError> {
        let drain = |mode: &watch::Receiver<Mode>| *mode.borrow() >= Mode::Drain;
        let highest = self.sweeper.highest_ids().map_err(MapError::IoError)?;
        self.state.claim(highest, !drain(mode)).map_err(MapError::IoError)?;
        self.gate.adopt().map_err(MapError::IoError)?;
        Ok(self.follow(mode, drain).await)
    }

    /// Starts the task that reads the rings.
    fn read_events(&self) -> EventTask {
        match events::follow(&self.inputs.pins, &self.state.reporter) {
            Ok(reading) => EventTask(Some(tokio::task::spawn_local(reading))),
            Err(error) => {
                tracing::warn!(%error, "the kernel's events cannot be read");
                EventTask(None)
            }
        }
    }

    async fn follow(
        &mut self,
        mode: &mut watch::Receiver<Mode>,
        drain: impl Fn(&watch::Receiver<Mode>) -> bool,
    ) -> Ended {
        let mut news = News::open().inspect_err(no_news).ok();
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut ticks = 0_u32;
        self.look();
        let mut looked = Instant::now();
        let mut look_at = None;
        // Carried connections are checked against the host's rules when the maps follow these, and once more later.
        let (mut judge, mut judge_at) = (true, None);
        let mut lost: Vec<Lost> = Vec::new();
        // Starts after the first table: ends of connections that an earlier agent left need their routes' names.
        let mut reading = None;
        // The first table is already available; later rounds wait for a change.
        let mut again = Some(Instant::now());
        loop {
            tokio::select! {
                changed = mode.changed() => {
                    if changed.is_err() || mode.borrow_and_update().ends() {
                        return Ended::Told;
                    }
                    if drain(mode) {
                        self.stop_dialing();
                    }
                    continue;
                }
                // While the agent drains, their senders are dropped before the last connection ends.
                () = changed(&mut self.inputs.tables) => {}
                () = changed(&mut self.inputs.listeners) => {}
                () = at(again) => {}
                reply = self.state.reply() => match reply {
                    WatchReply::Nothing => continue,
                    WatchReply::Lost(found) => {
                        lost.extend(found);
                        continue;
                    }
                    WatchReply::Looked(answer) => {
                        judge |= self.state.follow_host(answer);
                        if !judge && !self.state.has_changed() {
                            continue;
                        }
                    }
                },
                () = at(judge_at) => {
                    judge_at = None;
                    self.state.look_at_carried();
                    continue;
                }
                () = tokio::task::yield_now(), if !lost.is_empty() => {
                    self.end(lost.split_off(lost.len().saturating_sub(ENDED_AT_ONCE)));
                    continue;
                }
                () = at(self.gate.next_part()) => {
                    if let Some(pid) = self.state.other_writer() {
                        return Ended::Superseded(pid);
                    }
                    let gate = self.gate.go_on(&mut self.kernel, self.state.interfaces());
                    if gate.error.is_some() {
                        again = self.state.retry(true).map(|pause| Instant::now() + pause);
                    }
                    self.publish(|programmed| programmed.gate = gate);
                    continue;
                }
                () = at(look_at) => {
                    (look_at, looked) = (None, Instant::now());
                    if !self.look() {
                        continue;
                    }
                }
                come = next_news(&mut news) => {
                    if let Err(error) = come {
                        no_news(&error);
                        news = None;
                    }
                    look_at = look_at.or(Some((Instant::now() + GATHER_NEWS).max(looked + LOOK_PAUSE)));
                    continue;
                }
                _ = tick.tick() => {
                    if let Some(pid) = self.state.other_writer() {
                        return Ended::Superseded(pid);
                    }
                    if reading.is_some() || drain(mode) {
                        self.sweep(drain(mode));
                        self.state.look_at_taken();
                    }
                    self.look_at_pressure();
                    ticks = ticks.wrapping_add(1);
                    if ticks.is_multiple_of(COUNT_TICKS) {
                        self.gate.sweep(&mut self.kernel, |client| self.sweeper.carries(client));
                    }
                    let due = news.is_none() || ticks.is_multiple_of(LOOK_TICKS);
                    let others = !due && ticks.is_multiple_of(PEER_TICKS);
                    if others {
                        self.look_at_peers();
                        self.retry_gate();
                    }
                    // The kernel does not notify for all rules either.
                    if others {
                        self.state.look_at_host(false);
                    }
                    if !due || !self.look() {
                        continue;
                    }
                }
            }
            if let Some(pid) = self.state.other_writer() {
                return Ended::Superseded(pid);
            }
            let table = Arc::clone(&self.inputs.tables.borrow_and_update());
            let listeners = Arc::clone(&self.inputs.listeners.borrow_and_update());
            if !self.state.may_write(&table, &listeners) {
                again = None;
                continue;
            }
            let begin = Instant::now();
            let result = self.state.write(&table, &listeners);
            let gate =
                self.gate.follow(&mut self.kernel, (&table, &listeners), self.state.interfaces(), &self.state.host());
            let has_failed = result.failed > 0 || gate.error.is_some();
            reading.get_or_insert_with(|| self.read_events());
            tracing::debug!(target: "timing", revision = table.revision, took = ?begin.elapsed(), "kernel maps written");
            again = self.state.retry(has_failed).map(|pause| Instant::now() + pause);
            if std::mem::take(&mut judge) {
                self.state.look_at_carried();
                judge_at = Some(Instant::now() + LAST_HELLO);
            }
            let (interfaces, peers) = (self.kernel.attached(), self.state.peers());
            let (attached_by, left_alone) = (self.kernel.attached_by(), self.state.left_alone(&self.kernel));
            let before = Arc::clone(&self.programmed.borrow());
            let (connections, drained) = (before.connections, before.drained);
            let programmed =
                Programmed { interfaces, attached_by, left_alone, peers, gate, connections, drained, ..result };
            self.programmed.send_replace(Arc::new(programmed));
        }
    }

    /// Reads interfaces, routes and egress hooks. `false` if nothing changed that the maps depend on.
    fn look(&mut self) -> bool {
        let changed = self.state.look(&mut self.kernel);
        self.look_at_peers();
        changed
    }

    fn look_at_peers(&mut self) {
        if self.state.look_at_peers(&self.kernel) {
            let peers = self.state.peers();
            self.publish(|programmed| programmed.peers = peers);
        }
    }

    /// Reads which listeners are flooded, and attaches or detaches the gate accordingly.
    fn look_at_pressure(&mut self) {
        let mut report = self.programmed.borrow().gate.clone();
        if self.gate.renew(&mut self.kernel, self.state.interfaces(), &mut report) {
            self.publish(|programmed| programmed.gate = report);
        }
    }

    fn retry_gate(&mut self) {
        let mut report = self.programmed.borrow().gate.clone();
        if report.failed.is_empty() && !self.kernel.is_gate_beside() {
            return;
        }
        self.gate.retry(&mut self.kernel, self.state.interfaces(), &mut report);
        if self.programmed.borrow().gate != report {
            self.publish(|programmed| programmed.gate = report);
        }
    }

    fn sweep(&mut self, draining: bool) {
        let reporter = Rc::clone(&self.state.reporter);
        let default = self.inputs.idle;
        let idle = |route| reporter.borrow().tunnel_timeout(route).unwrap_or(default);
        if let Err(error) = self.sweeper.sweep(idle, |end| reporter.borrow_mut().swept(end)) {
            tracing::warn!(%error, "cannot sweep the map of flows");
        }
        let Some(live) = self.sweeper.live() else { return };
        let drained = draining && live == 0;
        let before = Arc::clone(&self.programmed.borrow());
        if (before.connections, before.drained) != (live, drained) {
            self.publish(|programmed| (programmed.connections, programmed.drained) = (live, drained));
        }
    }

    /// Ends connections that the host's rules stop.
    fn end(&mut self, lost: Vec<Lost>) {
        let ends = lost.iter().filter_map(|lost| self.sweeper.end(lost));
        ends.for_each(|end| self.state.reporter.borrow_mut().swept(end));
    }

    /// Passes new connections up; carried connections continue.
    fn stop_dialing(&mut self) {
        if let Err(error) = self.state.configure(false) {
            tracing::warn!(%error, "cannot stop the kernel from dialing");
        }
        // The last count may be too low by now.
        self.sweeper.recount();
        self.sweep(true);
    }

    /// Reports ends that were not reported yet, and the end of all connections that are still carried.
    async fn give_up(&mut self) {
        let reporter = Rc::clone(&self.state.reporter);
        if let Err(error) = events::drain(&self.inputs.pins, &reporter).await {
            tracing::warn!(%error, "cannot read the kernel's last events");
        }
        match self.sweeper.living() {
            Ok(ends) => events::give_up(&ends, &reporter).await,
            Err(error) => tracing::warn!(%error, "cannot read the map of flows"),
        }
        // The process is about to end. The proxy, which waits for its own lines, has ended before.
        self.inputs.access.flush().await;
    }

    fn publish(&self, change: impl FnOnce(&mut Programmed)) {
        self.programmed.send_modify(|programmed| change(Arc::make_mut(programmed)));
    }

    /// Waits until another agent has ended; `true` if `mode` ends the task first.
    async fn wait_for_end_of(&self, pid: u32, mode: &mut watch::Receiver<Mode>) -> bool {
        let process = format!("/proc/{pid}");
        let mut tick = interval(TICK);
        while Path::new(&process).exists() {
            tokio::select! {
                changed = mode.changed() => if changed.is_err() || mode.borrow_and_update().ends() { return true },
                _ = tick.tick() => {}
            }
        }
        false
    }
}

/// A task that reads rings, aborted when dropped.
struct EventTask(Option<tokio::task::JoinHandle<()>>);

impl Drop for EventTask {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

/// Waits for a change; for ever once the sender is dropped.
async fn changed<T>(values: &mut watch::Receiver<T>) {
    if values.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

async fn next_news(news: &mut Option<News>) -> std::io::Result<()> {
    match news {
        Some(news) => news.come().await,
        None => std::future::pending().await,
    }
}

fn no_news(error: &std::io::Error) {
    tracing::warn!(%error, "no notifications of changed interfaces and routes; they are read every second");
}
