//! Which listeners' SYNs are answered with cookies, and from which rate on. Pure.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use router_common::maps::pressure_id;
use router_listener::{BindState, ListenerState, Protocol};
use router_table::policy::gate::COOKIES_ABOVE;
use router_table::table::RoutingTable;

use crate::lower::reachable;

/// A router's listeners of one protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CookieListener {
    /// SYNs a second above which they are answered with cookies; 0: they never are.
    pub above: u32,
    /// Their addresses.
    pub addresses: Vec<SocketAddr>,
    /// The rule of the host that drops what completes such handshakes, so that they are not begun.
    pub lost: Option<Arc<str>>,
}

/// Lowers a table, by the key of `gate_pressure`. `loses`: the host's rule that drops acknowledgements of cookies to an address.
pub fn listeners(
    table: &RoutingTable,
    listeners: &[ListenerState],
    local: &[IpAddr],
    loses: impl Fn(SocketAddr) -> Option<Arc<str>>,
) -> BTreeMap<u32, CookieListener> {
    let mut lowered: BTreeMap<u32, CookieListener> = BTreeMap::new();
    for listener in listeners.iter().filter(|listener| listener.state == BindState::Bound) {
        let Some(router) = table.routers.iter().find(|router| router.id == listener.router_id) else { continue };
        let above = router.policy.gate.as_ref().map_or(COOKIES_ABOVE, |policy| policy.cookies_above);
        let found = lowered.entry(pressure_id(router.id, listener.protocol == Protocol::Https)).or_default();
        found.addresses.push(listener.address);
        if above != 0 && found.lost.is_none() {
            let port = listener.address.port();
            found.lost = reachable(listener.address, local)
                .into_iter()
                .find_map(|address| loses(SocketAddr::new(address, port)));
        }
        found.above = if found.lost.is_some() { 0 } else { above };
    }
    lowered
}
