//! Assigns listeners to routers by port, and records the hostnames in use on each port.

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

/// The ports of all routers, and the Gateways that own hostnames on them.
#[derive(Debug)]
pub struct Ports<'r> {
    configured: &'r [RouterPorts],
    created: BTreeMap<u16, RouterPorts>,
    owners: HashMap<(RouterName, PortKind, HostPattern), &'r Gateway>,
}

impl<'r> Ports<'r> {
    /// Starts from these routers, without listeners.
    pub fn new(configured: &'r [RouterPorts]) -> Self {
        Ports { configured, created: BTreeMap::new(), owners: HashMap::new() }
    }

    /// The routers created for Gateways, in order of port.
    pub fn created(&self) -> impl Iterator<Item = &RouterPorts> {
        self.created.values()
    }

    /// Why a router cannot terminate TLS; `None` if it can.
    pub fn tls_fault(&self, name: &RouterName) -> Option<&'static str> {
        self.configured.iter().find(|router| router.name == *name)?.tls_fault
    }

    /// Reserves the hostname of a listener on its port, and creates a router if no router has the port.
    ///
    /// # Errors
    /// The hostname or port is in use; the message says what to change.
    pub fn reserve(
        &mut self,
        gateway: &'r Gateway,
        listener: &Listener,
        port_kind: PortKind,
    ) -> Result<RouterName, String> {
        let port = listener.port;
        let router = match self.router(port, port_kind)? {
            Some(router) => router,
            None => self.create(port, port_kind),
        };
        let key = (router.clone(), port_kind, listener.hostname.clone());
        match self.owners.get(&key) {
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
                self.owners.insert(key, gateway);
                Ok(router)
            }
        }
    }

    /// The router that has this port for the listener's protocol, if any.
    fn router(&self, port: u16, port_kind: PortKind) -> Result<Option<RouterName>, String> {
        for router in self.configured.iter().chain(self.created.get(&port)) {
            let (own, other) = match port_kind {
                PortKind::Cleartext => (router.http, router.https),
                PortKind::Tls => (router.https, router.http),
            };
            if own == Some(port) {
                return Ok(Some(router.name.clone()));
            }
            if other == Some(port) {
                let speaks = if port_kind == PortKind::Cleartext { "TLS" } else { "clear-text HTTP" };
                return Err(format!("port {port} of router {} speaks {speaks}; choose another port", router.name));
            }
        }
        Ok(None)
    }

    fn create(&mut self, port: u16, port_kind: PortKind) -> RouterName {
        let mut name = format!("gateway-{port}");
        while self.configured.iter().any(|configured| *configured.name.0 == *name) {
            name.push_str("-0");
        }
        let name = RouterName(name.into());
        let of = |own| (port_kind == own).then_some(port);
        let (http, https) = (of(PortKind::Cleartext), of(PortKind::Tls));
        let traffic = TrafficDefaults::default();
        self.created
            .insert(port, RouterPorts { name: name.clone(), http, https, traffic, tls_fault: None, gate: None });
        name
    }
}
