//! An agent process as the keeper sees it: process, socket, and the descriptors that it stored.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::process::{Child as Process, Command};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::wire::{self, KeeperMessage, receive, send};

/// Number of an agent, in order of start.
pub type Number = u64;

/// Listening sockets by name.
pub type NamedSockets = BTreeMap<String, Arc<OwnedFd>>;

/// Event of an agent.
#[derive(Debug)]
pub enum AgentEvent {
    /// A message.
    Said(Number, KeeperMessage),
    /// Its exit.
    Ended(Number, ExitStatus),
}

/// Action on an agent.
#[derive(Debug)]
enum Deed {
    Tell(&'static str),
    Signal(Signal),
    /// Kill it if it still runs after this time.
    KillIn(Duration),
}

/// A running agent.
#[derive(Debug)]
pub struct Child {
    /// Its process.
    pub pid: u32,
    /// Listening sockets that it has stored with the keeper.
    pub sockets: NamedSockets,
    /// Its last status text.
    pub status: Option<String>,
    /// When it became ready.
    pub ready: Option<Instant>,
    deeds: mpsc::UnboundedSender<Deed>,
}

/// Parameters of an agent's start.
#[derive(Debug)]
pub struct Start<'a> {
    /// The binary.
    pub program: &'a Path,
    /// Its arguments, from `run` on.
    pub arguments: &'a [OsString],
    /// Listening sockets opened by earlier agents.
    pub sockets: &'a NamedSockets,
    /// Listening sockets that the keeper was started with.
    pub activation: &'a [Arc<OwnedFd>],
    /// True if another agent is serving meanwhile.
    pub successor: bool,
}

impl Child {
    /// Starts an agent, and a task that monitors it. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// The binary cannot be run.
    pub fn start(number: Number, start: &Start<'_>, events: mpsc::UnboundedSender<AgentEvent>) -> io::Result<Child> {
        let (here, there) = wire::pair()?;
        fcntl_setfl(&here, OFlags::NONBLOCK)?;
        let mut command = Command::new(start.program);
        command.args(start.arguments).stdin(Stdio::from(there)).env(wire::VARIABLE, "1");
        // These variables are for the keeper itself.
        for variable in ["NOTIFY_SOCKET", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"] {
            command.env_remove(variable);
        }
        let process = command.spawn()?;
        // Closes the keeper's copy of the agent's end, so that the agent's exit closes the stream.
        drop(command);
        let pid = process.id().unwrap_or_default();
        let (deeds, orders) = mpsc::unbounded_channel();
        let mut to_send: Vec<(&str, Vec<Arc<OwnedFd>>)> = Vec::new();
        let own: Vec<_> = start.sockets.values().cloned().collect();
        for (text, sockets) in [(wire::LISTENERS, own.as_slice()), (wire::ACTIVATION, start.activation)] {
            to_send.extend(sockets.chunks(wire::MOST_DESCRIPTORS).map(|some| (text, some.to_vec())));
        }
        to_send.push((if start.successor { wire::SUCCEED } else { wire::START }, Vec::new()));
        // tokio only polls it; `wire` handles its type (`SOCK_SEQPACKET`).
        let socket = UnixStream::from_std(here.into())?;
        tokio::spawn(attend(number, process, socket, to_send, orders, events));
        Ok(Child { pid, sockets: start.sockets.clone(), status: None, ready: None, deeds })
    }

    /// Sends a message to it.
    pub fn send(&self, text: &'static str) {
        self.do_it(Deed::Tell(text));
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        self.do_it(Deed::Signal(signal));
    }

    /// Kills it if it still runs after this time.
    pub fn kill_in(&self, time: Duration) {
        self.do_it(Deed::KillIn(time));
    }

    fn do_it(&self, deed: Deed) {
        // The task ends with the agent; then the action is moot.
        let _ = self.deeds.send(deed);
    }

    /// Applies its FDSTORE and FDSTOREREMOVE messages.
    pub fn hold(&mut self, message: KeeperMessage) {
        let Some(name) = message.value(wire::NAME).map(str::to_owned) else { return };
        if message.says(wire::REMOVE) {
            self.sockets.remove(&name);
        } else if message.says(wire::STORE)
            && let Some(socket) = message.descriptors.into_iter().next()
        {
            self.sockets.insert(name, Arc::new(socket));
        }
    }
}

/// Monitors an agent until its exit.
async fn attend(
    number: Number,
    mut process: Process,
    socket: UnixStream,
    to_send: Vec<(&'static str, Vec<Arc<OwnedFd>>)>,
    mut deeds: mpsc::UnboundedReceiver<Deed>,
    events: mpsc::UnboundedSender<AgentEvent>,
) {
    let mut hand_over = Box::pin(hand_over(&socket, to_send));
    let (mut handed_over, mut listening, mut kill_at) = (false, true, None);
    let status = loop {
        let too_late = async {
            match kill_at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            status = process.wait() => break status,
            result = &mut hand_over, if !handed_over => {
                handed_over = true;
                if let Err(error) = result {
                    super::messages::say(&format!("the agent cannot be given its sockets: {error}"));
                }
            }
            message = socket.async_io(Interest::READABLE, || receive(&socket)), if listening => match message {
                Ok(Some(message)) => { let _ = events.send(AgentEvent::Said(number, message)); }
                Ok(None) | Err(_) => listening = false,
            },
            Some(deed) = deeds.recv() => match deed {
                // Fails if the agent's queue is full: it has not read its sockets yet, so it has not started anything
                // either.
                Deed::Tell(text) => { let _ = send(&socket, text, &[]); }
                Deed::Signal(signal) => kill(&process, signal),
                Deed::KillIn(time) => kill_at = Some(Instant::now() + time),
            },
            () = too_late => { kill_at = None; kill(&process, Signal::KILL); }
        }
    };
    // Messages sent before its exit still count.
    while let Ok(Some(message)) = receive(&socket) {
        let _ = events.send(AgentEvent::Said(number, message));
    }
    // Waiting fails only for a process that is not a child.
    if let Ok(status) = status {
        let _ = events.send(AgentEvent::Ended(number, status));
    }
}

async fn hand_over(socket: &UnixStream, to_send: Vec<(&'static str, Vec<Arc<OwnedFd>>)>) -> io::Result<()> {
    for (text, sockets) in to_send {
        let descriptors: Vec<_> = sockets.iter().map(|socket| socket.as_fd()).collect();
        socket.async_io(Interest::WRITABLE, || send(socket, text, &descriptors)).await?;
    }
    Ok(())
}

/// The process has not been waited for, so its pid is not reused.
fn kill(process: &Process, signal: Signal) {
    let pid = process.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(pid) = pid {
        let _ = kill_process(pid, signal);
    }
}
