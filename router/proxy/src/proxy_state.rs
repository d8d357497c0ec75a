//! Runtime state of a proxy that `explain` needs beside the manifests.

use std::net::SocketAddr;
use std::sync::Arc;

use router_table::live_state::{LiveState, Trust};
use router_table::table::{Endpoint, ResolvedRoute, WeightedService};

use super::upstream::target::EndpointTarget;
use crate::context::ProcessContext;

/// View of a proxy's runtime state.
#[derive(Clone, Debug)]
pub struct ProxyState(Arc<ProcessContext>);

impl ProxyState {
    pub(super) fn of(common: &Arc<ProcessContext>) -> Self {
        ProxyState(Arc::clone(common))
    }

    /// Whether an address leads back to this router.
    pub fn is_own(&self, address: SocketAddr) -> bool {
        self.0.balancer.health.is_own(address)
    }

    /// Trust anchors for endpoints.
    pub fn trust(&self) -> Trust<'_> {
        self.0.upstream_tls.given()
    }
}

impl LiveState for ProxyState {
    fn trouble(&self, route: &ResolvedRoute, service: &WeightedService, endpoint: &Endpoint) -> Option<String> {
        if self.is_own(endpoint.address) {
            return Some("this router listens there itself, so nothing is sent to it".to_owned());
        }
        let view = self.0.balancer.health.view()?;
        let target = EndpointTarget { service: &service.service, endpoint, policy: service.policy.as_ref() };
        if view.is_ill(target) {
            return Some("ill by its health check".to_owned());
        }
        view.ejection(endpoint.address, || target.peer_for(route)).map(|(step, rest)| {
            let seconds = rest.as_secs().max(1);
            format!("rests for {seconds} s more: {step} failed several times in a row")
        })
    }
}
