//! Where the requests of a route go.

use std::sync::Arc;

use router_model::one_or_many::OneOrMany;

use super::endpoints::{Endpoint, Endpoints, EndpointsKey};
use crate::flag::Flag;
use crate::rule::BackendPolicy;

/// The status that says that there is no endpoint.
pub const NO_ENDPOINTS: u16 = 503;

/// Weighted services.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    /// Services that have a share. Those of weight 0 are for clients whose cookie names an endpoint of theirs; they are
    /// there only where a route has affinity by cookie.
    pub services: OneOrMany<ServiceEndpoints>,
}

impl Cluster {
    /// The share that each endpoint of a service gets, by service: the service's weight divided by its endpoints, scaled
    /// so that the largest is 256 and the smallest non-zero is 1. Where one service alone has weight and endpoints it
    /// is 1 (docs/openshift.md#backends).
    pub fn endpoint_weights(&self, endpoints: &Endpoints) -> Vec<u32> {
        self.scaled_weights(endpoints, ROUTE_SHARES)
    }

    fn scaled_weights(&self, endpoints: &Endpoints, scale: f64) -> Vec<u32> {
        let share = |s: &ServiceEndpoints| {
            let is_active = s.weight > 0 && s.is_usable(endpoints);
            is_active.then(|| f64::from(s.weight) / endpoints.of(s).len() as f64)
        };
        let shares: Vec<Option<f64>> = self.services.iter().map(share).collect();
        let active = || shares.iter().flatten();
        let largest = active().copied().fold(0.0, f64::max);
        let is_alone = active().count() == 1;
        let weight = |share: &Option<f64>| match share {
            None => 0,
            Some(_) if is_alone => 1,
            Some(share) => ((share / largest * scale) as u32).max(1),
        };
        shares.iter().map(weight).collect()
    }

    /// Endpoints that have a share, with it, of which the largest is `scale`.
    pub(super) fn weighted_endpoints<'e>(&self, endpoints: &'e Endpoints, scale: f64) -> Vec<(&'e Endpoint, u32)> {
        let weighted = self.services.iter().zip(self.scaled_weights(endpoints, scale));
        let weighted = weighted.filter(|(_, weight)| *weight > 0);
        weighted.flat_map(|(s, weight)| endpoints.of(s).iter().map(move |endpoint| (endpoint, weight))).collect()
    }
}

/// The largest share of an endpoint of a Route, as HAProxy counts.
pub(super) const ROUTE_SHARES: f64 = 256.0;
/// The largest share of an endpoint of a rule: with weights from 1 to 1,000,000 a share is off by less than one in 250.
pub(super) const RULE_SHARES: f64 = (1 << 28) as f64;

/// One service of a route; its endpoints are in [`Endpoints`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceEndpoints {
    /// Service name, in the route's namespace.
    pub service: Arc<str>,
    /// The Service's port; `None`: a Route's, which may name a port of the endpoints instead.
    pub port: Option<u16>,
    /// 0 – 256; of rules, up to 1,000,000.
    pub weight: u32,
    /// What its endpoints are found by in the table of them; `None`: it has none, whatever slices say.
    pub key: Option<Arc<EndpointsKey>>,
    /// What a rule's backend has of its own; `None` for a Route's, and for most.
    pub policy: Option<Arc<BackendPolicy>>,
}

impl ServiceEndpoints {
    /// The status that its share of the requests is answered with, when it cannot be used at all.
    pub fn failure(&self) -> Option<u16> {
        self.policy.as_ref()?.failure
    }

    /// What its share of the requests is answered with, and why; `None`: an endpoint may serve it.
    pub fn lack(&self, endpoints: &Endpoints) -> Option<(u16, Flag)> {
        let failure = self.failure().map(|status| (status, Flag::InvalidBackend));
        failure.or_else(|| endpoints.of(self).is_empty().then_some((NO_ENDPOINTS, Flag::NoEndpoints)))
    }

    /// Whether there is an endpoint that may serve its share.
    pub fn is_usable(&self, endpoints: &Endpoints) -> bool {
        self.lack(endpoints).is_none()
    }
}
