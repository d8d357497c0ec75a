//! What objects of other kinds than Route want served, in two steps: first what they want, then, when it is known who
//! gets which host, what they serve and what they are told.
//!
//! One rule decides between kinds: an exact host is stronger than a wildcard (they are different hosts, and the exact one
//! is looked up first), and of objects of different kinds that want the same host on the same router the oldest one's
//! kind has it, whole. Within a kind that kind's own rules decide.

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

/// What there is to work with.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'r> {
    /// All objects.
    pub resources: &'r Resources,
    /// What the operator has set.
    pub settings: &'r Settings,
    /// Endpoints of Services.
    pub endpoints: &'r EndpointIndex,
    /// The routers of IngressControllers, by name.
    pub routers: &'r [RouterPorts],
    /// Addresses that listeners are bound to, as `status.addresses` of a Gateway shows them.
    pub addresses: &'r [std::net::IpAddr],
}

/// A router that sites can hang on. A listener of a Gateway hangs on the router that has its port; where none has, a
/// router of one port is made for it (`gateway-<port>`). Contour's objects hang on the router `default`, or else the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouterPorts {
    /// Its name.
    pub name: RouterName,
    /// Port for clear text.
    pub http: Option<u16>,
    /// Port for TLS.
    pub https: Option<u16>,
    /// What it does to the traffic of all routes.
    pub traffic: TrafficDefaults,
    /// Why it refuses TLS, where it does: the reason that its controller is told.
    pub tls_fault: Option<&'static str>,
}

/// A host that somebody wants on a router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostClaim {
    /// The router; it may be one that is to be made.
    pub router: RouterName,
    /// The host.
    pub host: HostMatch,
    /// The oldest object of the kind that wants it.
    pub owner: ObjectRef,
    /// Its age.
    pub age: OwnedAge,
}

/// An API whose objects want hosts.
pub trait Translator {
    /// What they want: every host that may be served, whether or not it is another's.
    fn claims(&self) -> Vec<HostClaim>;

    /// What they serve and are told, now that it is known which of the wanted hosts are another's.
    fn translate(&self, lost: &LostHosts) -> ApiTranslation;
}

/// The hosts that an API asks for and that an object of another kind has.
pub type LostHosts = BTreeMap<(RouterName, HostMatch), HostOwner>;

/// What is served and said.
#[derive(Debug, Default)]
pub struct ApiTranslation {
    /// Routers that have to be made.
    pub routers: Vec<RouterPorts>,
    /// Virtual hosts, each with a site or a passthrough route; none that is lost.
    pub hosts: Vec<(RouterName, VirtualHost)>,
    /// Domains that delegate their names: what nobody has in them is not found (docs/delegation.md#s8).
    pub domains: BTreeSet<(RouterName, Hostname)>,
    /// What objects are told.
    pub statuses: BTreeMap<ObjectRef, ObjectStatus>,
}
