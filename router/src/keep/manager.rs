//! The agent's side of the protocol: inherited sockets, and notifications.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use router_proxy::listeners::sockets::{SocketKeeper, SocketOrigin, Sockets, is_own_name};
use router_sys::activation;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::net::SocketType;
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_type};
use sd_notify::NotifyState;
use tokio::io::Interest;
use tokio::net::UnixStream;

use super::wire::{self, receive, send};

/// Time-out for the keeper to pass all sockets; it does so at once.
const HAND_OVER: Duration = Duration::from_secs(10);

/// The process that started the agent and receives its notifications.
#[derive(Clone, Debug, Default)]
pub struct Manager(ManagerKind);

#[derive(Clone, Debug, Default)]
enum ManagerKind {
    /// A shell or a container runtime: no notifications.
    #[default]
    None,
    Keeper(Arc<OwnedFd>),
    /// `NOTIFY_SOCKET` is set.
    Systemd,
}

impl Manager {
    /// Reports that everything is served.
    pub fn ready(&self) {
        self.notify(&[NotifyState::Ready], &[]);
    }

    /// Reports progress, or why the agent ends.
    pub fn status(&self, text: &str) {
        self.notify(&[NotifyState::Status(&text.replace('\n', " "))], &[]);
    }

    /// Reports that the agent drains, without a successor.
    pub fn stopping(&self) {
        self.notify(&[NotifyState::Stopping], &[]);
    }

    /// Reports that the kernel's maps are released.
    pub fn yielded(&self) {
        self.notify(&[NotifyState::Custom(wire::YIELDED)], &[]);
    }

    fn notify(&self, states: &[NotifyState<'_>], descriptors: &[BorrowedFd<'_>]) {
        let text = || states.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        let told = match &self.0 {
            ManagerKind::None => return,
            ManagerKind::Keeper(socket) => send(socket, &text(), descriptors),
            ManagerKind::Systemd if descriptors.is_empty() => sd_notify::notify(states),
            ManagerKind::Systemd => sd_notify::notify_with_fds(states, descriptors),
        };
        if let Err(error) = told {
            tracing::warn!(%error, message = text(), "the service manager cannot be told");
        }
    }
}

impl SocketKeeper for Manager {
    fn opened(&self, name: &str, socket: BorrowedFd<'_>) {
        self.notify(&[NotifyState::FdStore, NotifyState::FdName(name)], &[socket]);
    }

    fn closed(&self, name: &str) {
        self.notify(&[NotifyState::FdStoreRemove, NotifyState::FdName(name)], &[]);
    }
}

/// What an agent inherits from the process that started it.
#[derive(Debug, Default)]
pub struct Inherited {
    /// Receiver of notifications.
    pub manager: Manager,
    /// Listening sockets.
    pub sockets: Sockets,
    /// True if another agent serves until this one is ready.
    pub successor: bool,
}

impl Inherited {
    /// The keeper's orders. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// The keeper's socket cannot be polled.
    pub fn orders(&self) -> io::Result<Orders> {
        let ManagerKind::Keeper(socket) = &self.manager.0 else { return Ok(Orders(None)) };
        // Sending is non-blocking from here on: a blocked keeper must not block the agent.
        fcntl_setfl(socket, OFlags::NONBLOCK)?;
        // tokio only polls it; `wire` handles its type (`SOCK_SEQPACKET`).
        Ok(Orders(Some(UnixStream::from_std(socket.try_clone()?.into())?)))
    }
}

/// Receives what a keeper or systemd passes on; empty without either. Call it once, before anything else might use
/// standard input.
///
/// # Errors
/// An announced socket is missing.
pub fn inherit() -> io::Result<Inherited> {
    let mut inherited = activated()?;
    if std::env::var_os(wire::VARIABLE).is_none() {
        let systemd = std::env::var_os("NOTIFY_SOCKET").is_some();
        let manager = Manager(if systemd { ManagerKind::Systemd } else { ManagerKind::None });
        let sockets = Sockets::new(Some(Arc::new(manager.clone())), inherited);
        return Ok(Inherited { manager, sockets, successor: false });
    }
    let socket = keeper()?;
    let successor = loop {
        let message = receive(&socket)?;
        let message = message.ok_or_else(|| io::Error::new(io::ErrorKind::UnexpectedEof, "the keeper is gone"))?;
        let origin = if message.says(wire::ACTIVATION) { SocketOrigin::Activation } else { SocketOrigin::Agent };
        let begin = [(wire::SUCCEED, true), (wire::START, false)].into_iter().find(|(line, _)| message.says(line));
        inherited.extend(message.descriptors.into_iter().map(|descriptor| (origin, descriptor)));
        if let Some((_, successor)) = begin {
            break successor;
        }
    };
    let manager = Manager(ManagerKind::Keeper(Arc::new(socket)));
    let sockets = Sockets::new(Some(Arc::new(manager.clone())), inherited);
    Ok(Inherited { manager, sockets, successor })
}

/// The keeper's socket: standard input, as with inetd.
fn keeper() -> io::Result<OwnedFd> {
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    if socket_type(&socket).ok() != Some(SocketType::SEQPACKET) {
        let fault = format!("{} is set, but standard input is no keeper's socket; unset it", wire::VARIABLE);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, fault));
    }
    set_socket_timeout(&socket, Timeout::Recv, Some(HAND_OVER))?;
    Ok(socket)
}

/// The descriptors of `LISTEN_FDS`, if `LISTEN_PID` is this process.
pub(super) fn activated() -> io::Result<Vec<(SocketOrigin, OwnedFd)>> {
    let origin = |name: &str| if is_own_name(name) { SocketOrigin::Agent } else { SocketOrigin::Activation };
    let faulty = |error: io::Error| io::Error::new(error.kind(), format!("LISTEN_FDS does not hold: {error}"));
    let taken = activation::take_descriptors().map_err(faulty)?;
    Ok(taken.into_iter().map(|(descriptor, name)| (origin(&name), descriptor)).collect())
}

/// An order of the keeper to a running agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeeperOrder {
    /// Release the kernel's maps, and report it.
    Yield,
    /// Take over the maps again.
    Resume,
    /// Drain and exit; another agent serves.
    Leave,
}

/// Receives the keeper's orders.
#[derive(Debug)]
pub struct Orders(Option<UnixStream>);

impl Orders {
    /// The next order. Without a keeper it never resolves.
    pub async fn next(&mut self) -> KeeperOrder {
        while let Some(socket) = &self.0 {
            match socket.async_io(Interest::READABLE, || receive(socket)).await {
                Ok(Some(message)) if message.says(wire::YIELD) => return KeeperOrder::Yield,
                Ok(Some(message)) if message.says(wire::RESUME) => return KeeperOrder::Resume,
                Ok(Some(message)) if message.says(wire::LEAVE) => return KeeperOrder::Leave,
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
