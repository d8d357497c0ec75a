//! Where the requests of a route go.

use std::net::SocketAddr;
use std::sync::Arc;

use router_model::one_or_many::OneOrMany;

use crate::flag::Flag;
use crate::rule::BackendPolicy;

/// The status that says that there is no endpoint.
pub const NO_ENDPOINTS: u16 = 503;

/// Weighted services and their endpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    /// Services with their usable endpoints. Those of weight 0 are for clients whose cookie names an endpoint of theirs;
    /// they are there only where a route has affinity by cookie.
    pub services: OneOrMany<ServiceEndpoints>,
}

impl Cluster {
    /// The share that each endpoint of a service gets, by service: the service's weight divided by its endpoints, scaled
    /// so that the largest is 256 and the smallest non-zero is 1. Where one service alone has weight and endpoints it
    /// is 1 (docs/openshift.md#backends).
    pub fn endpoint_weights(&self) -> Vec<u32> {
        self.scaled_weights(ROUTE_SHARES)
    }

    fn scaled_weights(&self, scale: f64) -> Vec<u32> {
        let is_active = |s: &ServiceEndpoints| s.weight > 0 && s.is_usable();
        let share = |s: &ServiceEndpoints| f64::from(s.weight) / s.endpoints.len() as f64;
        let shares = || self.services.iter().filter(|s| is_active(s)).map(share);
        let (active, largest) = (shares().count(), shares().fold(0.0, f64::max));
        let weight = |s: &ServiceEndpoints| match active {
            _ if !is_active(s) => 0,
            1 => 1,
            _ => ((share(s) / largest * scale) as u32).max(1),
        };
        self.services.iter().map(weight).collect()
    }

    /// Endpoints that have a share, with it, of which the largest is `scale`.
    pub(super) fn weighted_endpoints(&self, scale: f64) -> Vec<(&Endpoint, u32)> {
        let weighted = self.services.iter().zip(self.scaled_weights(scale)).filter(|(_, weight)| *weight > 0);
        weighted.flat_map(|(s, weight)| s.endpoints.iter().map(move |endpoint| (endpoint, weight))).collect()
    }
}

/// The largest share of an endpoint of a Route, as HAProxy counts.
pub(super) const ROUTE_SHARES: f64 = 256.0;
/// The largest share of an endpoint of a rule: with weights from 1 to 1,000,000 a share is off by less than one in 250.
pub(super) const RULE_SHARES: f64 = (1 << 28) as f64;

/// One service of a route.
#[derive(Clone, Debug)]
pub struct ServiceEndpoints {
    /// Service name, in the route's namespace.
    pub service: Arc<str>,
    /// The Service's port; `None`: a Route's, which may name a port of the endpoints instead.
    pub port: Option<u16>,
    /// 0 – 256; of rules, up to 1,000,000.
    pub weight: u32,
    /// Endpoints that the port filter leaves: ready ones, or where none is ready those that are draining.
    pub endpoints: Arc<[Endpoint]>,
    /// What a rule's backend has of its own; `None` for a Route's, and for most.
    pub policy: Option<Arc<BackendPolicy>>,
}

/// As derived, except that a shared list of endpoints is not compared with itself: it may be long.
impl PartialEq for ServiceEndpoints {
    fn eq(&self, other: &Self) -> bool {
        let ServiceEndpoints { service, port, weight, endpoints, policy } = self;
        (service, port, weight, policy) == (&other.service, &other.port, &other.weight, &other.policy)
            && (Arc::ptr_eq(endpoints, &other.endpoints) || *endpoints == other.endpoints)
    }
}

impl Eq for ServiceEndpoints {}

impl ServiceEndpoints {
    /// The status that its share of the requests is answered with, when it cannot be used at all.
    pub fn failure(&self) -> Option<u16> {
        self.policy.as_ref()?.failure
    }

    /// What its share of the requests is answered with, and why; `None`: an endpoint may serve it.
    pub fn lack(&self) -> Option<(u16, Flag)> {
        let failure = self.failure().map(|status| (status, Flag::InvalidBackend));
        failure.or_else(|| self.endpoints.is_empty().then_some((NO_ENDPOINTS, Flag::NoEndpoints)))
    }

    /// Whether there is an endpoint that may serve its share.
    pub fn is_usable(&self) -> bool {
        self.lack().is_none()
    }
}

/// Where a connection goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint {
    /// Address and port.
    pub address: SocketAddr,
    /// Name of the pod, when the slice tells.
    pub target: Option<Arc<str>>,
    /// The port's `appProtocol`, or else its name, says HTTP/2 without TLS (docs/openshift.md#backends); plain and edge
    /// routes use it, re-encrypting ones negotiate.
    pub h2c: bool,
}
