//! The listeners as both data paths see them, and the addresses at which the router itself listens: none of those is an
//! endpoint, as a connection to it comes back as a client's, for ever.

#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use nix::ifaddrs::getifaddrs;
use router_model::names::RouterName;

/// How long a thread goes by the addresses of this host that it has read: to list them takes longer than a connection.
const STANDS: Duration = Duration::from_secs(1);

/// What a listener speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// Clear-text HTTP/1.
    Http,
    /// TLS: passed through, or HTTP/1.1 and HTTP/2 after termination here.
    Https,
}

/// How a listener stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerState {
    /// Its router.
    pub router: RouterName,
    /// The router's scope in the kernel maps.
    pub router_id: u32,
    /// What it speaks.
    pub protocol: Protocol,
    /// Where it listens; with port 0 in the table, the port that the kernel gave.
    pub address: SocketAddr,
    /// Whether it does.
    pub state: BindState,
}

/// Whether a listener listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindState {
    /// It accepts connections.
    Bound,
    /// Why not. It is tried again every second.
    Failed(String),
}

/// The addresses of the listeners of one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnAddresses {
    exact: BTreeSet<SocketAddr>,
    /// Ports of listeners at every address.
    ports: BTreeSet<u16>,
}

impl OwnAddresses {
    /// Of the listeners that are bound.
    pub fn of(listeners: &[ListenerState]) -> OwnAddresses {
        let bound = listeners.iter().filter(|listener| listener.state == BindState::Bound);
        let (any, exact): (Vec<_>, Vec<_>) =
            bound.map(|listener| listener.address).partition(|address| address.ip().is_unspecified());
        OwnAddresses {
            exact: exact.into_iter().collect(),
            ports: any.into_iter().map(|address: SocketAddr| address.port()).collect(),
        }
    }

    /// Whether one of them is at an address; `is_local`: whether the address is this host's, which is asked only if that
    /// decides.
    pub fn has(&self, address: SocketAddr, is_local: impl FnOnce(IpAddr) -> bool) -> bool {
        let address = SocketAddr::new(address.ip().to_canonical(), address.port());
        self.exact.contains(&address) || (self.ports.contains(&address.port()) && is_local(address.ip()))
    }
}

/// Whether an address is one of this host's, in this thread's network namespace, as of a second ago at most.
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

/// The addresses of this host.
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
