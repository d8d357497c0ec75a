//! Interface between the engine and the APIs other than Routes whose objects claim hosts (Gateway API, Contour).
//!
//! The engine keeps one [`Translator`] for each API between applies. Each apply has two steps: [`Translator::claims`]
//! returns the claims on hosts that differ; then, once the engine has resolved the contests between APIs,
//! [`Translator::translate`] returns the hosts and statuses that differ.
//!
//! One rule decides between APIs. An exact host takes precedence over a wildcard: they are different hosts, and the
//! exact one is looked up first. If objects of different APIs claim the same host on the same router, the API of the
//! oldest object gets the entire host. Within an API, its own rules decide.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

use router_api::resources::Resources;
use router_model::kind::Kind;
use router_model::names::{HostMatch, Hostname, RouterName};
use router_model::object::{ObjectKey, ObjectRef};
use router_table::policy::gate::GatePolicy;
use router_table::table::VirtualHost;

use crate::endpoints::EndpointIndex;
use crate::owned_age::OwnedAge;
use crate::settings::{GatewayAddress, Settings};
use crate::status::host_conflict::HostOwner;
use crate::status::object_status::ObjectStatus;
use crate::traffic_defaults::TrafficDefaults;

/// Inputs of a translator.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'r> {
    /// All objects.
    pub resources: &'r Resources,
    /// Settings of the operator.
    pub settings: &'r Settings,
    /// EndpointSlices by Service.
    pub endpoints: &'r EndpointIndex,
    /// The routers of IngressControllers, by name.
    pub routers: &'r [RouterPorts],
    /// Addresses that listeners are bound to, as `status.addresses` of a Gateway shows them.
    pub addresses: &'r [GatewayAddress],
}

/// A router that can serve host rules. A listener of a Gateway uses the router with its port; if there is none, a
/// router with this port is created (`gateway-<port>`). Contour's objects use the router `default`, or else the first
/// one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouterPorts {
    /// Its name.
    pub name: RouterName,
    /// Port for clear text.
    pub http: Option<u16>,
    /// Port for TLS.
    pub https: Option<u16>,
    /// Defaults for the traffic of all routes.
    pub traffic: TrafficDefaults,
    /// Why it rejects TLS handshakes, if it does: the reason in the status of its controller.
    pub tls_fault: Option<&'static str>,
    /// What the XDP gate rejects, if it is a created router; that of an IngressController is not known here.
    pub gate: Option<Arc<GatePolicy>>,
}

/// A host on a router; the router may not exist yet.
pub type RouterHost = (RouterName, HostMatch);

/// The claim of an API on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostClaim {
    /// Kind of the oldest object of the API that claims the host.
    pub kind: Kind,
    /// Its age, which contains its key.
    pub age: OwnedAge,
}

impl HostClaim {
    /// The oldest object that claims the host.
    pub fn owner(&self) -> ObjectRef {
        ObjectRef { kind: self.kind, key: self.age.key().clone() }
    }
}

/// What differs from the previous apply. At the first apply everything differs: `last` is empty.
#[derive(Clone, Copy, Debug)]
pub struct Changes<'r> {
    /// The objects of the previous apply: the cost of
    /// `inputs.resources.<kind>.in_force_since(&changes.last.<kind>)` is proportional to the difference.
    pub last: &'r Resources,
    /// True if [`Inputs::routers`] differ.
    pub routers_differ: bool,
    /// Namespaces whose labels differ.
    pub relabelled: &'r [Arc<str>],
    /// Services whose slices give other protocols than before ([`EndpointIndex::protocols`]). A translator depends on
    /// nothing else of endpoints.
    pub protocols: &'r BTreeSet<ObjectKey>,
}

/// An API whose objects claim hosts. The engine calls `claims` and then `translate`, once each, in every apply.
///
/// Both may return more than what differs: the engine compares. After each apply, the sum of all deltas must be what a
/// new translator returns for the same objects.
pub trait Translator: Debug + Send {
    /// Applies changed objects. Returns the hosts whose claim was added, changed (owner or age) or removed (`None`). A
    /// claim covers every host that may be served, even if another API gets it.
    fn claims(&mut self, inputs: &Inputs<'_>, changes: &Changes<'_>) -> Vec<(RouterHost, Option<Arc<HostClaim>>)>;

    /// Returns the virtual hosts and statuses that differ since the last call, because of changed objects or of lost
    /// hosts. `lost` are all claimed hosts that another API owns; `changed` are those whose entry in `lost` was added,
    /// changed or removed since the last call. A lost host is not served.
    fn translate(&mut self, inputs: &Inputs<'_>, lost: &LostHosts, changed: &[RouterHost]) -> Delta;
}

/// The hosts that an API claims and another API owns, with the owner.
pub type LostHosts = BTreeMap<RouterHost, HostOwner>;

/// The difference between two translations of an API.
#[derive(Debug, Default)]
pub struct Delta {
    /// Virtual hosts that were added, changed or removed, each host once. `Some` has host rules or a passthrough route,
    /// and its host is claimed and not lost. `None` only for a host that an earlier delta of this API set: another API
    /// may serve the host by now.
    pub hosts: Vec<(RouterHost, Option<VirtualHost>)>,
    /// Statuses that were added, changed or removed (`None`).
    pub statuses: Vec<(ObjectRef, Option<ObjectStatus>)>,
    /// All routers to be created for ports that no IngressController has; `None` if they are as before.
    pub routers: Option<Vec<RouterPorts>>,
    /// All delegated domains: an unclaimed name in one is answered with 404 (docs/delegation.md#s8); `None` if they are
    /// as before.
    pub domains: Option<BTreeSet<(RouterName, Hostname)>>,
}

#[cfg(test)]
pub(crate) mod testing;
