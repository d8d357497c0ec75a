//! APIs whose objects claim hosts beside Routes, in two steps: first they claim hosts; once conflicts are decided, they
//! produce virtual hosts and statuses.
//!
//! One rule decides between kinds. An exact host takes precedence over a wildcard: they are different hosts, and the
//! exact one is looked up first. If objects of different kinds claim the same host on the same router, the kind of the
//! oldest object gets the entire host. Within a kind, its own rules decide.

use std::collections::{BTreeMap, BTreeSet};

use router_api::resources::Resources;
use router_model::names::{HostMatch, Hostname, RouterName};
use router_model::object::ObjectRef;
use router_table::table::VirtualHost;

use crate::endpoints::EndpointIndex;
use crate::owned_age::OwnedAge;
use crate::settings::Settings;
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
    /// Endpoints of Services.
    pub endpoints: &'r EndpointIndex,
    /// The routers of IngressControllers, by name.
    pub routers: &'r [RouterPorts],
    /// Addresses that listeners are bound to, as `status.addresses` of a Gateway shows them.
    pub addresses: &'r [std::net::IpAddr],
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
    /// Why it refuses TLS, if it does: the reason in the status of its controller.
    pub tls_fault: Option<&'static str>,
}

/// An object's claim on a host of a router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostClaim {
    /// The router; it may not exist yet.
    pub router: RouterName,
    /// The host.
    pub host: HostMatch,
    /// The oldest object of the kind that claims it.
    pub owner: ObjectRef,
    /// Its age.
    pub age: OwnedAge,
}

/// An API whose objects claim hosts.
pub trait Translator {
    /// The claims: every host that may be served, even if another object owns it.
    fn claims(&self) -> Vec<HostClaim>;

    /// Virtual hosts and statuses, given the claimed hosts that other kinds own.
    fn translate(&self, lost: &LostHosts) -> ApiTranslation;
}

/// Hosts that an API claims and an object of another kind owns.
pub type LostHosts = BTreeMap<(RouterName, HostMatch), HostOwner>;

/// Result of an API's translation.
#[derive(Debug, Default)]
pub struct ApiTranslation {
    /// Routers to create.
    pub routers: Vec<RouterPorts>,
    /// Virtual hosts, each with host rules or a passthrough route; none of `LostHosts`.
    pub hosts: Vec<(RouterName, VirtualHost)>,
    /// Delegated domains: unclaimed names in them return 404 (docs/delegation.md#s8).
    pub domains: BTreeSet<(RouterName, Hostname)>,
    /// Statuses by object.
    pub statuses: BTreeMap<ObjectRef, ObjectStatus>,
}
