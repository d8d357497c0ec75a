//! Inherited listening sockets, and reports to the process that holds them.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use socket2::{Socket, Type};

/// Prefix of the names of all descriptors that an agent has stored.
const NAME: &str = "sluice-listener-";

/// The name of a stored listening socket. Names must not contain colons (sd_notify(3)).
pub fn name(address: SocketAddr) -> String {
    format!("{NAME}{}", address.to_string().replace(':', "_"))
}

/// Whether a descriptor was stored by an agent.
pub fn is_own_name(text: &str) -> bool {
    text.starts_with(NAME)
}

/// Stores listening sockets for the next agent.
pub trait SocketKeeper: Debug + Send + Sync {
    /// Stores a socket.
    fn opened(&self, name: &str, socket: BorrowedFd<'_>);

    /// Removes a stored socket.
    fn closed(&self, name: &str);
}

/// Origin of an inherited socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketOrigin {
    /// Opened by an earlier agent: closed when no router needs it.
    Agent,
    /// Socket activation: kept even if no router needs it.
    Activation,
}

#[derive(Debug)]
struct HeldSocket {
    address: SocketAddr,
    /// A `[::]` socket that also accepts IPv4.
    dual: bool,
    origin: SocketOrigin,
    socket: Socket,
}

impl HeldSocket {
    fn serves(&self, address: SocketAddr) -> bool {
        let exact = self.address.ip() == address.ip();
        let by_both = self.dual && address.ip() == IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        self.address.port() == address.port() && (exact || by_both)
    }
}

/// The inherited sockets of an agent. Without any, all listeners are opened anew.
#[derive(Clone, Debug, Default)]
pub struct Sockets(Arc<Mutex<SocketsState>>);

#[derive(Debug, Default)]
struct SocketsState {
    keeper: Option<Arc<dyn SocketKeeper>>,
    held: Vec<HeldSocket>,
    /// The first table was applied.
    sorted: bool,
    /// Another process has taken over, or none shall.
    released: bool,
}

impl Sockets {
    /// Takes inherited descriptors. Logs and ignores anything but a listening TCP socket.
    pub fn new(keeper: Option<Arc<dyn SocketKeeper>>, inherited: Vec<(SocketOrigin, OwnedFd)>) -> Self {
        let mut held = Vec::new();
        for (origin, descriptor) in inherited {
            let socket = Socket::from(descriptor);
            match listening_address(&socket) {
                Ok(address) => {
                    let dual = address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED) && !socket.only_v6().unwrap_or(true);
                    held.push(HeldSocket { address, dual, origin, socket });
                }
                Err(error) => tracing::warn!(%error, "an inherited descriptor is not a listening TCP socket; ignored"),
            }
        }
        Sockets(Arc::new(Mutex::new(SocketsState { keeper, held, sorted: false, released: false })))
    }

    /// Applies the first table: closes unneeded sockets of earlier agents, and logs unneeded ones of socket activation.
    /// Later calls do nothing.
    pub fn sort(&self, wanted: &BTreeSet<SocketAddr>) {
        let mut state = self.state();
        if std::mem::replace(&mut state.sorted, true) {
            return;
        }
        let keeper = state.keeper.clone();
        state.held.retain(|held| {
            let unwanted = !wanted.iter().any(|address| held.serves(*address));
            match held.origin {
                SocketOrigin::Agent if unwanted => {
                    tracing::info!(address = %held.address, "no router needs this inherited socket; closed");
                    keeper.iter().for_each(|keeper| keeper.closed(&name(held.address)));
                }
                SocketOrigin::Activation if unwanted => {
                    tracing::warn!(address = %held.address, "no router needs this inherited socket; kept open");
                }
                SocketOrigin::Agent | SocketOrigin::Activation => {}
            }
            held.origin == SocketOrigin::Activation || !unwanted
        });
    }

    /// The inherited socket for an address, if any: one with this address, else for `0.0.0.0` a dual-stack `[::]`
    /// socket.
    ///
    /// # Errors
    /// When its descriptor cannot be duplicated.
    pub fn take(&self, address: SocketAddr) -> io::Result<Option<Socket>> {
        let mut state = self.state();
        let exact = state.held.iter().position(|held| held.serves(address) && !held.dual);
        let Some(index) = exact.or_else(|| state.held.iter().position(|held| held.serves(address))) else {
            return Ok(None);
        };
        match state.held.get(index) {
            Some(held) if held.origin == SocketOrigin::Activation || held.dual => held.socket.try_clone().map(Some),
            _ => Ok(Some(state.held.swap_remove(index).socket)),
        }
    }

    /// Stores a newly opened socket for later agents.
    pub fn opened(&self, address: SocketAddr, socket: impl AsFd) {
        self.state().keeper.iter().for_each(|keeper| keeper.opened(&name(address), socket.as_fd()));
    }

    /// Removes a socket that no router needs.
    pub fn closed(&self, address: SocketAddr) {
        let state = self.state();
        let activation = |held: &HeldSocket| held.origin == SocketOrigin::Activation && held.serves(address);
        if !state.released && !state.held.iter().any(activation) {
            state.keeper.iter().for_each(|keeper| keeper.closed(&name(address)));
        }
    }

    /// Stops reporting: from here on a closed listener stays stored.
    pub fn release(&self) {
        let mut state = self.state();
        state.released = true;
        state.held.clear();
    }

    fn state(&self) -> MutexGuard<'_, SocketsState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn listening_address(socket: &Socket) -> io::Result<SocketAddr> {
    let fault = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what.to_owned());
    if socket.r#type()? != Type::STREAM {
        return Err(fault("not a stream socket"));
    }
    if !socket.is_listener()? {
        return Err(fault("not listening"));
    }
    socket.local_addr()?.as_socket().ok_or_else(|| fault("not an IP address"))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};

    use socket2::{Domain, SockAddr};

    use super::*;

    fn listener(address: &str) -> (SocketAddr, OwnedFd) {
        let listener = TcpListener::bind(address).unwrap();
        (listener.local_addr().unwrap(), listener.into())
    }

    fn wanted(addresses: &[SocketAddr]) -> BTreeSet<SocketAddr> {
        addresses.iter().copied().collect()
    }

    #[test]
    fn an_agents_socket_is_taken_once_and_an_unwanted_one_is_closed() {
        let (first, second) = (listener("127.0.0.1:0"), listener("127.0.0.1:0"));
        let inherited = vec![(SocketOrigin::Agent, first.1), (SocketOrigin::Agent, second.1)];
        let sockets = Sockets::new(None, inherited);
        sockets.sort(&wanted(&[first.0]));
        assert!(TcpListener::bind(second.0).is_ok(), "nothing listens there any more");
        let taken = sockets.take(first.0).unwrap().unwrap();
        assert_eq!(taken.local_addr().unwrap().as_socket(), Some(first.0));
        assert!(sockets.take(first.0).unwrap().is_none());
    }

    #[test]
    fn an_activated_socket_can_be_taken_again_and_stays_when_unwanted() {
        let (address, socket) = listener("[::1]:0");
        let sockets = Sockets::new(None, vec![(SocketOrigin::Activation, socket)]);
        sockets.sort(&wanted(&[]));
        for _ in 0..2 {
            drop(sockets.take(address).unwrap().unwrap());
            sockets.closed(address);
        }
        assert!(TcpListener::bind(address).is_err(), "it still listens");
        sockets.release();
        assert!(TcpListener::bind(address).is_ok());
    }

    #[test]
    fn a_socket_of_both_families_serves_both_wildcards() {
        let socket = Socket::new(Domain::IPV6, Type::STREAM, None).unwrap();
        socket.set_only_v6(false).unwrap();
        socket.bind(&SockAddr::from(SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)))).unwrap();
        socket.listen(1).unwrap();
        let port = socket.local_addr().unwrap().as_socket().unwrap().port();
        for origin in [SocketOrigin::Activation, SocketOrigin::Agent] {
            let sockets = Sockets::new(None, vec![(origin, socket.try_clone().unwrap().into())]);
            let v4 = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
            sockets.sort(&wanted(&[v4]));
            assert!(sockets.take(v4).unwrap().is_some());
            assert!(sockets.take((Ipv6Addr::UNSPECIFIED, port).into()).unwrap().is_some());
            assert!(sockets.take((Ipv4Addr::LOCALHOST, port).into()).unwrap().is_none());
        }
    }

    #[test]
    fn what_does_not_listen_is_not_used() {
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = udp.local_addr().unwrap();
        let sockets = Sockets::new(None, vec![(SocketOrigin::Activation, udp.into())]);
        assert!(sockets.take(address).unwrap().is_none());
    }

    #[test]
    fn names_have_no_colon() {
        for address in ["0.0.0.0:8443", "[fd79::1]:8443"] {
            let name = name(address.parse().unwrap());
            assert!(!name.contains(':') && is_own_name(&name), "{name}");
        }
    }
}
