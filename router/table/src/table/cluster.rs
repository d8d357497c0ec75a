//! Targets of a route's requests.

use std::sync::Arc;

use router_model::one_or_many::OneOrMany;

use super::endpoints::{Endpoint, Endpoints, EndpointsKey};
use crate::flag::Flag;
use crate::rule::BackendPolicy;

/// Status of responses if there is no endpoint.
pub const NO_ENDPOINTS: u16 = 503;

/// Weighted services.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    /// Services with a share. Services of weight 0 serve only clients whose cookie names one of their endpoints; they
    /// are listed only for routes with cookie affinity.
    pub services: OneOrMany<WeightedService>,
}

impl Cluster {
    /// The weight of each endpoint, per service: the service's weight divided by its number of endpoints, scaled so
    /// that the largest is 256 and the smallest non-zero one at least 1. If a single service has weight and endpoints,
    /// it is 1 (docs/openshift.md#backends).
    pub fn endpoint_weights(&self, endpoints: &Endpoints) -> Vec<u32> {
        self.scaled_weights(endpoints, ROUTE_SHARES)
    }

    fn scaled_weights(&self, endpoints: &Endpoints, scale: f64) -> Vec<u32> {
        let share = |s: &WeightedService| {
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

    /// Endpoints with their shares; the largest share is `scale`.
    pub(super) fn weighted_endpoints<'e>(&self, endpoints: &'e Endpoints, scale: f64) -> Vec<(&'e Endpoint, u32)> {
        let weighted = self.services.iter().zip(self.scaled_weights(endpoints, scale));
        let weighted = weighted.filter(|(_, weight)| *weight > 0);
        weighted.flat_map(|(s, weight)| endpoints.of(s).iter().map(move |endpoint| (endpoint, weight))).collect()
    }
}

/// The largest share of an endpoint of a Route, as in HAProxy.
pub(super) const ROUTE_SHARES: f64 = 256.0;
/// The largest share of an endpoint of a rule: with weights from 1 to 1,000,000 the error of a share is below 1/250.
pub(super) const RULE_SHARES: f64 = (1 << 28) as f64;

/// One service of a route; its endpoints are in [`Endpoints`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightedService {
    /// Service name, in the route's namespace.
    pub service: Arc<str>,
    /// The Service's port; `None` for a Route, which may name a port of the endpoints instead.
    pub port: Option<u16>,
    /// 0 – 256; for rules up to 1,000,000.
    pub weight: u32,
    /// Key of its endpoints in [`Endpoints`]; `None`: it has none, regardless of EndpointSlices.
    pub key: Option<Arc<EndpointsKey>>,
    /// Settings of a rule's backend; `None` for a Route's, and for most.
    pub policy: Option<Arc<BackendPolicy>>,
}

impl WeightedService {
    /// Status of responses to its share of the requests if it cannot be used at all.
    pub fn failure(&self) -> Option<u16> {
        self.policy.as_ref()?.failure
    }

    /// Status and cause of responses to its share of the requests; `None`: an endpoint may serve it.
    pub fn lack(&self, endpoints: &Endpoints) -> Option<(u16, Flag)> {
        let failure = self.failure().map(|status| (status, Flag::InvalidBackend));
        failure.or_else(|| endpoints.of(self).is_empty().then_some((NO_ENDPOINTS, Flag::NoEndpoints)))
    }

    /// Whether an endpoint may serve its share.
    pub fn is_usable(&self, endpoints: &Endpoints) -> bool {
        self.lack(endpoints).is_none()
    }
}
