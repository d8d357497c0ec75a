//! Listeners as both data paths see them, and the router's own addresses. Those are never endpoints, because a
//! connection to one would return as a client's, without end.

#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use nix::ifaddrs::getifaddrs;
use router_model::names::RouterName;

/// How long a thread caches the host's addresses: reading them takes longer than a connection.
const STANDS: Duration = Duration::from_secs(1);

/// Protocol of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// Clear-text HTTP/1.
    Http,
    /// TLS: passthrough, or HTTP/1.1 and HTTP/2 after termination.
    Https,
}

/// State of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerState {
    /// Its router.
    pub router: RouterName,
    /// The router's identifier in the kernel maps.
    pub router_id: u32,
    /// Protocol.
    pub protocol: Protocol,
    /// Bound address; if the table has port 0, with the port that the kernel assigned.
    pub address: SocketAddr,
    /// Whether it is bound.
    pub state: BindState,
}

/// Whether a listener is bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindState {
    /// It accepts connections.
    Bound,
    /// The error; binding is retried every second.
    Failed(String),
}

/// Addresses of the current listeners.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnAddresses {
    exact: BTreeSet<SocketAddr>,
    /// Ports of listeners on all addresses.
    ports: BTreeSet<u16>,
}

impl OwnAddresses {
    /// Addresses of the bound listeners.
    pub fn of(listeners: &[ListenerState]) -> OwnAddresses {
        let bound = listeners.iter().filter(|listener| listener.state == BindState::Bound);
        let (any, exact): (Vec<_>, Vec<_>) =
            bound.map(|listener| listener.address).partition(|address| address.ip().is_unspecified());
        OwnAddresses {
            exact: exact.into_iter().collect(),
            ports: any.into_iter().map(|address: SocketAddr| address.port()).collect(),
        }
    }

    /// Whether a listener has this address. `is_local` returns whether the address is this host's; called only if that
    /// decides.
    pub fn has(&self, address: SocketAddr, is_local: impl FnOnce(IpAddr) -> bool) -> bool {
        let address = SocketAddr::new(address.ip().to_canonical(), address.port());
        self.exact.contains(&address) || (self.ports.contains(&address.port()) && is_local(address.ip()))
    }
}

/// Whether an address is one of this host's, in the thread's network namespace, at most a second ago.
pub fn is_local(address: IpAddr) -> bool {
    thread_local! {
        static READ: RefCell<Option<(Instant, BTreeSet<IpAddr>)>> = const { RefCell::new(None) };
    }
    address.is_loopback()
        || READ.with_borrow_mut(|read| {
            let fresh = read.take().filter(|(since, _)| since.elapsed() < STANDS);
            read.insert(fresh.unwrap_or_else(|| (Instant::now(), addresses()))).1.contains(&address)
        })
}

/// Addresses of this host.
fn addresses() -> BTreeSet<IpAddr> {
    let addresses = getifaddrs().into_iter().flatten().filter_map(|interface| interface.address);
    addresses
        .filter_map(|address| match (address.as_sockaddr_in(), address.as_sockaddr_in6()) {
            (Some(v4), _) => Some(IpAddr::V4(v4.ip())),
            (_, Some(v6)) => Some(IpAddr::V6(v6.ip())),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_at_every_address_is_at_those_of_this_host_alone() {
        let listener = |address: &str, state| ListenerState {
            router: RouterName("default".into()),
            router_id: 1,
            protocol: Protocol::Https,
            address: address.parse().unwrap(),
            state,
        };
        let own = OwnAddresses::of(&[
            listener("0.0.0.0:443", BindState::Bound),
            listener("192.0.2.1:8443", BindState::Bound),
            listener("0.0.0.0:444", BindState::Failed("in use".to_owned())),
        ]);
        let has = |address: &str| own.has(address.parse().unwrap(), is_local);
        assert!(has("127.0.0.9:443") && has("[::1]:443") && has("192.0.2.1:8443") && has("[::ffff:192.0.2.1]:8443"));
        assert!(!has("192.0.2.1:443") && !has("127.0.0.1:444") && !has("127.0.0.1:8443") && !has("192.0.2.2:8443"));
    }
}
