//! Assigns listeners to routers by port, and records the hostnames taken on each port.

use std::collections::{BTreeMap, HashMap};

use router_api::gateway_api::types::{Gateway, Listener};
use router_model::kind::Kind;
use router_model::names::RouterName;
use router_model::object::ObjectRef;
use router_table::host_pattern::HostPattern;

use crate::status::host_conflict::{HostConflict, WinningClaim};
use crate::traffic_defaults::TrafficDefaults;
use crate::translator::RouterPorts;

/// One of the two ports of a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PortKind {
    /// For clear text.
    Cleartext,
    /// For TLS.
    Tls,
}

/// The ports of all routers, and the hostnames that listeners have taken on them.
#[derive(Debug)]
pub struct Ports<'r> {
    known: &'r [RouterPorts],
    made: BTreeMap<u16, RouterPorts>,
    taken: HashMap<(RouterName, PortKind, HostPattern), &'r Gateway>,
}

impl<'r> Ports<'r> {
    /// Starts from these routers, with no hostname taken.
    pub fn new(known: &'r [RouterPorts]) -> Self {
        Ports { known, made: BTreeMap::new(), taken: HashMap::new() }
    }

    /// The routers created for Gateways, in order of port.
    pub fn made(&self) -> impl Iterator<Item = &RouterPorts> {
        self.made.values()
    }

    /// Why a router cannot terminate TLS; `None` if it can.
    pub fn tls_fault(&self, name: &RouterName) -> Option<&'static str> {
        self.known.iter().find(|router| router.name == *name)?.tls_fault
    }

    /// Takes the hostname of a listener on its port, and creates a router if no router has the port.
    ///
    /// # Errors
    /// The hostname or port is taken, and what to change.
    pub fn take(&mut self, gateway: &'r Gateway, listener: &Listener, side: PortKind) -> Result<RouterName, String> {
        let port = listener.port;
        let router = match self.router(port, side)? {
            Some(router) => router,
            None => self.make(port, side),
        };
        let key = (router.clone(), side, listener.hostname.clone());
        match self.taken.get(&key) {
            Some(owner) => {
                let reference = |gateway: &Gateway| ObjectRef { kind: Kind::Gateway, key: gateway.meta.key.clone() };
                let conflict = HostConflict {
                    host: listener.hostname.to_string(),
                    winner: reference(owner),
                    loser: reference(gateway),
                    held: WinningClaim::Host(owner.meta.seniority(&gateway.meta)),
                };
                let taken = conflict.message(&conflict.loser);
                Err(format!("port {port}: {taken}; choose another hostname or port"))
            }
            None => {
                self.taken.insert(key, gateway);
                Ok(router)
            }
        }
    }

    /// The router that has this port for the listener's protocol, if any.
    fn router(&self, port: u16, side: PortKind) -> Result<Option<RouterName>, String> {
        for router in self.known.iter().chain(self.made.get(&port)) {
            let (own, other) = match side {
                PortKind::Cleartext => (router.http, router.https),
                PortKind::Tls => (router.https, router.http),
            };
            if own == Some(port) {
                return Ok(Some(router.name.clone()));
            }
            if other == Some(port) {
                let speaks = if side == PortKind::Cleartext { "TLS" } else { "clear-text HTTP" };
                return Err(format!("port {port} of router {} speaks {speaks}; choose another port", router.name));
            }
        }
        Ok(None)
    }

    fn make(&mut self, port: u16, side: PortKind) -> RouterName {
        let mut name = format!("gateway-{port}");
        while self.known.iter().any(|known| *known.name.0 == *name) {
            name.push_str("-0");
        }
        let name = RouterName(name.into());
        let of = |own| (side == own).then_some(port);
        let (http, https) = (of(PortKind::Cleartext), of(PortKind::Tls));
        let traffic = TrafficDefaults::default();
        self.made.insert(port, RouterPorts { name: name.clone(), http, https, traffic, tls_fault: None });
        name
    }
}
