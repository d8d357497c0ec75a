//! `sluice keep`: holds the listening sockets, runs an agent, restarts it, and replaces it in an upgrade.

mod upgrade;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use sd_notify::NotifyState;
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::backoff::Backoff;
use super::child::{AgentEvent, Child, NamedSockets, Number, Start};
use super::control;
use super::control::UpgradeReply;
use super::messages::say;
use super::wire::{self, KeeperMessage};

/// Time-out for an agent to release the kernel's maps.
const YIELD: Duration = Duration::from_secs(10);
/// Time after its drain before an agent is killed.
const BEYOND_DRAIN: Duration = Duration::from_secs(10);
/// Exit codes after which a restart is useless: success, wrong usage, invalid input.
const FINAL_CODES: [i32; 3] = [0, 2, 3];

/// Settings of the keeper.
#[derive(Debug)]
pub struct KeeperSettings {
    /// The agent's binary; resolved at each start.
    pub program: PathBuf,
    /// Their arguments, from `run` on.
    pub arguments: Vec<OsString>,
    /// Drain time of the agents.
    pub drain: Duration,
    /// Time in which a new agent must be ready in an upgrade.
    pub ready_within: Duration,
}

/// Runs until a signal, or until an agent exits with a code after which a restart is useless. Returns the exit code.
///
/// # Errors
/// Only from starting.
pub async fn run(settings: KeeperSettings, control: UnixListener) -> io::Result<u8> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut upgrade = signal(SignalKind::user_defined2())?;
    let activation = super::manager::activated()?.into_iter().map(|(_, socket)| Arc::new(socket)).collect();
    let (events_in, mut events) = mpsc::unbounded_channel();
    let (requests_in, mut requests) = mpsc::unbounded_channel();
    let server = tokio::spawn(control::serve(control, requests_in));
    let mut keeper = Keeper::new(settings, activation, events_in);
    keeper.start_current();
    while !keeper.done() {
        let due = keeper.due();
        let timer = async {
            match due {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Some(event) = events.recv() => keeper.on(event),
            Some(asker) = requests.recv() => keeper.upgrade(Some(asker)),
            _ = upgrade.recv() => keeper.upgrade(None),
            _ = terminate.recv() => keeper.stop(),
            _ = interrupt.recv() => keeper.stop(),
            () = timer => keeper.tick(),
        }
    }
    server.abort();
    Ok(keeper.code)
}

/// An upgrade in progress.
struct PendingUpgrade {
    /// The new agent; `None` until the old one has released the maps.
    new: Option<Number>,
    deadline: Instant,
    asker: Option<UpgradeReply>,
}

struct Keeper {
    settings: KeeperSettings,
    activation: Vec<Arc<OwnedFd>>,
    events: mpsc::UnboundedSender<AgentEvent>,
    /// All running agents: the current one, the new one of an upgrade, and older ones that drain.
    children: BTreeMap<Number, Child>,
    started: Number,
    current: Option<Number>,
    upgrade: Option<PendingUpgrade>,
    /// Sockets that the last agent stored, while no agent runs.
    sockets: NamedSockets,
    backoff: Backoff,
    restart_at: Option<Instant>,
    stopping: bool,
    announced: bool,
    code: u8,
}

impl Keeper {
    fn new(settings: KeeperSettings, activation: Vec<Arc<OwnedFd>>, events: mpsc::UnboundedSender<AgentEvent>) -> Self {
        Keeper {
            settings,
            activation,
            events,
            children: BTreeMap::new(),
            started: 0,
            current: None,
            upgrade: None,
            sockets: NamedSockets::new(),
            backoff: Backoff::default(),
            restart_at: None,
            stopping: false,
            announced: false,
            code: 0,
        }
    }

    fn done(&self) -> bool {
        self.stopping && self.children.is_empty()
    }

    fn due(&self) -> Option<Instant> {
        let upgrade = self.upgrade.as_ref().map(|upgrade| upgrade.deadline);
        upgrade.into_iter().chain(self.restart_at).min()
    }

    fn start(&mut self, successor: bool) -> io::Result<Number> {
        self.started += 1;
        let current = self.current.and_then(|number| self.children.get(&number));
        let start = Start {
            program: &self.settings.program,
            arguments: &self.settings.arguments,
            sockets: current.map_or(&self.sockets, |child| &child.sockets),
            activation: &self.activation,
            successor,
        };
        let child = Child::start(self.started, &start, self.events.clone())?;
        self.children.insert(self.started, child);
        Ok(self.started)
    }

    /// Starts an agent if none runs.
    fn start_current(&mut self) {
        self.restart_at = None;
        match self.start(false) {
            Ok(number) => self.current = Some(number),
            Err(error) => {
                let why = format!("{} cannot be run: {error}", self.settings.program.display());
                self.end_upgrade(Err(why.clone()));
                self.restart_later(&why, None);
            }
        }
    }

    fn restart_later(&mut self, why: &str, ready_for: Option<Duration>) {
        let wait = self.backoff.after(ready_for);
        say(&format!("{why}; starting it again in {:.1} s", wait.as_secs_f64()));
        self.restart_at = Some(Instant::now() + wait);
    }

    fn tick(&mut self) {
        let now = Instant::now();
        if self.restart_at.is_some_and(|at| at <= now) {
            self.start_current();
        }
        if self.upgrade.as_ref().is_some_and(|upgrade| upgrade.deadline <= now) {
            self.upgrade_too_late();
        }
    }

    fn on(&mut self, event: AgentEvent) {
        match event {
            AgentEvent::Said(number, message) => self.said(number, message),
            AgentEvent::Ended(number, status) => self.ended(number, status),
        }
    }

    fn said(&mut self, number: Number, message: KeeperMessage) {
        let new = self.successor();
        let (is_current, is_new) = (self.current == Some(number), new == Some(number));
        let Some(child) = self.children.get_mut(&number) else { return };
        if let Some(status) = message.value(wire::STATUS) {
            child.status = Some(status.to_owned());
        }
        // A draining agent cannot change the stored sockets.
        if !is_current && !is_new {
            return;
        }
        if message.says(wire::STOPPING) {
            child.sockets.clear();
            // A deliberate stop: connections are refused from now on, instead of waiting for an agent that never comes.
            self.sockets.clear();
        }
        if message.says(wire::READY) {
            child.ready = Some(Instant::now());
            child.status = None;
            return self.ready(number);
        }
        if message.says(wire::YIELDED) && is_current && new.is_none() && self.upgrade.is_some() {
            return self.start_successor();
        }
        child.hold(message);
    }

    fn ready(&mut self, number: Number) {
        if !std::mem::replace(&mut self.announced, true) {
            // Under systemd, the keeper is the service.
            let _ = sd_notify::notify(&[NotifyState::Ready]);
        }
        if self.successor() == Some(number) {
            self.complete_upgrade(number);
        }
    }

    fn ended(&mut self, number: Number, status: ExitStatus) {
        let Some(child) = self.children.remove(&number) else { return };
        let how = how_it_ended(&child, status);
        let is_new = self.upgrade.as_ref().is_some_and(|upgrade| upgrade.new == Some(number));
        if self.current != Some(number) {
            if is_new {
                self.fail_upgrade(&how);
            }
            return;
        }
        self.current = None;
        self.sockets = child.sockets;
        if self.stopping {
            self.code = code(status);
            return;
        }
        if status.code().is_some_and(|code| FINAL_CODES.contains(&code)) {
            self.code = code(status);
            return self.stop();
        }
        let ready_for = child.ready.map(|since| since.elapsed());
        match self.upgrade.as_ref().map(|upgrade| upgrade.new) {
            // The new agent is the only one left; its fate decides the upgrade.
            Some(Some(new)) if !is_new => {
                say(&format!("{how}, while its successor starts"));
                self.current = Some(new);
            }
            // It exited while it was to release the maps: the next start completes the upgrade.
            Some(None) => {
                self.start_current();
                let (new, deadline) = (self.current, Instant::now() + self.settings.ready_within);
                if let Some(upgrade) = &mut self.upgrade {
                    (upgrade.new, upgrade.deadline) = (new, deadline);
                }
            }
            Some(Some(_)) => {
                self.end_upgrade(Err(how.clone()));
                self.restart_later(&how, ready_for);
            }
            None => self.restart_later(&how, ready_for),
        }
    }

    /// Ends all agents; the second call kills those that still run.
    fn stop(&mut self) {
        let again = std::mem::replace(&mut self.stopping, true);
        self.restart_at = None;
        self.end_upgrade(Err("the keeper is ending".to_owned()));
        if !again {
            let _ = sd_notify::notify(&[NotifyState::Stopping]);
        }
        // No agent will accept the connections in the backlogs.
        self.sockets.clear();
        self.activation.clear();
        for child in self.children.values_mut() {
            child.sockets.clear();
            child.signal(if again { Signal::KILL } else { Signal::TERM });
            child.kill_in(self.settings.drain + BEYOND_DRAIN);
        }
    }
}

fn how_it_ended(child: &Child, status: ExitStatus) -> String {
    let said = child.status.as_ref().map_or_else(String::new, |status| format!(": {status}"));
    let pid = child.pid;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("the agent (process {pid}) ended with exit code {code}{said}"),
        (None, Some(signal)) => format!("the agent (process {pid}) was ended by signal {signal}{said}"),
        (None, None) => format!("the agent (process {pid}) ended{said}"),
    }
}

/// Exit code as in a shell: 128 plus the signal if it was killed.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    u8::try_from(code).unwrap_or(1)
}
