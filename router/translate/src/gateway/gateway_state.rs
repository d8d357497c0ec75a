//! A Gateway of an accepted class, with its evaluated listeners.

use std::sync::Arc;

use router_api::gateway_api::types::Gateway;
use router_model::kind::Kind;

use crate::gateway::listeners::placed_listener::PlacedListener;
use crate::status::condition::Condition;

/// A Gateway of a class of Sluice, with its listeners.
#[derive(Debug)]
pub struct GatewayState {
    /// The Gateway.
    pub gateway: Arc<Gateway>,
    /// Condition `Accepted` if the Gateway is rejected as a whole.
    pub rejection: Option<Condition>,
    /// In the order of `spec.listeners`.
    pub listeners: Vec<PlacedListener>,
}

impl GatewayState {
    /// Name of a listener in messages: `Gateway shop/public#web`.
    pub fn parent(&self, listener: &str) -> String {
        format!("{} {}#{listener}", Kind::Gateway, self.gateway.meta.key)
    }
}
