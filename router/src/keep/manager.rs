//! The agent's side: what was handed to it, and whom it tells how it stands.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use router_proxy::listeners::sockets::{Origin, SocketKeeper, Sockets, is_own_name};
use router_sys::activation;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::net::SocketType;
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_type};
use sd_notify::NotifyState;
use tokio::io::Interest;
use tokio::net::UnixStream;

use super::wire::{self, receive, send};

/// For a keeper to hand everything over; it does so at once.
const HAND_OVER: Duration = Duration::from_secs(10);

/// Whoever started the agent and wants to know how it stands.
#[derive(Clone, Debug, Default)]
pub struct Manager(Kind);

#[derive(Clone, Debug, Default)]
enum Kind {
    /// A shell, a container runtime: nobody listens.
    #[default]
    None,
    Keeper(Arc<OwnedFd>),
    /// `NOTIFY_SOCKET` is set.
    Systemd,
}

impl Manager {
    /// Whether `sluice keep` runs this agent.
    pub fn is_keeper(&self) -> bool {
        matches!(self.0, Kind::Keeper(_))
    }

    /// Everything is served.
    pub fn ready(&self) {
        self.tell(&[NotifyState::Ready], &[]);
    }

    /// What is being done or waited for, or why the agent ends.
    pub fn status(&self, text: &str) {
        self.tell(&[NotifyState::Status(&text.replace('\n', " "))], &[]);
    }

    /// The agent drains, and nobody comes after it.
    pub fn stopping(&self) {
        self.tell(&[NotifyState::Stopping], &[]);
    }

    /// The kernel's maps are left alone.
    pub fn yielded(&self) {
        self.tell(&[NotifyState::Custom(wire::YIELDED)], &[]);
    }

    fn tell(&self, states: &[NotifyState<'_>], descriptors: &[BorrowedFd<'_>]) {
        let text = || states.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        let told = match &self.0 {
            Kind::None => return,
            Kind::Keeper(socket) => send(socket, &text(), descriptors),
            Kind::Systemd if descriptors.is_empty() => sd_notify::notify(states),
            Kind::Systemd => sd_notify::notify_with_fds(states, descriptors),
        };
        if let Err(error) = told {
            tracing::warn!(%error, message = text(), "the service manager cannot be told");
        }
    }
}

impl SocketKeeper for Manager {
    fn opened(&self, name: &str, socket: BorrowedFd<'_>) {
        self.tell(&[NotifyState::FdStore, NotifyState::FdName(name)], &[socket]);
    }

    fn closed(&self, name: &str) {
        self.tell(&[NotifyState::FdStoreRemove, NotifyState::FdName(name)], &[]);
    }
}

/// What an agent got from whoever started it.
#[derive(Debug, Default)]
pub struct Inherited {
    /// Whom to tell.
    pub manager: Manager,
    /// Sockets that listen already.
    pub sockets: Sockets,
    /// Another agent serves until this one is ready.
    pub successor: bool,
}

impl Inherited {
    /// The keeper's orders. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When the keeper's socket cannot be watched.
    pub fn orders(&self) -> io::Result<Orders> {
        let Kind::Keeper(socket) = &self.manager.0 else { return Ok(Orders(None)) };
        // Sending is non-blocking too from here on: a keeper that hangs must not hang the agent.
        fcntl_setfl(socket, OFlags::NONBLOCK)?;
        // Its kind of socket is the wire's concern; tokio only watches it.
        Ok(Orders(Some(UnixStream::from_std(socket.try_clone()?.into())?)))
    }
}

/// Takes what a keeper or systemd hands over; without either there is nothing, and that is fine. Call it once, and
/// before anything else might use standard input.
///
/// # Errors
/// When what was announced is not there.
pub fn inherit() -> io::Result<Inherited> {
    let mut inherited = activated()?;
    if std::env::var_os(wire::VARIABLE).is_none() {
        let systemd = std::env::var_os("NOTIFY_SOCKET").is_some();
        let manager = Manager(if systemd { Kind::Systemd } else { Kind::None });
        let sockets = Sockets::new(Some(Arc::new(manager.clone())), inherited);
        return Ok(Inherited { manager, sockets, successor: false });
    }
    let socket = keeper()?;
    let successor = loop {
        let message = receive(&socket)?;
        let message = message.ok_or_else(|| io::Error::new(io::ErrorKind::UnexpectedEof, "the keeper is gone"))?;
        let origin = if message.says(wire::ACTIVATION) { Origin::Activation } else { Origin::Agent };
        let begin = [(wire::SUCCEED, true), (wire::START, false)].into_iter().find(|(line, _)| message.says(line));
        inherited.extend(message.descriptors.into_iter().map(|descriptor| (origin, descriptor)));
        if let Some((_, successor)) = begin {
            break successor;
        }
    };
    let manager = Manager(Kind::Keeper(Arc::new(socket)));
    let sockets = Sockets::new(Some(Arc::new(manager.clone())), inherited);
    Ok(Inherited { manager, sockets, successor })
}

/// The keeper's socket: standard input, as inetd handed sockets on.
fn keeper() -> io::Result<OwnedFd> {
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    if socket_type(&socket).ok() != Some(SocketType::SEQPACKET) {
        let fault = format!("{} is set, but standard input is no keeper's socket; unset it", wire::VARIABLE);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, fault));
    }
    set_socket_timeout(&socket, Timeout::Recv, Some(HAND_OVER))?;
    Ok(socket)
}

/// The descriptors of `LISTEN_FDS`, when `LISTEN_PID` is this process.
pub(super) fn activated() -> io::Result<Vec<(Origin, OwnedFd)>> {
    let origin = |name: &str| if is_own_name(name) { Origin::Agent } else { Origin::Activation };
    let faulty = |error: io::Error| io::Error::new(error.kind(), format!("LISTEN_FDS does not hold: {error}"));
    let taken = activation::take_descriptors().map_err(faulty)?;
    Ok(taken.into_iter().map(|(descriptor, name)| (origin(&name), descriptor)).collect())
}

/// What the keeper wants of a running agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Leave the kernel's maps alone, and say so.
    Yield,
    /// Take them up again.
    Resume,
    /// Drain and end; another agent serves.
    Leave,
}

/// The keeper's orders, as they come.
#[derive(Debug)]
pub struct Orders(Option<UnixStream>);

impl Orders {
    /// The next one. Without a keeper there is never one.
    pub async fn next(&mut self) -> Order {
        while let Some(socket) = &self.0 {
            match socket.async_io(Interest::READABLE, || receive(socket)).await {
                Ok(Some(message)) if message.says(wire::YIELD) => return Order::Yield,
                Ok(Some(message)) if message.says(wire::RESUME) => return Order::Resume,
                Ok(Some(message)) if message.says(wire::LEAVE) => return Order::Leave,
                Ok(Some(message)) => tracing::debug!(text = message.text, "an order that this version does not know"),
                Ok(None) => {
                    tracing::warn!("the keeper is gone; this agent goes on without one");
                    self.0 = None;
                }
                Err(error) => {
                    tracing::warn!(%error, "the keeper cannot be heard; this agent goes on without one");
                    self.0 = None;
                }
            }
        }
        std::future::pending().await
    }
}
